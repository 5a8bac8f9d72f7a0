//! The kernel image: the panic handler; the architecture's entry is in the library.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!(
        "The kernel runs on a bare machine; build it for a target without an operating system."
    );
}

#[cfg(target_os = "none")]
mod bare {
    use core::panic::PanicInfo;

    use kernel::{arch, kprintln};

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
        arch::tell_place();
        arch::exit(arch::EXIT_FAILURE)
    }
}
