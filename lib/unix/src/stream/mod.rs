//! Streams: pipes, UNIX sockets, eventfd, timerfd, signalfd; and waiting for several
//! files: poll, select, epoll.

use crate::call::Entry;

/// The calls this module carries out.
pub const CALLS: &[Entry] = &[];
