//! Calls on signals: waiting for them, queueing them, what is refused.

use crate::common::World;
use linux_raw_sys::general as l;
use unix::errno::Errno;

#[test]
fn signals_are_waited_for_and_queued() {
    let world = World::new();
    let thread = world.fork(&world.first);
    let first_rt = 40;
    let masks = world.words(&thread, &[bit(first_rt) | bit(l::SIGUSR1), 0, 0]);
    world.ok(&thread, l::__NR_rt_sigprocmask, &[l::SIG_BLOCK.into(), masks, 0, 8]);
    let info = world.put(&thread, &[0; 128]);
    let queue = |value: u64| {
        let first = &world.first;
        // signal, errno, code, pad, pid + uid, value
        let words = [0, (l::SI_QUEUE as u32).into(), 1, value, 0, 0];
        let from = world.words(first, &words);
        let pid = thread.own_tid.get().into();
        world.ok(first, l::__NR_rt_sigqueueinfo, &[pid, first_rt.into(), from]);
    };
    queue(11);
    queue(22);
    for _ in 0..2 {
        let pid = u64::from(thread.own_tid.get());
        world.ok(&world.first, l::__NR_kill, &[pid, l::SIGUSR1.into()]);
    }
    let arguments = [masks, info, 0, 8];
    // The lowest first; ordinary signals once, real-time signals each.
    assert_eq!(world.ok(&thread, l::__NR_rt_sigtimedwait, &arguments), l::SIGUSR1.into());
    for value in [11, 22] {
        assert_eq!(world.ok(&thread, l::__NR_rt_sigtimedwait, &arguments), first_rt.into());
        assert_eq!(world.read_u64(&thread, info + 24), value);
    }
    world.refused(&thread, l::__NR_rt_sigtimedwait, &[masks, info, masks + 8, 8], Errno::EAGAIN);
    world.waits(&thread, l::__NR_rt_sigtimedwait, &arguments);
    queue(33);
    assert_eq!(world.next_reply(&thread), Some(first_rt.into()));
    // Nobody can pretend to be the kernel.
    let forged = world.words(&world.first, &[0, 0x80, 0, 0, 0, 0]);
    let arguments = [u64::from(thread.own_tid.get()), first_rt.into(), forged];
    world.refused(&world.first, l::__NR_rt_sigqueueinfo, &arguments, Errno::EPERM);
}

#[test]
fn bad_signals_are_refused() {
    let world = World::new();
    let first = &world.first;
    world.refused(first, l::__NR_kill, &[1, 65], Errno::EINVAL);
    world.refused(first, l::__NR_kill, &[99, 65], Errno::ESRCH);
    world.refused(first, l::__NR_kill, &[i32::MIN as u64, 0], Errno::ESRCH);
    world.refused(first, l::__NR_kill, &[u64::MAX, 0], Errno::ESRCH);
    world.refused(first, l::__NR_tgkill, &[0, 1, 0], Errno::EINVAL);
    world.refused(first, l::__NR_tgkill, &[2, 1, 0], Errno::ESRCH);
    world.refused(first, l::__NR_tkill, &[u64::MAX, 0], Errno::EINVAL);
    world.refused(first, l::__NR_rt_sigaction, &[l::SIGUSR1.into(), 0, 0, 4], Errno::EINVAL);
    world.refused(first, l::__NR_rt_sigaction, &[0, 0, 0, 8], Errno::EINVAL);
    world.refused(first, l::__NR_rt_sigaction, &[65, 0, 0, 8], Errno::EINVAL);
    world.refused(first, l::__NR_rt_sigaction, &[l::SIGUSR1.into(), 8, 0, 8], Errno::EFAULT);
    let action = world.words(first, &[0x41_0000, 0, 0, 0]);
    for signal in [l::SIGKILL, l::SIGSTOP] {
        world.ok(first, l::__NR_rt_sigaction, &[signal.into(), 0, action, 8]);
        let arguments = [signal.into(), action, 0, 8];
        world.refused(first, l::__NR_rt_sigaction, &arguments, Errno::EINVAL);
    }
    world.refused(first, l::__NR_rt_sigprocmask, &[9, action, 0, 8], Errno::EINVAL);
    world.refused(first, l::__NR_rt_sigprocmask, &[0, 8, 0, 8], Errno::EFAULT);
    world.refused(first, l::__NR_rt_sigsuspend, &[action, 16], Errno::EINVAL);
    world.ok(first, l::__NR_rt_sigprocmask, &[9, 0, 0, 8]);
}

fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}
