//! Passes the linker script that places this program.

fn main() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime/link/task.ld");
    println!("cargo:rerun-if-changed={script}");
    println!("cargo:rustc-link-arg-bins=-T{script}");
}
