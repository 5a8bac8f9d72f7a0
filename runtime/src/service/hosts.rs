//! The server's side of procedure calls: a clerk that agrees to imports, and hosts on which calls run.

use abi::lrpc::{FIRST_ADDRESS, Status};
use abi::{MsgTag, StringItem, ThreadId};

use super::called::Called;
use super::letter::{self, BODY, COME, Place as Letters, Registers};
use super::{
    Answer, Caller, Dispatch, Inside, Message as _, Next, PATIENCE, answer_one, inside, label,
    with_string,
};
use crate::a_stacks::{AStack, Place, STRING_BYTES};
use crate::{Msg, accept, ipc, lrpc, thread};

/// The register of a request in which the clerk's word for the binding comes: the client's id.
const COOKIE: usize = 6;
/// Procedures of a binding: any tag without flags that a client may send.
const PROCEDURES: u64 = abi::lrpc::MAX_PROCEDURES;
/// Bindings that a server has at a time.
const BINDINGS: usize = 48;
/// Of these, those of one client's task.
const OF_ONE_TASK: usize = 8;

/// Serves any interface for ever, as [`super::serve_with`] does, and by procedure calls of its clients, on `hosts`
/// threads more: the server's functions run on several at once. Where the root task refuses a thread there are fewer.
///
/// It does not compile for interfaces that answer later, or whose strings are longer than an A-stack.
pub fn serve_calls<S, const INPUT: usize, const ROOM: usize, const OUTPUT: usize>(
    server: &'static S,
    hosts: usize,
) -> !
where
    S: Dispatch + Inside,
{
    const {
        assert!(!S::LATER, "a procedure call has its answer when it returns");
        assert!(!S::MAPS, "only messages map");
        assert!(
            INPUT <= STRING_BYTES && OUTPUT <= STRING_BYTES,
            "strings have to fit on an A-stack"
        );
    }
    let clerk = thread::me();
    // Where there is no place left, threads of this task go on by messages.
    let _ = inside::offer::<S, ROOM>(server, clerk);
    for _ in 0..hosts {
        let _ = thread::spawn(move || serve_visits::<S, INPUT, ROOM, OUTPUT>(server, clerk));
    }
    let (mut input, mut room, mut output) = ([0; INPUT], [0; ROOM], [0; OUTPUT]);
    let mut scratch = [0; BODY];
    let mut desk = Desk::new(clerk);
    let (mut from, mut request) = accept::string(&mut input, PATIENCE, ipc::request);
    loop {
        let answer = match lrpc::import(&request) {
            Some(import) => Some((desk.agree(from, import), None)),
            None => {
                answer_one(server, from, &request, (&mut scratch, &input, &mut room, &mut output))
            }
        };
        let offers = request.label() == service::BIND;
        let answer = answer.map(|(mut answer, string)| {
            if offers && answer.tag.untyped() == 2 {
                answer.mr[0] |= service::OFFERS_CALLS;
            }
            (from, with_string(answer, string, &output))
        });
        (from, request) = accept::string(&mut input, PATIENCE, || ipc::next_of_any(answer));
    }
}

/// What a clerk knows of the bindings it has agreed to.
struct Desk {
    clerk: ThreadId,
    bindings: [Option<(ThreadId, Place)>; BINDINGS],
}

impl Desk {
    const fn new(clerk: ThreadId) -> Self {
        Self { clerk, bindings: [const { None }; BINDINGS] }
    }

    /// The answer to `client`, who asks for a binding; an empty one refuses. Each thread has one
    /// at most, a new one ends the old one.
    fn agree(&mut self, client: ThreadId, import: lrpc::Import) -> Msg {
        let page = abi::lrpc::MAX_A_STACK_BYTES;
        if (import.count, import.bytes) != (1, page) {
            return Msg::default();
        }
        let _ = lrpc::revoke_cookie(self.clerk, client.0);
        let is_over = |client: ThreadId| lrpc::count(self.clerk, client.0).unwrap_or(0) == 0;
        for entry in &mut self.bindings {
            if entry.as_ref().is_some_and(|(client, _)| is_over(*client)) {
                *entry = None;
            }
        }
        let of_task = |other: &&(ThreadId, Place)| same_task(other.0, client);
        let count = self.bindings.iter().flatten().filter(of_task).count();
        let free = self.bindings.iter_mut().find(|entry| entry.is_none());
        let (Some(free), true) = (free, count < OF_ONE_TASK) else { return Msg::default() };
        let Some(place) = Place::take() else { return Msg::default() };
        let answer = lrpc::agree(place.address(), PROCEDURES, client.0);
        *free = Some((client, place));
        answer
    }
}

/// Whether the threads are of one of the root task's tasks; those of tasks below these are all one.
fn same_task(one: ThreadId, other: ThreadId) -> bool {
    let slot = |thread: ThreadId| proto::layout::slot_of(thread.number()).map(|(slot, _)| slot);
    let known = |slot: Option<usize>| slot.filter(|slot| *slot < proto::layout::TASKS);
    known(slot(one)) == known(slot(other))
}

