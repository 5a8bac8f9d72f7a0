//! Threads whose user code runs on other processors (docs/decisions/0055): it really runs there,
//! and nobody can tell by anything else.
//!
//! A root task without servers. The first thread stays on the first processor. One line per
//! test, then `tests done`.
#![no_std]
#![no_main]

mod alone;
mod cast;
mod hidden;
mod machine;
mod messages;
mod moves;
mod strings;
mod tables;
mod talks;
mod visits;

use abi::inspect::{Back, What};
use abi::kip::offset;
use abi::{Fpage, Rights, ThreadId, Time};
use cast::{Actor, Part};
use core::hint::spin_loop;
use core::sync::atomic::Ordering;
use root_harness::{Test, Verdict, verdict};
use runtime::{
    Msg, boot_entry, clock, direct_println, ipc, kernel, kip, schedule, sigma0, syscall,
};

boot_entry!(main);

/// Calls of one test.
const CALLS: u64 = 1_000;

/// What is tested, and its name.
const TESTS: [Test; 66] = [
    ("the_interface_page_counts_the_processors", told),
    ("user_code_runs_elsewhere", parallel),
    ("a_server_elsewhere_answers", served),
    ("a_client_elsewhere_is_answered", called),
    ("who_does_not_exist_gets_nobody", nowhere),
    ("a_thread_that_runs_elsewhere_is_deleted", deleted),
    ("a_page_is_gone_elsewhere_when_unmap_returns", unmapped),
    ("a_table_is_gone_elsewhere_when_unmap_returns", tables::far),
    ("a_task_has_its_ports_elsewhere", tables::ports),
    ("nobody_has_the_ports_of_who_has_no_place_there", tables::ports_of_others),
    ("who_takes_pages_back_all_the_time_stops_nobody", flooded),
    ("who_goes_to_a_processor_that_rests_leaves_the_kernel", rested),
    ("hogs_share_a_processor", shared),
    ("the_checker_knows_who_waits_for_a_processor", queued),
    ("the_more_urgent_one_runs", urgent),
    ("a_late_interrupt_sends_nobody_home", interrupted_late),
    ("who_faults_at_a_page_that_is_there_tells_its_pager", told_of_a_fault),
    ("a_thread_moves_to_and_fro", wandering),
    ("who_waits_moves", moves::waiting),
    ("a_thread_moves_itself", moves::oneself),
    ("who_is_called_moves_to_and_fro", moves::called),
    ("who_is_halted_moves", moves::halted),
    ("who_does_not_run_moves", moves::inactive),
    ("nobody_moves_nowhere", moves::nobody),
    ("who_is_moved_is_deleted", moves::deleted),
    ("two_delete_the_same_thread", moves::deleted_twice),
    ("two_delete_the_same_task", moves::task_deleted_twice),
    ("two_delete_each_other", moves::deleted_by_each_other),
    ("a_flood_leaves_others_their_share", moves::flooded),
    ("vector_registers_are_everybodys_own", moves::vectors),
    ("who_sends_or_receives_a_long_string_moves", strings::moved),
    ("a_halted_thread_stands_still", halted),
    ("a_talk_inside_a_space_stays_on_its_processor", talks::inside),
    ("a_talk_between_spaces_stays_on_its_processor", talks::between),
    ("a_talk_with_vector_registers_stays_on_its_processor", talks::vectors),
    ("who_talks_there_is_called_from_here", talks::interrupted),
    ("one_of_those_who_talk_is_deleted", talks::deleted),
    ("one_of_those_who_talk_is_halted", talks::halted),
    ("tables_change_under_those_who_talk", talks::unmapped),
    ("somebody_computes_beside_those_who_talk", talks::beside),
    ("a_string_from_there_is_refused_here", talks::spelt),
    ("who_is_nobody_there_gets_no_message", talks::forged),
    ("an_interrupt_while_somebody_gets_a_seat_is_handled", talks::seated),
    ("who_talks_without_the_kernel_moves", alone::moved),
    ("lies_from_another_processor_are_not_believed", alone::lied_to),
    ("a_talk_elsewhere_needs_no_kernel", hidden::stays),
    ("a_talk_elsewhere_leaves_vector_registers_alone", hidden::vectors),
    ("a_chain_elsewhere_needs_no_kernel", hidden::chain),
    ("a_critical_section_elsewhere_needs_no_kernel", hidden::section),
    ("who_talks_elsewhere_moves_at_any_moment", hidden::moving),
    ("who_talks_elsewhere_is_deleted_at_any_moment", hidden::deleted),
    ("who_talks_elsewhere_is_called_from_here", hidden::called),
    ("both_kinds_of_messages_meet_elsewhere", hidden::mixed),
    ("somebody_computes_beside_those_who_hide", hidden::beside),
    ("who_talks_elsewhere_faults", hidden::faulted),
    ("who_talks_elsewhere_is_stepped", hidden::stepped),
    ("who_says_elsewhere_that_others_run_is_not_believed", hidden::forged),
    ("all_processors_call_one_server_where_they_are", visits::everywhere),
    ("who_calls_elsewhere_or_is_called_is_deleted", visits::deleted),
    ("a_server_that_is_called_elsewhere_ends", visits::ended),
    ("bindings_of_who_calls_elsewhere_are_revoked", visits::revoked),
    ("who_calls_elsewhere_or_is_called_is_halted", visits::halted),
    ("who_calls_elsewhere_or_is_called_moves", visits::moved),
    ("visitors_elsewhere_have_a_floor", visits::lifted),
    ("a_clerk_that_lives_elsewhere_agrees", visits::agreed_elsewhere),
    ("a_device_s_message_to_any_processor_arrives", messages::anywhere),
];

