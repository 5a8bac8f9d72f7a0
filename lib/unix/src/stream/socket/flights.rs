//! Open files under way in messages, and the sockets among them that only such messages
//! still hold: nobody can ever receive those, so they are found and let go (as Linux does).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;

use super::{Socket, shared};
use crate::file::Open;
use crate::weak_list::WeakList;

/// Files under way that one closing pays for looking at.
const FILES_PER_CLOSING: usize = 16;

/// The files of one message.
pub(super) struct Baggage {
    pub(super) files: Vec<Rc<Open>>,
    next: Option<Box<Baggage>>,
}

impl Baggage {
    pub(super) fn new(files: Vec<Rc<Open>>) -> Box<Self> {
        Box::new(Self { files, next: None })
    }
}

/// Files of messages that nobody will receive any more. To close a socket ends the messages in its inbox, with
/// sockets among their files, and so on: in a loop, since recursion would need stack for each, and without asking
/// for memory.
#[derive(Default)]
pub(super) struct Closing {
    first: Cell<Option<Box<Baggage>>>,
    at_work: Cell<bool>,
}

impl Closing {
    /// Lets go of the files, now or soon: before whoever closes a file has done so.
    pub(super) fn add(&self, mut baggage: Box<Baggage>) {
        baggage.next = self.first.take();
        self.first.set(Some(baggage));
        if self.at_work.replace(true) {
            return;
        }
        while let Some(mut baggage) = self.first.take() {
            self.first.set(baggage.next.take());
            drop(baggage);
        }
        self.at_work.set(false);
    }
}

/// The files under way.
#[derive(Default)]
pub struct Flights {
    /// How many.
    pub count: Rc<Cell<usize>>,
    /// Those that are closed.
    pub(super) closing: Rc<Closing>,
    /// Sockets to which some were sent.
    pub(super) holders: Rc<WeakList<Socket>>,
    /// Closings since the last search.
    closings: Cell<usize>,
}

/// A socket in the search.
struct Node {
    socket: Rc<Socket>,
    /// Owners that count for nothing: the search itself, files that only messages hold,
    /// listeners that only such files lead to.
    discounted: usize,
    /// Somebody can get at it.
    reached: bool,
}

impl Node {
    fn has_owner(&self) -> bool {
        Rc::strong_count(&self.socket) > self.discounted
    }
}

/// The sockets in question.
#[derive(Default)]
struct Graph(BTreeMap<*const Socket, Node>);

impl Flights {
    /// A message with files was put into the inbox of `holder`.
    pub(super) fn note(&self, holder: &Rc<Socket>) {
        if !holder.holds_files.replace(true) {
            self.holders.push(Rc::downgrade(holder));
        }
    }

    /// After files were closed: lets go what only messages hold that nobody can receive.
    /// The more is under way, the rarer it looks: a closing costs the same on the average.
    pub fn settle(&self) {
        if self.count.get() == 0 {
            return;
        }
        self.closings.set(self.closings.get() + 1);
        if self.closings.get() * FILES_PER_CLOSING >= self.count.get() {
            self.closings.set(0);
            let lost = self.lost();
            let messages: Vec<_> = lost.iter().map(|socket| socket.inbox.clear()).collect();
            // Outside of all borrows: the files are closed now.
            drop(messages);
        }
    }

    /// The sockets with files in their inboxes, and only those.
    fn holders(&self) -> Vec<Rc<Socket>> {
        let mut found = Vec::new();
        self.holders.retain(|holder| {
            let mut holds = false;
            holder.inbox.each_file(|_| holds = true);
            holder.holds_files.set(holds);
            if holds {
                found.push(holder);
            }
            holds
        });
        found
    }

    /// The sockets with files in their inboxes that nobody can get at.
    fn lost(&self) -> Vec<Rc<Socket>> {
        let holders = self.holders();
        let mut graph = Graph::default();
        for holder in &holders {
            graph.discount(holder);
        }
        for (open, count) in under_way(&holders).into_values() {
            let Ok(socket) = shared(&open) else { continue };
            graph.add(socket);
            if Rc::strong_count(&open) == count + 1 {
                graph.discount(socket);
            }
        }
        graph.discount_waiting();
        graph.reach();
        holders.into_iter().filter(|holder| graph.is_lost(holder)).collect()
    }
}

impl Graph {
    fn add(&mut self, socket: &Rc<Socket>) -> &mut Node {
        let new = || Node { socket: socket.clone(), discounted: 1, reached: false };
        self.0.entry(Rc::as_ptr(socket)).or_insert_with(new)
    }

    /// One of the owners of `socket` counts for nothing.
    fn discount(&mut self, socket: &Rc<Socket>) {
        self.add(socket).discounted += 1;
    }

    /// So do listeners for those who wait to be accepted.
    fn discount_waiting(&mut self) {
        let listeners = self.0.values().map(|node| &node.socket);
        let waiting = listeners.flat_map(|listener| addresses(&listener.pending.borrow()));
        for at in waiting.collect::<Vec<_>>() {
            if let Some(node) = self.0.get_mut(&at) {
                node.discounted += 1;
            }
        }
    }

    /// Marks what somebody can get at, directly or through messages and listeners.
    fn reach(&mut self) {
        let owned = self.0.iter().filter(|(_, node)| node.has_owner());
        let mut next: Vec<_> = owned.map(|(at, _)| *at).collect();
        while let Some(at) = next.pop() {
            let Some(node) = self.0.get_mut(&at).filter(|node| !node.reached) else { continue };
            node.reached = true;
            next.extend(addresses(&node.socket.pending.borrow()));
            node.socket.inbox.each_file(|open| next.extend(shared(open).map(Rc::as_ptr)));
        }
    }

    fn is_lost(&self, socket: &Rc<Socket>) -> bool {
        self.0.get(&Rc::as_ptr(socket)).is_some_and(|node| !node.reached)
    }
}

fn addresses(sockets: &VecDeque<Rc<Socket>>) -> Vec<*const Socket> {
    sockets.iter().map(Rc::as_ptr).collect()
}

/// The files in the inboxes of `holders`, and how often each is in one.
fn under_way(holders: &[Rc<Socket>]) -> BTreeMap<*const Open, (Rc<Open>, usize)> {
    let mut found = BTreeMap::new();
    for holder in holders {
        holder.inbox.each_file(|open| {
            found.entry(Rc::as_ptr(open)).or_insert_with(|| (open.clone(), 0)).1 += 1;
        });
    }
    found
}
