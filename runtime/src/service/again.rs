//! A link to a server by its name: when that is gone, and has not taken the request, it is looked up again.

use abi::{IpcError, IpcErrorKind, MsgTag, Phase, ThreadId};
use service::{Error, MAX_WORDS, SHORT};

use super::link::Link;
use crate::{ipc, root, utcb};

/// How long a server that has ended may take until it is there again, and how often it is looked for, µs.
const PATIENCE_US: u64 = 1_000_000;
const PAUSE_US: u64 = 5_000;

/// Why a message has no answer. Who waits for one when the server ends cannot know what the server has done.
pub(super) fn failure(error: IpcError) -> Error {
    match error.phase {
        Phase::Receive if root::is_gone(error) => Error::Lost,
        _ => Error::Ipc(error),
    }
}

/// Whether a message with this end has reached nobody, and could not.
const fn reached_nobody(error: Error) -> bool {
    matches!(
        error,
        Error::Ipc(IpcError { kind: IpcErrorKind::NonExisting, phase: Phase::Send, .. })
    )
}

/// The words of a request for which there is no register: every IPC loses them.
struct Kept {
    bytes: [u8; 8 * (MAX_WORDS - SHORT)],
    len: usize,
}

impl Kept {
    fn of(tag: MsgTag) -> Self {
        let mut kept = Self { bytes: [0; 8 * (MAX_WORDS - SHORT)], len: 0 };
        kept.len = 8 * tag.untyped().min(MAX_WORDS).saturating_sub(SHORT);
        utcb::copy_mrs(SHORT + 1, &mut kept.bytes[..kept.len]);
        kept
    }

    fn put_back(&self) {
        utcb::set_mrs(SHORT + 1, &self.bytes[..self.len]);
    }
}

impl Link {
    /// To the server that is registered under `name`, for good: one that ends and is started again is found again, by the
    /// first call that reaches nobody.
    ///
    /// # Errors
    /// As [`root::find`].
    pub fn find(name: &'static str, patience_ms: u64) -> Result<Self, root::Refusal> {
        let server = root::find(name, patience_ms)?;
        let mut link = Self::new(server);
        link.name = Some(name);
        Ok(link)
    }

    /// Binds once more before a call with this tag if the last binding has ended with one of its hosts.
    pub(super) fn bind_again(&self, tag: MsgTag) {
        if self.is_to_bind.take() {
            let kept = Kept::of(tag);
            self.bind();
            kept.put_back();
        }
    }

    /// Goes on after a call with this tag has failed with `error`: the result of `retry` if the server is there again.
    #[cold]
    #[inline(never)]
    pub(super) fn once_more<R>(
        &self,
        error: Error,
        tag: MsgTag,
        retry: impl FnOnce(ThreadId) -> R,
    ) -> Result<R, Error> {
        let Some(name) = self.name.filter(|_| reached_nobody(error)) else { return Err(error) };
        let kept = Kept::of(tag);
        let server = self.other(name).ok_or(error)?;
        self.give_up();
        self.is_far.set(false);
        self.has_moved.set(true);
        self.server.set(server);
        if self.wants_calls.get() {
            self.bind();
        }
        kept.put_back();
        Ok(retry(server))
    }

    /// The server with this name that is not the one that was.
    fn other(&self, name: &str) -> Option<ThreadId> {
        for _ in 0..PATIENCE_US / PAUSE_US {
            match root::lookup(name) {
                Ok(server) if server != self.server.get() => return Some(server),
                _ => ipc::sleep(PAUSE_US),
            }
        }
        None
    }
}
