//! gcc for the C programs: every folder with `*.c` files and no manifest under
//! the guest folders is one program, compiled against `include/` and linked with
//! `lib/l4c`, once as a root task and once as a task.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, bail, ensure};

use crate::ui::Step;
use crate::workspace::Workspace;

/// Folders whose folders may be C programs of the guest (`bench` has C for the host).
const C_FOLDERS: [&str; 4] = ["servers", "drivers", "apps", "tests"];

/// How C code for Baton is compiled.
const CFLAGS: [&str; 12] = [
    "-std=gnu11",
    "-O2",
    "-g",
    "-Wall",
    "-Wextra",
    "-ffreestanding",
    "-mno-red-zone",
    "-fno-pic",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-fno-asynchronous-unwind-tables",
    "-mcmodel=small",
];
/// How it is linked; libgcc comes last. What the linker resolved stays in the file (`places.rs`).
const LDFLAGS: [&str; 7] = [
    "-Wl,--emit-relocs",
    "-nostdlib",
    "-static",
    "-no-pie",
    "-Wl,--build-id=none",
    "-Wl,-z,max-page-size=4096",
    "-Wl,-z,noexecstack",
];
/// The C library: linker scripts here, sources and headers in folders of it.
const LIBRARY: &str = "lib/l4c";

/// A program linked with `root.ld` and with `task.ld`, or what gcc said instead.
type Built = Result<(PathBuf, PathBuf)>;

/// Compiles the library and every program that is wanted; name and outcome of each.
pub fn programs(
    workspace: &Workspace,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<(String, Built)>> {
    let mut folders = folders(workspace)?;
    folders.retain(|folder| wanted(&name(folder)));
    if folders.is_empty() {
        return Ok(Vec::new());
    }
    ensure!(workspace.path(LIBRARY).is_dir(), "there are C programs but no C library in {LIBRARY}");
    let step = Step::start("building C programs");
    let mut compiler =
        Compiler { workspace, step: &step, newest_header: header_time(workspace)?, runs: 0 };
    let library = compiler.objects(&workspace.path(LIBRARY).join("src"))?;
    let mut programs = Vec::new();
    for folder in folders {
        programs.push((name(&folder), compiler.program(&folder, &library)));
    }
    match compiler.runs {
        0 => step.vanish(),
        n => step.done(&format!("{n} files compiled or linked")),
    }
    Ok(programs)
}

/// The names of all C programs.
pub fn names(workspace: &Workspace) -> Result<Vec<String>> {
    Ok(folders(workspace)?.iter().map(|folder| name(folder)).collect())
}

/// What the program of a folder is called.
fn name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Folders that are C programs.
fn folders(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in C_FOLDERS {
        for entry in entries(&workspace.path(folder))? {
            let has_manifest = entry.join("Cargo.toml").exists();
            if entry.is_dir() && !has_manifest && !sources(&entry)?.is_empty() {
                found.push(entry);
            }
        }
    }
    Ok(found)
}

/// The entries of a folder in order; none if it does not exist.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let list = std::fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let list = list.with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = list.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// The C and assembly files of a folder.
fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = entries(folder)?;
    files.retain(|path| has_extension(path, &["c", "S"]));
    Ok(files)
}

fn has_extension(path: &Path, wanted: &[&str]) -> bool {
    path.extension().and_then(|e| e.to_str()).is_some_and(|e| wanted.contains(&e))
}

/// When a file was last written; the beginning of time if it is missing.
fn written(path: &Path) -> SystemTime {
    path.metadata().and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The newest header or linker script that any object may depend on.
fn header_time(workspace: &Workspace) -> Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    let mut pending = vec![workspace.path("include"), workspace.path(LIBRARY)];
    while let Some(folder) = pending.pop() {
        for path in entries(&folder)? {
            if path.is_dir() {
                pending.push(path);
            } else if has_extension(&path, &["h", "in", "ld"]) {
                newest = newest.max(written(&path));
            }
        }
    }
    Ok(newest)
}

/// Runs gcc where something changed.
struct Compiler<'a> {
    workspace: &'a Workspace,
    step: &'a Step,
    newest_header: SystemTime,
    runs: usize,
}

impl Compiler<'_> {
    /// Compiles the sources of `folder`.
    fn objects(&mut self, folder: &Path) -> Result<Vec<PathBuf>> {
        let name = self.workspace.show(folder).replace('/', "-");
        let dir = self.workspace.target(Path::new("c").join(name))?;
        let headers = entries(folder)?.into_iter().filter(|path| has_extension(path, &["h"]));
        let newest = headers.map(|path| written(&path)).fold(self.newest_header, SystemTime::max);
        let mut objects = Vec::new();
        for source in sources(folder)? {
            let file = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let object = dir.join(format!("{file}.o"));
            if written(&object) <= newest.max(written(&source)) {
                self.step.say(file);
                let mut gcc = self.gcc(&CFLAGS);
                gcc.arg("-c").arg(&source).arg("-o").arg(&object);
                self.run(gcc, &self.workspace.show(&source))?;
            }
            objects.push(object);
        }
        Ok(objects)
    }

    /// Compiles and links one program, twice.
    fn program(&mut self, folder: &Path, library: &[PathBuf]) -> Built {
        let name = name(folder);
        let mut objects = self.objects(folder)?;
        objects.extend_from_slice(library);
        let as_server = self.link(&name, "root", &objects)?;
        let as_task = self.link(&name, "task", &objects)?;
        Ok((as_server, as_task))
    }

    /// Links `objects` with the script `lib/l4c/SCRIPT.ld`.
    fn link(&mut self, name: &str, script: &str, objects: &[PathBuf]) -> Result<PathBuf> {
        let elf = self.workspace.target("c")?.join(format!("{name}.{script}.elf"));
        let newest = objects.iter().map(|o| written(o)).fold(self.newest_header, SystemTime::max);
        if written(&elf) <= newest {
            let mut gcc = self.gcc(&LDFLAGS);
            let script = self.workspace.path(LIBRARY).join(format!("{script}.ld"));
            gcc.arg("-T").arg(script).args(objects).arg("-lgcc").arg("-o").arg(&elf);
            self.run(gcc, name)?;
        }
        Ok(elf)
    }

    fn gcc(&self, flags: &[&str]) -> Command {
        let mut gcc = Command::new("gcc");
        gcc.current_dir(&self.workspace.root).args(flags).args(["-Iinclude", "-Ilib/l4c/include"]);
        gcc
    }

    fn run(&mut self, mut gcc: Command, what: &str) -> Result<()> {
        self.runs += 1;
        let output = gcc.output().context("cannot run gcc; is it installed?")?;
        let words = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        if !output.status.success() {
            bail!("gcc refused {what}:\n{words}");
        }
        if !words.is_empty() {
            self.step.line(&words);
        }
        Ok(())
    }
}
