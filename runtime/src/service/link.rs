//! The client's side of procedure calls: a carrier that takes them where the server offers them.

use core::any::Any;
use core::cell::{Cell, RefCell};

use abi::lrpc::Status;
use abi::{Item, MsgTag, StringItem, ThreadId, Timeouts};

use super::again::failure;
use super::inside::Entry;
use super::messages::FEW;
use super::transport::Transport;
use super::{Caller, Carrier, Error, Thread};
use crate::a_stacks::{AStack, Place};
use crate::{Msg, ipc, lrpc, thread, utcb};

/// Words of a request that registers take to a procedure, and of an answer back.
const THERE: usize = 6;
const BACK: usize = 7;

/// A server that is called by procedure calls if it offers them when a client binds, else by messages; one of the own task
/// as a function if it can be, else by local IPC. What can't go that way goes by messages, call by call: functions with
/// timeouts, and calls for which the server has no thread.
///
/// Each thread has its own: there is one A-stack.
#[derive(Debug)]
pub struct Link {
    pub(super) server: Cell<ThreadId>,
    /// Under which it is looked up when it is gone.
    pub(super) name: Option<&'static str>,
    /// What names the A-stack to the kernel; 0: messages.
    pub(super) token: Cell<u64>,
    /// Where it is.
    pub(super) a_stack: Cell<Option<AStack>>,
    pub(super) bound: RefCell<Option<Bound>>,
    /// The server, if it is of the own task and is called as a function.
    pub(super) inside: Cell<Option<&'static Entry>>,
    /// The server's local id, if it is of the own task and messages may go by local IPC; else nilthread.
    pub(super) local: Cell<ThreadId>,
    /// It is a proxy.
    pub(super) is_far: Cell<bool>,
    /// It is another one than in the beginning, of which clients may have kept where it is.
    pub(super) has_moved: Cell<bool>,
    /// Why the last call has no answer, if the IPC's error does not say it.
    pub(super) why: Cell<Option<Error>>,
    /// Procedure calls were offered, or asked for, and messages were not since.
    pub(super) wants_calls: Cell<bool>,
    /// The binding has ended by itself.
    pub(super) is_to_bind: Cell<bool>,
}

#[derive(Debug)]
pub(super) struct Bound {
    pub(super) binding: lrpc::Binding,
    pub(super) place: Place,
}

impl Link {
    /// To the server that thread `server` is, by messages at first.
    #[must_use]
    pub const fn new(server: ThreadId) -> Self {
        Self {
            server: Cell::new(server),
            name: None,
            token: Cell::new(0),
            a_stack: Cell::new(None),
            bound: RefCell::new(None),
            inside: Cell::new(None),
            local: Cell::new(ThreadId::NIL),
            is_far: Cell::new(false),
            has_moved: Cell::new(false),
            why: Cell::new(None),
            wants_calls: Cell::new(false),
            is_to_bind: Cell::new(false),
        }
    }

    /// A call over the binding; `request` has at most a string on the A-stack. Words of the answer for which there is no
    /// register stay there.
    #[inline(always)]
    fn call_procedure(&self, token: u64, request: Msg) -> Result<Msg, Status> {
        let words = request.tag.untyped() + request.tag.typed();
        if words > THERE {
            self.put_words(words, request.mr[THERE]);
        }
        self.call_with_body(token, request)
    }

    /// The same with further words, if there are any, on the A-stack already.
    #[inline(always)]
    fn call_with_body(&self, token: u64, request: Msg) -> Result<Msg, Status> {
        let [tag, a, b, c, d, e, f, _] = request.regs();
        let (status, answer) = lrpc::call(token, [tag, a, b, c, d, e, f]);
        if status == 0 { Ok(Msg::from_regs(answer)) } else { Err(self.failed(status)) }
    }

    /// Leaves the words of a request for which there is no register, of which `first` is one in a message.
    #[inline(never)]
    fn put_words(&self, words: usize, first: u64) {
        if let Some(a_stack) = self.a_stack.get() {
            a_stack.set_word(THERE, first);
            (BACK..words).for_each(|index| a_stack.set_word(index, utcb::mr(index + 1)));
        }
    }

