//! Interrupts and exceptions: what each vector means, for threads and for the kernel.

use abi::{Fpage, Rights, ThreadId};

use super::asm::fault_address;
use super::frame::{Frame, TrapFrame};
use super::percpu::{cpu, current, note_entry};
use super::tcbs::{STACK_BYTES, TcbRef, is_below_stack};
use super::{boot, io_instruction, machine_check, nmi, pic};
use crate::ipc::{self, kernel_message};
use crate::sched::tick;
use crate::thread::tcb::Resume;
use crate::{irq, mem, usermem};

const FIRST_IRQ: u64 = 32;
const LAST_IRQ: u64 = 47;
const TIMER_LINE: u64 = 0;
const PAGE: u64 = 4096;

mod vectors {
    pub const NMI: u64 = 2;
    pub const INVALID_OPCODE: u64 = 6;
    pub const DOUBLE_FAULT: u64 = 8;
    pub const GENERAL_PROTECTION: u64 = 13;
    pub const PAGE_FAULT: u64 = 14;
    pub const MACHINE_CHECK: u64 = 18;
}

/// Page-fault error bits (Intel SDM 3A, 4.7).
const ERROR_WRITE: u64 = 1 << 1;
const ERROR_FETCH: u64 = 1 << 4;

/// The flag that lets the kernel touch user pages in spite of SMAP.
const FLAG_AC: u64 = 1 << 18;

/// An exception or an interrupt in user mode, registers in the current thread's frame;
/// returns who runs next. What a window has noted meanwhile is handled on the way out
/// (`switch::activate`).
pub extern "C" fn from_user(frame: &'static TrapFrame) -> TcbRef {
    let thread = current();
    note_entry();
    thread.resume.set(Resume::Frame);
    // The frequent ones first; none of them is inlined, so this needs no stack.
    let vector = frame.vector.get();
    if vector == vectors::PAGE_FAULT {
        return page_fault(thread, frame);
    }
    let line = vector.wrapping_sub(FIRST_IRQ);
    if line <= LAST_IRQ - FIRST_IRQ { interrupt(thread, line) } else { exception(thread, frame) }
}

#[inline(never)]
fn exception(thread: TcbRef, frame: Frame) -> TcbRef {
    match frame.vector.get() {
        vectors::INVALID_OPCODE if is_kernel_interface(thread, frame) => {
            kernel_interface(thread, frame)
        }
        vectors::GENERAL_PROTECTION => general_protection(thread, frame),
        _ => kernel_message::exception(thread),
    }
}

/// An entry from kernel mode: an interrupt of the idle thread (returns who runs
/// next) or in a preemption window (`None`: go on); anything else is a defect.
pub extern "C" fn from_kernel(frame: &'static TrapFrame) -> Option<TcbRef> {
    if frame.flags.get() & FLAG_AC != 0 {
        cpu().unguarded.set(cpu().unguarded.get() + 1);
    }
    let line = frame.vector.get().wrapping_sub(FIRST_IRQ);
    if line > LAST_IRQ - FIRST_IRQ {
        fatal(frame);
    }
    if cpu().in_window.get() {
        if accept(line) {
            cpu().pending_lines.set(cpu().pending_lines.get() | 1 << line);
        }
        return None;
    }
    Some(interrupt(current(), line))
}

/// Takes an interrupt from the controller; a device's line stays masked until acknowledged.
fn accept(line: u64) -> bool {
    let genuine = pic::accept(line as u8);
    if genuine && line != TIMER_LINE {
        pic::mask(line as u8);
    }
    genuine
}

/// The timer is no thread's: nothing to mask, nobody to tell, and most ticks change nothing.
fn interrupt(running: TcbRef, line: u64) -> TcbRef {
    if line == TIMER_LINE {
        return if accept(line) { tick::tick(running) } else { ipc::go_on(running) };
    }
    device(running, line)
}

#[inline(never)]
fn device(running: TcbRef, line: u64) -> TcbRef {
    if accept(line) { irq::interrupt(running, line as u32) } else { ipc::go_on(running) }
}

