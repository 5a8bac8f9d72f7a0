//! The smallest program: says hello and ends.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

runtime::entry!(main);

fn main() {
    let (me, now_us) = (runtime::thread::me(), runtime::clock::now_us());
    match runtime::utcb::processor() {
        0 => runtime::println!("Hello from thread {me}, at {now_us} µs."),
        other => runtime::println!("Hello from thread {me} on processor {other}, at {now_us} µs."),
    }
}
