//! What of a link's calls does not go by a procedure call: to servers of the own task, and by messages.

use abi::{MsgTag, Timeouts};
use service::SHORT;

use super::again::failure;
use super::link::Link;
use super::{Carrier, Error, Message as _, Thread};
use crate::{Msg, ipc};

/// Words of a request that come here in registers.
pub(super) const FEW: usize = 2;

impl Link {
    /// What does not go by a procedure call goes to a server of the own task, or by a message; nothing does if the server failed in the call. A server that
    /// is gone is looked up again, if it has a name.
    #[cold]
    #[inline(never)]
    pub(super) fn exchange_message(&self, tag: MsgTag, mr: [u64; 7], timeouts: Timeouts) -> Msg {
        if let Some(server) = self.inside.get()
            && timeouts.0 == Timeouts::NEVER.0
        {
            let mut message = Msg { tag, mr };
            server.call(&mut message);
            return message;
        }
        if self.why.get().is_some() {
            return Msg { tag: MsgTag(MsgTag::ERROR), ..Msg::default() };
        }
        self.bind_again(tag);
        let request = Msg { tag, mr };
        let send = |server| {
            let local = self.local.get();
            let answer = match timeouts.0 == Timeouts::NEVER.0 && !local.is_nil() {
                true => ipc::local_exchange(local, &request),
                false => Thread(server).exchange(request, timeouts),
            };
            if answer.tag.is_error() { Err(failure(ipc::error())) } else { Ok(answer) }
        };
        let answer = send(self.server.get());
        let answer = answer.or_else(|error| self.once_more(error, tag, send).unwrap_or_else(Err));
        answer.unwrap_or_else(|error| self.without_answer(error))
    }

    /// The same for requests of at most [`FEW`] words: stubs stay short.
    #[cold]
    #[inline(never)]
    pub(super) fn exchange_few(
        &self,
        tag: MsgTag,
        first: u64,
        second: u64,
        timeouts: Timeouts,
    ) -> Msg {
        let is_bounded = timeouts.0 != Timeouts::NEVER.0;
        if let Some(server) = self.inside.get().filter(|_| !is_bounded) {
            let mut message = Msg { tag, mr: [first, second, 0, 0, 0, 0, 0] };
            server.call(&mut message);
            return message;
        }
        let local = self.local.get();
        if is_bounded || local.is_nil() {
            return self.exchange_message(tag, [first, second, 0, 0, 0, 0, 0], timeouts);
        }
        let mr = [first, second, 0, 0, 0, 0, 0];
        let answer = ipc::local_exchange(local, &Msg { tag, mr });
        if answer.tag.is_error() { self.after_local(tag, first, second) } else { answer }
    }

    /// [`Self::exchange_few`] for at most one word there and back, which come back in registers.
    #[cold]
    #[inline(never)]
    pub(super) fn exchange_otherwise_one(
        &self,
        tag: MsgTag,
        word: u64,
        timeouts: Timeouts,
    ) -> [u64; 2] {
        let answer = self.exchange_few(tag, word, 0, timeouts);
        [answer.tag.0, answer.mr[0]]
    }

    /// The same for a request that had this status as a procedure call.
    #[cold]
    #[inline(never)]
    pub(super) fn after_call(&self, status: u64, tag: MsgTag, word: u64) -> [u64; 2] {
        self.failed(status);
        self.exchange_otherwise_one(tag, word, Timeouts::NEVER)
    }

    /// [`Self::after_local`] in the same way.
    #[cold]
    #[inline(never)]
    pub(super) fn after_local_one(&self, tag: MsgTag, word: u64) -> [u64; 2] {
        let answer = self.after_local(tag, word, 0);
        [answer.tag.0, answer.mr[0]]
    }

    /// What comes of a request that has failed by local IPC.
    #[cold]
    #[inline(never)]
    fn after_local(&self, tag: MsgTag, first: u64, second: u64) -> Msg {
        let error = failure(ipc::error());
        let request = Msg { tag, mr: [first, second, 0, 0, 0, 0, 0] };
        let send = |server| {
            let answer = Thread(server).exchange(request, Timeouts::NEVER);
            if answer.tag.is_error() { Err(failure(ipc::error())) } else { Ok(answer) }
        };
        let answer = self.once_more(error, request.tag, send).unwrap_or_else(Err);
        answer.unwrap_or_else(|error| self.without_answer(error))
    }

    /// The message that says that there is none.
    fn without_answer(&self, error: Error) -> Msg {
        self.why.set(Some(error));
        Msg { tag: MsgTag(MsgTag::ERROR), ..Msg::default() }
    }

    /// [`Carrier::exchange_with`] for those whose words outnumber the registers, and by messages.
    #[cold]
    #[inline(never)]
    pub(super) fn exchange_otherwise(
        &self,
        tag: MsgTag,
        mr: [u64; SHORT],
        body: &[u8],
        flat: usize,
        room: &mut [u8],
        timeouts: Timeouts,
    ) -> Msg {
        let answer = self.exchange_long(Msg { tag, mr }.with_body(body), timeouts);
        if !answer.tag.is_error() {
            let len = service::body_len(answer.tag, flat, room.len());
            if let Some(room) = len.and_then(|len| room.get_mut(..len)) {
                answer.copy_body(flat, room);
            }
        }
        answer
    }
}
