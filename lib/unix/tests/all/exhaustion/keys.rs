//! What has names and belongs to no process: keys, and message queues.

use linux_raw_sys::general as l;

use super::exhausts;

#[test]
fn keys() {
    exhausts(|program, number| {
        let kind = ["user\0", "keyring\0"][number as usize % 2];
        let len = if number % 2 == 0 { number % 4000 + 1 } else { 0 };
        let kind = program.path(0, kind.as_bytes());
        let name = program.path(1, format!("{number}").as_bytes());
        // The keyring that all processes of the user have.
        let ring = -4_i64 as u64;
        program.call(l::__NR_add_key, &[kind, name, program.buffer, len, ring])
    });
}

#[test]
fn message_queues() {
    exhausts(|program, number| {
        let name = program.path(0, format!("{number}").as_bytes());
        let flags = u64::from(l::O_CREAT | l::O_RDWR);
        let queue = program.call(l::__NR_mq_open, &[name, flags, 0o600, 0]);
        if queue >= 0 {
            program.close(queue as u64);
        }
        queue
    });
}
