//! Commands about tasks and memory.

use abi::ThreadId;
use interfaces::pager;
use proto::root::{self as op, State};
use proto::{Name, Refusal, console as console_op, pager as pager_op};
use runtime::root::{answer, call};
use runtime::service::Thread;
use runtime::{Msg, ipc, print, println, root};

/// Lists the tasks.
pub fn tasks(_: &str) {
    println!("  name              state     thread      restarts  exit code");
    for index in 0.. {
        let Ok(reply) = call(&Msg::new(op::TASK).word(index)) else { break };
        let [first, second, state, thread, restarts, code, left_us] = reply.mr;
        let name = Name::from_words(first, second);
        let state = State::decode(state).as_str();
        print!("  {name:16}  {state:8}  {:>6}  {restarts:12}  {code:9}", thread >> 32);
        match left_us {
            0 => println!(),
            _ => println!("  again in {} ms", left_us.div_ceil(1000)),
        }
    }
}

/// Starts, kills or restarts a task.
pub fn control(what: u64, name: &str) {
    match root::control(what, name) {
        Ok(true) if what == op::KILL => println!("{name} is supervised: it is started again."),
        Ok(_) => {}
        Err(Refusal::Taken) => println!("{name} runs already."),
        Err(why) => println!("Nothing was done to {name}: {why}."),
    }
}

/// Starts a task and waits until it is over.
pub fn run(name: &str) {
    if let Err(why) = root::control(op::START, name) {
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
    if let Ok(reply) = call(&Msg::new(op::MEMORY_USE)) {
        let [frames, used, blocks, pool, ..] = reply.mr;
        println!("  root's pool: {used} of {frames} pages in use");
        println!("  blocks given on request: {} KiB", blocks / 1024);
        println!("  pager's pool: {} MiB", pool >> 20);
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
    match ask(console_op::NAME, console_op::STATISTICS) {
        Ok([written, read, interrupts, ..]) => {
            println!("  {written} bytes written, {read} read, {interrupts} interrupts");
        }
        Err(why) => println!("  console: {why}."),
    }
}

/// Asks the server called `name` for its figures.
fn ask(name: &str, label: u64) -> Result<[u64; 7], Refusal> {
    let server: ThreadId = root::lookup(name)?;
    answer(ipc::call(server, &Msg::new(label))).map(|reply| reply.mr)
}
