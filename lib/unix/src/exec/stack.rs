//! A new program's stack: strings, auxiliary vector, environment, arguments.

use alloc::rc::Rc;
use alloc::vec::Vec;

use linux_raw_sys::auxvec as aux;
use zerocopy::IntoBytes;

use super::placement::Placement;
use super::strings::Strings;
use crate::errno::Errno;
use crate::machine::{Access, VECTOR_STATE_MAX};
use crate::mm::area::AreaFlags;
use crate::mm::space::Layout;
use crate::mm::{AddressSpace, PAGE, page_of};
use crate::process::Credentials;
use crate::process::user_space::{Kind, OVERFLOW, called};
use crate::unix::Unix;
use crate::user::UserMemory;

/// `AT_PLATFORM`.
const PLATFORM: &[u8] = b"x86_64\0";
/// What a stack has below its first contents before it needs to grow, in bytes.
const SPARE: u64 = 128 << 10;
/// Ticks of `times`, per second.
const TICKS: u64 = 100;
/// Most of a signal frame besides the vector state, in bytes.
const FRAME: u64 = 1024;

/// What the auxiliary vector tells.
pub struct Facts {
    /// Program headers in memory, and how many.
    pub headers: (u64, u64),
    /// Where the interpreter is; 0 without one.
    pub base: u64,
    /// The program's own entry.
    pub entry: u64,
    /// Where the vDSO is; 0 without one.
    pub vdso: u64,
    /// Whether the program got rights its caller does not have.
    pub secure: bool,
    /// Whether the stack is executable.
    pub executable: bool,
    /// Where it is.
    pub placement: Placement,
}

/// The pairs of the auxiliary vector; `random`, `name` and `platform` are addresses.
fn vector(
    unix: &Unix,
    facts: &Facts,
    who: &Credentials,
    [random, name, platform]: [u64; 3],
) -> Vec<u64> {
    let mut pairs = Vec::with_capacity(44);
    let mut add = |kind: u32, value: u64| pairs.extend([u64::from(kind), value]);
    if facts.vdso != 0 {
        add(aux::AT_SYSINFO_EHDR, facts.vdso);
    }
    add(aux::AT_MINSIGSTKSZ, VECTOR_STATE_MAX as u64 + FRAME);
    add(aux::AT_HWCAP, unix.machine.cpuid(1, 0)[3].into());
    add(aux::AT_PAGESZ, PAGE);
    add(aux::AT_CLKTCK, TICKS);
    add(aux::AT_PHDR, facts.headers.0);
    add(aux::AT_PHENT, size_of::<super::elf::Segment>() as u64);
    add(aux::AT_PHNUM, facts.headers.1);
    add(aux::AT_BASE, facts.base);
    add(aux::AT_FLAGS, 0);
    add(aux::AT_ENTRY, facts.entry);
    let told = |kind, id| called(&who.users, kind, id).unwrap_or(OVERFLOW).into();
    add(aux::AT_UID, told(Kind::Users, who.uid));
    add(aux::AT_EUID, told(Kind::Users, who.euid));
    add(aux::AT_GID, told(Kind::Groups, who.gid));
    add(aux::AT_EGID, told(Kind::Groups, who.egid));
    add(aux::AT_SECURE, facts.secure.into());
    add(aux::AT_RANDOM, random);
    add(aux::AT_HWCAP2, 0);
    add(aux::AT_EXECFN, name);
    add(aux::AT_PLATFORM, platform);
    add(aux::AT_NULL, 0);
    pairs
}

/// Appends the address of each string; the strings begin at `at`.
fn pointers(words: &mut Vec<u64>, strings: &Strings, mut at: u64) {
    for text in strings.bytes.split_inclusive(|byte| *byte == 0) {
        words.push(at);
        at += text.len() as u64;
    }
    words.push(0);
}

/// Fills the stack of a new program; returns its stack pointer. What `layout` says of the
/// strings is filled in.
///
/// # Errors
/// `ENOMEM`, or `E2BIG` if the stack's limit does not allow it.
pub fn fill(
    unix: &Unix,
    space: &Rc<AddressSpace>,
    facts: &Facts,
    who: &Credentials,
    name: &[u8],
    (arguments, environment): (&Strings, &Strings),
    layout: &mut Layout,
) -> Result<u64, Errno> {
    let top = facts.placement.stack_end();
    let name_at = top - 8 - (name.len() as u64 + 1);
    let environment_at = name_at - environment.bytes.len() as u64;
    let arguments_at = environment_at - arguments.bytes.len() as u64;
    let platform_at = (arguments_at & !15) - 16;
    let random_at = platform_at - 16;
    let pairs = vector(unix, facts, who, [random_at, name_at, platform_at]);
    let mut words = Vec::new();
    let count = arguments.count + environment.count + pairs.len() + 3;
    words.try_reserve_exact(count).map_err(|_| Errno::ENOMEM)?;
    words.push(arguments.count as u64);
    pointers(&mut words, arguments, arguments_at);
    pointers(&mut words, environment, environment_at);
    let auxiliary = words.len() as u64 * 8;
    words.extend(&pairs);
    let below = random_at - facts.placement.stack_pointer;
    let stack = (below - words.len() as u64 * 8) & !15;

    let start = page_of(stack)
        .saturating_sub(SPARE)
        .max(top.saturating_sub(page_of(space.stack_limit.get())));
    if start > page_of(stack) {
        return Err(Errno::E2BIG);
    }
    let mut access = Access::READ | Access::WRITE;
    access.set(Access::EXECUTE, facts.executable);
    space.add_anonymous(start, top, access, AreaFlags::GROWS_DOWN);

    let mut random = [0; 16];
    unix.machine.random(&mut random);
    let user = UserMemory::new(unix, space.clone());
    user.write_bytes(stack, words.as_bytes())?;
    user.write_bytes(random_at, &random)?;
    user.write_bytes(platform_at, PLATFORM)?;
    user.write_bytes(arguments_at, &arguments.bytes)?;
    user.write_bytes(environment_at, &environment.bytes)?;
    user.write_bytes(name_at, name)?;
    layout.stack = stack;
    layout.arguments = (arguments_at, environment_at);
    layout.environment = (environment_at, name_at);
    layout.auxiliary = (stack + auxiliary, stack + auxiliary + pairs.len() as u64 * 8);
    Ok(stack)
}
