//! Messages that the kernel learns of afterwards (Wenske 2002, 5.5), against the rules of IPC: armed threads
//! exchange messages in user mode, and are interrupted, cancelled, halted and deleted anywhere between. The rest
//! of the plays is what other threads do, on the fast paths and on the complete one.

use std::collections::{HashSet, VecDeque};

use crate::common::Random;
use crate::common::ipcmodel::{Ipc, Patience};
use crate::common::players::{Players, Step};
use abi::ThreadId;

/// Three threads of one space and one of another.
const PLACES: [u32; 4] = [0, 0, 0, 1];
/// Steps of the longest exhaustive play, behind the arming; and states that they reach at least.
const DEPTH: usize = 4;
const STATES: usize = 1_000;
/// Random plays, and the steps of each.
const PLAYS: u64 = 4_000;
const STEPS: usize = 40;

const RUNNER: usize = 7;
const HERE: usize = 8;
const ANYBODY: usize = 9;

/// A step whose ids are still places in the list of threads.
#[derive(Clone, Copy, Debug)]
enum Plan {
    /// Sends to somebody or to nobody, and waits for whoever is said, by number: [`HERE`], [`ANYBODY`]. The one
    /// who runs is [`RUNNER`].
    Ipc {
        who: usize,
        to: Option<usize>,
        from: usize,
        receive: Patience,
        fast: bool,
    },
    Other(Step),
}

impl Plan {
    fn step(self, players: &Players, word: u64) -> Step {
        let id = |who: usize| match who {
            HERE => ThreadId::ANY_LOCAL,
            ANYBODY => ThreadId::ANY,
            who => players.model.threads[who].id,
        };
        match self {
            Self::Other(step) => step,
            Self::Ipc { who, to, from, receive, fast } => {
                let send = if from >= HERE { Patience::Zero } else { Patience::Never };
                let (to, from) = (to.map(id), Some(id(from)));
                let who = if who == RUNNER { players.runner() } else { who };
                Step::Ipc { who, ipc: Ipc { to, from, send, receive, word }, fast }
            }
        }
    }
}

/// The threads of the first space are armed, and all but the first wait for anybody.
fn prelude(places: &[u32]) -> Vec<Plan> {
    let others = || (1..places.len()).filter(|who| places[*who] == places[0]);
    let arm = others().map(|partner| Plan::Other(Step::Arm { who: 0, partner }));
    let wait =
        |who| Plan::Ipc { who, to: None, from: ANYBODY, receive: Patience::Never, fast: false };
    arm.chain(others().map(wait)).collect()
}

fn plans() -> Vec<Plan> {
    let mut plans = vec![Plan::Other(Step::Interrupt), Plan::Other(Step::Expire)];
    for who in 0..PLACES.len() {
        for other in (0..PLACES.len()).filter(|other| *other != who) {
            let mut ipc = |from, receive, fast| {
                plans.push(Plan::Ipc { who, to: Some(other), from, receive, fast });
            };
            ipc(other, Patience::Never, true);
            ipc(ANYBODY, Patience::Never, true);
            if who < 2 {
                ipc(HERE, Patience::Never, true);
                ipc(other, Patience::Never, false);
                ipc(other, Patience::Timed, false);
            }
        }
        plans.push(Plan::Ipc {
            who,
            to: None,
            from: ANYBODY,
            receive: Patience::Never,
            fast: true,
        });
        plans.extend([Step::Cancel(who), Step::Halt(who), Step::Resume(who)].map(Plan::Other));
        if who == 1 {
            plans
                .extend([Step::Delete(who), Step::Create(who), Step::Rename(who)].map(Plan::Other));
            plans.push(Plan::Other(Step::Arm { who: 0, partner: who }));
        }
    }
    plans
}

/// Plays from the beginning, and says what is there behind it before and after it is compared.
fn replay(players: &mut Players, places: &[u32], play: &[Plan]) -> Vec<u64> {
    players.disarm();
    players.reset();
    let mut taken = Vec::new();
    for (number, plan) in (1..).zip(prelude(places).iter().chain(play)) {
        let step = plan.step(players, 0x1000 + number as u64);
        if players.possible(step) {
            taken.push(step);
            players.take(step);
        }
    }
    let mut essence = players.hidden_essence();
    essence.extend(players.model.essence());
    if let Err(what) = players.compare() {
        panic!("after {taken:#?}: {what}");
    }
    essence
}

