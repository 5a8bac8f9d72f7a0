//! A panic is a sentence to the root task and the end of the task.

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    crate::console::report(format_args!("{info}"));
    crate::exit(crate::root::PANICKED)
}
