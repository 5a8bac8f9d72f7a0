//! Makes the stubs of the interface in `wit`, and passes the linker script that places the programs.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime/link/task.ld");
    println!("cargo:rerun-if-changed={script}");
    println!("cargo:rustc-link-arg-bins=-T{script}");
    Ok(baton_idl::build("wit")?)
}
