//! A client and a host that live on the same other processor: what stays there, and who asks for what is there.

use abi::ThreadId;
use abi::lrpc::{Status, control as what, step};
use kernel::control::exregs::{Registers, exchange_registers};
use kernel::elsewhere;
use kernel::ipc::wait;
use kernel::lrpc::revocation::control;
use kernel::lrpc::visit_of;
use kernel::thread::state::State;
use kernel::thread::tcb::USES_VECTOR;
use kernel::thread::{TcbRef, rendezvous};

use crate::common::tasks::thread;
use crate::lrpc::play::{COOKIE, Play, bind, calls, checked, returns, set_priority, status};
use crate::lrpc::there::{Way, calls_there, faults_there, idle, move_there, returns_there, settle};

/// A client that calls a host where both live.
struct Pair {
    play: Play,
    token: u64,
}

/// How far a pair has come.
const STATES: u32 = 4;

impl Pair {
    /// `state` says whether it is between calls or in one, and whether an interrupt has come since.
    fn new(state: u32) -> Self {
        let play = Play::new();
        let token = bind(play.client, play.clerk, 2);
        move_there(&[play.client, play.hosts[0], play.hosts[1]]);
        let pair = Self { play, token };
        assert_eq!(pair.calls(), Way::ComesHere, "they have not met yet");
        assert_eq!(pair.returns(), Way::Stays);
        if state & 1 != 0 {
            assert_eq!(pair.calls(), Way::Stays);
        }
        if state & 2 != 0 {
            faults_there();
        }
        checked();
        pair
    }

    fn calls(&self) -> Way {
        calls_there(self.play.client, self.token, 0)
    }

    fn returns(&self) -> Way {
        returns_there(self.host(), self.play.clerk.id.get())
    }

    fn host(&self) -> TcbRef {
        self.play.hosts[0]
    }

    /// Everybody is here, and nobody who runs goes.
    fn home(&self) {
        idle();
        [self.play.client, self.host()].into_iter().for_each(elsewhere::recall);
        checked();
    }
}

/// Runs a test with a pair in each state, each on a machine of its own.
fn however(test: fn(Pair, bool)) {
    for state in 0..STATES {
        let run = move || test(Pair::new(state), state & 1 != 0);
        std::thread::spawn(run).join().expect("the test passes");
    }
}

#[test]
fn calls_and_returns_stay() {
    however(|pair, is_in_call| {
        if is_in_call {
            assert_eq!(pair.returns(), Way::Stays);
        }
        for _ in 0..3 {
            assert_eq!(pair.calls(), Way::Stays);
            faults_there();
            assert_eq!(pair.returns(), Way::Stays);
        }
        pair.home();
        assert_eq!(
            (wait::state(pair.play.client), wait::state(pair.host())),
            (State::Ready, State::Lent)
        );
        assert_eq!(status(pair.play.client), Some(Status::Done));
    });
}

/// The A-stack of a pair is not free for anybody here while it is used there, and is when it is not.
#[test]
fn a_call_from_here_over_the_same_a_stack_finds_what_is_true() {
    however(|pair, is_in_call| {
        let other = thread(pair.play.spaces[0], 9, ThreadId::NIL);
        let next = calls(other, pair.token, 0);
        if is_in_call {
            assert_eq!((next, status(other)), (other, Some(Status::InUse)));
        } else {
            assert_eq!(wait::state(other), State::Calls);
            assert!(visit_of(pair.host()).is_some());
        }
        checked();
        idle();
        settle();
        let _ = pair.returns();
        pair.home();
        assert_eq!(
            (wait::state(other), wait::state(pair.play.client)),
            (State::Ready, State::Ready)
        );
        // It was far from its host.
        let _ = pair.calls();
        assert_eq!(wait::state(pair.play.client), State::Calls);
    });
}

