//! Invents interfaces, compiles them, and writes a trial for each of their functions.
//!
//! `BATON_IDL_SEED` chooses others than those of every day.

mod invent;
mod literal;
mod random;
mod relay;
mod trial;

use std::path::Path;

use anyhow::{Context, Result};
use random::Random;

/// Interfaces that are invented.
const INTERFACES: usize = 10;

fn main() -> Result<()> {
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-env-changed=BATON_IDL_SEED");
    let seed = std::env::var("BATON_IDL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let out = std::env::var_os("OUT_DIR").context("cargo sets OUT_DIR")?;
    let folder = Path::new(&out).join("wit");
    std::fs::create_dir_all(&folder)?;
    let mut random = Random::new(seed);
    for number in 0..INTERFACES {
        let (wit, toml) = invent::interface(&mut random, number);
        std::fs::write(folder.join(format!("i{number}.wit")), wit)?;
        std::fs::write(folder.join(format!("i{number}.toml")), toml)?;
    }
    let model = baton_idl::load::folder(&folder)?;
    std::fs::write(Path::new(&out).join("stubs.rs"), baton_idl::rust::generate(&model))?;
    std::fs::write(Path::new(&out).join("trials.rs"), trial::all(&model, &mut random))?;
    relay::build(&model, Path::new(&out))
}
