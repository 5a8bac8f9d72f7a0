//! The root task: the chief of all tasks.
//!
//! It takes memory and ports from σ0, starts the tasks that the boot image
//! describes, names and supervises them, and hands out what only a privileged
//! task can: threads, spaces, interrupts, ports. It has one thread and waits for
//! nobody but σ0: every reply and every report is dropped if the partner is not
//! ready. Its own output goes straight to the serial port.
//!
//! `task` is a task's life, `clan` whose thread numbers are whose, `boot` its beginning,
//! `supervise` its next ones, `faults` what goes wrong, `requests` what tasks may ask, `names`
//! who is found under which name, `control` what the monitor may ask. What it keeps for a
//! task is in that task's entry, counted there, and goes with it: there is no common pot.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

mod asked;
mod boot;
mod clan;
mod control;
mod faults;
mod halt;
mod modules;
mod names;
mod output;
mod parent;
mod place;
mod requests;
mod resources;
mod screen;
mod supervise;
mod task;

use abi::{ThreadId, Time, Timeouts, protocol};
use proto::layout::TASKS;
use proto::{Name, REFUSED, Refusal, console};
use runtime::pool::Pool;
use runtime::sync::Lock;
use runtime::window::Window;
use runtime::{Msg, boot_entry, direct_println, ipc};

use clan::Ranges;
use modules::Files;
use output::Way;
use place::Places;
use screen::Screen;
use task::Task;

boot_entry!(main);

/// Everything that the root task knows.
struct Root {
    tasks: [Option<Task>; TASKS],
    /// Thread numbers for tasks that make threads themselves.
    ranges: Ranges,
    /// What changes in programs that move, while they are read.
    places: Option<Places>,
    /// Raw files of the boot image.
    modules: Files,
    /// The boot loader's framebuffer.
    screen: Screen,
    /// Frames for the tasks that the root task pages itself.
    pool: Option<Pool>,
    /// The pager's frames; physical = virtual.
    pager_pool: Option<Window>,
    /// The slot of the task called "pager".
    pager: Option<usize>,
    /// The way of text to the console, and which task's is next.
    way: Way,
    next_log: usize,
    /// Set when the machine is to end.
    halt: Option<halt::Halt>,
}

static ROOT: Lock<Root> = Lock::new(Root {
    tasks: [const { None }; TASKS],
    ranges: Ranges::new(),
    places: None,
    modules: Files::new(),
    screen: Screen::new(),
    pool: None,
    pager_pool: None,
    pager: None,
    way: Way::new(),
    next_log: 0,
    halt: None,
});

/// A reply to the sender of the message at hand; `None`: no reply.
type Reply = Option<Msg>;

fn main() -> ! {
    let mut held = ROOT.lock();
    let root = &mut *held;
    boot::take_ports();
    if let Err(trouble) = boot::read_tasks(root) {
        direct_println!("root: cannot start the system: {trouble}");
    }
    boot::take_memory(root);
    boot::start_all(root);
    let mut reply = None;
    loop {
        if let Some((from, msg)) = root.next(reply.take()) {
            reply = root.serve(from, &msg).map(|answer| (from, answer));
        }
    }
}

impl Root {
    /// Replies, does what is due, and waits for the next message; `None` when it is time for
    /// something else.
    fn next(&mut self, mut reply: Option<(ThreadId, Msg)>) -> Option<(ThreadId, Msg)> {
        if self.has_text() || self.next_start_us() == Some(0) || self.halt.is_some() {
            // A long reply, or request, is in the message registers that this would use.
            if let Some((to, msg)) = reply.take() {
                let _ = ipc::reply(to, &msg);
            }
            self.start_those_due();
            self.pass_text_on();
            self.go_on_halting();
        }
        let again_us = (self.has_text() || self.halt.is_some()).then_some(output::AGAIN_US);
        let limit_us = [self.next_start_us(), again_us].into_iter().flatten().min();
        let limit = limit_us.map_or(Time::NEVER, |us| Time::micros(us.max(1)));
        let (to, msg) = reply.unwrap_or((ThreadId::NIL, Msg::default()));
        ipc::ipc(to, ThreadId::ANY, Timeouts::new(Time::ZERO, limit), &msg).ok()
    }

    fn has_text(&self) -> bool {
        output::own_waits() || self.tasks.iter().flatten().any(|task| !task.log.is_free())
    }

    /// Gives a message's worth of text to the console: the root task's own, then the tasks'
    /// in turns.
    fn pass_text_on(&mut self) {
        self.way.open(self.service(Name::new(console::NAME)));
        output::pass_own_on(&mut self.way);
        for _ in 0..TASKS {
            let slot = self.next_log;
            if let Some(task) = self.tasks.get_mut(slot).and_then(Option::as_mut)
                && !task.log.is_free()
            {
                task.log.pass_on(slot as u32, &mut self.way);
                if self.way.is_used() {
                    self.next_log = (slot + 1) % TASKS;
                    return;
                }
            }
            self.next_log = (slot + 1) % TASKS;
        }
    }

    /// Answers one message.
    fn serve(&mut self, from: ThreadId, msg: &Msg) -> Reply {
        // Messages of threads that are gone, or of nobody's, are not for us.
        let (slot, _) = self.sender(from)?;
        match msg.tag.protocol_label() {
            protocol::PAGE_FAULT => self.page_fault(slot, from, msg),
            protocol::IO_FAULT => self.io_fault(slot, from, msg),
            protocol::EXCEPTION => self.exception(slot, from, msg),
            _ => self.request(slot, from, msg),
        }
    }

    /// The slot and thread index of a thread that exists.
    fn sender(&self, from: ThreadId) -> Option<(usize, u64)> {
        let (slot, index) = proto::layout::slot_of(from.number())?;
        let task = self.tasks.get(slot)?.as_ref()?;
        task.owns(slot, from).then_some((slot, index))
    }

    fn task(&self, slot: usize) -> Option<&Task> {
        self.tasks.get(slot)?.as_ref()
    }

    fn task_mut(&mut self, slot: usize) -> Option<&mut Task> {
        self.tasks.get_mut(slot)?.as_mut()
    }

    /// The slot of the task called `name`.
    fn slot_named(&self, name: Name) -> Option<usize> {
        self.tasks.iter().position(|task| task.as_ref().is_some_and(|task| task.spec.name == name))
    }
}

/// A refusing reply.
fn refused(why: Refusal) -> Reply {
    Some(Msg::new(REFUSED).word(why as u64))
}