/// A search for a host finds which A-stacks are free.
#[test]
fn a_host_in_a_visit_there_is_not_taken_from_it() {
    however(|pair, is_in_call| {
        let (play, other) = (&pair.play, thread(pair.play.spaces[0], 9, ThreadId::NIL));
        play.delete(play.hosts[1]);
        let _ = calls(other, step(pair.token, 1), 0);
        let expected = if is_in_call { State::Ready } else { State::Calls };
        assert_eq!(wait::state(other), expected);
        checked();
    });
}

/// What goes on there has the priority of who has called, and so has a host that waits.
#[test]
fn a_visit_there_has_its_callers_priority() {
    however(|pair, is_in_call| {
        let (client, host) = (pair.play.client, pair.host());
        if is_in_call {
            assert_eq!(pair.returns(), Way::Stays);
        }
        idle();
        elsewhere::recall(client);
        set_priority(client, 130);
        settle();
        assert!(rendezvous::is_seated(host));
        assert_eq!(host.priority.get(), 130, "or the party is as urgent as its last visit");
        elsewhere::recall(client);
        set_priority(client, 70);
        settle();
        assert_eq!(pair.calls(), Way::Stays);
        pair.home();
        assert_eq!(host.priority.get(), 70);
    });
}

/// The same where the client cannot pay for a copy of its record: whoever waits for the processor, and is more urgent than
/// the host was, does not call the two back, or the way out of the kernel would have no end.
#[test]
fn a_host_without_a_copy_has_its_callers_priority() {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let play = Play::new();
        let token = bind(play.client, play.clerk, 2);
        move_there(&[play.client, play.hosts[0]]);
        let (quota, host) = (play.spaces[0].quota(), play.hosts[0]);
        // One for its seat.
        let rest = quota.limit() - quota.used() - 1;
        quota.transfer(play.spaces[1].quota(), rest).expect("it has it");
        for _ in 0..3 {
            assert_eq!(calls_there(play.client, token, 0), Way::ComesHere);
            assert_eq!(returns_there(host, play.clerk.id.get()), Way::ComesHere);
        }
        idle();
        elsewhere::recall(play.client);
        set_priority(play.client, 130);
        let other = thread(play.spaces[1], 9, ThreadId::NIL);
        set_priority(other, 120);
        move_there(&[other]);
        assert!(rendezvous::is_seated(host), "it goes with its client");
        assert_eq!(host.priority.get(), 130);
        checked();
        tell.send(()).expect("somebody listens");
    });
    let patience = std::time::Duration::from_secs(20);
    told.recv_timeout(patience).expect("they go, and the kernel is left");
}

/// Whom a client has called otherwise meanwhile does not part it from its host.
#[test]
fn a_call_is_its_last_one() {
    however(|pair, is_in_call| {
        if is_in_call {
            assert_eq!(pair.returns(), Way::Stays);
        }
        idle();
        elsewhere::recall(pair.play.client);
        pair.play.client.partner.set(pair.play.clerk.id.get());
        settle();
        assert_eq!(pair.calls(), Way::Stays);
        faults_there();
        assert_eq!(pair.returns(), Way::Stays);
    });
}

/// Whoever uses vector registers comes here, with each call and each return.
#[test]
fn users_of_vector_registers_come_here() {
    for which in 0..2 {
        std::thread::spawn(move || {
            let pair = Pair::new(0);
            let one = [pair.play.client, pair.host()][which];
            idle();
            elsewhere::recall(one);
            one.set_special(USES_VECTOR, true);
            settle();
            for _ in 0..3 {
                assert_eq!([pair.calls(), pair.returns()], [Way::ComesHere; 2]);
            }
            pair.home();
        })
        .join()
        .expect("the test passes");
    }
}

