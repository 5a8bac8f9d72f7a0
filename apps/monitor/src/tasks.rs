//! Commands about tasks and memory.

use interfaces::tasks::State;
use interfaces::{console, pager};
use proto::{Refusal, console as console_op, pager as pager_op};
use runtime::service::Thread;
use runtime::{print, println, root};

/// Lists the tasks.
pub fn tasks(_: &str) {
    println!("  name              state     thread      restarts  exit code");
    for index in 0.. {
        let Ok(task) = root::describe(index) else { break };
        let root::About { name, main, restarts, exit_code, again_us, .. } = task;
        let state = word(task.state);
        print!("  {name:16}  {state:8}  {:>6}  {restarts:12}  {exit_code:9}", main.number());
        match again_us {
            0 => println!(),
            _ => println!("  again in {} ms", again_us.div_ceil(1000)),
        }
    }
}

/// A task's state in one word.
const fn word(state: State) -> &'static str {
    match state {
        State::Ready => "ready",
        State::Running => "running",
        State::Exited => "exited",
        State::Crashed => "crashed",
        State::Killed => "killed",
        State::Waiting => "waiting",
    }
}

/// Starts a task.
pub fn start(name: &str) {
    tell(name, root::start(name));
}

/// Ends a task.
pub fn kill(name: &str) {
    match root::kill(name) {
        Ok(true) => println!("{name} is supervised: it is started again."),
        result => tell(name, result.map(|_| ())),
    }
}

/// Ends a task and starts it afresh.
pub fn restart(name: &str) {
    tell(name, root::restart(name));
}

fn tell(name: &str, result: Result<(), Refusal>) {
    match result {
        Ok(()) => {}
        Err(Refusal::Taken) => println!("{name} runs already."),
        Err(why) => println!("Nothing was done to {name}: {why}."),
    }
}

/// Starts a task and waits until it is over.
pub fn run(name: &str) {
    if let Err(why) = root::start(name) {
        let why: &dyn core::fmt::Display =
            if why == Refusal::Taken { &"it runs already" } else { &why };
        return println!("{name} was not started: {why}.");
    }
    match root::wait(name) {
        Ok(0) => {}
        Ok(code) => println!("{name} ended with code {code}."),
        Err(why) => println!("Cannot wait for {name}: {why}."),
    }
}

/// Shows where memory is.
pub fn memory(_: &str) {
    if let Ok(memory) = root::memory_use() {
        println!("  root's pool: {} of {} pages in use", memory.in_use, memory.frames);
        println!("  blocks given on request: {} KiB", memory.blocks / 1024);
        println!("  pager's pool: {} MiB", memory.pager >> 20);
    }
    match root::lookup(pager_op::NAME) {
        Ok(server) => match pager::Client::new(Thread(server)).statistics() {
            Ok(pager::Figures { frames, in_use, faults, text_pages, starts }) => println!(
                "  pager: {in_use} of {frames} pages in use; {faults} faults answered, {text_pages} of them text; \
                started {starts} time(s) on this pool"
            ),
            Err(why) => println!("  pager: {why}."),
        },
        Err(why) => println!("  pager: {why}."),
    }
}

/// Shows what the console driver counted.
pub fn console(_: &str) {
    let figures = |driver| root::outcome(console::Client::new(Thread(driver)).statistics());
    match root::lookup(console_op::NAME).and_then(figures) {
        Ok(console::Figures { written, typed, interrupts }) => {
            println!("  {written} bytes written, {typed} read, {interrupts} interrupts");
        }
        Err(why) => println!("  console: {why}."),
    }
}
