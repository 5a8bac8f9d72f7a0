//! Makes the stubs that are measured, and passes the linker script that places this program.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime/link/root.ld");
    println!("cargo:rerun-if-changed={script}");
    println!("cargo:rustc-link-arg-bins=-T{script}");
    Ok(baton_idl::build("wit")?)
}