#[test]
fn a_floor_counts_for_the_next_call() {
    however(|pair, is_in_call| {
        let (play, own) = (&pair.play, pair.play.clerk.id.get());
        idle();
        assert_eq!(control(play.clerk, own, what::FLOOR, 90), Ok(1));
        settle();
        if is_in_call {
            assert_eq!(pair.returns(), Way::ComesHere);
        }
        elsewhere::recall(play.client);
        set_priority(play.client, 80);
        assert_eq!(pair.calls(), Way::ComesHere);
        assert_eq!(pair.host().priority.get(), 90);
        assert_eq!(pair.returns(), Way::ComesHere);
        assert_eq!(control(play.clerk, own, what::FLOOR, 0), Ok(1));
        let _ = pair.calls();
        assert_eq!(pair.returns(), Way::Stays);
        assert_eq!(pair.host().priority.get(), 80);
        checked();
    });
}

#[test]
fn a_revoked_binding_ends_with_the_visit_there() {
    however(|pair, is_in_call| {
        let (play, own) = (&pair.play, pair.play.clerk.id.get());
        idle();
        assert_eq!(control(play.clerk, own, what::REVOKE_COOKIE, COOKIE), Ok(1));
        checked();
        settle();
        if is_in_call {
            assert_eq!(pair.returns(), Way::ComesHere);
            assert_eq!(status(play.client), Some(Status::Revoked));
        }
        assert_eq!(pair.calls(), Way::ComesHere);
        assert_eq!(status(play.client), Some(Status::NoBinding));
        pair.home();
        assert_eq!(wait::state(pair.host()), State::Lent);
    });
}

#[test]
fn who_is_halted_stops_where_it_is() {
    use abi::syscall::exregs as bit;
    however(|pair, is_in_call| {
        let boss = thread(pair.play.spaces[0], 9, ThreadId::NIL);
        let halts = |is| bit::HALT_VALID | if is { bit::HALT } else { 0 };
        let set = |is| {
            let new = Registers { control: halts(is), ..Default::default() };
            assert!(exchange_registers(boss, pair.play.client.id.get(), &new).is_some());
            checked();
        };
        idle();
        set(true);
        settle();
        if is_in_call {
            assert_eq!(pair.returns(), Way::ComesHere);
        }
        assert_eq!(wait::state(pair.play.client), State::Halted);
        idle();
        set(false);
        settle();
        assert_eq!(pair.calls(), Way::Stays);
        assert_eq!(pair.returns(), Way::Stays);
        pair.home();
    });
}

#[test]
fn a_caller_that_gives_up_leaves_the_visit_there() {
    however(|pair, is_in_call| {
        idle();
        elsewhere::recall(pair.play.client);
        kernel::ipc::cancel::cancel(pair.play.client);
        checked();
        settle();
        if is_in_call {
            assert_eq!(status(pair.play.client), Some(Status::Aborted));
            assert_eq!(pair.calls(), Way::ComesHere);
            assert_eq!(status(pair.play.client), Some(Status::InUse));
            assert_eq!(pair.returns(), Way::ComesHere);
        }
        let _ = pair.calls();
        assert_eq!(pair.returns(), Way::Stays);
        pair.home();
    });
}

/// Whoever calls gets a host of its own processor if there is one, and another one only as long as there is none.
#[test]
fn a_call_finds_a_host_where_its_caller_lives() {
    let play = Play::new();
    let token = bind(play.client, play.clerk, 2);
    move_there(&[play.client, play.hosts[1]]);
    let _ = calls_there(play.client, token, 0);
    assert!(visit_of(play.hosts[1]).is_some() && visit_of(play.hosts[0]).is_none());
    let _ = returns_there(play.hosts[1], play.clerk.id.get());
    // One here has the second A-stack from a client there, for the time of the call.
    assert_eq!(calls_there(play.client, step(token, 1), 0), Way::ComesHere);
    assert!(visit_of(play.hosts[0]).is_some());
    returns(play.hosts[0], play.clerk);
    assert!(play.hosts[0].linkage.get() == 0 && wait::state(play.hosts[0]) == State::Lent);
    checked();
}
