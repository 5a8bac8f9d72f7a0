//! Requests that cross between processors: the rule of
//! docs/decisions/0050-requests-that-cross.md as a model, every order of whose steps is explored.
//!
//! A request is its thread, in one inbox or one list at a time. What is done about a thread is
//! done at its home. Not modelled: what a message holds, and timeouts, which end a visit as a
//! recall does.

mod machine;

use std::collections::BTreeSet;

use machine::{Machine, Op};

/// Explores every order of steps from `first` on; how many states there are. They are finitely
/// many and none is met again on the way from itself, so nobody goes round for ever.
fn explore(first: Machine) -> usize {
    let (mut done, mut path) = (BTreeSet::new(), BTreeSet::new());
    visit(first, &mut done, &mut path);
    done.len()
}

fn visit(state: Machine, done: &mut BTreeSet<Machine>, path: &mut BTreeSet<Machine>) {
    assert!(!path.contains(&state), "somebody goes round for ever: {state:?}");
    if done.contains(&state) {
        return;
    }
    state.check();
    let next = state.next();
    if next.is_empty() {
        state.check_end();
    }
    path.insert(state.clone());
    next.into_iter().for_each(|next| visit(next, done, path));
    path.remove(&state);
    done.insert(state);
}

/// What thread `own` of `count` could do.
fn ops(own: usize, count: usize) -> Vec<Op> {
    let others = (0..count).filter(move |other| *other != own);
    let mut all: Vec<Op> =
        others.flat_map(|other| [Op::Call(other), Op::Send(other), Op::Delete(other)]).collect();
    all.push(Op::Receive);
    all
}

/// Two threads on two processors, everything that they can do in two calls each.
#[test]
fn two_threads_with_two_requests_each() {
    let scripts = |own| {
        let ops = ops(own, 2);
        let pairs = ops.iter().flat_map(|one| ops.iter().map(move |two| [*one, *two]));
        pairs.collect::<Vec<_>>()
    };
    for one in scripts(0) {
        for two in scripts(1) {
            explore(Machine::new(&[(0, &one), (1, &two)]));
        }
    }
}

/// Three threads, each with a processor of its own or two with the same, everything that they
/// can do in one call each, one of them in two.
#[test]
fn three_threads_with_a_request_each() {
    for homes in [[0, 1, 2], [0, 1, 1], [1, 0, 1]] {
        for (one, two, three) in triples() {
            for after in [Op::Receive, Op::Delete(1)] {
                let first = [one, after];
                let machine = [(homes[0], &first[..]), (homes[1], &[two]), (homes[2], &[three])];
                explore(Machine::new(&machine));
            }
        }
    }
}

fn triples() -> impl Iterator<Item = (Op, Op, Op)> {
    let pairs = |one| ops(1, 3).into_iter().map(move |two| (one, two));
    let all = ops(0, 3).into_iter().flat_map(pairs);
    all.flat_map(|(one, two)| ops(2, 3).into_iter().map(move |three| (one, two, three)))
}

/// Threads that delete each other in a ring: somebody is left, nobody hangs.
#[test]
fn rings_of_deletions() {
    for count in 2..=4 {
        for step in 1..count {
            let scripts: Vec<_> =
                (0..count).map(|own| [Op::Delete((own + step) % count)]).collect();
            let threads: Vec<_> =
                scripts.iter().enumerate().map(|(own, script)| (own, &script[..])).collect();
            assert!(explore(Machine::new(&threads)) > 1);
        }
    }
}

/// A call is answered with no time to wait, and the answer finds the caller waiting: its return is
/// in the inbox before the receiver runs, and its receive phase begins when it is back. The
/// same if a third one answers, whom the server has told.
#[test]
fn who_is_answered_waits() {
    let caller = [Op::Call(1)];
    let server = [Op::Receive, Op::Answer(0)];
    let mut ends = BTreeSet::new();
    visit(Machine::new(&[(0, &caller), (1, &server)]), &mut ends, &mut BTreeSet::new());
    assert!(ends.iter().all(|state| state.threads.iter().all(|thread| !thread.failed)));
    let teller = [Op::Receive, Op::Send(2)];
    let told = [Op::Receive, Op::Answer(0)];
    let threads: [(usize, &[Op]); 3] = [(0, &caller), (1, &teller), (2, &told)];
    let mut ends = BTreeSet::new();
    visit(Machine::new(&threads), &mut ends, &mut BTreeSet::new());
    assert!(ends.iter().all(|state| state.threads.iter().all(|thread| !thread.failed)));
}

/// Threads that are moved about while they call, answer and delete each other.
#[test]
fn whoever_is_moved_loses_nothing() {
    for to in [0, 1] {
        for (one, two, three) in triples() {
            let first = [one, Op::Move(1, to)];
            let third = [Op::Move(0, 1), three];
            for homes in [[0, 1, 2], [0, 1, 1], [0, 0, 1]] {
                let threads = [(homes[0], &first[..]), (homes[1], &[two]), (homes[2], &third)];
                explore(Machine::new(&threads));
            }
        }
    }
    for to in [0, 1, 2] {
        let mover = [Op::Move(0, to), Op::Move(1, to)];
        let threads: [(usize, &[Op]); 3] =
            [(0, &[Op::Call(1)]), (1, &[Op::Receive, Op::Answer(0)]), (2, &mover)];
        let mut ends = BTreeSet::new();
        visit(Machine::new(&threads), &mut ends, &mut BTreeSet::new());
        assert!(ends.iter().all(|state| state.threads.iter().all(|thread| !thread.failed)));
    }
}
