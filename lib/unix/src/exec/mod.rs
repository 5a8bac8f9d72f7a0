//! Programs: ELF files (static, static-PIE, dynamic with interpreter) and `#!` scripts,
//! their first stack, the vDSO.
//!
//! A new program is built in an address space of its own while the old one is still
//! whole: whatever is wrong with the file is an error of the call. Only when nothing can
//! fail any more does the process change over ([`commit`]).

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use linux_raw_sys::general as linux;

use crate::call::{Answer, Cx, Entry, Stop, full};
use crate::errno::Errno;
use crate::fs::open::{How, open_path, open_program};
use crate::mm::space::Layout;
use crate::mm::{AddressSpace, USER_END};
use crate::process::capability::{self, Executed};
use crate::process::user_space::{Kind, Users, called};
use crate::process::{clocks, namespace};
use crate::thread::Thread;
use crate::unix::Unix;

mod commit;
pub mod elf;
pub mod image;
mod load;
pub mod placement;
mod script;
mod stack;
pub mod strings;
pub mod vdso;

use elf::Elf;
use image::{Image, Running};
use placement::Placement;
use strings::Strings;

/// The calls this module carries out.
pub const CALLS: &[Entry] =
    &[full(linux::__NR_execve, "execve", execve), full(linux::__NR_execveat, "execveat", execveat)];

/// Scripts whose interpreter is a script: so many at most.
const SCRIPTS_MAX: usize = 5;

/// What is to be run.
struct Request {
    /// Where the path begins.
    fd: i32,
    path: Vec<u8>,
    at_flags: u32,
    /// What the program is called (`AT_EXECFN`).
    name: Vec<u8>,
    arguments: Strings,
    environment: Strings,
}

/// A program in a space of its own, ready to run.
struct Built {
    space: Rc<AddressSpace>,
    entry: u64,
    stack: u64,
    /// Who runs it may read it.
    readable: bool,
    /// The namespace of users in which its files are known, if it may not.
    seen_from: Users,
}

fn execve(cx: &Cx) -> Answer {
    let path = cx.user().read_path(cx.arg(0))?;
    call(cx, linux::AT_FDCWD, path, cx.arg(1), cx.arg(2), 0)
}

fn execveat(cx: &Cx) -> Answer {
    let flags = cx.uint(4);
    let path = cx.user().read_path(cx.arg(1))?;
    if path.is_empty() && flags & linux::AT_EMPTY_PATH == 0 {
        return Err(Errno::ENOENT.into());
    }
    call(cx, cx.int(0), path, cx.arg(2), cx.arg(3), flags)
}

fn call(
    cx: &Cx,
    fd: i32,
    path: Vec<u8>,
    arguments: u64,
    environment: u64,
    at_flags: u32,
) -> Answer {
    let name = name_of(fd, &path);
    let limit = crate::mm::map::limit(cx, linux::RLIMIT_STACK);
    let spent = name.len() as u64 + 1;
    let mut left = strings::total(limit).saturating_sub(spent);
    let environment = Strings::read(cx, environment, &mut left)?;
    let mut arguments = Strings::read(cx, arguments, &mut left)?;
    if arguments.count == 0 {
        arguments.push(b"")?;
    }
    if at_flags & !(linux::AT_EMPTY_PATH | linux::AT_SYMLINK_NOFOLLOW) != 0 {
        return Err(Errno::EINVAL.into());
    }
    run(cx, Request { fd, path, at_flags, name, arguments, environment })?;
    Err(Stop::Done)
}

/// What a program that is opened relative to `fd` is called.
fn name_of(fd: i32, path: &[u8]) -> Vec<u8> {
    if fd == linux::AT_FDCWD || path.first() == Some(&b'/') {
        return path.to_vec();
    }
    let mut name = format!("/dev/fd/{fd}").into_bytes();
    if !path.is_empty() {
        name.push(b'/');
        name.extend_from_slice(path);
    }
    name
}

