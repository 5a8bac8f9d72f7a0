//! The smallest program: says hello and ends.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

runtime::entry!(main);

fn main() {
    runtime::println!(
        "Hello from thread {}, at {} µs.",
        runtime::thread::me(),
        runtime::clock::now_us()
    );
}
