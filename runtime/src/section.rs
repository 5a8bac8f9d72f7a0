//! Critical sections as threads (Wenske 2002, 1.1): a value that a thread of its own looks
//! after. Who wants to use it sends that thread the code, by local IPC, so that entering and leaving
//! needs no kernel if nobody else is inside; and as the code runs on that thread, it runs at that
//! thread's priority, the *ceiling* (stack-based priority ceiling: Baker 1991).
//!
//! Who is inside can't be preempted by anybody below the ceiling. So a thread waits at most once,
//! and for at most one section's length, for threads of lower priority, and sections that are
//! entered inside each other, by threads of one processor, can't deadlock, provided that nobody
//! inside waits for anything else, and each ceiling is above the priority of everybody who enters.
//!
//! Cost: `lipc/section-user` in `./baton bench lipc`. A plain lock ([`crate::sync::Lock`]) takes
//! less, and gives no such guarantee.

use core::arch::{asm, naked_asm};
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};

use abi::layout::{stub, stub_address};
use abi::utcb::{RUNTIME_WORD, SECTION_BUSY};
use abi::{IpcErrorKind, MsgTag, Phase, ThreadId, Timeouts};

use crate::{Msg, ipc, root, thread, utcb};

/// A value that is used in critical sections only, at a priority of its own. Its thread stays
/// when it is dropped: a section is made once, for as long as the task lives.
pub struct Section<T> {
    /// The local id of the thread whose value it is.
    thread: ThreadId,
    value: PhantomData<fn(&mut T)>,
}

/// What a section's thread is to call, with what and the value.
type Run = extern "C" fn(*mut (), *mut ());

/// What [`Run`] is called with.
struct Work<F, R> {
    body: ManuallyDrop<F>,
    result: MaybeUninit<R>,
}

/// Both, for a message through the kernel, which can't be trusted to come from [`Section::with`].
#[repr(C)]
struct Order {
    run: Run,
    work: *mut (),
}

impl<T: Send + 'static> Section<T> {
    /// A section around `value`, whose code runs at priority `ceiling`: above that of
    /// whoever enters, and not above the task's.
    ///
    /// # Errors
    /// There are no more threads for this task, or its priority may not be that high.
    pub fn new(value: T, ceiling: u8) -> Result<Self, root::Refusal> {
        let thread = thread::spawn(move || serve(value))?;
        root::set_priority(thread, ceiling)?;
        let thread = thread::other_id(thread).ok_or(root::Refusal::NoAnswer)?;
        // SAFETY: it has been started with `serve` just now.
        Ok(unsafe { Self::of(thread) })
    }
}

impl<T> Section<T> {
    /// The section that the thread of this space whose local id is `thread` serves.
    ///
    /// # Safety
    /// That thread runs [`serve`] with a value of this type, now or soon, and for good.
    #[must_use]
    pub const unsafe fn of(thread: ThreadId) -> Self {
        Self { thread, value: PhantomData }
    }

    /// Runs `body` with the value, while nobody else does. Not from inside the same
    /// section, which would wait for itself for ever.
    #[inline(always)]
    pub fn with<R: Send, F: FnOnce(&mut T) -> R + Send>(&self, body: F) -> R {
        let mut work = Work { body: ManuallyDrop::new(body), result: MaybeUninit::uninit() };
        // SAFETY: `work` is what `run` expects and outlives the section: this thread waits until
        // it has been left.
        unsafe { enter(run::<T, F, R>, (&raw mut work).cast(), self.thread.0) };
        // SAFETY: `run` has written it.
        unsafe { work.result.assume_init() }
    }
}

/// On the section's thread.
extern "C" fn run<T, F: FnOnce(&mut T) -> R, R>(work: *mut (), value: *mut ()) {
    // SAFETY: `Section::with` has made `work`, which nobody uses meanwhile; `value` is the
    // section's, by the promise of `Section::of`, and this is its only thread.
    unsafe {
        let work = &mut *work.cast::<Work<F, R>>();
        let body = ManuallyDrop::take(&mut work.body);
        work.result.write(body(&mut *value.cast::<T>()));
    }
}