/// Runs a program in the process of `thread`, which waits for an answer (or has not run
/// at all): the first program of the system.
///
/// # Errors
/// As `execve`.
pub fn start(
    unix: &Unix,
    thread: &Rc<Thread>,
    path: &[u8],
    arguments: &[&[u8]],
    environment: &[&[u8]],
) -> Result<(), Errno> {
    let process = thread.process();
    let cx = Cx { unix, thread, process: &process };
    let request = Request {
        fd: linux::AT_FDCWD,
        path: path.to_vec(),
        at_flags: 0,
        name: path.to_vec(),
        arguments: Strings::of(arguments)?,
        environment: Strings::of(environment)?,
    };
    run(&cx, request)
}

/// Makes process 1 and lets it run a program.
///
/// # Errors
/// A sentence that says what is wrong with the program or the machine.
pub fn start_first(
    unix: &Unix,
    path: &[u8],
    arguments: &[&[u8]],
    environment: &[&[u8]],
) -> Result<Rc<Thread>, String> {
    let failed = |what: &str, errno: Errno| {
        let name = String::from_utf8_lossy(path);
        let why = match errno {
            Errno::ENOENT => "it, or the interpreter it names, is not there",
            Errno::EACCES => "it is not a file that may be executed",
            Errno::ENOEXEC => "it is neither an ELF program for x86-64 nor a script",
            Errno::ENOMEM => "there is not enough memory",
            _ => "the system refused",
        };
        format!("{what} {name}: {why} (error {})", errno.0)
    };
    let thread = crate::process::first(unix).map_err(|e| failed("no process for", e))?;
    open_console(unix, &thread);
    start(unix, &thread, path, arguments, environment).map_err(|e| failed("cannot run", e))?;
    Ok(thread)
}

/// Gives process 1 the console as its first three descriptors.
fn open_console(unix: &Unix, thread: &Rc<Thread>) {
    let process = thread.process();
    let cx = Cx { unix, thread, process: &process };
    let how = How { flags: u64::from(linux::O_RDWR | linux::O_NOCTTY), mode: 0, resolve: 0 };
    let Ok(open) = open_path(&cx, linux::AT_FDCWD, b"/dev/console".to_vec(), how) else {
        unix.say("unix: process 1 has no console: /dev/console cannot be opened");
        return;
    };
    for _ in 0..3 {
        let _ = cx.add_file(open.clone(), false);
    }
}

/// Finds the ELF file that a path leads to, over scripts, and changes over to it.
fn run(cx: &Cx, mut request: Request) -> Result<(), Errno> {
    let mut script = request.name.clone();
    for _ in 0..=SCRIPTS_MAX {
        let open = open_program(cx, request.fd, request.path.clone(), request.at_flags)?;
        let close_on_exec = request.path.is_empty()
            && cx.process.files.borrow().close_on_exec(request.fd as u32) == Some(true);
        let image = Image::new(cx.unix, open);
        let running = Running::new(&image)?;
        let mut head = [0; self::script::HEAD];
        let len = image.read(0, &mut head)?;
        let Some(line) = self::script::parse(&head[..len])? else {
            let who = credentials(cx, &image);
            let built = build(cx, &image, running, &who, &request)?;
            return commit::commit(cx, built, &image, &request.name, who);
        };
        if close_on_exec {
            // The interpreter could not open it.
            return Err(Errno::ENOENT);
        }
        request.arguments.remove_first();
        match line.argument {
            Some(argument) => {
                request.arguments.prepend(&[line.interpreter, argument, &script])?;
            }
            None => request.arguments.prepend(&[line.interpreter, &script])?,
        }
        script = line.interpreter.to_vec();
        request.path = script.clone();
        (request.fd, request.at_flags) = (linux::AT_FDCWD, 0);
    }
    Err(Errno::ELOOP)
}

/// Whether a program's user and group are known in a namespace.
fn knows_owner(users: &Users, inode: &crate::fs::inode::Inode) -> bool {
    called(users, Kind::Users, inode.uid.get()).is_some()
        && called(users, Kind::Groups, inode.gid.get()).is_some()
}

