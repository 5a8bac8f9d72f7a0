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
use abi::utcb::RUNTIME_WORD;
use abi::{IpcErrorKind, MsgTag, Phase, ThreadId, Timeouts};

use crate::{Msg, ipc, root, thread};

/// A value that is used in critical sections only, at a priority of its own. Its thread stays
/// when it is dropped: a section is made once, for as long as the task lives.
pub struct Section<T> {
    /// The local id of the thread whose value it is.
    thread: ThreadId,
    value: PhantomData<fn(&mut T)>,
}

/// What is handed over: first the function, which finds the rest behind it.
#[repr(C)]
struct Work<F, R> {
    run: extern "C" fn(*mut (), *mut ()),
    body: ManuallyDrop<F>,
    result: MaybeUninit<R>,
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
        let mut work = Work {
            run: run::<T, F, R>,
            body: ManuallyDrop::new(body),
            result: MaybeUninit::uninit(),
        };
        // SAFETY: `work` is what `run` expects and outlives the section: this thread waits until
        // it has been left.
        unsafe { enter((&raw mut work).cast(), self.thread.0) };
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
static CALL: u64 = stub_address(stub::LOCAL_CALL);
static LIPC: u64 = stub_address(stub::LIPC);
static REPLY_WAIT: u64 = stub_address(stub::LOCAL_REPLY_WAIT);

/// Hands `work` to `thread` and waits until it is done. Its address stands in this thread's
/// UTCB and not in the message: so a message that somebody else makes can't bring one.
///
/// # Safety
/// `thread` is a section's, and `work` one that it can do.
#[inline(always)]
unsafe fn enter(work: *mut (), thread: u64) {
    let tag: u64;
    // SAFETY: no words, nothing is received but the empty answer; all that an IPC and the
    // section's thread destroy is an output or saved.
    unsafe {
        asm!(
            "push rbx", "push rbp",
            "mov rdi, gs:0",
            "mov [rdi + {word}], rax",
            "xor r8d, r8d",
            "xor r9d, r9d",
            "call [rip + {call}]",
            "pop rbp", "pop rbx",
            word = const 8 * RUNTIME_WORD,
            call = sym CALL,
            inout("rax") work => _, inout("rsi") thread => _,
            out("rdi") _, out("r8") _, out("r9") tag, out("rcx") _, out("rdx") _, out("r10") _,
            out("r11") _, out("r12") _, out("r13") _, out("r14") _, out("r15") _,
        );
    }
    if MsgTag(tag).is_error() {
        again(ThreadId(thread));
    }
}

/// Somebody has cancelled the IPC, or the kernel could not make it: once more, until the section
/// has been left. It answers whenever we take the answer.
#[cold]
#[inline(never)]
fn again(thread: ThreadId) {
    let mut phase = ipc::error().phase;
    loop {
        let result = match phase {
            Phase::Send => ipc::lipc(thread, thread, Timeouts::NEVER, &Msg::default()),
            Phase::Receive => ipc::lipc(ThreadId::NIL, thread, Timeouts::NEVER, &Msg::default()),
        };
        match result {
            Ok(_) => return,
            Err(error) => {
                let gone = error.kind == IpcErrorKind::NonExisting;
                assert!(!gone, "the thread of a critical section has been deleted");
                phase = error.phase;
            }
        }
    }
}

/// Serves requests of this space's threads for ever: each names its work in its UTCB.
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
        "mov rdi, [rsi + {word}]",
        "test rdi, rdi",
        "jz 2b",                        // a message that has lost its way
        "push rsi",
        "mov rsi, [rsp + 8]",
        "call [rdi]",
        "pop rsi",
        "mov qword ptr [rsi + {word}], 0",
        "mov rdi, gs:0",
        "mov rdx, -64",
        "xor r8d, r8d",                 // it waits, or will when it has been cancelled
        "xor r9d, r9d",
        "call [rip + {reply_wait}]",
        "jmp 3b",
        word = const 8 * RUNTIME_WORD,
        ipc = sym LIPC,
        reply_wait = sym REPLY_WAIT,
    )
}