fn main() -> ! {
    root_harness::begin();
    root_harness::run(&TESTS)
}

/// How many processors the interface page tells of.
fn processors() -> u32 {
    (kip::get().word(offset::PROCESSOR_INFO) & 0xFFFF) as u32 + 1
}

/// The number of the last processor.
fn last() -> u32 {
    processors() - 1
}

/// Waits a while without leaving the processor to anybody.
fn busy() {
    (0..20_000).for_each(|_| spin_loop());
}

fn told() -> Verdict {
    verdict(processors() > 1, "one processor only")?;
    let kip = kip::get();
    let size = kip.word(offset::PROCESSOR_INFO) >> 60;
    let first = kip.word(offset::PROC_DESC_PTR) as usize;
    let speed = |number: u32| kip.word(first + ((number as usize) << size) + 8);
    let same = (0..processors()).all(|number| speed(number) == speed(0) && speed(0) != 0);
    verdict(same, "the descriptors are not alike")
}

fn parallel() -> Verdict {
    for number in 1..processors() {
        let actor = Actor::start(0, Part::Count, number);
        // Nobody else of this priority would run here before this one's slice ends.
        let ran = actor.counts_on();
        actor.stop();
        verdict(ran, "it does not run while this one does")?;
    }
    Ok(())
}

/// Several wait for the same processor while it looks at itself.
fn queued() -> Verdict {
    let actors: [Actor; 4] = core::array::from_fn(|place| Actor::start(place, Part::Count, last()));
    let found = (0..20).all(|_| {
        busy();
        kernel::inspect(What::Check, 0, 0).is_some_and(|record| record[0] == 0)
    });
    actors.iter().for_each(Actor::stop);
    verdict(found, "the checker finds something")
}

fn served() -> Verdict {
    let actor = Actor::start(0, Part::Serve, last());
    for round in 0..CALLS {
        let msg = Msg::default().words(&[round]);
        let answer = ipc::call(actor.id, &msg).map_err(|_| "a call failed")?;
        verdict(answer.get(0) == round && answer.get(1) == round, "another answer")?;
    }
    actor.stop();
    Ok(())
}

fn called() -> Verdict {
    let actors: [Actor; 2] = core::array::from_fn(|place| Actor::start(place, Part::Call, last()));
    let mut seen = [0; 2];
    for _ in 0..CALLS {
        let (client, msg) = ipc::wait(Time::NEVER).map_err(|_| "no call came")?;
        let place = actors.iter().position(|actor| actor.local() == client);
        let place = place.ok_or("somebody else called")?;
        seen[place] += 1;
        let _ = ipc::send(actors[place].id, &msg);
    }
    actors.iter().for_each(Actor::stop);
    verdict(seen.iter().all(|calls| *calls > CALLS / 10), "one of them is not served")
}