/// Who the process is once it runs the program: set-id bits count, unless it has said that
/// they shall not.
fn credentials(cx: &Cx, image: &Image) -> Executed {
    let own = namespace::mounts(cx.unix, cx.process);
    let counts = crate::fs::path::mount(&image.open)
        .is_none_or(|one| !one.has(linux::MS_NOSUID) && own.has(&one));
    // Who is called nothing where it is used gives no rights there.
    let counts = counts && knows_owner(&cx.users(), &image.inode);
    let mode = if counts { image.inode.mode.get() } else { 0 };
    let group = linux::S_ISGID | linux::S_IXGRP;
    let set_user = (mode & linux::S_ISUID != 0).then(|| image.inode.uid.get());
    let set_group = (mode & group == group).then(|| image.inode.gid.get());
    let traced = crate::trace::attach::keeps_rights_away(cx.process);
    // Whoever shares them could change the program's directory and its files' permissions (`CLONE_FS`).
    let shares_place = Rc::strong_count(&cx.process.place.borrow()) > 1;
    let no_new = cx.process.state.no_new_privileges.get() || traced || shares_place;
    capability::execute(&cx.process.credentials.borrow(), set_user, set_group, no_new)
}

/// Builds the program in a space of its own.
fn build(
    cx: &Cx,
    image: &Image,
    running: Rc<Running>,
    who: &Executed,
    request: &Request,
) -> Result<Built, Errno> {
    let elf = Elf::read(image)?;
    let interpreter = match &elf.interpreter {
        Some(path) => {
            let open = open_program(cx, linux::AT_FDCWD, path.clone(), 0)?;
            let image = Image::new(cx.unix, open);
            let library = |errno| match errno {
                Errno::ENOEXEC => Errno(linux_raw_sys::errno::ELIBBAD as u16),
                errno => errno,
            };
            let elf = Elf::read(&image).map_err(library)?;
            Some((image, elf))
        }
        None => None,
    };
    let files = [Some(image), interpreter.as_ref().map(|(image, _)| image)];
    let mut seen_from = cx.users();
    let mut readable = true;
    for image in files.into_iter().flatten().filter(|image| !image.may_be_read(cx)) {
        readable = false;
        while let Some(space) = seen_from.clone().filter(|_| !knows_owner(&seen_from, &image.inode))
        {
            seen_from = space.above.clone();
        }
    }
    let space = AddressSpace::new(cx.unix, &cx.process.user())?;
    space.stack_limit.set(crate::mm::map::limit(cx, linux::RLIMIT_STACK));
    space.set_program(Some(running));
    let filled = fill(cx, &space, (image, &elf), interpreter.as_ref(), who, request);
    match filled {
        Ok((entry, stack)) => Ok(Built { space, entry, stack, readable, seen_from }),
        Err(errno) => {
            space.retire(cx.unix);
            Err(errno)
        }
    }
}

/// Loads everything into `space`; the first instruction and the stack pointer.
fn fill(
    cx: &Cx,
    space: &Rc<AddressSpace>,
    (image, elf): (&Image, &Elf),
    interpreter: Option<&(Image, Elf)>,
    who: &Executed,
    request: &Request,
) -> Result<(u64, u64), Errno> {
    let placement = Placement::new(cx, who.secure);
    space.shift.set(placement.mappings);
    let bias = load::bias(space, elf, interpreter.is_some(), &placement)?;
    load::map(cx.unix, space, image, elf, bias)?;
    let mut layout: Layout = load::layout(elf, bias, interpreter.is_some(), &placement);
    let mut facts = stack::Facts {
        headers: (elf.headers_at.wrapping_add(bias), elf.header.segments.into()),
        base: 0,
        entry: elf.header.entry.wrapping_add(bias),
        vdso: 0,
        secure: who.secure,
        executable: elf.executable_stack,
        placement,
    };
    let mut entry = facts.entry;
    if let Some((image, elf)) = interpreter {
        facts.base = load::bias(space, elf, false, &placement)?;
        load::map(cx.unix, space, image, elf, facts.base)?;
        entry = elf.header.entry.wrapping_add(facts.base);
    }
    if entry >= USER_END {
        return Err(Errno::ENOEXEC);
    }
    let own = cx.process.state.clocks_of_children.borrow();
    facts.vdso = vdso::map(cx.unix, space, facts.placement, clocks::data(own.as_ref()))?;
    drop(own);
    layout.vdso = facts.vdso;
    let strings = (&request.arguments, &request.environment);
    let name = &request.name;
    let stack = stack::fill(cx.unix, space, &facts, &who.who, name, strings, &mut layout)?;
    space.layout.set(layout);
    Ok((entry, stack))
}
