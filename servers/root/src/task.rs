//! A task: its description, its threads, its life.

use abi::inspect::What;
use abi::{CallError, Ceilings, Fpage, Numbers, Rights, ThreadId, Time};
use bootcfg::Spec;
use interfaces::pager;
use interfaces::tasks::WaitReply;
use paging::Image;
use proto::Refusal;
use proto::layout::{self, THREADS};
use proto::root::{State, version_of};
use runtime::pool::{Client, Modules};
use runtime::service::{self, Thread};
use runtime::{Msg, clock, ipc, kernel, random, schedule, thread};

use crate::output::{Allowance, Log};
use crate::resources::Blocks;
use crate::supervise::Again;
use crate::{Root, clan, say};

/// The raw file whose presence keeps everything at its first place.
const FIXED: &str = "fixed-addresses";

/// Threads of a task that can wait for others' ends at a time.
const WAITERS: usize = 4;

/// Most starts of a task, and most births of each of its threads between two starts: then its
/// ids would come back.
const MAX_GENERATION: u64 = 0xFFFF;
const MAX_BIRTHS: u16 = 0x7FFF;

/// One task.
pub struct Task {
    /// What the image says about it.
    pub spec: Spec,
    /// Its program.
    pub image: Image,
    /// Its entry point.
    pub entry: u64,
    /// How far its program is from where it was linked.
    distance: u64,
    /// Thread numbers for threads that it makes itself.
    pub numbers: Numbers,
    /// Where its text and data can be read; `None` if σ0 refused them.
    pub modules: Option<Modules>,
    /// What it is doing.
    pub state: State,
    /// Counts its starts; part of its threads' ids.
    pub generation: u64,
    /// How often it was started again.
    pub restarts: u64,
    /// What it left when it ended.
    pub exit_code: u64,
    /// Bit i: thread i exists.
    pub threads: u16,
    /// Bit i: thread i is in a space of its own.
    pub apart: u16,
    /// The thread that has each of the description's interrupt lines.
    pub handlers: [Option<ThreadId>; bootcfg::LIST],
    /// The thread that has registered under each of the description's names.
    pub services: [Option<ThreadId>; bootcfg::PROVIDES],
    /// Its threads that wait for a task's end, and that task's slot.
    pub waiters: [Option<(WaitReply, usize)>; WAITERS],
    /// Memory that it asked for.
    pub blocks: Blocks,
    /// Its text on the way to the console.
    pub log: Log,
    /// How much may be written on its behalf.
    pub allowance: Allowance,
    /// When it is started again.
    pub again: Again,
    /// Bit i: thread i waits for the pager to be there again.
    pub stalled: u16,
    /// How often each thread was created in this generation.
    born: [u16; THREADS as usize],
    /// When it was started last.
    pub started_us: u64,
}

impl Task {
    /// A task that has not been started.
    pub fn new(spec: Spec, image: Image, entry: u64, modules: Option<Modules>) -> Self {
        Self {
            spec,
            image,
            entry,
            distance: 0,
            numbers: Numbers::NONE,
            modules,
            state: State::Ready,
            generation: 0,
            restarts: 0,
            exit_code: 0,
            threads: 0,
            apart: 0,
            handlers: [None; bootcfg::LIST],
            services: [None; bootcfg::PROVIDES],
            waiters: [const { None }; WAITERS],
            blocks: Blocks::new(),
            log: Log::new(),
            allowance: Allowance::new(),
            again: Again::default(),
            stalled: 0,
            born: [0; THREADS as usize],
            started_us: 0,
        }
    }

    /// Its program is so far from where it was linked.
    pub fn move_by(&mut self, distance: u64) {
        self.distance = distance;
        self.image.virt += distance;
        self.entry += distance;
    }

    /// An address of its own as debuggers know it: as it was linked, if it is in the program.
    pub fn as_linked(&self, address: u64) -> u64 {
        let Image { virt, text, data, bss, .. } = self.image;
        let is_inside = (virt..virt + text + data + bss).contains(&address);
        if is_inside { address - self.distance } else { address }
    }

    /// The id of thread `index`.
    pub fn thread(&self, slot: usize, index: u64) -> ThreadId {
        let births = self.born.get(index as usize).copied().unwrap_or(0);
        ThreadId::global(layout::thread_number(slot, index), version_of(self.generation, births))
    }

    /// A free index for a new thread, which makes the next id of that index new.
    pub fn next_index(&mut self) -> Option<u64> {
        let is_free = |index: u64| self.threads & 1 << index == 0;
        let has_newer = |index: u64| self.born[index as usize] < MAX_BIRTHS;
        let index = (1..THREADS).find(|index| is_free(*index) && has_newer(*index))?;
        self.born[index as usize] += 1;
        Some(index)
    }

    /// The most that its threads may have of the processor.
    pub fn ceilings(&self) -> Ceilings {
        Ceilings {
            priority: self.spec.priority,
            slice: Time::micros(self.spec.slice_us),
            quantum: Time::NEVER,
            delay_us: self.spec.delay_us,
        }
    }

