//! The kernel image: entry code, panic handler, and the way into the kernel proper.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!(
        "The kernel runs on a bare machine; build it for a target without an operating system."
    );
}

#[cfg(target_os = "none")]
mod bare {
    use core::arch::global_asm;
    use core::panic::PanicInfo;

    use kernel::arch;
    use kernel::arch::x86_64::boot::{KERNEL_BASE, PROTOCOL_MULTIBOOT2, PROTOCOL_PVH, STACK_BYTES};
    use kernel::arch::x86_64::cpu::{EXIT_FAILURE, EXIT_PORT};
    use kernel::boot;
    use kernel::kprintln;

    global_asm!(
        include_str!("arch/x86_64/boot.S"),
        PVH_NOTE = const 18,
        PVH = const PROTOCOL_PVH,
        MULTIBOOT2 = const PROTOCOL_MULTIBOOT2,
        EXIT_FAILURE = const EXIT_FAILURE,
        EXIT_PORT = const EXIT_PORT,
        KERNEL_BASE = const KERNEL_BASE,
        STACK_BYTES = const STACK_BYTES,
        PLACES_BYTES = const 32 * 1024,
    );

    /// Entered from `boot.S`.
    #[unsafe(no_mangle)]
    extern "C" fn boot_main(protocol: u32, information: u32) -> ! {
        // SAFETY: `boot.S` comes here once, on its own tables and stack.
        let handover = unsafe { boot::start(protocol, information) };
        arch::leave(arch::x86_64::boot_kernel::begin(&handover))
    }

    #[panic_handler]
    fn panic(info: &PanicInfo<'_>) -> ! {
        match info.location() {
            Some(place) => kprintln!(
                "baton: kernel panic at {}:{}: {}",
                place.file(),
                place.line(),
                info.message()
            ),
            None => kprintln!("baton: kernel panic: {}", info.message()),
        }
        let distance = arch::x86_64::place::distance();
        if distance != 0 {
            kprintln!(
                "baton: the kernel's image lies {distance:#x} above where it was linked; what it \
                 names of its own text is as linked"
            );
        }
        arch::exit(EXIT_FAILURE)
    }
}
