//! The judge: one attack after the other, each by an attacker that lives for it only.

use core::fmt;

use abi::inspect::What;
use abi::lrpc::Status;
use abi::{ThreadId, Time, Timeouts};
use alloc::format;
use alloc::string::String;
use proto::root::{self as op, State};
use proto::{Name, console, layout, pager, unix};
use runtime::lrpc::{self, Binding, Place};
use runtime::window::Window;
use runtime::{Msg, clock, ipc, root};

use crate::attack::{ATTACKS, Attack};
use crate::order::{ALIVE, HELP, Help, ORDER, RESULT, ask, probe};
use crate::parts::NEXT;

/// How long an attack may take, µs.
const ATTACK_US: u64 = 3_000_000;
/// How long a part or a server may take to answer, µs.
const PATIENCE_US: u64 = 200_000;
/// How long a canary computes, and how much longer it may take, µs.
const COMPUTE_US: u64 = 60_000;
/// How long Linux programs may make no system call, µs.
const LINUX_US: u64 = 1_000_000;
/// How long somebody who outlives its task is listened to, µs.
const LISTEN_US: u64 = 20_000;

struct Judge {
    heir_starts: u64,
    /// Restarts of the Unix server that are known.
    unix_restarts: u64,
    named: bool,
    /// The binding to the clerk.
    binding: Option<(Binding, Place)>,
}

/// What the root task says about a task.
struct About {
    slot: usize,
    state: State,
    main: ThreadId,
    restarts: u64,
}

/// Says something where no server is needed that may be attacked.
fn say(text: fmt::Arguments<'_>) {
    runtime::console::report(text);
}

/// Judges, and stops the machine.
pub fn run() {
    let mut judge = Judge { heir_starts: 0, unix_restarts: 0, named: false, binding: None };
    if let Some(why) = judge.harm() {
        say(format_args!("test before-all ... FAILED: {why}\n"));
    }
    for (number, attack) in (0..).zip(ATTACKS) {
        match judge.judge(number, attack) {
            None => say(format_args!("test {} ... ok\n", attack.name)),
            Some(why) => say(format_args!("test {} ... FAILED: {why}\n", attack.name)),
        }
    }
    say(format_args!("tests done\n"));
    let _ = root::halt(op::SUCCESS);
}

/// What the root task says about the task `name`.
fn about(name: &str) -> Option<About> {
    let wanted = Name::new(name);
    (0..)
        .map_while(|index| root::describe(index).ok().map(|task| (index, task)))
        .find(|(_, task)| task.name == wanted)
        .map(|(index, task)| About {
            slot: index as usize,
            state: task.state,
            main: task.main,
            restarts: task.restarts,
        })
}

fn main_of(name: &str) -> ThreadId {
    about(name).map_or(ThreadId::NIL, |about| about.main)
}

impl Judge {
    /// One attack from the attacker's start to its end; what it did.
    fn judge(&mut self, number: u64, attack: &Attack) -> Option<String> {
        if root::start(attack.by).is_err() {
            return Some(format!("the attacker {} could not be started", attack.by));
        }
        let hostile = main_of(attack.by);
        let order = Msg::new(ORDER).word(number);
        if ipc::send_within(hostile, &order, Time::micros(PATIENCE_US)).is_err() {
            return Some(String::from("the attacker does not take its order"));
        }
        let reached = self.serve(hostile);
        let harm = if attack.afterwards { None } else { self.harm() };
        let _ = root::kill(attack.by);
        let left = if attack.afterwards { self.left() } else { None };
        let _ = root::kill("heir");
        let hurt = harm.is_some();
        let result = reached.or(left).or(harm);
        if hurt {
            self.mend();
        }
        result.or_else(|| self.harm())
    }

