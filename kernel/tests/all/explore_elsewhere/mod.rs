//! IPC on two processors against the model of its rules: every order of steps of three threads, one or two of which
//! live on another processor, of that processor and of the first one, and of a third party that controls them; then
//! long random plays.

mod compare;
mod processors;
mod stage;
mod steps;
mod windows;

use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

use abi::ThreadId;

use crate::common::ipcmodel::{Ipc, Patience};
use crate::common::shrink::shortest_failure;
use crate::common::{Random, apart};
use stage::{Setting, Stage, Tick};
use steps::Step;
use windows::Event;

/// Plays of each exhaustive exploration, and states that it reaches at least.
const EXHAUSTIVE: u64 = 200_000;
const STATES: usize = 50_000;
/// Random plays of each setting, and the steps of each, most of which make no sense when their turn comes.
const PLAYS: u64 = 3_000;
const LONG: usize = 80;
/// Of so many steps each is any; with what happens in windows, and what makes that matter.
const SORTS: u64 = 128;
const SORTS_OF_WINDOWS: u64 = 192;
/// Windows behind which something happens in one of them.
const WINDOWS: u64 = 8;

/// A step whose ids are still places in the list of threads.
#[derive(Clone, Copy, Debug)]
enum Plan {
    Ipc { who: usize, to: Option<usize>, from: From, send: Patience, receive: Patience },
    Other(Step),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum From {
    Nobody,
    Anybody,
    Thread(usize),
}

impl Plan {
    /// With the ids of now; `word` is the message.
    fn step(self, stage: &Rc<Stage>, word: u64) -> Step {
        match self {
            Self::Other(step) => step,
            Self::Ipc { who, to, from, send, receive } => {
                let from = match from {
                    From::Nobody => None,
                    From::Anybody => Some(ThreadId::ANY),
                    From::Thread(who) => Some(stage.thread(who).id),
                };
                let to = to.map(|to| stage.thread(to).id);
                Step::Ipc { who, ipc: Ipc { to, from, send, receive, word } }
            }
        }
    }
}

/// The steps of the exhaustive plays.
fn plans() -> Vec<Plan> {
    use Patience::{Never, Timed, Zero};
    let ticks = [Tick::Soon, Tick::EndsSlices, Tick::Expires].map(Step::Tick);
    let of_processors = [Step::Accept, Step::LooksAway, Step::Look, Step::Watch];
    let mut plans: Vec<Plan> = ticks.into_iter().chain(of_processors).map(Plan::Other).collect();
    for who in 0..3 {
        let mut ipc =
            |to, from, send, receive| plans.push(Plan::Ipc { who, to, from, send, receive });
        ipc(None, From::Anybody, Never, Never);
        ipc(None, From::Anybody, Never, Timed);
        for other in (0..3).filter(|other| *other != who) {
            ipc(Some(other), From::Thread(other), Never, Never);
            ipc(Some(other), From::Thread(other), Never, Timed);
            ipc(Some(other), From::Anybody, Never, Never);
            ipc(Some(other), From::Anybody, Zero, Never);
            ipc(Some(other), From::Nobody, Timed, Never);
            ipc(Some(other), From::Thread(3 - who - other), Never, Zero);
            ipc(None, From::Thread(other), Never, Never);
        }
        let steps = [
            Step::Run(who),
            Step::Tables(who),
            Step::Cancel(who),
            Step::Halt(who),
            Step::Resume(who),
            Step::Delete(who),
            Step::Create(who),
            Step::Rename(who),
            Step::Move { who, to: 0 },
            Step::Move { who, to: 1 },
            Step::Rank { who, priority: 100 },
            Step::Rank { who, priority: 200 },
        ];
        plans.extend(steps.map(Plan::Other));
    }
    plans
}

/// Plays `play` from the beginning; the steps before the last one have been compared when they were last.
fn replay(stage: &Rc<Stage>, play: &[Plan]) {
    stage.reset();
    for (number, plan) in (1..).zip(play) {
        let step = plan.step(stage, 0x1000 + number);
        if stage.possible(step) {
            stage.take(step);
        }
    }
}

fn fail(stage: &Rc<Stage>, play: &[Plan], why: &str) -> ! {
    let steps: Vec<String> = play.iter().map(|plan| format!("{:?}", plan.step(stage, 0))).collect();
    panic!("{why}, after\n{}", steps.join("\n"));
}

/// BATON_PLAYS: as many, for a deeper look.
fn asked() -> Option<u64> {
    std::env::var("BATON_PLAYS").ok().and_then(|text| text.parse().ok())
}

/// Every step from every state that is not known yet, the nearest to where the plays set out first, until there have been
/// so many.
fn explore(setting: Setting, preludes: &[Vec<Plan>]) {
    let plays = asked().unwrap_or(EXHAUSTIVE);
    let stage = Stage::new(setting);
    let plans = plans();
    let mut seen = HashSet::new();
    let mut open: VecDeque<Vec<Plan>> = preludes.iter().cloned().collect();
    let (mut taken, mut longest) = (0, 0);
    for play in preludes.iter().skip(1) {
        replay(&stage, play);
        assert!(stage.are_seated([1, 2]), "they are together elsewhere");
    }
    while let Some(mut play) = open.pop_front() {
        replay(&stage, &play);
        let possible = |plan: &&Plan| stage.possible(plan.step(&stage, 0));
        let next: Vec<Plan> = plans.iter().filter(possible).copied().collect();
        for plan in next {
            play.push(plan);
            replay(&stage, &play);
            taken += 1;
            stage.compare().unwrap_or_else(|why| fail(&stage, &play, &why));
            if seen.insert(stage.essence()) {
                stage
                    .come_to_rest()
                    .unwrap_or_else(|why| fail(&stage, &play, &format!("{why}, at rest")));
                longest = longest.max(play.len());
                open.push_back(play.clone());
            }
            play.pop();
        }
        if taken >= plays {
            break;
        }
    }
    let (stayed, passed_on) = (stage.stayed.get(), stage.passed_on.get());
    println!(
        "{taken} plays, {} different states, up to {longest} steps; {stayed} messages there, {passed_on} passed on",
        seen.len()
    );
    assert!(seen.len() > STATES, "only {} states: the steps do nothing", seen.len());
    assert!(passed_on > 0, "no message was passed on");
    assert!(stayed > 1_000 || preludes.len() == 1, "only {stayed} messages stayed there");
}

/// Thread 1 waits for anybody and thread 2 has called it, both on the other processor.
fn called(setting: &Setting) -> Vec<Plan> {
    let [accept, look] = [Step::Accept, Step::Look].map(Plan::Other);
    let run = |who| Plan::Other(Step::Run(who));
    let visits = setting.processors.iter().filter(|processor| **processor == 1).count();
    let visit = [accept, receives(0), receives(1), call(2, 1), look, run(0), run(1), run(2)];
    visit.repeat(visits)
}

fn receives(who: usize) -> Plan {
    let (send, receive) = (Patience::Never, Patience::Never);
    Plan::Ipc { who, to: None, from: From::Anybody, send, receive }
}

fn call(who: usize, to: usize) -> Plan {
    let (send, receive) = (Patience::Never, Patience::Never);
    Plan::Ipc { who, to: Some(to), from: From::Thread(to), send, receive }
}

fn answer(who: usize, to: usize) -> Plan {
    let (send, receive) = (Patience::Zero, Patience::Never);
    Plan::Ipc { who, to: Some(to), from: From::Anybody, send, receive }
}

/// Who plays where, and from where the exhaustive plays set out.
const FAR_PAIR: Setting =
    Setting { places: [0, 1, 1], processors: [0, 1, 1], priorities: [100; 3], is_busy: false };
const SETTINGS: [Setting; 5] = [
    FAR_PAIR,
    Setting { is_busy: true, ..FAR_PAIR },
    Setting { priorities: [200, 100, 100], is_busy: true, ..FAR_PAIR },
    Setting { places: [0, 0, 1], processors: [0, 0, 1], ..FAR_PAIR },
    Setting { places: [0, 0, 1], processors: [1, 1, 1], ..FAR_PAIR },
];

fn explore_from(setting: usize) {
    let setting = SETTINGS[setting];
    let mut preludes = vec![vec![]];
    if setting.processors[1] == 1 {
        let called = called(&setting);
        let accepted = [&called[..], &[Plan::Other(Step::Accept)]].concat();
        preludes.extend([called, accepted]);
    }
    explore(setting, &preludes);
}

#[test]
fn a_pair_elsewhere_and_one_here_follow_the_rules() {
    explore_from(0);
}

#[test]
fn a_pair_elsewhere_follows_the_rules_while_others_compute_here() {
    explore_from(1);
}

#[test]
fn who_is_urgent_here_follows_the_rules() {
    explore_from(2);
}

#[test]
fn one_elsewhere_and_a_pair_here_follow_the_rules() {
    explore_from(3);
}

#[test]
fn three_elsewhere_follow_the_rules() {
    explore_from(4);
}

/// Any step that makes sense now, those of the processors and calls and answers more often; and what it is.
fn any_step(random: &mut Random, stage: &Rc<Stage>, plans: &[Plan], sorts: u64) -> (Plan, Step) {
    loop {
        let plan = match random.below(sorts) {
            // Several may wait until one time.
            160..=183 => {
                let (who, from) = (random.below(3) as usize, From::Anybody);
                let (send, receive) = (Patience::Never, Patience::Timed);
                Plan::Ipc { who, to: None, from, send, receive }
            }
            184.. => Plan::Other(Step::Tick(Tick::Expires)),
            128..=159 => {
                let event = Event::ALL[random.below(Event::ALL.len() as u64) as usize];
                Plan::Other(Step::Window { windows: random.below(WINDOWS) as u32, event })
            }
            0..=31 => Plan::Other(Step::Accept),
            32..=39 => Plan::Other(Step::Look),
            40..=43 => Plan::Other(Step::Watch),
            44..=125 => {
                let who = random.below(3) as usize;
                let other = (who + 1 + random.below(2) as usize) % 3;
                match random.below(3) {
                    0 => receives(who),
                    1 => call(who, other),
                    _ => answer(who, other),
                }
            }
            _ => plans[random.below(plans.len() as u64) as usize],
        };
        let step = plan.step(stage, random.next() & 0xFFFF);
        if stage.possible(step) {
            return (plan, step);
        }
    }
}

/// Plays from the beginning what `next` says; what was played, if it goes wrong.
fn play(
    stage: &Rc<Stage>,
    mut next: impl FnMut(&Rc<Stage>) -> Option<(Plan, Step)>,
) -> Result<(), (Vec<Plan>, String)> {
    stage.reset();
    let mut taken = vec![];
    while let Some((plan, step)) = next(stage) {
        taken.push(plan);
        stage.take(step);
        if let Err(what) = stage.compare() {
            return Err((taken, what));
        }
    }
    stage.come_to_rest().map_err(|what| (taken, format!("{what}, at rest")))
}

/// The same of `plans`, of which those that make no sense when it is their turn are left out.
fn play_again(setting: Setting, plans: &[Plan]) -> Result<(), String> {
    let mut plans = (1..).zip(plans);
    let next = |stage: &Rc<Stage>| {
        plans
            .by_ref()
            .map(|(number, plan)| (*plan, plan.step(stage, number)))
            .find(|(_, step)| stage.possible(*step))
    };
    play(&Stage::new(setting), next).map_err(|(_, why)| why)
}

fn long_plays(setting: Setting, seed: u64) {
    let (mut random, all) = (Random::seeded(seed), plans());
    let (stage, called) = (Stage::new(setting), called(&setting));
    let plays = asked().unwrap_or(PLAYS);
    for number in 0..plays {
        let sorts = [SORTS, SORTS_OF_WINDOWS][(number % 2) as usize];
        let mut first = called.clone().into_iter();
        let mut left = 0..LONG;
        let next = |stage: &Rc<Stage>| {
            let step = |plan: Plan| (plan, plan.step(stage, 1));
            let first = first.by_ref().map(step).find(|(_, step)| stage.possible(*step));
            first.or_else(|| left.next().map(|_| any_step(&mut random, stage, &all, sorts)))
        };
        let Err((plans, why)) = play(&stage, next) else { continue };
        let again = move |plans: &[Plan]| play_again(setting, plans);
        match shortest_failure(plans.clone(), again) {
            Some((plans, why)) => panic!("{setting:?}: {why} at the end of {plans:#?}"),
            None => {
                panic!("{setting:?}: {why} at the end of {plans:#?}, if it is not the first play")
            }
        }
    }
    let (stayed, passed_on) = (stage.stayed.get(), stage.passed_on.get());
    println!("{plays} plays of {LONG} steps: {stayed} messages there, {passed_on} passed on");
    let (events, owed) = (stage.events.get(), stage.owed.get());
    println!("{events} events in windows; behind {owed} steps a look was owed");
    assert!(events > plays && owed > plays / 50, "{events} events, {owed} looks owed");
    assert!(
        stayed > plays / 4 || setting.processors[1] == 0,
        "only {stayed} messages stayed there"
    );
}

#[test]
fn long_plays_follow_the_rules() {
    for (setting, seed) in SETTINGS.into_iter().zip(41..) {
        apart(|| long_plays(setting, seed));
    }
}
