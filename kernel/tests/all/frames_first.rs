//! Calls that take several frames full of zeros: an interrupt that comes before there are enough does not wait for all
//! of them; the call is made again, and nothing has changed before.

use abi::id::USER_BASE;
use abi::syscall::Call;
use abi::{Fpage, Rights, ThreadId};
use kernel::arch::{cpu, entry};
use kernel::check;
use kernel::space::SpaceRef;
use kernel::thread::tcb::Resume;
use kernel::thread::{TcbRef, lookup, set_current};

use crate::common::Machine;
use crate::common::tasks::{QUIET_LINE, machine, system_call, thread};

const KIP: u64 = 0xBFF0_0000;
/// In another gigabyte than the KIP.
const FAR: u64 = 0x40_0000_0000;
/// The first thread of the new task.
const FIRST: ThreadId = ThreadId::global(USER_BASE + 50, 1);

/// Who may do everything, and makes a task.
struct Play {
    _machine: Machine,
    boss: TcbRef,
    space: SpaceRef,
}

impl Play {
    fn new() -> Self {
        let (machine, spaces) = machine(1);
        spaces[0].task.privileged.set(true);
        let boss = thread(spaces[0], 0, ThreadId::NIL);
        boss.scheduler.set(boss.id.get());
        let _ = system_call(boss, Call::ThreadControl, [FIRST.0, 0, boss.id.get().0, FIRST.0, !0]);
        let space = lookup(FIRST).and_then(TcbRef::space).expect("it was made");
        Self { _machine: machine, boss, space }
    }

    /// The boss makes a call, which an interrupt meets as often as it can; how often, while `before` holds.
    fn calls(&self, call: Call, arguments: [u64; 5], before: impl Fn() -> bool) -> u32 {
        let interrupt = || cpu().pending_lines.set(1 << QUIET_LINE);
        interrupt();
        let _ = system_call(self.boss, call, arguments);
        let mut times = 0;
        while self.boss.resume.get() == Resume::Again {
            assert!(before(), "something has changed");
            assert_eq!(check::violations(), 0);
            interrupt();
            cpu().scheduler.ready.remove(self.boss);
            set_current(self.boss);
            let _ = entry::resume(self.boss);
            times += 1;
        }
        cpu().pending_lines.set(0);
        assert_eq!((self.boss.resume.get(), self.boss.frame().results()[0]), (Resume::Frame, 1));
        assert_eq!(check::violations(), 0);
        times
    }

    fn gives_areas(&self) -> u32 {
        let kip = Fpage::memory(KIP, 12, Rights::NONE);
        let utcbs = Fpage::memory(FAR, 18, Rights::NONE);
        let times = self.calls(Call::SpaceControl, [FIRST.0, 0, kip.0, utcbs.0, 0], || {
            !self.space.is_initialised()
        });
        assert!(self.space.is_initialised());
        assert_eq!((self.space.kip_area().start, self.space.utcb_area().start), (KIP, FAR));
        times
    }
}

#[test]
fn a_space_gets_its_areas_when_there_are_frames() {
    let play = Play::new();
    let times = play.gives_areas();
    assert!(
        (2..=4).contains(&times),
        "three tables and a twin, of which some may be ready: {times}"
    );
}