    /// Helps the attacker until it tells what it reached.
    fn serve(&mut self, hostile: ThreadId) -> Option<String> {
        let end = clock::now_us() + ATTACK_US;
        loop {
            let left = end.saturating_sub(clock::now_us());
            if left == 0 {
                return Some(String::from("the attacker did not come to an end"));
            }
            let Ok((from, msg)) = ipc::wait(Time::micros(left)) else { continue };
            if msg.label() == RESULT && from == hostile {
                let mut buffer = [0; console::WORD_BYTES];
                let len = root::message_text(&msg, &mut buffer);
                let text = core::str::from_utf8(&buffer[..len]).unwrap_or("?");
                return (len > 0).then(|| String::from(text));
            }
            if msg.label() == HELP && from == hostile {
                let words =
                    Help::decode(msg.mr[0]).map_or([0, 0], |help| self.help(help, msg.mr[1]));
                let _ = ipc::reply(from, &Msg::new(proto::OK).words(&words));
            }
        }
    }

    fn help(&mut self, help: Help, argument: u64) -> [u64; 2] {
        let victim = main_of("victim");
        let whole = || ask(victim, &[probe::WHOLE, 0], PATIENCE_US).unwrap_or_default();
        match help {
            Help::Victim => [victim.0, whole()[0]],
            Help::IsSecret => [u64::from(whole()[1] == argument), 0],
            Help::NextHeir => [self.next_heir().0, 0],
            Help::StartHeir => [self.start_heir().0, 0],
            Help::Server => [main_of("server").0, 0],
            Help::Listen => {
                let heard = ask(main_of("server"), &[probe::LISTEN, 0], PATIENCE_US);
                [heard.map_or(0, |mr| mr[0]), 0]
            }
            Help::Compute => [compute(if argument == 0 { "equal" } else { "middle" }), 0],
            Help::VictimSpawns => {
                [ask(victim, &[probe::SPAWN, 0], PATIENCE_US).map_or(0, |mr| mr[0]), 0]
            }
            Help::TryMemory => [u64::from(try_memory()), 0],
            Help::TryName => {
                self.named |= root::register("judge").is_ok();
                [u64::from(self.named), 0]
            }
            Help::TryWait => [u64::from(try_wait()), 0],
            Help::Clerk => [main_of("clerk").0, 0],
            Help::Token => [self.bound().and_then(|binding| binding.token(0)).unwrap_or(0), 0],
            Help::TryCall => [self.call(), 0],
            Help::TryBind => {
                self.let_go();
                [u64::from(self.bound().is_some()), 0]
            }
            Help::RestartClerk => {
                self.let_go();
                let _ = root::kill("clerk");
                let _ = root::start("clerk");
                [0, 0]
            }
            Help::Pause => {
                ipc::sleep(argument.min(ATTACK_US / 2));
                [0, 0]
            }
        }
    }

    /// The binding to the clerk, new if there is none.
    fn bound(&mut self) -> Option<&Binding> {
        if self.binding.is_none() {
            let place = Place::take()?;
            let binding = lrpc::bind(main_of("clerk"), place.address(), 1, 256).ok()?;
            self.binding = Some((binding, place));
        }
        self.binding.as_ref().map(|(binding, _)| binding)
    }

    fn let_go(&mut self) {
        if let Some((binding, place)) = self.binding.take() {
            let _ = binding.revoke();
            drop(place);
        }
    }

    /// The status of a call of the clerk's first procedure.
    fn call(&mut self) -> u64 {
        let result = self.bound().map(|binding| binding.call(0, NEXT, [1; lrpc::WORDS]));
        match result {
            Some(Ok(words)) if words[1] == 2 => Status::Done as u64,
            Some(Err(why)) => why as u64,
            _ => u64::MAX,
        }
    }

    fn next_heir(&self) -> ThreadId {
        let slot = about("heir").map_or(0, |about| about.slot);
        let version = op::version_of(self.heir_starts + 1, 0);
        ThreadId::global(layout::thread_number(slot, 0), version)
    }