/// Looks after `value` for ever: the running thread becomes a section's.
pub fn serve<T>(mut value: T) -> ! {
    // SAFETY: whoever enters has been told the value's type by `Section::of`.
    unsafe { serve_value((&raw mut value).cast()) }
}

/// Where the stubs are, for calls that need no register.
static ENTER: u64 = stub_address(stub::SECTION_ENTER);
static RUN: u64 = stub_address(stub::SECTION_RUN);
static LIPC: u64 = stub_address(stub::LIPC);

/// Lets `thread` call `run` with `work` and its value, and waits until that is done.
///
/// # Safety
/// `thread` is a section's, and `work` one that it can do.
#[inline(always)]
unsafe fn enter(run: Run, work: *mut (), thread: u64) {
    let tag: u64;
    // SAFETY: nothing is received but the empty answer; all that an IPC and the section's thread
    // destroy is an output or saved.
    unsafe {
        asm!(
            "push rbx", "push rbp",
            "mov rbx, gs:0",
            "mov rbp, rsi",
            "call [rip + {enter}]",
            "pop rbp", "pop rbx",
            enter = sym ENTER,
            inout("rax") run => _, inout("rdi") work => _, inout("rsi") thread => _,
            out("r8") _, out("r9") tag, out("rcx") _, out("rdx") _, out("r10") _,
            out("r11") _, out("r12") _, out("r13") _, out("r14") _, out("r15") _,
        );
    }
    if MsgTag(tag).is_error() {
        through_the_kernel(run, work, ThreadId(thread), tag);
    }
}

/// The path in user mode has not been taken, or somebody has cancelled the wait for its end (`tag`
/// says which). By messages, until the section has been left: it answers whenever we take
/// the answer. The work is named in this thread's UTCB and not in the message: so a message
/// that somebody else makes can't bring one.
#[cold]
#[inline(never)]
fn through_the_kernel(run: Run, work: *mut (), thread: ThreadId, tag: u64) {
    let mut order = Order { run, work };
    let mut phase = Phase::Send;
    if tag == SECTION_BUSY {
        utcb::set_runtime_word((&raw mut order) as u64);
    } else {
        phase = ipc::error().phase;
    }
    loop {
        let result = match phase {
            Phase::Send => ipc::local_call(thread, &Msg::default()).map(|_| ()),
            Phase::Receive => {
                ipc::lipc(ThreadId::NIL, thread, Timeouts::NEVER, &Msg::default()).map(|_| ())
            }
        };
        match result {
            Ok(()) => return,
            Err(error) => {
                let gone = error.kind == IpcErrorKind::NonExisting;
                assert!(!gone, "the thread of a critical section has been deleted");
                phase = error.phase;
            }
        }
    }
}

/// Serves requests of this space's threads for ever. Who comes by the path in user mode is
/// served without this function; it begins, and goes on whenever the kernel has been there.
///
/// # Safety
/// All work of threads that call is for a value of the type that `value` points to.
#[unsafe(naked)]
unsafe extern "C" fn serve_value(value: *mut ()) -> ! {
    naked_asm!(
        // From here on the value's address is on top of the stack, which is aligned behind
        // one word more.
        "sub rsp, 8",
        "push rdi",
        // Waits for the first, or for the next when the last has no use for an answer.
        "2: mov rdi, gs:0",
        "xor esi, esi",
        "mov rdx, -64",
        "xor r8d, r8d",
        "xor r9d, r9d",
        "call [rip + {ipc}]",
        "3: test r9w, r9w",
        "js 2b",
        "mov rcx, [rsi + {word}]",
        "test rcx, rcx",
        "jz 2b",                        // a message that has lost its way
        "mov qword ptr [rsi + {word}], 0",
        "mov rbx, rsi",
        "mov rbp, gs:0",
        "mov rax, [rcx]",
        "mov rdi, [rcx + 8]",
        "call [rip + {run}]",           // and the answer: the client waits, or will when cancelled
        "jmp 3b",
        word = const 8 * RUNTIME_WORD,
        ipc = sym LIPC,
        run = sym RUN,
    )
}
