//! From "which system" to a boot image on disk: builds what is needed, resolves
//! names to files, and calls the image tool.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use bootcfg::{Screen, Spec};
use clap::Args;

use crate::build::{self, Effort, Programs, Role};
use crate::image::elf::Executable;
use crate::image::{Builder, PAGE, Server, page_down, places, verify};
use crate::linux::Wishes;
use crate::machine::Wanted;
use crate::system::{Contents, System};
use crate::workspace::Workspace;

/// The system that is meant when none is named.
pub const DEFAULT_SYSTEM: &str = "linux";
/// The system that runs Linux programs.
pub const LINUX_SYSTEM: &str = "linux";
/// Module that holds the first file system of the Unix server.
const ARCHIVE_MODULE: &str = "initramfs";
/// Module that holds the command for the Unix server to run instead of a login.
const COMMAND_MODULE: &str = "command";
/// Module that tells it what the terminal is.
const TERMINAL_MODULE: &str = "terminal";
/// Module that has it place programs where they were the last time.
const FIXED_MODULE: &str = "fixed-addresses";

/// What to boot: a system description, or a root task of one's own.
#[derive(Args, Clone, Debug, Default)]
pub struct Selection {
    /// System to boot: a name under systems/ or a path to a .toml file
    pub system: Option<String>,
    /// Root task instead of the system's: any X.2 root task (file, or name of a program)
    #[arg(long, value_name = "FILE")]
    pub root: Option<String>,
    /// σ0 instead of the system's (file, or name of a program)
    #[arg(long, value_name = "FILE")]
    pub sigma0: Option<String>,
    /// Raw file for the root task (repeatable)
    #[arg(long = "module", value_name = "FILE")]
    pub modules: Vec<String>,
    /// Program for the root task to start, flattened (repeatable)
    #[arg(long = "program", value_name = "FILE")]
    pub programs: Vec<String>,
    /// Kernel instead of the tree's
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,
    /// Compile programs to try them, not to measure: seconds, for slower code
    #[arg(long)]
    pub quick: bool,
    /// What the Unix server is to do
    #[command(flatten)]
    pub wishes: Wishes,
    /// Everything at the first place that it can have: for debuggers, and for counting.
    #[arg(skip)]
    pub fixed_addresses: bool,
}

/// A kernel and the image that belongs to it.
#[derive(Clone, Debug, Default)]
pub struct Bootable {
    /// The kernel's ELF file.
    pub kernel: PathBuf,
    /// The boot image.
    pub image: PathBuf,
    /// ELF files of σ0 and the root task, for the debugger.
    pub servers: Vec<PathBuf>,
    /// Names and ELF files of the tasks, in the order in which the root task sees them.
    pub tasks: Vec<(String, PathBuf)>,
    /// The machine that its description asks for.
    pub machine: Wanted,
    /// Whether a task of it has the boot loader's framebuffer.
    pub on_screen: bool,
}

/// The builds of one invocation, done at most once each.
#[derive(Clone)]
pub struct Composer<'a> {
    workspace: &'a Workspace,
    kernel: Option<PathBuf>,
    programs: Programs,
    /// Whether to build all programs at once, for an invocation that needs most of them.
    all: bool,
    built_all: bool,
}

/// One record to be, with files resolved.
struct Part {
    file: PathBuf,
    cmdline: String,
}

impl<'a> Composer<'a> {
    /// Nothing built yet.
    #[must_use]
    pub fn new(workspace: &'a Workspace) -> Self {
        Self {
            workspace,
            kernel: None,
            programs: Programs::default(),
            all: false,
            built_all: false,
        }
    }

    /// The same with this kernel instead of the tree's.
    #[must_use]
    pub fn with_kernel(self, kernel: PathBuf) -> Self {
        Self { kernel: Some(kernel), ..self }
    }

    /// The same, but the first program that is needed brings all others with it: one run
    /// of the compilers instead of one for each system.
    #[must_use]
    pub fn of_everything(workspace: &'a Workspace) -> Self {
        Self { all: true, ..Self::new(workspace) }
    }

    /// Builds now what [`Composer::of_everything`] would build when it is needed, so that clones
    /// need not.
    ///
    /// # Errors
    /// As [`Composer::compose`].
    pub fn build_ahead(&mut self) -> Result<()> {
        if !self.all {
            return Ok(());
        }
        if self.kernel.is_none() {
            self.kernel = Some(build::kernel(self.workspace)?);
        }
        self.need(std::iter::once("sigma0"))
    }

