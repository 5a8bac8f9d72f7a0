//! A prompt on the console to look at a running system and to control it.
//!
//! All knowledge comes from the root task (tasks, the kernel's records) and the
//! pager; its description must say `control=1`.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod kernel_view;
mod names;
mod tasks;

use alloc::string::String;

use proto::root as op;
use runtime::{console, entry, print, println, root};

entry!(main);

/// A command: name, argument, what it does, the function.
type Command = (&'static str, &'static str, &'static str, fn(&str));

const COMMANDS: [Command; 16] = [
    ("help", "", "shows this list", help),
    ("tasks", "", "all tasks of the boot image and what they are doing", tasks::tasks),
    ("start", "NAME", "starts a task", tasks::start),
    ("kill", "NAME", "ends a task; supervised ones are started again", tasks::kill),
    ("restart", "NAME", "ends a task and starts it afresh", tasks::restart),
    ("run", "NAME", "starts a task and waits until it is over", tasks::run),
    ("pingpong", "", "runs the IPC measurement", |_| tasks::run("pingpong")),
    ("mem", "", "memory of the pools and on request", tasks::memory),
    ("ps", "[NAME]", "all threads, or those of one task in detail", kernel_view::threads),
    ("spaces", "", "all address spaces", kernel_view::spaces),
    ("quota", "", "kernel memory of all spaces", kernel_view::quotas),
    (
        "map",
        "ADDRESS",
        "who has the page frame at a physical address, and from whom",
        kernel_view::mapping,
    ),
    ("kernel", "", "the kernel's totals", kernel_view::totals),
    ("check", "", "lets the kernel check its own structures", kernel_view::check),
    ("console", "", "what went through the console", tasks::console),
    ("halt", "", "ends the machine", halt),
];

fn main() {
    println!("Baton. `help` lists the commands.");
    let mut line = [0; proto::console::LINE_BYTES];
    loop {
        console::complete(&words());
        print!("baton> ");
        let text = console::read_line(&mut line).trim();
        let (name, argument) = text.split_once(' ').unwrap_or((text, ""));
        if name.is_empty() {
            continue;
        }
        match COMMANDS.iter().find(|command| command.0 == name) {
            Some((_, wanted, _, _)) if wanted.starts_with(|c| c != '[') && argument.is_empty() => {
                println!("`{name}` needs to know which one; write `{name} {wanted}`.");
            }
            Some(command) => (command.3)(argument.trim()),
            None => println!("There is no command `{name}`; `help` lists those that there are."),
        }
    }
}

/// What can be completed: commands first, then the names of tasks.
fn words() -> String {
    let mut words: String = COMMANDS.iter().flat_map(|command| [command.0, " "]).collect();
    words.push('\n');
    words.extend(names::tasks().into_iter().flat_map(|(_, name)| [name, String::from(" ")]));
    words
}

fn help(_: &str) {
    for (name, argument, what, _) in COMMANDS {
        println!("  {name:9}{argument:9}{what}");
    }
    println!("  Tab completes, arrows edit and bring back lines, ^L clears the screen.");
}

fn halt(_: &str) {
    if let Err(why) = root::halt(op::SUCCESS) {
        println!("The machine goes on: {why}.");
    }
}