    /// Takes the words of an answer for which there is no register.
    #[inline(never)]
    fn take_words(&self, tag: MsgTag) {
        if let Some(a_stack) = self.a_stack.get() {
            let words = (tag.untyped() + tag.typed()).min(service::MAX_WORDS);
            (BACK..words).for_each(|index| utcb::set_mr(index + 1, a_stack.word(index)));
        }
    }

    /// What else than a result came of a call.
    #[cold]
    #[inline(never)]
    pub(super) fn failed(&self, status: u64) -> Status {
        let status = Status::decode(status).unwrap_or(Status::ServerFailed);
        if !matches!(status, Status::NoHost | Status::InUse) {
            let never_began = matches!(status, Status::NoBinding | Status::NoProcedure);
            self.why.set((!never_began).then_some(Error::Lost));
            self.give_up();
            self.is_to_bind.set(true);
        }
        status
    }

    fn with_strings(
        &self,
        token: u64,
        request: Msg,
        body: Option<&[u8]>,
        room: &mut [u8],
    ) -> Result<Msg, Status> {
        let request = match (body, self.a_stack.get()) {
            (Some(body), Some(a_stack)) if a_stack.put(body) => {
                request.item(StringItem::simple(0, body.len() as u64))
            }
            (None, Some(_)) => request,
            _ => return Err(Status::NoHost),
        };
        let a_stack = self.a_stack.get();
        let answer = self.call_procedure(token, request)?;
        self.take_words(answer.tag);
        if let (Some(len), Some(a_stack)) = (string_of(&answer), a_stack)
            && let Some(room) = room.get_mut(..len)
        {
            let _ = a_stack.take(room);
        }
        Ok(answer)
    }
}

/// The words of `answer` behind the first `flat`, which are in registers, copied to `room` as a body if they fit; whether they
/// are one, who reads the answer asks.
#[inline(always)]
fn copy_body(a_stack: AStack, answer: &Msg, flat: usize, room: &mut [u8]) {
    let Some(words) = answer.tag.untyped().checked_sub(flat) else { return };
    // The last word of a room may have less than eight bytes.
    if words > room.len().div_ceil(8) {
        return;
    }
    let len = room.len().min(8 * words);
    let Some(room) = room.get_mut(..len) else { return };
    let rest = service::from_registers(&answer.mr, flat, room);
    if !rest.is_empty() {
        a_stack.copy_words(BACK, rest);
    }
}

/// The length of the string that is the last item of `message`.
pub(super) fn string_of(message: &Msg) -> Option<usize> {
    let (words, typed) = (message.tag.untyped(), message.tag.typed());
    if typed != 2 || words + 2 > service::MAX_WORDS {
        return None;
    }
    match Item::decode(message.get(words), message.get(words + 1)) {
        Item::String(item) => usize::try_from(StringItem::len(item)).ok(),
        _ => None,
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.take_messages();
    }
}

impl Carrier for Link {
    type Message = Msg;

    #[inline(always)]
    fn exchange(&self, request: Msg, timeouts: Timeouts) -> Msg {
        let token = self.token.get();
        if timeouts.0 == Timeouts::NEVER.0
            && token != 0
            && let Ok(answer) = self.call_procedure(token, request)
        {
            return answer;
        }
        match request.mr {
            [a, b, ..] if request.tag.untyped() <= FEW => {
                self.exchange_few(request.tag, a, b, timeouts)
            }
            all => self.exchange_message(request.tag, all, timeouts),
        }
    }

    #[inline(always)]
    fn exchange_one(&self, request: Msg, timeouts: Timeouts) -> Msg {
        let (token, is_unbounded) = (self.token.get(), timeouts.0 == Timeouts::NEVER.0);
        if is_unbounded && token != 0 {
            let (status, answer) = lrpc::call_one(token, [request.tag.0, request.mr[0]]);
            if status == 0 {
                return Msg::of_one(answer);
            }
            return Msg::of_one(self.after_call(status, request.tag, request.mr[0]));
        }
        let local = self.local.get();
        if is_unbounded && !local.is_nil() {
            let answer = ipc::local_exchange_one(local, &request);
            if !answer.tag.is_error() {
                return answer;
            }
            return Msg::of_one(self.after_local_one(request.tag, request.mr[0]));
        }
        Msg::of_one(self.exchange_otherwise_one(request.tag, request.mr[0], timeouts))
    }

