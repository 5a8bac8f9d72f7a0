//! The fuzz targets with the corpus and deterministic mutations of it.
//!
//! `BATON_FUZZ_INPUTS` and `BATON_SEED` make a longer or another run. `BATON_BLESS=1`
//! writes the samples into the corpus.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Instant;

use fuzz_targets::{Mutator, TARGETS, Target, samples};

/// Mutated inputs per target.
const INPUTS: usize = 100_000;
/// Fewer where one takes longer: checksums of whole images, TOML, a world with processes.
const SLOW_INPUTS: usize = 20_000;
/// A whole file system, walked.
const ARCHIVES: usize = 4_000;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn target(name: &str) -> Target {
    *TARGETS.iter().find(|target| target.name == name).expect("there is such a target")
}

fn folder(target: &Target) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name)
}

/// The files of a target, by name.
fn corpus(target: &Target) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder(target))
        .expect("every target has a corpus")
        .map(|entry| {
            let entry = entry.expect("the folder can be read");
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, std::fs::read(entry.path()).expect("the file can be read"))
        })
        .collect();
    files.sort();
    files
}

/// Runs the target on an input; if it panics, the input is kept and named.
fn run(target: &Target, input: &[u8], name: &str) -> bool {
    catch_unwind(AssertUnwindSafe(|| (target.run)(input))).unwrap_or_else(|_| {
        let path =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-input", target.name));
        std::fs::write(&path, input).expect("the build directory can be written");
        panic!(
            "{} fails on {name}, {} bytes, kept in {}; put it into {} when it is mended",
            target.name,
            input.len(),
            path.display(),
            folder(target).display()
        )
    })
}

/// The corpus, then `inputs` mutations; some must be accepted and some refused.
fn drive(name: &str, inputs: usize) {
    let (target, started) = (target(name), Instant::now());
    let files = corpus(&target);
    let mut accepted = 0;
    for (name, bytes) in &files {
        run(&target, bytes, name);
    }
    let seeds: Vec<Vec<u8>> = files.into_iter().map(|(_, bytes)| bytes).collect();
    let seed = setting("BATON_SEED").unwrap_or(1);
    let inputs = setting("BATON_FUZZ_INPUTS").map_or(inputs, |inputs| inputs as usize);
    let mut mutator = Mutator::new(seed, &seeds, target.words);
    for number in 0..inputs {
        let input = mutator.next_input();
        accepted += usize::from(run(&target, &input, &format!("input {number} of seed {seed}")));
    }
    println!(
        "{name}: {inputs} inputs of seed {seed}, {accepted} accepted, {} ms",
        started.elapsed().as_millis()
    );
    let reaches = accepted > inputs / 100 && accepted < inputs - inputs / 100;
    assert!(
        reaches,
        "{accepted} of {inputs} were accepted: the test does not reach what it is for"
    );
}

#[test]
fn boot_image() {
    drive("boot_image", SLOW_INPUTS);
}

#[test]
fn loader() {
    drive("loader", INPUTS);
}

#[test]
fn madt() {
    drive("madt", INPUTS);
}

#[test]
fn bootinfo() {
    drive("bootinfo", INPUTS);
}

#[test]
fn system() {
    drive("system", SLOW_INPUTS);
}

#[test]
fn task_line() {
    drive("task_line", INPUTS);
}

#[test]
fn archive() {
    drive("archive", ARCHIVES);
}

#[test]
fn program() {
    drive("program", SLOW_INPUTS);
}

#[test]
fn tool_elf() {
    drive("tool_elf", INPUTS);
}

#[test]
fn the_samples_are_in_the_corpus_and_are_accepted() {
    for target in TARGETS {
        for (name, bytes) in samples(target.name) {
            let path = folder(&target).join(name);
            if std::env::var_os("BATON_BLESS").is_some() {
                std::fs::create_dir_all(folder(&target)).expect("the tree can be written");
                std::fs::write(&path, &bytes).expect("the tree can be written");
            }
            let kept = std::fs::read(&path).unwrap_or_default();
            assert!(kept == bytes, "{} is out of date; run with BATON_BLESS=1", path.display());
            assert!(run(&target, &bytes, name), "{} refuses the sample {name}", target.name);
        }
    }
}

/// The same seed gives the same inputs, another one others.
#[test]
fn mutations_are_repeatable() {
    let seeds = [b"abcdefgh".to_vec(), vec![0; 100]];
    let inputs = |seed| {
        let mut mutator = Mutator::new(seed, &seeds, &["word"]);
        (0..100).map(|_| mutator.next_input()).collect::<Vec<_>>()
    };
    assert_eq!(inputs(7), inputs(7));
    assert_ne!(inputs(7), inputs(8));
}
