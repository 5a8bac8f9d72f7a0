//! A thread whose message was taken while it waited to send, and for whose receive
//! phase a sender is queued, but which has not run since: what others do to it then.

use crate::common::ipcmodel::{Ipc, Patience};
use crate::common::players::{Players, Step};
use crate::common::tasks::{self, QUIET_LINE, machine, registers, thread};
use abi::utcb::{BR0, ERROR_CODE};
use abi::{Fpage, IpcErrorKind, MapItem, MsgTag, Phase, Rights, StringItem, ThreadId};
use kernel::arch::cpu;
use kernel::ipc::cancel;
use kernel::ipc::wait::waits;
use kernel::mem::frames;
use kernel::thread::rendezvous::{Busy, Waits};
use kernel::thread::set_current;
use kernel::thread::tcb::Resume;
use kernel::usermem::Utcb;

const CLIENT: usize = 0;
const RELAY: usize = 1;
const SERVER: usize = 2;

fn ipc(players: &Players, who: usize, to: Option<usize>, from: Option<ThreadId>) -> Step {
    let to = to.map(|to| players.model.threads[to].id);
    let ipc = Ipc { to, from, send: Patience::Never, receive: Patience::Never, word: who as u64 };
    Step::Ipc { who, ipc, fast: false }
}

/// The relay has sent to the server and is to receive from the client, which is queued.
fn play() -> Players {
    let mut players = Players::new(&[0, 0, 1]);
    players.lets_them_wait = true;
    let client = players.model.threads[CLIENT].id;
    for step in [
        ipc(&players, CLIENT, Some(RELAY), None),
        ipc(&players, RELAY, Some(SERVER), Some(client)),
        ipc(&players, SERVER, None, Some(ThreadId::ANY)),
    ] {
        players.take(step);
    }
    let relay = players.tcb(RELAY).expect("it lives");
    assert_eq!((relay.resume.get(), waits(relay)), (Resume::Receive, Waits::Busy(Busy::Ready)));
    assert_eq!(cancel::phase(relay), Some(abi::Phase::Receive), "it is in its receive phase");
    players
}

#[test]
fn it_receives_when_it_runs() {
    let players = play();
    players.run_who_must();
    assert_eq!(players.compare(), Ok(()));
}

#[test]
fn it_can_be_cancelled() {
    let mut players = play();
    players.take(Step::Cancel(RELAY));
    let (relay, client) =
        (players.tcb(RELAY).expect("it lives"), players.tcb(CLIENT).expect("it lives"));
    assert_eq!((relay.resume.get(), waits(relay)), (Resume::Ipc, Waits::Busy(Busy::Ready)));
    let utcb = Utcb::of(relay).expect("it is active");
    assert!(MsgTag(utcb.mr(0)).is_error());
    assert_eq!(
        utcb.word(ERROR_CODE),
        (IpcErrorKind::Cancelled as u64) << 1 | Phase::Receive as u64
    );
    assert_eq!(waits(client), Waits::Busy(Busy::Polling), "its message was not taken");
    assert_eq!(kernel::check::violations(), 0);
}

#[test]
fn it_halts_after_the_message() {
    let mut players = play();
    players.take(Step::Halt(RELAY));
    let relay = players.tcb(RELAY).expect("it lives");
    assert_eq!(waits(relay), Waits::Busy(Busy::Ready), "the client must not have to wait");
    players.run_who_must();
    assert_eq!(waits(relay), Waits::Busy(Busy::Halted));
    assert_eq!(players.compare(), Ok(()));
}

/// The relay's id is gone: the client learns it, and so does the relay if it lives on.
fn loses_its_id(step: Step) {
    let mut players = play();
    players.take(step);
    let error = |who| players.tcb(who).and_then(Utcb::of).map(|utcb| utcb.word(ERROR_CODE));
    assert_eq!(error(CLIENT), Some((IpcErrorKind::NonExisting as u64) << 1 | Phase::Send as u64));
    let cancelled = (IpcErrorKind::Cancelled as u64) << 1 | Phase::Receive as u64;
    assert_eq!(error(RELAY), (step == Step::Rename(RELAY)).then_some(cancelled));
    players.run_who_must();
    assert_eq!(kernel::check::violations(), 0);
}

