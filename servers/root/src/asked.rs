//! The root task as a server: of names, of tasks, of what a task asks for itself, of the pager.

use core::cell::{Cell, RefCell};

use abi::ThreadId;
use interfaces::{images, names, parent, tasks};
use runtime::Msg;
use runtime::service::{Answer, Caller, Dispatch as _};

use crate::Root;

/// The root task, asked by a thread of the task in a slot.
pub struct Asked<'r> {
    /// All that it knows.
    pub root: RefCell<&'r mut Root>,
    /// Whose thread asks.
    pub slot: usize,
    /// The answer of a function that may have none.
    reply: Cell<Option<Msg>>,
}

impl Asked<'_> {
    /// Answers at once what could be answered later.
    pub fn answer(&self, (_, answer): (Caller, Answer<Msg>)) {
        self.reply.set(answer.message().map(|(answer, _)| answer));
    }
}

impl Root {
    /// Answers what interfaces describe, asked by a thread of the task in `slot`.
    pub fn ask(&mut self, slot: usize, from: ThreadId, msg: &Msg) -> Answer<Msg> {
        let asked = Asked { root: RefCell::new(self), slot, reply: Cell::new(None) };
        let of_tasks = (names::Serve(&asked), tasks::Serve(&asked));
        let servers = (of_tasks, (parent::Serve(&asked), images::Serve(&asked)));
        let answer = servers.dispatch(from, msg, &[], &mut [0; parent::ROOM], &mut []);
        match (answer, asked.reply.take()) {
            (Answer::Nothing, Some(reply)) => Answer::Words(reply),
            (answer, _) => answer,
        }
    }
}

// What the other interfaces' results refer to takes none, or less.
const _: () = assert!(tasks::ROOM <= parent::ROOM && names::ROOM == 0 && images::ROOM == 0);