fn nowhere() -> Verdict {
    let me = runtime::thread::me();
    for number in [processors(), 63, 64, 255, 256, 0x7FFF, 0xFFFF] {
        verdict(schedule::set_processor(me, number).is_err(), "a processor too many")?;
        let found = syscall::processor_control(number.into(), !0, !0, !0);
        verdict(!found, "a processor too many can be set")?;
    }
    for number in [processors().into(), 63, 64, 65, 129, 1 << 32 | 1, u64::MAX] {
        let found = kernel::inspect(What::Visits, number, 0);
        verdict(found.is_none(), "a processor too many says who came back")?;
    }
    let all = (0..processors()).all(|number| {
        syscall::processor_control(number.into(), !0, !0, !0)
            && !syscall::processor_control(number.into(), 1_000_000, !0, !0)
    });
    verdict(all, "one of the processors cannot be asked, or can be set")
}

fn deleted() -> Verdict {
    for round in 0..50 {
        let actor = Actor::start(0, Part::Count, 1 + round % last());
        if round % 2 == 0 {
            let _ = actor.counts_on();
        }
        actor.stop();
        let before = actor.count();
        busy();
        verdict(actor.count() == before, "it counts on, deleted")?;
    }
    Ok(())
}

fn unmapped() -> Verdict {
    for _ in 0..10 {
        let page = sigma0::memory(None, 12).ok_or("no page")?;
        let address = page.base();
        let _ = machine::read(address);
        cast::ADDRESS.store(address, Ordering::Relaxed);
        let actor = Actor::start(0, Part::Read, last());
        verdict(actor.counts_on(), "it does not run while this one does")?;
        machine::flush(Fpage::memory(address, 12, Rights::RWX));
        let before = actor.count();
        busy();
        verdict(actor.count() <= before + 1, "it reads what is gone")?;
        let (_, fault) = ipc::wait(Time::NEVER).map_err(|_| "no fault came")?;
        verdict(fault.get(0) & !0xFFF == address, "it faults elsewhere")?;
        actor.stop();
    }
    Ok(())
}

/// The page that a thread reads loses its status bits as fast as this one can take them.
fn flooded() -> Verdict {
    let page = sigma0::memory(None, 12).ok_or("no page")?;
    let flexpage = Fpage::memory(page.base(), 12, Rights::RWX);
    let _ = machine::read(page.base());
    cast::ADDRESS.store(page.base(), Ordering::Relaxed);
    let actor = Actor::start(0, Part::Read, last());
    verdict(actor.counts_on(), "it does not run while this one does")?;
    for _ in 0..40 {
        let before = actor.count();
        for _ in 0..20 {
            machine::flush(flexpage);
            let _ = machine::read(page.base());
        }
        let goes_on = (0..100).any(|_| help(&actor, page.base()) || actor.count() > before);
        verdict(goes_on, "it stands still")?;
    }
    actor.stop();
    Ok(())
}

/// After many changes of tables nobody goes there for a while; who wants to goes on here.
fn rested() -> Verdict {
    let page = sigma0::memory(None, 12).ok_or("no page")?;
    let actor = Actor::start(0, Part::Count, 1);
    verdict(actor.counts_on(), "it does not run while this one does")?;
    let mut least_us = u64::MAX;
    for _ in 0..5 {
        for _ in 0..20 {
            let _ = machine::read(page.base());
            machine::flush(Fpage::memory(page.base(), 12, Rights::RWX));
            busy();
        }
        let before_us = clock::now_us();
        let _ = schedule::set_processor(ThreadId::ROOT, 1);
        least_us = least_us.min(clock::now_us() - before_us);
        let _ = schedule::set_processor(ThreadId::ROOT, 0);
    }
    direct_println!("smp: at least {least_us} us to a processor that rests");
    actor.stop();
    // Elsewhere the emulator's own work is time.
    let is_soon = least_us < 1_000 || !clock::counts_instructions();
    verdict(is_soon, "it stays in the kernel until the processor does not rest any more")
}

/// If `actor` meets the hole at `address`, brings the page back: this thread is its pager.
fn help(actor: &Actor, address: u64) -> bool {
    let met = ipc::receive(actor.id, Time::micros(300)).is_ok();
    if met {
        let _ = machine::read(address);
        let _ = ipc::send(actor.id, &Msg::default());
    }
    met
}