    /// Whether `thread` is one of the task's threads.
    pub fn owns(&self, slot: usize, thread: ThreadId) -> bool {
        let Some((home, index)) = layout::slot_of(thread.number()) else { return false };
        home == slot && self.threads & 1 << index != 0 && thread == self.thread(slot, index)
    }

    /// Takes back what was kept for its threads that are `gone`: interrupt lines, names, waits.
    pub fn forget(&mut self, gone: impl Fn(ThreadId) -> bool) {
        self.services.iter_mut().for_each(|entry| *entry = entry.filter(|thread| !gone(*thread)));
        for waiter in &mut self.waiters {
            let _ = waiter.take_if(|(reply, _)| gone(reply.caller()));
        }
        self.log.forget(&gone);
        for (line, handler) in self.spec.irqs().iter().zip(&mut self.handlers) {
            if handler.take_if(|thread| gone(*thread)).is_some() {
                let _ = kernel::detach_irq(*line);
            }
        }
    }

    /// What its pager needs to know.
    pub fn client(&self, slot: usize) -> Client {
        Client { slot, generation: self.generation, image: self.image, limit: self.spec.memory }
    }
}

/// An interrupt-free description of a kernel refusal.
pub fn why(error: CallError) -> &'static str {
    match error {
        CallError::NoPrivilege => "the root task has no privilege for it",
        CallError::InvalidThread => "the thread id is not acceptable",
        CallError::InvalidSpace => "the space does not exist",
        CallError::InvalidScheduler => "the scheduler does not exist",
        CallError::InvalidParameter => "a parameter is out of range",
        CallError::UtcbArea => "the UTCB area is not acceptable",
        CallError::KipArea => "the KIP area is not acceptable",
        CallError::NoMemory => "the kernel memory of the payer is used up; raise quota=",
    }
}

/// Log2 of a page's size.
const PAGE_BITS: u32 = 12;

/// Of what the root task has left of the kernel's memory no task gets the last one of so many parts.
const KEPT: u64 = 16;

/// Creates a thread in a space of its own and pays for it, as far as there is kernel memory. It is inactive.
pub fn create_space(main: ThreadId, location: u64, quota: u64) -> Result<(), CallError> {
    kernel::create(main, main, ThreadId::ROOT, location)?;
    // A kernel without quotas answers with an error: the space then lives on the
    // root task's account.
    if let Ok((limit, used)) = kernel::move_quota(ThreadId::ROOT, 0) {
        let left = limit.saturating_sub(used);
        let _ = kernel::move_quota(main, quota.min(left - left / KEPT) as i64);
    }
    let kip = Fpage::memory(layout::KIP, PAGE_BITS, Rights::NONE);
    let utcbs = Fpage::memory(layout::UTCBS, layout::UTCB_BITS, Rights::NONE);
    kernel::configure_space(main, kip, utcbs)
}

impl Root {
    /// The pager's thread, if the pager runs.
    pub fn pager_thread(&self) -> Option<ThreadId> {
        let slot = self.pager?;
        self.task(slot).filter(|task| task.state == State::Running).map(|task| task.thread(slot, 0))
    }

    /// Whether the pager, running or not, pages the task in `slot`.
    pub fn is_paged_outside(&self, slot: usize) -> bool {
        self.pager.is_some() && self.task(slot).is_some_and(|task| !task.spec.root_paged)
    }

    /// The thread that answers faults of the task in `slot`: the pager's, or this one.
    pub fn pager_of(&self, slot: usize) -> ThreadId {
        let outside = self.is_paged_outside(slot).then(|| self.pager_thread()).flatten();
        outside.unwrap_or(ThreadId::ROOT)
    }

    /// Starts the task in `slot`, which does not run.
    pub fn start(&mut self, slot: usize) -> Result<(), Refusal> {
        let is_random = !self.modules.has(FIXED);
        let Some(task) = self.task_mut(slot) else { return Err(Refusal::Unknown) };
        if task.state == State::Running {
            return Err(Refusal::Taken);
        }
        if task.generation == MAX_GENERATION {
            say!("root: {} cannot be started: it has had every id.", task.spec.name);
            return Err(Refusal::Exhausted);
        }
        task.again.settle();
        task.generation += 1;
        task.born = [0; THREADS as usize];
        task.started_us = clock::now_us();
        let (main, spec) = (task.thread(slot, 0), task.spec);
        if let Err(error) = launch(main, task, is_random) {
            say!("root: {} cannot be started: {}.", spec.name, why(error));
            let _ = kernel::delete(main);
            return Err(Refusal::Kernel);
        }
        if let Some(task) = self.task_mut(slot) {
            task.threads = 1;
            task.apart = 0;
            task.stalled = 0;
            task.state = State::Running;
        }
        let _ = kernel::set_pager(main, main, self.pager_of(slot), !0);
        if self.pager == Some(slot) {
            self.adopt_clients();
        }
        Ok(())
    }

