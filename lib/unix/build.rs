//! Assembles and links the vDSO (`vdso/`), which `src/exec/vdso.rs` takes in.

use std::path::Path;
use std::process::Command;

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("`{program} {}` failed: {status}", arguments.join(" ")),
        Err(why) => panic!("cannot run `{program}` (of the binutils): {why}"),
    }
}

fn main() {
    println!("cargo::rerun-if-changed=vdso");
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let path = |name: &str| Path::new(&out).join(name).display().to_string();
    let (object, image) = (path("vdso.o"), path("vdso.so"));
    run("as", &["--64", "vdso/vdso.S", "-o", &object]);
    run(
        "ld",
        &[
            "-m",
            "elf_x86_64",
            "-shared",
            "-s",
            "-Bsymbolic",
            "--build-id=none",
            "--hash-style=both",
            "-z",
            "max-page-size=4096",
            "-soname",
            "linux-vdso.so.1",
            "-T",
            "vdso/vdso.lds",
            &object,
            "-o",
            &image,
        ],
    );
}