    #[inline]
    fn exchange_long(&self, request: Msg, timeouts: Timeouts) -> Msg {
        let token = self.token.get();
        if timeouts.0 == Timeouts::NEVER.0
            && token != 0
            && let Ok(answer) = self.call_procedure(token, request)
        {
            self.take_words(answer.tag);
            return answer;
        }
        self.exchange_message(request.tag, request.mr, timeouts)
    }

    #[inline(always)]
    fn exchange_with(
        &self,
        request: Msg,
        body: &[u8],
        (flat, room): (usize, &mut [u8]),
        timeouts: Timeouts,
    ) -> Msg {
        let (token, at) = (self.token.get(), request.tag.untyped());
        let by_call = timeouts.0 == Timeouts::NEVER.0 && token != 0;
        if by_call
            && at <= THERE
            && flat <= BACK
            && let Some(a_stack) = self.a_stack.get()
        {
            let mut whole = request;
            whole.tag.0 += body.len().div_ceil(8) as u64;
            let rest = service::to_registers(&mut whole.mr, at..THERE, body);
            if !rest.is_empty() {
                a_stack.set_words(THERE, rest);
            }
            if let Ok(answer) = self.call_with_body(token, whole) {
                copy_body(a_stack, &answer, flat, room);
                return answer;
            }
        }
        self.exchange_otherwise(request.tag, request.mr, body, flat, room, timeouts)
    }

    #[cold]
    fn error(&self) -> Error {
        self.why.take().unwrap_or_else(|| failure(ipc::error()))
    }

    fn call_with(
        &self,
        request: Msg,
        body: Option<&[u8]>,
        room: &mut [u8],
        timeouts: Timeouts,
    ) -> Result<Msg, Error> {
        let token = self.token.get();
        if let Some(server) = self.inside.get()
            && timeouts.0 == Timeouts::NEVER.0
        {
            return Ok(server.call_with(thread::me(), &request, body, room));
        }
        if timeouts.0 == Timeouts::NEVER.0 && token != 0 {
            match self.with_strings(token, request, body, room) {
                Ok(answer) => return Ok(answer),
                Err(_) if self.why.get().is_some() => return Err(self.error()),
                Err(_) => {}
            }
        }
        self.bind_again(request.tag);
        let send = |server: ThreadId, room: &mut [u8]| {
            Thread(server).call_with(request, body, room, timeouts).map_err(|error| match error {
                Error::Ipc(error) => failure(error),
                error => error,
            })
        };
        match send(self.server.get(), room) {
            Ok(answer) => Ok(answer),
            Err(error) => {
                self.once_more(error, request.tag, |server| send(server, room)).unwrap_or_else(Err)
            }
        }
    }

    fn send(&self, request: Msg, body: Option<&[u8]>, timeouts: Timeouts) -> Result<(), Error> {
        let send = |server| Thread(server).send(request, body, timeouts);
        let sent = send(self.server.get());
        sent.or_else(|error| self.once_more(error, request.tag, send).unwrap_or_else(Err))
    }

    fn offered(&self) {
        self.take_calls();
    }

    #[inline(always)]
    fn caller(&self) -> Option<Caller> {
        Some(thread::me())
    }

    fn find_inside(&self, place: &mut dyn Any) {
        if let Some(server) = self.inside.get() {
            server.give(place);
        }
    }

    fn fits(&self, place: service::Whereabouts) {
        self.is_far.set(false);
        match place {
            service::Whereabouts::Here if self.transport() == Transport::Messages => {
                self.find_local()
            }
            service::Whereabouts::Here => {}
            service::Whereabouts::Far => {
                self.take_messages();
                self.is_far.set(true);
            }
        }
    }
}
