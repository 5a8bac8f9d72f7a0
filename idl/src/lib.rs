//! The compiler of interfaces: reads WIT, writes the stubs of servers and clients.
//!
//! `load` reads a folder of WIT files and the TOML files beside them, `model` is what it makes of
//! them, `layout` the form of their messages, `rust` and `c` the stubs. A crate's `build.rs` calls
//! [`build`], and `./baton idl` prints what it would write. `docs/services.md` tells how to use it.
#![forbid(unsafe_code)]

pub mod c;
pub mod layout;
pub mod load;
mod mappings;
pub mod model;
mod options;
pub mod rust;
mod text;

use std::path::Path;

use anyhow::{Context, Result};

/// For a `build.rs`: compiles the interfaces in `folder` (relative to the crate) into
/// `stubs.rs` in cargo's folder for what is generated.
///
/// # Errors
/// A text for the author of the interfaces.
pub fn build(folder: impl AsRef<Path>) -> Result<()> {
    let folder = folder.as_ref();
    println!("cargo:rerun-if-changed={}", folder.display());
    let out = std::env::var_os("OUT_DIR").context("cargo sets OUT_DIR for build scripts only")?;
    let file = Path::new(&out).join("stubs.rs");
    std::fs::write(&file, rust::generate(&load::folder(folder)?))
        .with_context(|| format!("cannot write {}", file.display()))
}
