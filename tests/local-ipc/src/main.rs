//! Local IPC in user mode (Wenske 2002) on a running kernel: messages go without the
//! kernel, and nobody can tell but by counting.
//!
//! A root task without servers. The first thread is the client; the others serve. One line
//! per test, then `tests done`.
#![no_std]
#![no_main]

mod across;
mod adversary;
mod beside;
mod cast;
mod chains;
mod critical;
mod machine;
mod transfer;
mod vector;

use abi::inspect::What;
use abi::{ThreadId, Time};
use cast::{Actor, Part};
use root_harness::{Test, Verdict};
use runtime::{Msg, boot_entry, direct_println, ipc, kernel, utcb};

boot_entry!(main);

/// Calls of one test.
const CALLS: u64 = 2_000;
/// Calls into which interrupts fall everywhere.
const MANY: u64 = 3_000_000;

const TESTS: [Test; 35] = [
    ("messages_go_without_the_kernel", without_the_kernel),
    ("seven_words_arrive_and_more_do_too", words),
    ("a_chain_comes_back", chain),
    ("other_spaces_names_and_limits_go_through_the_kernel", mixed),
    ("interrupts_anywhere_change_nothing", interrupted),
    ("a_deleted_partner_is_missed", deleted),
    ("a_way_that_is_closed_opens_again", closed),
    ("who_uses_it_no_more_pays_nothing", disarmed),
    ("kernel_ipc_with_those_who_take_no_part", across::unarmed),
    ("kernel_ipc_between_armed_threads_of_two_spaces", across::armed),
    ("an_armed_server_is_called_from_another_space", across::called),
    ("who_was_woken_by_the_kernel_misses_its_next_partner", across::missed),
    ("random_chains_are_the_same_by_the_kernel_and_without", chains::same),
    ("pages_that_are_missing_are_fetched_in_between", adversary::faulted),
    ("single_steps_change_nothing", adversary::stepped),
    ("single_steps_through_a_section_change_nothing", adversary::stepped_section),
    ("a_forged_word_wakes_nobody", adversary::forged),
    ("a_forged_word_revives_nobody_in_a_transfer", transfer::forged),
    ("nonsense_in_a_wait_is_for_nobody", adversary::nonsense),
    ("a_forced_way_loses_no_message", adversary::forced),
    ("jumps_into_every_byte_hurt_nobody_else", adversary::jumps),
    ("vector_users_take_part", vector::take_part),
    ("messages_of_each_length_of_vector_users", vector::words),
    ("vector_registers_survive_interrupts", vector::interrupted),
    ("who_keeps_its_registers_keeps_them", vector::kept),
    ("users_and_others_do_not_mix", vector::mixed),
    ("a_refused_partner_spoils_nobody", vector::refused),
    ("vector_users_who_take_part_meet_in_the_kernel", beside::meet),
    ("control_words_are_each_threads_own_by_kernel_ipc", beside::controls),
    ("who_says_it_is_another_hurts_nobody_else", beside::lies),
    ("a_critical_section_needs_no_kernel", critical::alone),
    ("one_is_inside_whoever_comes", critical::contended),
    ("who_is_cancelled_stays_until_it_is_done", critical::cancelled),
    ("a_stray_message_is_no_work", critical::strays),
    ("a_section_in_a_section", critical::nested),
];

fn main() -> ! {
    root_harness::begin();
    root_harness::run(&TESTS)
}

/// Entries into the complete path since boot.
fn entries() -> u64 {
    kernel::inspect(What::Kernel, 0, 0).map_or(0, |record| record[4])
}

/// The rest of the task gets the processor for a while.
fn pause(us: u32) {
    let _ = ipc::receive(runtime::thread::me(), Time::micros(us.into()));
}

fn me() -> ThreadId {
    ThreadId::local(utcb::pointer())
}

