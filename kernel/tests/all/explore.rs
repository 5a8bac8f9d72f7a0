//! IPC against the model of its rules: every state that three threads can get into,
//! with every step from there, then long random plays with more kinds of IPC. After each
//! step the kernel's own checker must be content.

use std::collections::{HashSet, VecDeque};

use crate::common::Random;
use crate::common::ipcmodel::{Ipc, Patience};
use crate::common::players::{Players, Step};
use crate::common::shrink::shortest_failure;
use abi::ThreadId;

/// Two threads of one space and one of another.
const PLACES: [u32; 3] = [0, 0, 1];
/// States that the exhaustive plays reach at least.
const STATES: usize = 30_000;
/// Steps of each random play, a third of which makes no sense when its turn comes.
const LONG: usize = 40_000;

/// A step whose ids are still places in the list of threads.
#[derive(Clone, Copy, Debug)]
enum Plan {
    Ipc { who: usize, to: Option<usize>, from: From, send: Patience, receive: Patience, fast: bool },
    Other(Step),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum From {
    Nobody,
    Anybody,
    Local,
    Thread(usize),
}

impl Plan {
    /// With the ids of now; `word` is the message.
    fn step(self, players: &Players, word: u64) -> Step {
        let id = |who: usize| players.model.threads[who].id;
        match self {
            Self::Other(step) => step,
            Self::Ipc { who, to, from, send, receive, fast } => {
                let from = match from {
                    From::Nobody => None,
                    From::Anybody => Some(ThreadId::ANY),
                    From::Local => Some(ThreadId::ANY_LOCAL),
                    From::Thread(who) => Some(id(who)),
                };
                Step::Ipc { who, ipc: Ipc { to: to.map(id), from, send, receive, word }, fast }
            }
        }
    }
}

/// The steps of the exhaustive plays.
fn plans() -> Vec<Plan> {
    use Patience::{Never, Timed, Zero};
    let mut plans = vec![Plan::Other(Step::Expire)];
    for who in 0..PLACES.len() {
        let mut ipc = |to, from, send, receive| {
            plans.push(Plan::Ipc { who, to, from, send, receive, fast: true });
        };
        ipc(None, From::Anybody, Never, Never);
        ipc(None, From::Anybody, Never, Zero);
        ipc(None, From::Local, Never, Timed);
        ipc(None, From::Thread(who), Never, Timed);
        for other in (0..PLACES.len()).filter(|other| *other != who) {
            ipc(Some(other), From::Nobody, Never, Never);
            ipc(Some(other), From::Thread(other), Never, Never);
            ipc(Some(other), From::Thread(3 - who - other), Timed, Never);
            ipc(Some(other), From::Anybody, Zero, Never);
            ipc(None, From::Thread(other), Never, Never);
        }
        let steps = [
            Step::Cancel(who),
            Step::Halt(who),
            Step::Resume(who),
            Step::Delete(who),
            Step::Create(who),
            Step::Rename(who),
        ];
        plans.extend(steps.map(Plan::Other));
    }
    plans
}

/// Plays `play` from the beginning and compares the state behind its last step; panics
/// with the whole play if that is wrong. The steps before have been compared when they
/// were last.
fn replay(players: &mut Players, play: &[Plan]) {
    players.reset();
    let mut taken = Vec::new();
    for (number, plan) in (1..).zip(play) {
        let step = plan.step(players, 0x1000 + number as u64);
        taken.push(step);
        players.take(step);
    }
    if let Err(what) = players.compare() {
        panic!("after {taken:#?}: {what}");
    }
}

#[test]
fn every_reachable_state_follows_the_rules() {
    // BATON_DEPTH bounds the number of steps, for a quick look.
    let depth: Option<usize> = std::env::var("BATON_DEPTH").ok().and_then(|text| text.parse().ok());
    let mut players = Players::new(&PLACES);
    let (plans, mut seen, mut steps) = (plans(), HashSet::new(), 0_u64);
    let mut open = VecDeque::from([Vec::new()]);
    while let Some(mut play) = open.pop_front() {
        replay(&mut players, &play);
        let possible = |plan: &&Plan| players.possible(plan.step(&players, 0));
        let next: Vec<Plan> = plans.iter().filter(possible).copied().collect();
        for plan in next {
            play.push(plan);
            replay(&mut players, &play);
            steps += 1;
            if seen.insert(players.model.essence()) && depth.is_none_or(|depth| play.len() < depth)
            {
                open.push_back(play.clone());
            }
            play.pop();
        }
    }
    println!("{steps} steps, {} different states", seen.len());
    assert!(
        depth.is_some() || seen.len() > STATES,
        "only {} states: the steps do nothing",
        seen.len()
    );
}

/// Any step whatever.
fn any_plan(random: &mut Random, threads: u64) -> Plan {
    let who = random.below(threads) as usize;
    let mut patience = || match random.below(4) {
        0 => Patience::Zero,
        1 => Patience::Timed,
        _ => Patience::Never,
    };
    let (send, receive) = (patience(), patience());
    match random.below(24) {
        0 => Plan::Other(Step::Expire),
        1 => Plan::Other(Step::Cancel(who)),
        2 => Plan::Other(Step::Halt(who)),
        3 | 4 => Plan::Other(Step::Resume(who)),
        5 => Plan::Other(Step::Delete(who)),
        6 | 7 => Plan::Other(Step::Create(who)),
        8 => Plan::Other(Step::Rename(who)),
        _ => {
            let mut other = || (who + 1 + random.below(threads - 1) as usize) % threads as usize;
            let (to, from) = (other(), other());
            let from = match random.below(8) {
                0 => From::Nobody,
                1 | 2 => From::Anybody,
                3 => From::Local,
                4 => From::Thread(from),
                5 => From::Thread(who),
                _ => From::Thread(to),
            };
            let to = (!random.one_in(3)).then_some(to);
            Plan::Ipc { who, to, from, send, receive, fast: random.one_in(2) }
        }
    }
}

/// A new machine plays `plans`; those that make no sense when it is their turn are
/// left out.
fn play(places: &[u32], plans: &[Plan]) -> Result<(), String> {
    let mut players = Players::new(places);
    for (number, plan) in plans.iter().enumerate() {
        let step = plan.step(&players, number as u64);
        if players.possible(step) {
            players.play(step).map_err(|what| format!("plan {number}, {step:?}: {what}"))?;
        }
    }
    Ok(())
}

fn long_play(seed: u64, places: &'static [u32]) {
    let mut random = Random::seeded(seed);
    let plans: Vec<Plan> = (0..LONG).map(|_| any_plan(&mut random, places.len() as u64)).collect();
    if let Some((plans, why)) = shortest_failure(plans, move |plans| play(places, plans)) {
        panic!("{why} at the end of {plans:#?}");
    }
}

#[test]
fn long_plays_of_three_follow_the_rules() {
    long_play(31, &PLACES);
}

#[test]
fn long_plays_of_seven_follow_the_rules() {
    long_play(32, &[0, 0, 0, 1, 1, 2, 2]);
}

#[test]
fn long_plays_of_two_in_one_space_follow_the_rules() {
    long_play(33, &[0, 0]);
}
