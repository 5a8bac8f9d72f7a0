//! A server that is another thread of the same task, by local IPC and nothing else: what a [`super::Link`] finds out each
//! time is known here.

use abi::{MsgTag, ThreadId, Timeouts};

use super::again::failure;
use super::letter::BODY;
use super::transport::local_id;
use super::{Carrier, Dispatch, Error, Next, Thread, answer_one};
use crate::{Msg, ipc, thread, utcb};

/// The server that a thread of the own task is, by its local id. It serves by [`super::serve_local`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour(ThreadId);

impl Neighbour {
    /// `server`, if it is a thread of the own task.
    #[must_use]
    pub fn of(server: ThreadId) -> Option<Self> {
        local_id(server).map(Self)
    }

    /// For what local IPC does not carry.
    fn by_kernel(self) -> Thread {
        Thread(thread::other_id(self.0).unwrap_or(self.0))
    }
}

impl Carrier for Neighbour {
    type Message = Msg;

    #[inline(always)]
    fn exchange(&self, request: Msg, timeouts: Timeouts) -> Msg {
        match timeouts.0 == Timeouts::NEVER.0 {
            true => ipc::local_exchange(self.0, &request),
            false => self.by_kernel().exchange(request, timeouts),
        }
    }

    #[inline(always)]
    fn exchange_one(&self, request: Msg, timeouts: Timeouts) -> Msg {
        match timeouts.0 == Timeouts::NEVER.0 {
            true => ipc::local_exchange_one(self.0, &request),
            false => self.by_kernel().exchange_one(request, timeouts),
        }
    }

    #[cold]
    fn error(&self) -> Error {
        failure(ipc::error())
    }

    fn call_with(
        &self,
        request: Msg,
        body: Option<&[u8]>,
        room: &mut [u8],
        timeouts: Timeouts,
    ) -> Result<Msg, Error> {
        self.by_kernel().call_with(request, body, room, timeouts)
    }

    fn send(&self, request: Msg, body: Option<&[u8]>, timeouts: Timeouts) -> Result<(), Error> {
        self.by_kernel().send(request, body, timeouts)
    }
}

/// The end of a function of [`serve_local`]'s: the answer to this caller, of whose thread this is the UTCB.
struct Onward(ThreadId, u64);

/// What comes next: the own UTCB, who asks, and the request.
type Came = (u64, ThreadId, Msg);

impl Next<Msg> for Onward {
    type Request = Came;

    // What came without the kernel has none.
    const FLAGS: u64 = 0;

    #[inline(always)]
    fn request(&self, answer: Msg) -> Came {
        // Nobody is named by nil here: a request that can be answered has a sender.
        match self.0.0 & 0x3F {
            0 => ipc::local_onward(self.0, self.1, &answer),
            _ => onward(self.0, answer.tag.0, answer.mr),
        }
    }
}

/// Apart, so that clients of the own task find the registers as they need them.
#[cold]
#[inline(never)]
fn onward(to: ThreadId, tag: u64, mr: [u64; 7]) -> Came {
    let answer = Msg { tag: MsgTag(tag), mr };
    came(ipc::raw(to, ThreadId::ANY, Timeouts::REPLY_WAIT, &answer))
}

fn came((from, request): (ThreadId, Msg)) -> Came {
    (utcb::pointer(), from, request)
}

/// [`super::serve`] for a server whose clients are threads of its own task: their calls come without the kernel if all of them
/// use vector registers, or none does. Others' calls come as well, and cost more.
#[inline(always)]
pub fn serve_local(server: &impl Dispatch, room: &mut [u8]) -> ! {
    let mut scratch = [0; BODY];
    let mut next = came(ipc::request());
    let (mut own, mut from, mut request) = next;
    loop {
        (own, from, request) = match server.quick(from, request, &Onward(from, own)) {
            Ok(next) => next,
            Err(request) => {
                otherwise(server, (from, request), (&mut scratch, room), &mut next);
                next
            }
        };
    }
}

/// Any other request, and what has become of an answer to somebody who has gone. What comes next it leaves in `next`: as a
/// result it would lie in memory for those that are quick, too.
#[cold]
#[inline(never)]
fn otherwise(
    server: &impl Dispatch,
    (from, request): (ThreadId, Msg),
    (scratch, room): (&mut [u8; BODY], &mut [u8]),
    next: &mut Came,
) {
    if request.tag.is_error() {
        *next = came(ipc::request());
        return;
    }
    let rooms = (scratch, &[][..], room, &mut [][..]);
    let answer = answer_one(server, from, &request, rooms);
    *next = came(ipc::next_of_own(answer.map(|(answer, _)| (from, answer))));
}