/// `count` calls of `server`, each answered with its words' sum.
fn calls(server: ThreadId, count: u64) -> Verdict {
    for round in 0..count {
        let msg = Msg::default().words(&[round, 3 * round]);
        let answer = ipc::local_call(server, &msg).map_err(|_| "a call failed")?;
        if answer.tag.untyped() != 2 || answer.get(0) != 4 * round {
            return Err("an answer has other words than the server sent");
        }
        if answer.get(1) != me().0 {
            return Err("the server saw another sender than the caller");
        }
    }
    Ok(())
}

fn without_the_kernel() -> Verdict {
    let adder = Actor::start(0, Part::Add);
    let verdict = in_user_mode(adder.local);
    adder.stop();
    verdict
}

/// Whether calls of `server` go without the kernel: in the best of three batches, for a tick that
/// leaves somebody waiting closes the way in user mode for a while.
fn in_user_mode(server: ThreadId) -> Verdict {
    calls(server, 10)?;
    let mut least = u64::MAX;
    for _ in 0..3 {
        let before = entries();
        calls(server, CALLS)?;
        least = least.min(entries() - before);
    }
    direct_println!("local-ipc: {CALLS} calls and answers, {least} kernel entries");
    if least < CALLS / 50 { Ok(()) } else { Err("most messages went through the kernel") }
}

/// Messages of each length between two threads in each state in which they can meet.
fn words() -> Verdict {
    use abi::utcb::{LIPC_CLOSED, LIPC_STATE, LIPC_UNKNOWN};
    const STATES: [fn(&Actor); 8] = [
        |_| (),
        |echo| machine::write_utcb(echo.local.0, LIPC_STATE, LIPC_CLOSED),
        |_| machine::write_utcb(me().0, LIPC_STATE, LIPC_CLOSED),
        |echo| machine::write_utcb(echo.local.0, LIPC_STATE, LIPC_UNKNOWN),
        |_| machine::write_utcb(me().0, LIPC_STATE, LIPC_UNKNOWN),
        // Who asks for its registers takes it out of its public wait.
        |echo| assert!(runtime::thread::registers(echo.id).is_some()),
        // It waits in the kernel afterwards.
        |echo| assert!(ipc::call(echo.id, &Msg::default()).is_ok()),
        |_| pause(20),
    ];
    let mut echo = Actor::start(0, Part::Echo);
    for count in 0..=63_u64 {
        for state in STATES {
            state(&echo);
            echoes(&echo, count)?;
        }
        echo.stop();
        echo = Actor::start(0, Part::Echo);
        echoes(&echo, count)?;
    }
    echo.stop();
    Ok(())
}

fn echoes(echo: &Actor, count: u64) -> Verdict {
    let mut msg = Msg::default();
    for word in 0..count {
        msg = msg.word(word * 0x1_0001 + count);
    }
    let answer = ipc::local_call(echo.local, &msg).map_err(|_| "a call failed")?;
    let same = (0..count as usize).all(|word| answer.get(word) == word as u64 * 0x1_0001 + count);
    let whole = answer.tag.untyped() as u64 == count && same;
    if whole { Ok(()) } else { Err("the echo is another message") }
}

fn chain() -> Verdict {
    let adder = Actor::start(0, Part::Add);
    let links = [1, 2, 3].map(|index| Actor::start(index, Part::Forward(index - 1)));
    for round in 0..CALLS {
        let msg = Msg::default().words(&[round, 5]);
        let answer = ipc::local_call(links[2].local, &msg).map_err(|_| "a call failed")?;
        if answer.get(0) != round + 5 || answer.get(1) != links[0].local.0 {
            return Err("the end of the chain did not answer its neighbour");
        }
    }
    links.iter().for_each(Actor::stop);
    adder.stop();
    Ok(())
}

fn mixed() -> Verdict {
    let adder = Actor::start(0, Part::Add);
    for round in 0..64 {
        calls(adder.local, 3)?;
        // By the global name, and with a limit: kernel IPC, the same answer.
        let msg = Msg::default().words(&[round, 1]);
        let answer = ipc::call(adder.id, &msg).map_err(|_| "a call by global id failed")?;
        if answer.get(0) != round + 1 || answer.get(1) != me().0 {
            return Err("a call by global id was answered otherwise");
        }
        let limits = abi::Timeouts::new(Time::NEVER, Time::micros(1_000_000));
        let answer =
            ipc::call_within(adder.id, &msg, limits).map_err(|_| "a limited call failed")?;
        if answer.get(0) != round + 1 {
            return Err("a call with a limit was answered otherwise");
        }
        let nobody = ipc::receive(adder.id, Time::micros(20));
        if nobody.is_ok() {
            return Err("a message came that nobody sent");
        }
    }
    adder.stop();
    Ok(())
}