/// What a host does: it serves one call after the other, until `clerk`, a thread of its task, is gone.
pub fn serve_visits<S, const INPUT: usize, const ROOM: usize, const OUTPUT: usize>(
    server: &S,
    clerk: ThreadId,
) where
    S: Dispatch,
{
    let (mut input, mut room, mut output) = ([0; INPUT], [0; ROOM], [0; OUTPUT]);
    let mut scratch = [0; BODY];
    loop {
        let mut came = Return(Some(clerk)).request(Msg::default());
        while came.0 >= FIRST_ADDRESS {
            came = serve_quick(server, came);
            let mut is_other = true;
            while let Ok(next) = quick_bytes(server, &came, &mut scratch, &mut room) {
                (came, is_other) = (next, false);
            }
            if is_other && came.0 >= FIRST_ADDRESS {
                let (a_stack, request) = came;
                let what = (ThreadId(request.mr[COOKIE]), request.tag, a_stack);
                let registers = letter::registers(&request);
                let rooms = (&mut scratch, &mut input[..], &mut room[..], &mut output[..]);
                let tag = serve_any(server, what, &registers, rooms);
                came = Return(None).request(letter::message(tag, &registers));
            }
        }
        if came.0 == Status::NoClerk as u64 {
            return;
        }
    }
}

/// What comes to a host: the A-stack's address, and what is in registers; or a status.
type Came = (u64, Msg);

/// Serves while requests and answers are in registers as a whole; what comes then. In a function of its own those stay where
/// they come, which they would not beside calls that need other registers, too.
#[inline(never)]
fn serve_quick(server: &impl Dispatch, came: Came) -> Came {
    let (mut a_stack, mut request) = came;
    while a_stack >= FIRST_ADDRESS {
        let caller = ThreadId(request.mr[COOKIE]);
        match server.quick(caller, request, &Return(None)) {
            Ok(next) => (a_stack, request) = next,
            Err(request) => return (a_stack, request),
        }
    }
    (a_stack, request)
}

/// What comes after a request one of whose arguments or whose result is bytes in words, if it is that.
#[inline(always)]
fn quick_bytes(
    server: &impl Dispatch,
    (a_stack, request): &Came,
    scratch: &mut [u8; BODY],
    room: &mut [u8],
) -> Result<Came, ()> {
    let caller = ThreadId(request.mr[COOKIE]);
    let a_stack = AStack::of_visit(*a_stack).ok_or(())?;
    let place = Called::place(scratch);
    let called = Called::come(*request, a_stack, &place);
    server.quick_bytes(caller, called, room, &Return(None)).map_err(|_| ())
}

/// The end of a visit whose answer is in registers; the first time it says to which clerk the thread is lent.
struct Return(Option<ThreadId>);

impl Next<Msg> for Return {
    type Request = Came;

    const FLAGS: u64 = 0;
    const WORDS: usize = COME;

    #[inline(always)]
    fn request(&self, answer: Msg) -> Came {
        let (a_stack, registers) = lrpc::come_back(self.0, answer.regs());
        (a_stack, Msg::from_regs(registers))
    }
}

impl Next<Called<'_>> for Return {
    type Request = Came;

    const FLAGS: u64 = 0;

    #[inline(always)]
    fn request(&self, answer: Called<'_>) -> Came {
        let (a_stack, registers) = lrpc::come_back(self.0, answer.message().regs());
        (a_stack, Msg::from_regs(registers))
    }
}

/// A place for a body in words, and the rooms of [`Dispatch::dispatch`].
type Rooms<'r> = (&'r mut [u8; BODY], &'r mut [u8], &'r mut [u8], &'r mut [u8]);

/// Any request: its further words and its string are on the A-stack, and so are the answer's, whose tag this is.
#[inline(never)]
fn serve_any(
    server: &impl Dispatch,
    (caller, tag, a_stack): (Caller, MsgTag, u64),
    registers: &Registers,
    (scratch, input, room, output): Rooms<'_>,
) -> MsgTag {
    let Some(a_stack) = AStack::at(a_stack) else { return MsgTag::new(label::MALFORMED, 0, 0) };
    let place = Letters::of_call(tag, registers, a_stack, scratch);
    let letter = place.letter(tag);
    let is_there = match place.string_len(tag) {
        Some(len) => input.get_mut(..len).is_some_and(|input| a_stack.take(input)),
        None => tag.typed() == 0,
    };
    let answer = match is_there {
        true => server.dispatch(caller, &letter, input, room, output),
        false => Answer::malformed(),
    };
    match answer.message() {
        Some((answer, None)) => answer.tag(),
        Some((answer, Some(len))) => {
            match output.get(..len).is_some_and(|string| a_stack.put(string)) {
                true => place.item(answer.tag(), StringItem::simple(0, len as u64)),
                false => MsgTag::new(label::TOO_LONG, 0, 0),
            }
        }
        None => MsgTag::new(label::OK, 0, 0),
    }
}
