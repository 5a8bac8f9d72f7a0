//! Streams: pipes, UNIX sockets, eventfd, timerfd, signalfd; and waiting for several
//! files: poll, select, epoll.

use alloc::rc::Rc;
use core::cell::Cell;

use linux_raw_sys::general as nr;

use crate::call::{Answer, Cx, Entry, Stop, full, partial};
use crate::file::{MAX_DESCRIPTORS, Open, Source};
use crate::signal::OnSignal;
use crate::wait::WaitQueue;

pub mod aio;
pub mod epoll;
pub mod event;
pub mod inotify;
mod packets;
pub mod pipe;
pub mod poll;
pub mod ring;
pub mod signalfd;
pub mod socket;
mod splice;
pub mod timerfd;

pub use pipe::open_fifo;

/// The calls this module carries out.
pub const CALLS: &[Entry] = &[
    full(nr::__NR_pipe, "pipe", pipe::pipe),
    partial(nr::__NR_pipe2, "pipe2", pipe::pipe2, "O_DIRECT, O_NOTIFICATION_PIPE"),
    full(nr::__NR_splice, "splice", splice::splice),
    full(nr::__NR_tee, "tee", splice::tee),
    full(nr::__NR_vmsplice, "vmsplice", splice::vmsplice),
    full(nr::__NR_poll, "poll", poll::poll),
    full(nr::__NR_ppoll, "ppoll", poll::ppoll),
    full(nr::__NR_select, "select", poll::select),
    full(nr::__NR_pselect6, "pselect6", poll::pselect6),
    full(nr::__NR_epoll_create, "epoll_create", epoll::epoll_create),
    full(nr::__NR_epoll_create1, "epoll_create1", epoll::epoll_create1),
    full(nr::__NR_epoll_ctl, "epoll_ctl", epoll::epoll_ctl),
    full(nr::__NR_epoll_wait, "epoll_wait", epoll::epoll_wait),
    full(nr::__NR_epoll_pwait, "epoll_pwait", epoll::epoll_pwait),
    full(nr::__NR_epoll_pwait2, "epoll_pwait2", epoll::epoll_pwait2),
    full(nr::__NR_eventfd, "eventfd", event::eventfd),
    full(nr::__NR_eventfd2, "eventfd2", event::eventfd2),
    full(nr::__NR_timerfd_create, "timerfd_create", timerfd::timerfd_create),
    partial(
        nr::__NR_timerfd_settime,
        "timerfd_settime",
        timerfd::timerfd_settime,
        "TFD_TIMER_CANCEL_ON_SET cancels nothing",
    ),
    full(nr::__NR_timerfd_gettime, "timerfd_gettime", timerfd::timerfd_gettime),
    full(nr::__NR_signalfd, "signalfd", signalfd::signalfd),
    full(nr::__NR_signalfd4, "signalfd4", signalfd::signalfd4),
    partial(
        nr::__NR_socket,
        "socket",
        socket::connect::socket,
        "families other than AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK; protocols of AF_NETLINK but NETLINK_ROUTE, _CONNECTOR and _GENERIC; addresses but the loopback's",
    ),
    full(nr::__NR_socketpair, "socketpair", socket::connect::socketpair),
    full(nr::__NR_bind, "bind", socket::connect::bind),
    full(nr::__NR_listen, "listen", socket::connect::listen),
    full(nr::__NR_accept, "accept", socket::connect::accept),
    full(nr::__NR_accept4, "accept4", socket::connect::accept4),
    full(nr::__NR_connect, "connect", socket::connect::connect),
    full(nr::__NR_shutdown, "shutdown", socket::connect::shutdown),
    full(nr::__NR_getsockname, "getsockname", socket::connect::getsockname),
    full(nr::__NR_getpeername, "getpeername", socket::connect::getpeername),
    partial(nr::__NR_setsockopt, "setsockopt", socket::options::setsockopt, "filters, marks"),
    partial(nr::__NR_getsockopt, "getsockopt", socket::options::getsockopt, "filters, marks"),
    full(nr::__NR_sendto, "sendto", socket::message::sendto),
    full(nr::__NR_recvfrom, "recvfrom", socket::message::recvfrom),
    full(nr::__NR_sendmsg, "sendmsg", socket::message::sendmsg),
    full(nr::__NR_recvmsg, "recvmsg", socket::message::recvmsg),
    full(nr::__NR_sendmmsg, "sendmmsg", socket::messages::sendmmsg),
    full(nr::__NR_recvmmsg, "recvmmsg", socket::messages::recvmmsg),
];

/// What all streams share.
pub struct Streams {
    /// Abstract names of sockets.
    names: socket::address::Names,
    /// Ports of the Internet.
    pub ports: Rc<socket::inet::Ports>,
    /// Services of the system below.
    pub services: Rc<socket::service::Services>,
    /// Sockets of native tasks.
    pub natives: socket::native::Natives,
    /// Open files under way in messages.
    pub flights: socket::flights::Flights,
    /// Who is told what processes do.
    pub connector: socket::netlink::connector::Connector,
    /// inotifies that a user can have.
    pub inotifies: Cell<u64>,
    /// Events that the contexts of asynchronous I/O can hold, all together.
    pub aio_events: Rc<Cell<u64>>,
    /// The highest capacity of pipes of who is not privileged (`/proc/sys/fs/pipe-max-size`).
    pub pipe_max: Cell<usize>,
    /// Descriptors that a process can have (`/proc/sys/fs/nr_open`).
    pub most_descriptors: Cell<u64>,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            names: Default::default(),
            ports: Default::default(),
            services: Default::default(),
            natives: Default::default(),
            flights: Default::default(),
            connector: Default::default(),
            inotifies: Cell::new(inotify::INSTANCES),
            aio_events: Rc::default(),
            pipe_max: Cell::new(pipe::CAPACITY_MAX),
            most_descriptors: Cell::new(MAX_DESCRIPTORS),
        }
    }
}

/// Makes descriptors of both files and writes their numbers to `address`; both or none.
fn add_pair(cx: &Cx, files: [Rc<Open>; 2], close_on_exec: bool, address: u64) -> Answer {
    let [first, second] = files;
    let first = cx.add_file(first, close_on_exec)?;
    let second = cx.add_file(second, close_on_exec);
    let written = match second {
        Ok(second) => cx.user().write(address, &[first as i32, second as i32]),
        Err(errno) => Err(errno),
    };
    if let Err(errno) = written {
        for fd in [Ok(first), second].into_iter().flatten() {
            let open = cx.process.files.borrow().remove(fd);
            drop(open);
        }
        return Err(errno.into());
    }
    Ok(0)
}

/// A stream has taken `done` bytes of a write that wants to have written all, and waits.
pub(crate) fn wait_for_rest(
    cx: &Cx,
    source: &Source,
    done: usize,
    queue: &WaitQueue,
) -> Result<usize, Stop> {
    if done > 0 {
        if matches!(source, Source::Server(_)) {
            return Ok(done);
        }
        cx.set_progress(cx.progress() + done as u64);
    }
    cx.on_signal(OnSignal::Partial);
    Err(cx.block_on(queue))
}
