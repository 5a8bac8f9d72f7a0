//! The Unix server: binds `lib/unix` to Baton. "The Unix server can act as a pager for
//! its clients and also use memory sharing for communicating with its clients" (Liedtke
//! 1995, 3): programs' memory is memory of this task, mapped on to them, so their
//! buffers are read and written in place.
//!
//! One thread serves all programs, in an open wait: system calls, page faults and
//! exceptions are messages to it (`abi::protocol`), answers go by reply & wait. Two
//! helpers turn time (`alarm`) and typing (`console`) into messages. It never waits
//! for a program.
//!
//! | module | what |
//! |---|---|
//! | `machine` | the library's `Machine`: the pieces below put together |
//! | `tasks` | address spaces and threads of programs |
//! | `pages` | mappings on their way to programs, revocation |
//! | `clock`, `alarm`, `console` | time, deadlines, the terminal |
//! | `turns` | programs' turns |
//! | `services` | calls of programs to services of other tasks |
//! | `natives` | native tasks' sockets |
//! | `boot` | memory, the first file system, process 1 |
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod alarm;
mod boot;
mod clock;
mod console;
mod machine;
mod natives;
mod pages;
mod serve;
mod services;
mod tasks;
mod turns;

runtime::entry!(main);

fn main() {
    match boot::system() {
        Ok(system) => {
            // Nobody needs the name to run programs: without it only the figures are missing.
            let _ = runtime::root::register(proto::unix::NAME);
            serve::serve(&system);
        }
        Err(why) => {
            runtime::println!("unix: {why}");
            runtime::exit(1);
        }
    }
}
