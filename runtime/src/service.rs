//! Carries generated stubs' messages: a client's calls, a server's loop.
//!
//! Nobody here waits without a limit for the pages of the other side's strings.

mod again;
mod called;
mod hosts;
mod inside;
mod letter;
mod link;
mod messages;
mod neighbour;
mod proxy;
mod transport;

use abi::Time;
pub use hosts::{serve_calls, serve_visits};
pub use inside::offer;
use letter::{BODY, Place};
pub use link::Link;
pub use neighbour::{Neighbour, serve_local};
pub use proxy::forward;
pub use service::*;
pub use transport::Transport;

use crate::accept::{self, TransferLimit};
use crate::{Msg, ipc, utcb};

/// How long the pages of a string may take to come.
const PATIENCE: TransferLimit = TransferLimit::micros(2_000);

impl Message for Msg {
    #[inline(always)]
    fn new(label: u64) -> Self {
        Self::new(label)
    }

    #[inline(always)]
    fn emptied(self, label: u64) -> Self {
        Self { tag: MsgTag::new(label, 0, 0), mr: self.mr }
    }

    #[inline(always)]
    fn push(self, word: u64) -> Self {
        self.word(word)
    }

    fn item(self, words: [u64; 2]) -> Self {
        Self::item(self, words)
    }

    #[inline(always)]
    fn with_body(mut self, body: &[u8]) -> Self {
        let at = self.tag.untyped();
        self.tag.0 += body.len().div_ceil(8) as u64;
        let rest = service::to_registers(&mut self.mr, at..SHORT, body);
        if !rest.is_empty() {
            utcb::set_mrs(at.max(SHORT) + 1, rest);
        }
        self
    }

    #[inline(always)]
    fn copy_body(&self, first: usize, room: &mut [u8]) {
        let rest = service::from_registers(&self.mr, first, room);
        if !rest.is_empty() {
            utcb::copy_mrs(first.max(SHORT) + 1, rest);
        }
    }

    #[inline(always)]
    fn tag(&self) -> MsgTag {
        self.tag
    }

    #[inline(always)]
    fn get(&self, index: usize) -> u64 {
        Self::get(self, index)
    }
}

/// The server that the thread is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thread(pub ThreadId);

impl Carrier for Thread {
    type Message = Msg;

    #[inline(always)]
    fn exchange_one(&self, request: Msg, timeouts: Timeouts) -> Msg {
        ipc::raw_one(self.0, timeouts, &request)
    }

    #[inline(always)]
    fn exchange(&self, request: Msg, timeouts: Timeouts) -> Msg {
        ipc::raw(self.0, self.0, timeouts, &request).1
    }

    #[cold]
    fn error(&self) -> Error {
        Error::Ipc(ipc::error())
    }

    fn call_with(
        &self,
        request: Msg,
        body: Option<&[u8]>,
        room: &mut [u8],
        timeouts: Timeouts,
    ) -> Result<Msg, Error> {
        let request = match body {
            Some(body) => request.string(body),
            None => request.into(),
        };
        let call = || ipc::call_within(self.0, &request, timeouts).map_err(Error::Ipc);
        if room.is_empty() { call() } else { accept::string(room, PATIENCE, call) }
    }

    fn send(&self, request: Msg, body: Option<&[u8]>, timeouts: Timeouts) -> Result<(), Error> {
        let request = match body {
            Some(body) => request.string(body),
            None => request.into(),
        };
        ipc::ipc(self.0, ThreadId::NIL, timeouts, &request).map(|_| ()).map_err(Error::Ipc)
    }
}

/// Answers this caller and waits for the next.
struct Onward(ThreadId);

impl Next<Msg> for Onward {
    type Request = (ThreadId, Msg);

    #[inline(always)]
    fn request(&self, answer: Msg) -> (ThreadId, Msg) {
        ipc::raw(self.0, ThreadId::ANY, Timeouts::REPLY_WAIT, &answer)
    }
}

/// Serves an interface whose requests and answers have no strings, for ever; `room` has the
/// size that the interface's module says. Its clients are of other tasks: the trap knows no local ids.
#[inline(always)]
pub fn serve(server: &impl Dispatch, room: &mut [u8]) -> ! {
    let mut scratch = [0; BODY];
    let (mut from, mut request) = ipc::request();
    loop {
        (from, request) = match server.quick(from, request, &Onward(from)) {
            Ok(next) => next,
            // Whoever was to be answered has gone.
            Err(failed) if failed.tag.is_error() => ipc::request(),
            Err(request) => {
                let rooms = (&mut scratch, &[][..], &mut *room, &mut [][..]);
                let answer = answer_apart(server, from, &request, rooms);
                ipc::next_request(answer.map(|(answer, _)| (from, answer)))
            }
        };
    }
}

/// What a request needs: a place for a body in words, its string, room for the result, room for the answer's string.
type Rooms<'r> = (&'r mut [u8; BODY], &'r [u8], &'r mut [u8], &'r mut [u8]);

/// The answer to one request, and how long its string is if it has one.
#[inline(always)]
fn answer_one(
    server: &impl Dispatch,
    from: ThreadId,
    request: &Msg,
    (scratch, input, room, output): Rooms<'_>,
) -> Option<(Msg, Option<usize>)> {
    let place = Place::of_message(request, scratch);
    let answer = server.dispatch(from, &place.letter(request.tag), input, room, output);
    answer.message().map(|(answer, string)| (place.message(answer.tag()), string))
}

/// Serves any interface, for ever: `input`, `room` and `output` have the sizes that the
/// interface's module says.
pub fn serve_with(
    server: &impl Dispatch,
    input: &mut [u8],
    room: &mut [u8],
    output: &mut [u8],
) -> ! {
    let mut scratch = [0; BODY];
    let (mut from, mut request) = accept::string(input, PATIENCE, ipc::request);
    loop {
        let answer = answer_one(server, from, &request, (&mut scratch, input, room, output));
        let answer = answer.map(|(answer, string)| (from, with_string(answer, string, output)));
        (from, request) = accept::string(input, PATIENCE, || ipc::next_of_any(answer));
    }
}

fn with_string(answer: Msg, string: Option<usize>, output: &[u8]) -> ipc::Parcel<'_> {
    match string.and_then(|len| output.get(..len)) {
        Some(string) => answer.string(string),
        None => answer.into(),
    }
}

/// The same where it must not take registers from what is quick.
#[inline(never)]
fn answer_apart(
    server: &impl Dispatch,
    from: ThreadId,
    request: &Msg,
    rooms: Rooms<'_>,
) -> Option<(Msg, Option<usize>)> {
    answer_one(server, from, request, rooms)
}

/// Sends an answer that came later, made by a token, with its string in `output`. Who does not
/// wait for it any more loses it.
pub fn answer((to, answer): (Caller, Answer<Msg>), output: &[u8]) {
    if let Some((answer, string)) = answer.message() {
        let _ = ipc::send_within(to, &with_string(answer, string, output), Time::ZERO);
    }
}