#[test]
fn it_can_be_deleted() {
    loses_its_id(Step::Delete(RELAY));
}

#[test]
fn it_can_get_another_version() {
    loses_its_id(Step::Rename(RELAY));
}

#[test]
fn it_waits_if_the_sender_goes_away_first() {
    let mut players = play();
    players.take(Step::Cancel(CLIENT));
    players.run_who_must();
    let (relay, client) = (players.tcb(RELAY).expect("it lives"), players.model.threads[CLIENT].id);
    assert_eq!(waits(relay), Waits::Closed(client));
    assert_eq!(kernel::check::violations(), 0);
}

/// A message with items, and another one behind it, would keep interrupts off for too long.
fn comes_between(server_has_items: bool) {
    let (_machine, spaces) = machine(3);
    let [server, client, queued] =
        [0, 1, 2].map(|index| thread(spaces[index], index as u32, ThreadId::NIL));
    let id = server.id.get();
    let _ = tasks::ipc(server, ThreadId::NIL, ThreadId::ANY);
    assert!(tasks::ipc(client, id, id) == server);
    let with_items = registers(if server_has_items { server } else { queued });
    with_items.set_mr(0, MsgTag::new(0, 0, 2).0);
    with_items.set_mr(1, MapItem::map(Fpage::NIL, 0).words()[0]);
    for taker in [server, client] {
        registers(taker).set_word(BR0, Fpage::COMPLETE.0);
    }
    let _ = tasks::ipc(queued, id, id);
    // A map item has two windows of its own.
    let windows = if server_has_items { 2 } else { 0 };
    cpu().interrupt.set(Some((windows, QUIET_LINE)));
    set_current(server);
    let _ = tasks::ipc(server, client.id.get(), ThreadId::ANY);
    assert_eq!(cpu().interrupt.get(), None, "it has come");
    assert_eq!((server.resume.get(), waits(server)), (Resume::Receive, Waits::Busy(Busy::Ready)));
    assert_eq!(waits(queued), Waits::Busy(Busy::Polling), "its message waits");
    assert_eq!(kernel::check::violations(), 0);
    set_current(server);
    let _ = kernel::arch::entry::resume(server);
    assert_ne!(waits(queued), Waits::Busy(Busy::Polling), "its message was taken");
    assert_eq!(kernel::check::violations(), 0);
}

#[test]
fn an_interrupt_comes_between_a_message_and_the_next_with_items() {
    comes_between(false);
}

#[test]
fn an_interrupt_comes_between_a_message_with_items_and_the_next() {
    comes_between(true);
}

/// To copy 4 KiB across pages and to begin to receive would keep interrupts off for too long.
#[test]
fn an_interrupt_comes_behind_a_string() {
    const BUFFER: u64 = 0x40_0000;
    let (_machine, spaces) = machine(2);
    let [server, client] = [0, 1].map(|index| thread(spaces[index], index as u32, ThreadId::NIL));
    for space in spaces {
        for page in [BUFFER, BUFFER + 4096] {
            let frame = frames::take().expect("a frame is free").address();
            space.map_kernel_page(page, frame, Rights::RW).expect("quota suffices");
        }
    }
    let [size, address] = StringItem::simple(BUFFER + 64, 4096);
    registers(server).set_word(BR0, 1);
    registers(server).set_word(BR0 - 1, size);
    registers(server).set_word(BR0 - 2, address);
    let _ = tasks::ipc(server, ThreadId::NIL, ThreadId::ANY);
    let message = registers(client);
    for (at, word) in [MsgTag::new(0, 0, 2).0, size, address].into_iter().enumerate() {
        message.set_mr(at, word);
    }
    cpu().interrupt.set(Some((0, QUIET_LINE)));
    assert!(tasks::ipc(client, server.id.get(), server.id.get()) == server);
    assert_eq!(cpu().interrupt.get(), None, "it has come");
    assert_eq!(server.transfer.part.get(), None, "it was no transfer in steps");
    assert_eq!(waits(server), Waits::Busy(Busy::Ready));
    assert_eq!(waits(client), Waits::Closed(server.id.get()));
    set_current(server);
    assert_eq!(kernel::check::violations(), 0);
}