    fn start_heir(&mut self) -> ThreadId {
        self.heir_starts += 1;
        match root::start("heir") {
            Ok(_) => main_of("heir"),
            Err(_) => ThreadId::NIL,
        }
    }

    /// What is wrong with victims and servers.
    fn harm(&self) -> Option<String> {
        for name in ["victim", "server", "equal", "middle", "clerk"] {
            match ask(main_of(name), &[probe::WHOLE, 0], PATIENCE_US) {
                None => return Some(format!("the task {name} does not answer")),
                Some(mr) if mr[2] != 1 => return Some(format!("the page of {name} was changed")),
                _ => {}
            }
        }
        for (name, label) in
            [(console::NAME, console::STATISTICS), (pager::NAME, pager::STATISTICS)]
        {
            if statistics(name, label).is_none() {
                return Some(format!("the server {name} does not answer"));
            }
        }
        if let Some(why) = self.linux() {
            return Some(why);
        }
        let violations = root::inspect(What::Check, 0, 0).map(|record| record[0]);
        (violations != Ok(0)).then(|| format!("the kernel's checker finds {violations:?}"))
    }

    /// Whether Linux programs get on: they make system calls.
    fn linux(&self) -> Option<String> {
        if about("unix").is_none_or(|about| about.restarts != self.unix_restarts) {
            return Some(String::from("the Unix server died"));
        }
        let end = clock::now_us() + LINUX_US;
        let mut before = None;
        while clock::now_us() < end {
            let now = statistics(unix::NAME, unix::STATISTICS);
            if before.is_some() && now > before {
                return None;
            }
            before = now.or(before);
            ipc::sleep(10_000);
        }
        Some(String::from("Linux programs make no more system calls"))
    }

    /// Somebody who speaks although its task was ended.
    fn left(&self) -> Option<String> {
        let end = clock::now_us() + LISTEN_US;
        // What was sent before the end is not queued: the sender did not wait.
        while clock::now_us() < end {
            let left = end - clock::now_us();
            if let Ok((from, msg)) = ipc::wait(Time::micros(left.max(1)))
                && msg.label() == ALIVE
            {
                return Some(format!("thread {from} lives, although its task was ended"));
            }
        }
        None
    }

    /// Starts afresh what an attack may have hurt.
    fn mend(&mut self) {
        for name in ["serial", "unix", "victim", "server"] {
            let _ = root::restart(name);
        }
        self.unix_restarts = about("unix").map_or(0, |about| about.restarts);
        ipc::sleep(300_000);
        if about("victim").is_none_or(|about| about.state != State::Running) {
            say(format_args!("the victim could not be started again\n"));
        }
    }
}

/// The first word of a server's statistics.
fn statistics(name: &str, label: u64) -> Option<u64> {
    let server = root::find(name, 50).ok()?;
    let patience = Timeouts::new(Time::micros(PATIENCE_US), Time::micros(PATIENCE_US));
    ipc::call_within(server, &Msg::new(label), patience).ok().map(|reply| reply.mr[0])
}

/// Lets a canary compute; for how long it did not get the processor, µs.
fn compute(name: &str) -> u64 {
    let begin = clock::now_us();
    match ask(main_of(name), &[probe::COMPUTE, COMPUTE_US], 6 * COMPUTE_US) {
        Some(mr) => mr[0],
        None => clock::now_us() - begin,
    }
}

/// Whether the root task gives a page of memory.
fn try_memory() -> bool {
    let Some(mut window) = Window::claim(layout::WINDOWS, 4096) else { return false };
    let got = root::memory(&mut window, None).is_ok();
    window.release();
    got
}

/// Whether the root task lets this task wait for another's end.
fn try_wait() -> bool {
    let request = root::text_message(op::WAIT, b"victim");
    let patience = Timeouts::new(Time::NEVER, Time::micros(5_000));
    // Whoever waits is not answered.
    ipc::call_within(ThreadId::ROOT, &request, patience).is_err()
}