    /// Sees to it that the programs `names` are built, as far as they are programs.
    fn need<'n>(&mut self, names: impl Iterator<Item = &'n str>) -> Result<()> {
        let names: Vec<&str> = names.filter(|name| self.by_path(name).is_none()).collect();
        if self.all && !names.is_empty() && !std::mem::replace(&mut self.built_all, true) {
            self.programs.build_all(self.workspace)?;
        }
        if self.all { Ok(()) } else { self.programs.build(self.workspace, names.into_iter()) }
    }

    /// What looks like a path and exists needs no build.
    fn by_path(&self, name: &str) -> Option<PathBuf> {
        if name.contains(['/', '.']) { build::file(self.workspace, name) } else { None }
    }

    /// Builds and writes `target/images/NAME.img` for `selection`.
    ///
    /// # Errors
    /// A sentence from whatever step failed.
    pub fn compose(&mut self, selection: &Selection, name: &str) -> Result<Bootable> {
        let _alone = self.workspace.alone("build")?;
        if selection.quick {
            self.programs.effort = Effort::Quick;
        }
        let (kernel, plan) = self.kernel_and_plan(selection)?;
        let mut builder = Builder::new(&self.executable(&kernel, "the kernel")?);
        ensure!(
            !plan.has_module(bootcfg::places::FILE),
            "a raw file cannot be called `{}`, which is what moves programs; give it another name",
            bootcfg::places::FILE
        );
        if plan.moves && !plan.has_module(FIXED_MODULE) {
            builder.module(self.places(&plan.programs)?, bootcfg::places::FILE)?;
        }
        let mut servers = Vec::new();
        for (server, part) in &plan.servers {
            let exe = self.executable(&part.file, &self.workspace.show(&part.file))?;
            builder.server(*server, &exe, &part.cmdline)?;
            servers.push(part.file.clone());
        }
        let mut tasks = Vec::new();
        for part in &plan.programs {
            let name = part.cmdline.split_ascii_whitespace().next().unwrap_or_default();
            tasks.push((name.to_owned(), part.file.clone()));
            let exe = self.executable(&part.file, &self.workspace.show(&part.file))?;
            builder.program(&exe, &part.cmdline)?;
        }
        for (bytes, cmdline) in plan.modules {
            builder.module(bytes, &cmdline)?;
        }
        let bytes = builder.finish();
        verify(&bytes).context("the image tool made an image that its own checker refuses")?;
        let image = self.workspace.target("images")?.join(format!("{name}.img"));
        self.workspace.replace(&image, &bytes)?;
        let specs = plan.programs.iter().filter_map(|part| Spec::parse(&part.cmdline).ok());
        let on_screen = specs.into_iter().any(|spec| spec.framebuffer != Screen::Unnamed);
        Ok(Bootable { kernel, image, servers, tasks, machine: plan.machine, on_screen })
    }

    /// The lists of what changes in the programs when they move.
    fn places(&self, programs: &[Part]) -> Result<Vec<u8>> {
        let mut lists = Vec::new();
        for part in programs {
            let name = self.workspace.show(&part.file);
            let data = read(&part.file)?;
            let exe = Executable::parse(&name, &data)?;
            let end = exe.segments.iter().map(|segment| segment.virt_range().end).max();
            let first = exe.segments.iter().map(|segment| segment.virt).min().unwrap_or(PAGE);
            let range = page_down(first)..=end.unwrap_or(PAGE);
            lists.extend(places::of_program(&name, &data, range)?);
        }
        Ok(lists.iter().flat_map(|word| word.to_le_bytes()).collect())
    }

    /// Kernel and programs, built side by side: the compiler ends each of them with a long part
    /// that keeps one processor busy.
    fn kernel_and_plan(&mut self, selection: &Selection) -> Result<(PathBuf, Plan)> {
        let workspace = self.workspace;
        let there = selection.kernel.clone().or_else(|| self.kernel.clone());
        let (kernel, plan) = std::thread::scope(|scope| {
            let building = there.is_none().then(|| scope.spawn(|| build::kernel(workspace)));
            let plan = self.plan(selection);
            (building.map(std::thread::ScopedJoinHandle::join), plan)
        });
        let kernel = match (there, kernel) {
            (Some(file), _) => file,
            (None, Some(Ok(built))) => self.kernel.insert(built?).clone(),
            (None, _) => bail!("the kernel's build ended without a result"),
        };
        Ok((kernel, plan?))
    }

    fn executable(&self, file: &Path, name: &str) -> Result<Executable> {
        Executable::parse(name, &read(file)?)
    }

    /// A path, or the name of a program of the tree.
    fn resolve(&mut self, name: &str, role: Role) -> Result<PathBuf> {
        if let Some(path) = self.by_path(name) {
            return Ok(path);
        }
        self.need(std::iter::once(name))?;
        self.programs.find(self.workspace, name, role)
    }

    /// Decides what goes into the image.
    fn plan(&mut self, selection: &Selection) -> Result<Plan> {
        let mut plan = Plan::default();
        let own_root = selection.root.is_some();
        if selection.system.is_none() && own_root {
            self.server(
                &mut plan,
                Server::Sigma0,
                selection.sigma0.as_deref().unwrap_or("sigma0"),
                "",
            )?;
        } else {
            let system = self.system(selection.system.as_deref().unwrap_or(DEFAULT_SYSTEM))?;
            self.plan_system(&mut plan, &system, selection)?;
        }
        if let Some(root) = &selection.root {
            self.server(&mut plan, Server::Root, root, "")?;
        }
        for name in &selection.programs {
            let (name, cmdline) = split_cmdline(name);
            let file = self.resolve(name, Role::Task)?;
            plan.programs.push(Part { cmdline: cmdline.unwrap_or_else(|| stem(&file)), file });
        }
        for name in &selection.modules {
            let (name, cmdline) = split_cmdline(name);
            let Some(file) = build::file(self.workspace, name) else {
                bail!("there is no file `{name}` to add as a module; give a path to one");
            };
            plan.modules.push((read(&file)?, cmdline.unwrap_or_else(|| stem(&file))));
        }
        if !selection.wishes.is_empty() && !plan.has_module(ARCHIVE_MODULE) {
            bail!(
                "this system has no Unix server (no module `{ARCHIVE_MODULE}`), so --exec, \
                 --initramfs and --share mean nothing to it; try `./baton run {LINUX_SYSTEM}`"
            );
        }
        Ok(plan)
    }

    /// Everything that the description names, less what the command line replaces.
    fn plan_system(&mut self, plan: &mut Plan, system: &System, by_hand: &Selection) -> Result<()> {
        plan.machine = system.machine();
        plan.moves = by_hand.root.is_none();
        let sigma0 = by_hand.sigma0.as_deref().unwrap_or(&system.sigma0.image);
        let root = by_hand.root.as_deref().unwrap_or(&system.root.image);
        // All in one run of the compilers, and no others: a broken program stops only
        // the systems that contain it.
        let tasks = system.tasks.iter().map(|task| task.image.as_str());
        self.need([sigma0, root].into_iter().chain(tasks))?;
        self.server(plan, Server::Sigma0, sigma0, &system.sigma0.args)?;
        if by_hand.root.is_none() {
            self.server(plan, Server::Root, &system.root.image, &system.root.args)?;
        }
        for task in &system.tasks {
            let file = self.resolve(&task.image, Role::Task)?;
            plan.programs.push(Part { file, cmdline: task.cmdline() });
        }
        for module in &system.modules {
            let name = module.name.get_ref().clone();
            let bytes = match module.contents().context("a module without contents was let in")? {
                Contents::File(file) => read(&self.resolve(file, Role::Task)?)?,
                Contents::Archive(kind) => by_hand.wishes.archive(self.workspace, kind)?,
            };
            plan.modules.push((bytes, name));
        }
        if let Some(command) = &by_hand.wishes.exec {
            plan.modules.push((command.clone().into_bytes(), COMMAND_MODULE.to_owned()));
        }
        if let Some(terminal) =
            by_hand.wishes.terminal.as_ref().filter(|_| plan.has_module(ARCHIVE_MODULE))
        {
            plan.modules.push((terminal.clone().into_bytes(), TERMINAL_MODULE.to_owned()));
        }
        if by_hand.fixed_addresses {
            plan.modules.push((vec![1], FIXED_MODULE.to_owned()));
        }
        Ok(())
    }

    fn server(&mut self, plan: &mut Plan, server: Server, image: &str, args: &str) -> Result<()> {
        let file = self.resolve(image, Role::Server)?;
        let name = if server == Server::Sigma0 { "sigma0" } else { "root" };
        let cmdline = format!("{name} {args}").trim_end().to_owned();
        plan.servers.push((server, Part { file, cmdline }));
        Ok(())
    }

    /// Reads `systems/NAME.toml`, or NAME as a path.
    fn system(&self, name: &str) -> Result<System> {
        let inside = self.workspace.path(format!("systems/{name}.toml"));
        let path = if inside.is_file() { inside } else { PathBuf::from(name) };
        if !path.is_file() {
            bail!(
                "there is no system `{name}`; the systems are: {}",
                systems(self.workspace).join(", ")
            );
        }
        System::read(&path, &self.workspace.show(&path))
    }
}

