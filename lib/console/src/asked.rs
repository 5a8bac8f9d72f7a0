//! What clients may ask: the server of `interfaces/console.wit`.

use core::cell::{Cell, RefCell};

use abi::ThreadId;
use interfaces::common::Refusal;
use interfaces::console::{
    Figures, ReadCharReply, ReadLineReply, ReadRawReply, Server, WriteLongReply, WriteRawReply,
    WriteReply,
};
use interfaces::names::Rights;
use runtime::Msg;
use runtime::service::{Answer, Caller};

use crate::clients::Client;
use crate::input::Reader;
use crate::output::Writer;
use crate::{Console, Device, Reply};

/// The console, asked by a thread of a task.
pub struct Asked<'c, 'a, D> {
    console: RefCell<&'c mut Console<'a, D>>,
    client: Client,
    /// The answer of a function that may have none.
    reply: Cell<Reply>,
}

impl<'c, 'a, D: Device> Asked<'c, 'a, D> {
    /// By `client`.
    pub fn new(console: &'c mut Console<'a, D>, client: Client) -> Self {
        Self { console: RefCell::new(console), client, reply: Cell::new(None) }
    }

    /// What goes back at once, of a function that may be answered later.
    pub fn answer(self) -> Reply {
        self.reply.take()
    }

    fn reply(&self, (to, answer): (ThreadId, Answer<Msg>)) {
        self.reply.set(answer.message().map(|(answer, _)| (to, answer)));
    }

    /// Whether the client's description says that it uses the console, and one of `rights`.
    fn may(&self, rights: &[Rights]) -> Result<(), Refusal> {
        let has = |right: &Rights| self.client.rights.has(*right);
        let may = has(&Rights::USES) && (rights.is_empty() || rights.iter().any(has));
        if may { Ok(()) } else { Err(Refusal::NotAllowed) }
    }

    /// The answer comes now, or when the task's queue is short again.
    fn write(&self, writer: Writer, text: &[u8], rights: &[Rights]) {
        let console = &mut *self.console.borrow_mut();
        let owns = self.client.rights.has(Rights::CONSOLE);
        let owns = owns.then(|| console.seats.place(self.client.task));
        let answer = match self.may(rights) {
            Ok(()) => console.out.write(writer, self.client.task, text, owns),
            Err(why) => Some(writer.answer(Err(why))),
        };
        answer.into_iter().for_each(|answer| self.reply(answer));
    }
}

/// What only the console's own task may.
const OWN: [Rights; 1] = [Rights::CONSOLE];

impl<D: Device> Server for Asked<'_, '_, D> {
    fn write(&self, _: Caller, text: &[u8], later: WriteReply) {
        self.write(Writer::Short(later), text, &[]);
    }

    fn write_long(&self, _: Caller, text: &[u8], later: WriteLongReply) {
        self.write(Writer::Long(later), text, &[]);
    }

    fn write_raw(&self, _: Caller, text: &[u8], later: WriteRawReply) {
        self.write(Writer::Raw(later), text, &OWN);
    }

    fn read_line(&self, from: Caller, later: ReadLineReply) {
        match self.may(&OWN) {
            Ok(()) => self.console.borrow_mut().read_line(from, self.client.task, later),
            Err(why) => self.reply(later.answer(Err(why), &mut [])),
        }
    }

    fn read_char(&self, _: Caller, later: ReadCharReply) {
        match self.may(&OWN) {
            Ok(()) => {
                let console = &mut *self.console.borrow_mut();
                let input = &mut console.seats.of_task(self.client.task).input;
                input.ask(Reader::Char(later));
                input.serve();
            }
            Err(why) => self.reply(later.answer(Err(why), &mut [])),
        }
    }

    fn read_raw(&self, _: Caller, later: ReadRawReply) {
        match self.may(&OWN) {
            Ok(()) => {
                let console = &mut *self.console.borrow_mut();
                let seat = console.seats.of_task(self.client.task);
                seat.input.ask_raw(later, &mut seat.terminal);
                seat.input.serve();
            }
            Err(why) => self.reply(later.answer(Err(why), &mut [])),
        }
    }

    fn complete(&self, from: Caller, words: &[u8]) -> Result<(), Refusal> {
        self.may(&OWN)?;
        let console = &mut *self.console.borrow_mut();
        let seat = console.seats.of_task(self.client.task);
        seat.terminal.set_words(words);
        seat.input.words_of = from;
        Ok(())
    }

    fn statistics(&self, _: Caller) -> Result<Figures, Refusal> {
        self.may(&[Rights::CONSOLE, Rights::CONTROL])?;
        let console = self.console.borrow();
        Ok(Figures {
            written: console.out.written(),
            typed: console.seats.all().iter().map(|seat| seat.input.read()).sum(),
            interrupts: console.interrupts,
        })
    }
}
