//! Random calls on descriptors, streams, sockets and terminals, with arguments that are
//! often meaningful: nothing panics, and afterwards everything that was used is free again.

// Linux's names of calls, in patterns.
#![allow(non_upper_case_globals)]

use std::rc::Rc;

use crate::common::World;
use linux_raw_sys::general::*;
use unix::thread::Thread;

/// Calls that work on descriptors.
const CALLS: [u32; 62] = [
    __NR_read,
    __NR_write,
    __NR_close,
    __NR_poll,
    __NR_lseek,
    __NR_ioctl,
    __NR_pread64,
    __NR_pwrite64,
    __NR_readv,
    __NR_writev,
    __NR_pipe,
    __NR_select,
    __NR_dup,
    __NR_dup2,
    __NR_socket,
    __NR_connect,
    __NR_accept,
    __NR_sendto,
    __NR_recvfrom,
    __NR_sendmsg,
    __NR_recvmsg,
    __NR_shutdown,
    __NR_bind,
    __NR_listen,
    __NR_getsockname,
    __NR_getpeername,
    __NR_socketpair,
    __NR_setsockopt,
    __NR_getsockopt,
    __NR_fcntl,
    __NR_epoll_create,
    __NR_epoll_wait,
    __NR_epoll_ctl,
    __NR_epoll_create1,
    __NR_pselect6,
    __NR_ppoll,
    __NR_signalfd,
    __NR_timerfd_create,
    __NR_eventfd,
    __NR_timerfd_settime,
    __NR_timerfd_gettime,
    __NR_accept4,
    __NR_signalfd4,
    __NR_eventfd2,
    __NR_dup3,
    __NR_pipe2,
    __NR_preadv,
    __NR_pwritev,
    __NR_recvmmsg,
    __NR_sendmmsg,
    __NR_preadv2,
    __NR_pwritev2,
    __NR_close_range,
    __NR_epoll_pwait,
    __NR_epoll_pwait2,
    __NR_open,
    __NR_open,
    __NR_socketpair,
    __NR_pipe2,
    __NR_read,
    __NR_write,
    __NR_ioctl,
];

/// Requests to terminals and streams.
const REQUESTS: [u64; 24] = [
    0x5401,
    0x5402,
    0x5403,
    0x5404,
    0x5405,
    0x5409,
    0x540a,
    0x540b,
    0x540c,
    0x540e,
    0x540f,
    0x5410,
    0x5412,
    0x5413,
    0x5414,
    0x541b,
    0x5421,
    0x5422,
    0x5423,
    0x5424,
    0x5429,
    0x8004_5430,
    0x4004_5431,
    0x5441,
];

struct Noise<'a> {
    world: &'a World,
    numbers: u64,
    area: u64,
    names: [u64; 4],
}

impl Noise<'_> {
    fn below(&mut self, end: u64) -> u64 {
        self.numbers = self
            .numbers
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963);
        (self.numbers >> 33) % end
    }

    fn argument(&mut self) -> u64 {
        match self.below(12) {
            0..4 => self.below(24),
            4 => self.below(1 << 12),
            5..8 => self.area + self.below(8192),
            8 => self.names[self.below(4) as usize],
            9 => 1 << self.below(64),
            10 => u64::MAX - self.below(200),
            _ => REQUESTS[self.below(REQUESTS.len() as u64) as usize],
        }
    }

    /// Something that may pass for a structure of small numbers and addresses.
    fn scribble(&mut self) {
        let mut bytes = Vec::new();
        for _ in 0..64 {
            let word = self.argument();
            bytes.extend(word.to_le_bytes());
        }
        let at = self.area + self.below(1024) * 8;
        self.world.write(&self.world.first, at, &bytes);
    }

    fn call(&mut self, thread: &Rc<Thread>) {
        let number = CALLS[self.below(CALLS.len() as u64) as usize];
        let mut arguments = [0; 6].map(|_| self.argument());
        match number {
            __NR_open => arguments = [self.names[self.below(4) as usize], 2 | 0o4000, 0, 0, 0, 0],
            __NR_socket | __NR_socketpair => {
                arguments = [1, [1, 2, 5][self.below(3) as usize] | 0o4000, 0, self.area, 0, 0];
            }
            // Long ones only take time.
            __NR_close_range => arguments[0] = 20 + arguments[0] % 4096,
            _ => {}
        }
        if self.world.call(thread, number, &arguments).is_none() {
            self.unblock(thread);
        }
        self.world.machine.console.take();
    }

    /// A call that waits is ended by a signal with a handler.
    fn unblock(&mut self, thread: &Rc<Thread>) {
        if thread.process().ended.get().is_some() {
            return;
        }
        self.world.type_in(b"x\n");
        self.world.advance(10_000_000);
        let pid = u64::from(thread.process().number);
        if self.world.next_event(thread).is_none() {
            self.world.ok(&self.world.first, __NR_kill, &[pid, SIGKILL.into()]);
            self.world.next_event(thread);
        }
    }
}

#[test]
fn noise_breaks_nothing() {
    for seed in 0..12 {
        let world = World::new();
        let names = ["/dev/ptmx", "/dev/tty", "/dev/console", "/dev/pts/0"];
        let names = names.map(|name| world.text(&world.first, name));
        let area = world.scratch(&world.first, 32_768);
        let mut noise = Noise { world: &world, numbers: seed, area, names };
        let before = world.unix.memory.available();
        for _ in 0..60 {
            let child = world.fork(&world.first);
            for _ in 0..60 {
                if child.process().ended.get().is_some() {
                    break;
                }
                noise.scribble();
                noise.call(&child);
            }
            if child.process().ended.get().is_none() {
                world.ok(&world.first, __NR_kill, &[child.process().number.into(), SIGKILL.into()]);
            }
            world.next_event(&child);
            let pid = u64::from(child.process().number);
            world.ok(&world.first, __NR_wait4, &[pid, 0, 0, 0]);
        }
        assert_eq!(world.ok(&world.first, __NR_getpid, &[]), 1);
        let lost = before.saturating_sub(world.unix.memory.available());
        assert!(lost < 64, "{lost} frames are gone");
    }
}