    /// Ends the task in `slot`, leaving it in `state`.
    pub fn end(&mut self, slot: usize, state: State, code: u64) {
        if self.task(slot).is_none_or(|task| task.state != State::Running) {
            return;
        }
        if self.pager == Some(slot) {
            self.detach_clients();
        }
        let Some(task) = self.task_mut(slot) else { return };
        // What it made itself goes first, and nothing of it stays.
        clan::end_all(task.numbers);
        // Spaces apart first, the main thread last: with it the space goes.
        for index in (0..THREADS).rev().filter(|index| task.threads & 1 << index != 0) {
            let _ = kernel::delete(task.thread(slot, index));
        }
        clan::end_all(clan::of_slot(slot));
        (task.threads, task.apart, task.state, task.exit_code) = (0, 0, state, code);
        task.forget(|_| true);
        task.again.settle();
        task.blocks.release();
        self.free_frames(slot);
        self.answer_waiters(slot, code);
    }

    /// Starts the task in `slot`, which was ended, and counts that.
    pub fn start_again(&mut self, slot: usize) -> Result<(), Refusal> {
        self.task_mut(slot).ok_or(Refusal::Unknown)?.restarts += 1;
        self.start(slot)
    }

    /// Whether a running task depends on the pager.
    pub fn has_clients(&self) -> bool {
        let mut any = false;
        self.each_client(|_, _, _| any = true);
        any
    }

    /// Tells the tasks that wait for the end of `slot`.
    fn answer_waiters(&mut self, slot: usize, code: u64) {
        for waiter in self.tasks.iter_mut().flatten().flat_map(|task| &mut task.waiters) {
            if let Some((reply, _)) = waiter.take_if(|(_, waited)| *waited == slot) {
                service::answer(reply.answer(Ok(code), &mut []), &[]);
            }
        }
    }

    /// The frames of the task in `slot` are free.
    fn free_frames(&mut self, slot: usize) {
        if !self.is_paged_outside(slot) {
            if let Some(pool) = &mut self.pool {
                pool.forget(slot, None);
            }
        } else if let Some(pager) = self.pager_thread() {
            // A pager that is busy learns it when the slot is used again.
            let _ = pager::Client::new(Thread(pager)).forget(slot as u32);
        }
    }

    /// Calls `visit` with slot, index and id of each thread that the pager pages.
    fn each_client(&self, mut visit: impl FnMut(usize, u64, ThreadId)) {
        for (slot, task) in
            self.tasks.iter().enumerate().filter(|(slot, _)| self.is_paged_outside(*slot))
        {
            let Some(task) = task.as_ref().filter(|task| task.state == State::Running) else {
                continue;
            };
            let shared = task.threads & !task.apart;
            (0..THREADS)
                .filter(|index| shared & 1 << index != 0)
                .for_each(|index| visit(slot, index, task.thread(slot, index)));
        }
    }

    /// The pager is about to go: its clients' faults come here until there is a
    /// new one (`page_fault` lets them wait); those that wait for an answer of the
    /// old one fault again.
    fn detach_clients(&mut self) {
        let old = self.pager_thread();
        self.each_client(|_, _, client| {
            let _ = kernel::set_pager(client, client, ThreadId::ROOT, !0);
            if old.is_some_and(|old| waits_for(client, old)) {
                thread::cancel_ipc(client);
            }
        });
    }

    /// The pager is new: all threads that it pages get its id, and those that
    /// waited for it fault again.
    fn adopt_clients(&mut self) {
        let Some(pager) = self.pager_thread() else { return };
        self.each_client(|slot, index, client| {
            let _ = kernel::set_pager(client, client, pager, !0);
            if self.task(slot).is_some_and(|task| task.stalled & 1 << index != 0) {
                let _ = ipc::reply(client, &Msg::default());
            }
        });
        self.tasks.iter_mut().flatten().for_each(|task| task.stalled = 0);
    }
}

/// Creates, configures and starts a task's main thread, paged by this one, on a stack at a random
/// place; the task follows with its heap and its other stacks.
fn launch(main: ThreadId, task: &Task, is_random: bool) -> Result<(), CallError> {
    let spec = &task.spec;
    create_space(main, layout::utcb_location(0), spec.quota)?;
    let numbers = Some(task.numbers).filter(|numbers| !numbers.is_empty());
    kernel::limit(main, numbers, Some(task.ceilings()))?;
    kernel::set_pager(main, main, ThreadId::ROOT, !0)?;
    schedule::set_priority(main, spec.priority)?;
    place(main, spec)?;
    let [stacks, slack] = if is_random {
        [layout::stacks_at(random::word()), random::word()]
    } else {
        [layout::STACKS, 0]
    };
    let sp = layout::stack_pointer(layout::stack_top(stacks, 0), slack);
    let start = Msg::default().word(task.entry).word(sp);
    ipc::reply(main, &start).map_err(|_| CallError::InvalidThread)
}

/// Lets a thread of the task run where its description says.
pub fn place(thread: ThreadId, spec: &Spec) -> Result<(), CallError> {
    match spec.processor {
        0 => Ok(()),
        number => schedule::set_processor(thread, number),
    }
}

/// Whether `client` is in an IPC with `partner`.
fn waits_for(client: ThreadId, partner: ThreadId) -> bool {
    kernel::inspect(What::Thread, u64::from(client.number()), 0)
        .is_some_and(|record| record[0] == client.0 && record[4] == partner.0)
}
