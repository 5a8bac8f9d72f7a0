//! Runs the trials of a suite, in batches of one machine each, and keeps what came out:
//! Linux's results until something they depend on changes, Baton's for `--resume` and for
//! whoever wants to read them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::Options;
use super::suite::{Suite, Trial};
use crate::compose::Composer;
use crate::linux::cases::Case;
use crate::linux::cpio::{self, Archive};
use crate::linux::guest::{self, Ran};
use crate::linux::initramfs;
use crate::linux::machines::{Baton, Linux};
use crate::ui::Step;
use crate::workspace::Workspace;

/// Where results are kept.
const FOLDER: &str = "linux/judge";

/// Results by the name of the trial.
pub type Results = BTreeMap<String, Ran>;

/// All that a run needs.
pub struct Bench<'a> {
    /// The tree.
    pub workspace: &'a Workspace,
    /// What is run.
    pub suite: &'a Suite,
    /// How.
    pub options: &'a Options,
}

/// Where one system's results are, and for which machine they hold.
struct Keep {
    folder: PathBuf,
    machine: String,
}

impl Keep {
    fn file(&self, trial: &Trial) -> Result<PathBuf> {
        let mut parts =
            vec![self.machine.clone().into_bytes(), trial.case.run.clone().into_bytes()];
        if trial.case.counted {
            parts.push(b"counted".to_vec());
        }
        for (path, file) in &trial.files {
            parts.push(path.clone().into_bytes());
            parts.push(read(file)?);
        }
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let name = format!("{}.{}.json", trial.case.name, initramfs::fingerprint(&parts));
        Ok(self.folder.join(name))
    }

    fn read(&self, trial: &Trial) -> Result<Option<Ran>> {
        let bytes = std::fs::read(self.file(trial)?).ok();
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// Keeps a result, and its output as a text.
    fn write(&self, trial: &Trial, ran: &Ran) -> Result<()> {
        let what = || format!("cannot keep a result in {}", self.folder.display());
        let text = self.folder.join(format!("{}.txt", trial.case.name));
        std::fs::write(text, format!("{}\n{:?}\n", ran.output, ran.end)).with_context(what)?;
        std::fs::write(self.file(trial)?, serde_json::to_vec(ran)?).with_context(what)
    }
}

impl Bench<'_> {
    /// What Linux makes of the trials: remembered, or run now. Without a result of its own it is
    /// not asked about what is in `granted`, and has those.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn on_linux(&self, granted: Results) -> Result<Results> {
        let linux = Linux::prepare(self.workspace)?.with_memory(self.suite.memory);
        let keep = self.keep("on-linux", &linux.name())?;
        let mut known = granted;
        if !self.options.fresh {
            known.extend(self.remembered(&keep)?);
        }
        self.all("Linux", known, &keep, |archive, cases| linux.command(archive, cases))
    }

    /// What Baton makes of them.
    ///
    /// # Errors
    /// When it cannot be built or run.
    pub fn on_baton(&self, composer: &mut Composer<'_>) -> Result<Results> {
        let memory = self.suite.memory;
        let mut baton = Baton::prepare(self.workspace, composer)?.with_memory(memory);
        let keep = self.keep("on-baton", &baton.fingerprint()?)?;
        let known = if self.options.resume { self.remembered(&keep)? } else { Results::new() };
        self.all("Baton", known, &keep, |archive, cases| baton.command(archive, cases))
    }

    /// Where results for `machine` are; it has the files that all trials share.
    fn keep(&self, folder: &str, machine: &str) -> Result<Keep> {
        let tests = read(&initramfs::test(self.workspace)?)?;
        let around = cpio::outside(&tests, "test/")?;
        let memory = self.suite.memory.to_string();
        let parts = [machine.as_bytes(), memory.as_bytes(), &around, &self.suite.shared.write()?];
        let machine = initramfs::fingerprint(&parts);
        let folder = format!("{FOLDER}/{}/{folder}", self.suite.name.word());
        Ok(Keep { folder: self.workspace.target(&folder)?, machine })
    }

    fn remembered(&self, keep: &Keep) -> Result<Results> {
        let mut results = Results::new();
        for trial in &self.suite.trials {
            if let Some(ran) = keep.read(trial)? {
                results.insert(trial.case.name.clone(), ran);
            }
        }
        Ok(results)
    }

    fn all(
        &self,
        system: &str,
        known: Results,
        keep: &Keep,
        mut machine: impl FnMut(&[u8], &[&Case]) -> Result<Command>,
    ) -> Result<Results> {
        let trials = self.suite.trials.iter();
        let left: Vec<&Trial> = trials.filter(|t| !known.contains_key(&t.case.name)).collect();
        let mut results = known;
        let remembered = results.len();
        let step = Step::start(system);
        let alike = left.chunk_by(|one, next| one.case.counted == next.case.counted);
        for batch in alike.flat_map(|alike| alike.chunks(self.suite.batch)) {
            let archive = self.archive(batch)?;
            let cases: Vec<&Case> = batch.iter().map(|trial| &trial.case).collect();
            guest::run(
                &cases,
                self.options.show,
                |cases| machine(&archive, cases),
                |case, ran| {
                    let done = results.len() - remembered + 1;
                    step.say(format!("{done} of {}: {}", left.len(), case.name));
                    if let Some(trial) = batch.iter().find(|trial| trial.case.name == case.name) {
                        keep.write(trial, &ran)?;
                    }
                    results.insert(case.name.clone(), ran);
                    Ok(())
                },
            )?;
        }
        step.done(&format!("{} trials run, {remembered} known before", left.len()));
        Ok(results)
    }

    /// The first file system for one machine.
    fn archive(&self, batch: &[&Trial]) -> Result<Vec<u8>> {
        let tests = read(&initramfs::test(self.workspace)?)?;
        let mut own = Archive::default();
        for (path, file) in batch.iter().flat_map(|trial| &trial.files) {
            if !own.has(path) {
                own.copy(path, file)?;
            }
        }
        let whole = cpio::join(&tests, &self.suite.shared.write()?)?;
        cpio::join(&whole, &own.write()?)
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