/// Files and command lines, in the order of the image.
#[derive(Default)]
struct Plan {
    servers: Vec<(Server, Part)>,
    programs: Vec<Part>,
    /// Contents and name of each.
    modules: Vec<(Vec<u8>, String)>,
    machine: Wanted,
    /// Whether the root task is one that moves programs.
    moves: bool,
}

impl Plan {
    fn has_module(&self, name: &str) -> bool {
        self.modules.iter().any(|module| module.1 == name)
    }
}

/// The names of all system descriptions.
#[must_use]
pub fn systems(workspace: &Workspace) -> Vec<String> {
    let entries = std::fs::read_dir(workspace.path("systems")).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    let mut names: Vec<String> =
        files.filter(|f| f.extension().is_some_and(|e| e == "toml")).map(|f| stem(&f)).collect();
    names.sort();
    names
}

/// The names of the tasks of a system.
///
/// # Errors
/// As for booting it: it must exist and be sound.
pub fn tasks_of(workspace: &Workspace, system: &str) -> Result<BTreeSet<String>> {
    let system = Composer::new(workspace).system(system)?;
    Ok(system.tasks.iter().map(|task| task.name.get_ref().clone()).collect())
}

/// `FILE=command line`: a file with its own command line.
fn split_cmdline(text: &str) -> (&str, Option<String>) {
    match text.split_once('=') {
        Some((file, cmdline)) => (file, Some(cmdline.to_owned())),
        None => (text, None),
    }
}

fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn read(file: &Path) -> Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

#[cfg(test)]
mod tests;