fn shared() -> Verdict {
    let actors: [Actor; 3] = core::array::from_fn(|place| Actor::start(place, Part::Count, 1));
    let run = actors.iter().all(Actor::counts_on);
    let again = actors.iter().all(Actor::counts_on);
    actors.iter().for_each(Actor::stop);
    verdict(run && again, "one of them has no turn")
}

fn urgent() -> Verdict {
    let low = Actor::start(0, Part::Count, 1);
    verdict(low.counts_on(), "it does not run while this one does")?;
    let high = Actor::start(1, Part::Count, 1);
    let _ = schedule::set_priority(low.id, 50);
    verdict(high.counts_on(), "the more urgent one does not run")?;
    let before = low.count();
    verdict(high.counts_on() && low.count() == before, "the less urgent one does")?;
    high.stop();
    let goes_on = low.counts_on();
    low.stop();
    verdict(goes_on, "the less urgent one does not go on")
}

/// Somebody is to go to another processor, which is interrupted for that, and somebody more urgent goes instead,
/// for which it is interrupted again. The second interrupt finds him there, and sends him home for nothing.
fn interrupted_late() -> Verdict {
    let low = Actor::start_apart(0, Part::Serve, 1);
    let high = Actor::start_apart(1, Part::Serve, 1);
    let _ = schedule::set_priority(low.id, 50);
    let ask = |actor: &Actor| ipc::send(actor.id, &Msg::default()).is_ok();
    let answers = |actor: &Actor| ipc::receive(actor.id, Time::micros(20_000)).is_ok();
    let mut all = [&low, &high].iter().all(|actor| ask(actor) && answers(actor));
    let before = came_back(Back::Exception);
    for _ in 0..10 {
        // Nobody looks there any more.
        ipc::sleep(5_000);
        all &= ask(&low);
        // An emulator that counts lets the other processor take the interrupt at the next tick, and execute nothing.
        (0..2_000_000_u64).for_each(|round| {
            core::hint::black_box(round);
        });
        all &= ask(&high) && answers(&high);
        let _ = answers(&low);
    }
    low.stop();
    high.stop();
    verdict(all, "somebody does not answer")?;
    verdict(came_back(Back::Exception) == before, "an interrupt that was for nobody sends him home")
}

/// A fault of the processor's own access, at a page that its thread may use: the kernel must not send
/// the thread back to fault again, for ever, and before those of lower priority.
fn told_of_a_fault() -> Verdict {
    let low = Actor::start(0, Part::Count, 1);
    let _ = schedule::set_priority(low.id, 50);
    verdict(low.counts_on(), "it does not run while this one does")?;
    let before = faults();
    let high = Actor::start(1, Part::Return, 1);
    let goes_on = low.counts_on();
    high.stop();
    low.stop();
    verdict(goes_on, "the less urgent one does not go on")?;
    verdict(faults() < before + 8, "it faults again and again")
}

/// How often threads have come back from processor 1 for a page fault.
fn faults() -> u64 {
    came_back(Back::PageFault)
}

/// The same for any reason.
fn came_back(why: Back) -> u64 {
    let (part, word) = (why as usize / 8, why as usize % 8);
    kernel::inspect(What::Visits, 1, part as u64).map_or(0, |record| record[word])
}

fn wandering() -> Verdict {
    let actor = Actor::start(0, Part::Wander, last());
    let server = Actor::start(1, Part::Serve, 1);
    for round in 0..CALLS {
        let answer = ipc::call(server.id, &Msg::default().words(&[round]));
        verdict(answer.is_ok_and(|msg| msg.get(0) == round), "another answer")?;
        let _ = schedule::set_processor(server.id, round as u32 % processors());
    }
    // On the first processor it has its turn only if this one leaves it.
    let before = actor.count();
    let _ = ipc::receive(runtime::thread::me(), Time::micros(20_000));
    verdict(actor.count() > before, "it stands still")?;
    actor.stop();
    server.stop();
    Ok(())
}

fn halted() -> Verdict {
    let actor = Actor::start(0, Part::Count, last());
    for _ in 0..20 {
        verdict(actor.counts_on(), "it does not run while this one does")?;
        machine::halt(actor.id, true);
        let before = actor.count();
        busy();
        verdict(actor.count() == before, "it counts on, halted")?;
        machine::halt(actor.id, false);
    }
    actor.stop();
    Ok(())
}
