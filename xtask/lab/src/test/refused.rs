//! Boot images that the kernel has to refuse, as `tests/systems.toml` lists them: each is a run.

use serde::Deserialize;

use super::Ring;
use super::damage::Damage;
use super::spec::{BootKind, ExpectedExit, Run, Step, default_cpu, default_memory, one};

/// What the kernel's sentences about boot images begin with.
const REFUSAL: &str = "baton: boot image refused: ";

/// Boot images with something wrong in them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// The system they would be without it.
    system: String,
    /// What is wrong, and what the kernel says.
    cases: Vec<Case>,
}

/// One of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    damage: Vec<Damage>,
    cut: Option<usize>,
    says: String,
}

impl Refused {
    /// The machines on which they are refused.
    pub fn runs(self) -> impl Iterator<Item = Run> {
        let Self { system, cases } = self;
        cases.into_iter().map(move |case| case.run(&system))
    }
}

impl Case {
    /// The machine on which `system` is damaged and refused.
    fn run(self, system: &str) -> Run {
        Run {
            name: format!("refused-{}", self.name),
            ring: Ring::Emulator,
            system: Some(system.to_owned()),
            root: None,
            sigma0: None,
            exec: None,
            share: None,
            modules: Vec::new(),
            programs: Vec::new(),
            damage: self.damage,
            cut: self.cut,
            boot: BootKind::Pvh,
            memory: default_memory(),
            cpus: one(),
            cpu: default_cpu(),
            board: None,
            devices: Vec::new(),
            icount: false,
            assertions: false,
            without: Vec::new(),
            kernel_args: Vec::new(),
            tamper: Vec::new(),
            named: false,
            seconds: 60,
            cases: false,
            open: None,
            exit: Some(ExpectedExit::Failure),
            dialogue: vec![Step::Expect(REFUSAL.to_owned()), Step::Expect(self.says)],
        }
    }
}