#[test]
fn every_state_behind_hidden_changes_follows_the_rules() {
    let mut players = Players::new(&PLACES);
    let (plans, mut seen, mut steps) = (plans(), HashSet::new(), 0_u64);
    let mut open = VecDeque::from([Vec::new()]);
    while let Some(mut play) = open.pop_front() {
        let _ = replay(&mut players, &PLACES, &play);
        let possible = |plan: &&Plan| players.possible(plan.step(&players, 0));
        let next: Vec<Plan> = plans.iter().filter(possible).copied().collect();
        for plan in next {
            play.push(plan);
            steps += 1;
            if seen.insert(replay(&mut players, &PLACES, &play)) && play.len() < DEPTH {
                open.push_back(play.clone());
            }
            play.pop();
        }
    }
    let hidden = players.hidden.get();
    println!("{steps} plays, {} different states, {hidden} messages in user mode", seen.len());
    assert!(seen.len() > STATES, "only {} states: the steps do nothing", seen.len());
    assert!(hidden > steps / 10, "only {hidden} messages were in user mode");
}

/// Any step whatever; most are calls and answers of threads of one space.
fn any_plan(random: &mut Random, threads: u64) -> Plan {
    let who = random.below(threads) as usize;
    let other = (who + 1 + random.below(threads - 1) as usize) % threads as usize;
    match random.below(128) {
        0 => Plan::Other(Step::Expire),
        1 | 20..=35 => Plan::Other(Step::Cancel(who)),
        2 => Plan::Other(Step::Halt(who)),
        3 | 4 => Plan::Other(Step::Resume(who)),
        5 => Plan::Other(Step::Delete(who)),
        6 | 7 => Plan::Other(Step::Create(who)),
        8 => Plan::Other(Step::Rename(who)),
        9 | 10 => Plan::Other(Step::Interrupt),
        11..=17 => Plan::Other(Step::Arm { who, partner: other }),
        _ => {
            let from = match random.below(8) {
                0 => random.below(threads) as usize,
                1 => HERE,
                2..=4 => ANYBODY,
                _ => other,
            };
            let receive = if random.one_in(12) { Patience::Timed } else { Patience::Never };
            let to = (!random.one_in(5)).then_some(other);
            let who = if random.one_in(3) { who } else { RUNNER };
            Plan::Ipc { who, to, from, receive, fast: !random.one_in(4) }
        }
    }
}

/// Many short plays of random steps, each from the beginning.
fn random_plays(seed: u64, places: &'static [u32]) {
    random_plays_of(&mut Players::new(places), seed, places);
}

fn random_plays_of(players: &mut Players, seed: u64, places: &'static [u32]) {
    let mut random = Random::seeded(seed);
    for _ in 0..PLAYS {
        let play: Vec<Plan> =
            (0..STEPS).map(|_| any_plan(&mut random, places.len() as u64)).collect();
        let _ = replay(players, places, &play);
    }
    let hidden = players.hidden.get();
    println!("seed {seed}: {PLAYS} plays of {STEPS} steps, {hidden} messages in user mode");
    assert!(hidden > PLAYS / 4, "only {hidden} messages were in user mode");
}

#[test]
fn random_plays_in_one_space_follow_the_rules() {
    random_plays(71, &[0, 0, 0]);
}

#[test]
fn random_plays_of_two_spaces_follow_the_rules() {
    random_plays(72, &[0, 0, 0, 1, 1]);
}

#[test]
fn random_plays_of_three_spaces_follow_the_rules() {
    random_plays(73, &[0, 0, 0, 0, 1, 1, 1, 2]);
}

/// The threads of the first space use vector registers, those of the second don't.
#[test]
fn random_plays_with_vector_users_follow_the_rules() {
    let places = &[0, 0, 0, 1, 1];
    let mut players = Players::new(places);
    players.use_vector_registers_in(0);
    random_plays_of(&mut players, 74, places);
}