#[inline(never)]
fn page_fault(thread: TcbRef, frame: Frame) -> TcbRef {
    let address = fault_address();
    let error = frame.error.get();
    let access = if error & ERROR_WRITE != 0 {
        Rights::W
    } else if error & ERROR_FETCH != 0 {
        Rights::X
    } else {
        Rights::R
    };
    if thread
        .space()
        .is_some_and(|space| space.is_sigma0() && crate::mem::sigma0_fault(space, address))
    {
        return thread;
    }
    kernel_message::page_fault(thread, address, access, frame.ip.get())
}

/// Reads the instruction at `address` into `to`; how many bytes of it are there.
fn code(thread: TcbRef, address: u64, to: &mut [u8]) -> usize {
    let mut done = 0;
    let in_first = (PAGE - address % PAGE).min(to.len() as u64) as usize;
    let (first, second) = to.split_at_mut(in_first);
    for part in [first, second] {
        let at = address.saturating_add(done as u64);
        let space = thread.space().filter(|_| !part.is_empty());
        let found = space.and_then(|space| space.resolve(at, false));
        let Some(found) = found.filter(|found| !found.is_device) else { break };
        (found.phys..).zip(&mut *part).for_each(|(at, to)| *to = usermem::read_phys_byte(at));
        done += part.len();
    }
    done
}

/// Whether the thread executed `lock nop`, the KernelInterface call (X.2 2.1).
fn is_kernel_interface(thread: TcbRef, frame: Frame) -> bool {
    let mut bytes = [0; 2];
    code(thread, frame.ip.get(), &mut bytes) == 2 && bytes == [0xF0, 0x90]
}

fn kernel_interface(thread: TcbRef, frame: Frame) -> TcbRef {
    frame.rax.set(thread.space().map_or(0, |space| space.kip_area().start));
    frame.rcx.set(abi::kip::API_VERSION);
    frame.rdx.set(abi::kip::API_FLAGS);
    frame.rsi.set(abi::kip::KERNEL_ID);
    frame.ip.set(frame.ip.get() + 2);
    thread
}

fn general_protection(thread: TcbRef, frame: Frame) -> TcbRef {
    if frame.error.get() != 0 {
        return kernel_message::exception(thread);
    }
    let mut bytes = [0; 15];
    let count = code(thread, frame.ip.get(), &mut bytes);
    match io_instruction::ports(&bytes[..count], frame.rdx.get() as u16) {
        Some(ports) if !has_ports(thread, ports) => {
            kernel_message::io_fault(thread, ports, frame.ip.get())
        }
        _ => kernel_message::exception(thread),
    }
}

fn has_ports(thread: TcbRef, ports: Fpage) -> bool {
    let first = ports.io_base();
    let last = first | ((1_u32 << ports.io_bits()) - 1) as u16;
    thread.space().is_some_and(|space| (first..=last).all(|port| mem::io::allowed(space, port)))
}

/// An event with a stack of its own, at any instruction; the machine goes on where it was
/// when this returns.
pub extern "C" fn on_own_stack(frame: &'static TrapFrame) {
    match frame.vector.get() {
        vectors::NMI => nmi::enter(frame),
        vectors::MACHINE_CHECK => machine_check::enter(frame),
        _ => fatal(frame),
    }
}

fn fatal(frame: Frame) -> ! {
    let has_thread = cpu().tss.rsp0.get() != 0;
    let id = if has_thread { current().id.get() } else { ThreadId::NIL };
    let (vector, at, address) = (frame.vector.get(), frame.ip.get(), fault_address());
    if vector == vectors::DOUBLE_FAULT && has_thread && is_below_stack(current(), address) {
        panic!(
            "the kernel stack of thread {id} has overflowed at {at:#x}: it needs more than its {STACK_BYTES} bytes"
        );
    }
    if let Some(stack) = guard_of(address).filter(|_| vector == vectors::DOUBLE_FAULT) {
        panic!("{stack} has overflowed at {at:#x}, thread {id}");
    }
    panic!(
        "vector {vector} (error {:#x}) in the kernel at {at:#x}, stack {:#x}, address {address:#x}, thread {id}",
        frame.error.get(),
        frame.sp.get(),
    );
}

/// The stack of the kernel's own below which `address` lies.
fn guard_of(address: u64) -> Option<&'static str> {
    let page = boot::guards().into_iter().position(|guard| guard == address & !(PAGE - 1))?;
    boot::GUARDED.get(page).copied()
}
