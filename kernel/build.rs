//! Hands the kernel's linker script to the linker for bare-metal targets; a
//! host build (the tests of the pure logic) links as any program.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("none") {
        return;
    }
    let architecture =
        env::var("CARGO_CFG_TARGET_ARCH").expect("cargo names the target architecture");
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo names the manifest directory");
    let script = format!("{root}/src/arch/{architecture}/kernel.ld");
    println!("cargo:rerun-if-changed={script}");
    for argument in
        [&format!("-T{script}"), "-zmax-page-size=4096", "--no-warn-rwx-segments", "--emit-relocs"]
    {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}