/// Interrupts fall on each instruction of a call and its answer: somebody of higher priority wakes up
/// at all times, and notes when.
fn interrupted() -> Verdict {
    const TIMES: usize = 512;
    let adder = Actor::start(0, Part::Add);
    let waker = Actor::start(1, Part::Stamp);
    let (mut fell, mut shortest, mut count) = ([false; TIMES], u64::MAX, 0_u64);
    let places = |fell: &[bool]| fell.iter().filter(|fell| **fell).count() as u64;
    for round in 0..4 * MANY {
        let before = critical::clock();
        let answer = ipc::local_call(adder.local, &Msg::default().words(&[round, 3 * round]));
        let after = critical::clock();
        let right = answer.is_ok_and(|msg| msg.get(0) == 4 * round && msg.get(1) == me().0);
        if !right {
            return Err("a call was answered otherwise");
        }
        shortest = shortest.min(after - before);
        let woken = cast::STAMP.load(core::sync::atomic::Ordering::Relaxed);
        if let Some(at) = woken.checked_sub(before) {
            count += 1;
            // The entry and the way to the one who wakes up take the same time again and again.
            fell[at as usize % TIMES] = true;
            if places(&fell) >= shortest && round > MANY {
                break;
            }
            // Ticks come at regular times; so that they meet other instructions each time:
            (0..count % 79).for_each(|_| core::hint::spin_loop());
        }
    }
    waker.stop();
    adder.stop();
    let places = places(&fell);
    direct_println!(
        "local-ipc: {count} interrupts in calls of {shortest} instructions, after {places} different times"
    );
    if places >= shortest { Ok(()) } else { Err("interrupts did not fall everywhere") }
}

/// The server has been told to ask the kernel once, as a tick that leaves somebody waiting does,
/// and is never in the kernel but to wait.
fn closed() -> Verdict {
    let adder = Actor::start(0, Part::Add);
    calls(adder.local, 10)?;
    machine::write_utcb(adder.local.0, abi::utcb::LIPC_STATE, abi::utcb::LIPC_CLOSED);
    let before = entries();
    calls(adder.local, 20)?;
    let entries = entries() - before;
    adder.stop();
    if entries < 5 { Ok(()) } else { Err("every message went through the kernel") }
}

/// Kernel IPC of a thread that has exchanged messages in user mode is soon as short as before.
fn disarmed() -> Verdict {
    let (adder, plain) = (Actor::start(0, Part::Add), Actor::start(1, Part::Plain));
    let round = |count: u64| {
        let start = critical::clock();
        for round in 0..count {
            let answer = ipc::call(plain.id, &Msg::default().words(&[round, 3]));
            if answer.map_or(0, |msg| msg.get(0)) != round + 3 {
                return Err("a call was answered otherwise");
            }
        }
        Ok((critical::clock() - start) / count)
    };
    let before = round(100)?;
    calls(adder.local, 10)?;
    let (armed, then) = (round(10)?, round(100).and(round(100))?);
    direct_println!(
        "local-ipc: kernel IPC, there and back: {before}, {armed} when armed, then {then}"
    );
    plain.stop();
    adder.stop();
    if then <= before + 2 { Ok(()) } else { Err("kernel IPC stays dearer than it was") }
}

fn deleted() -> Verdict {
    let adder = Actor::start(0, Part::Add);
    calls(adder.local, 20)?;
    adder.stop();
    let msg = Msg::default().words(&[1, 2]);
    match ipc::local_call(adder.local, &msg) {
        Ok(_) => Err("a thread that is gone has answered"),
        Err(_) => Ok(()),
    }
}
