//! From files and descriptions to images, in a tree of the tests' own.

use abi::image::kind;

use super::*;
use crate::image::sample::{R, X, elf_file, part};

/// A folder that is a tree with a kernel, σ0, a root task and a task as files.
struct Tree {
    workspace: Workspace,
}

impl Tree {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("baton-{name}-{}", std::process::id()));
        std::fs::create_dir_all(root.join("systems")).unwrap();
        let tree = Self { workspace: Workspace { root } };
        for (file, at) in [
            ("kernel.elf", 0x20_0000),
            ("s0.elf", 0xF0_0000),
            ("r.elf", 0x100_0000),
            ("t.elf", 0x40_0000),
        ] {
            tree.put(file, &elf_file(at, &[part(at, &[0xCC; 64], 64, R | X)]));
        }
        tree
    }

    fn put(&self, file: &str, bytes: &[u8]) {
        std::fs::write(self.workspace.path(file), bytes).unwrap();
    }

    fn compose(&self, selection: Selection) -> Result<Vec<(u64, String)>> {
        let kernel = Some(self.workspace.path("kernel.elf"));
        let selection = Selection { kernel, ..selection };
        let bootable = Composer::new(&self.workspace).compose(&selection, "test")?;
        let entries = verify(&std::fs::read(bootable.image).unwrap())?;
        Ok(entries.into_iter().map(|entry| (entry.kind(), entry.cmdline)).collect())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.workspace.root);
    }
}

const SYSTEM: &str = "[sigma0]\nimage = \"s0.elf\"\n[root]\nimage = \"r.elf\"\nargs = \"quiet=1\"\n\
                      [[task]]\nname = \"serial\"\nimage = \"t.elf\"\nirqs = [4]\n\
                      [[module]]\nname = \"notes\"\nfile = \"notes.txt\"\n";

fn texts(list: &[(u64, String)]) -> Vec<(u64, &str)> {
    list.iter().map(|(kind, line)| (*kind, line.as_str())).collect()
}

#[test]
fn a_description_becomes_an_image() {
    let tree = Tree::new("description");
    tree.put("systems/mine.toml", SYSTEM.as_bytes());
    tree.put("notes.txt", b"hello");
    let mine = Selection { system: Some("mine".into()), ..Selection::default() };
    let list = tree.compose(mine.clone()).unwrap();
    let described = [
        (kind::SIGMA0, "sigma0"),
        (kind::ROOT, "root quiet=1"),
        (kind::PROGRAM, "serial irq=4 start=1"),
        (kind::MODULE, "notes"),
    ];
    let places = [(kind::MODULE, "places")];
    assert_eq!(texts(&list), [&places[..], &described].concat());
    let list = tree.compose(Selection { fixed_addresses: true, ..mine.clone() }).unwrap();
    assert_eq!(texts(&list), [&described[..], &[(kind::MODULE, "fixed-addresses")]].concat());
    let taken = Selection { modules: vec!["notes.txt=places".into()], ..mine };
    assert!(tree.compose(taken).unwrap_err().to_string().contains("another name"));
}

#[test]
fn a_root_task_of_ones_own_needs_no_description() {
    let tree = Tree::new("own-root");
    tree.put("data.bin", &[7; 5000]);
    let list = tree
        .compose(Selection {
            root: Some("r.elf".into()),
            sigma0: Some("s0.elf".into()),
            modules: vec!["data.bin=blob size=5000".into(), "data.bin".into()],
            programs: vec!["t.elf".into()],
            ..Selection::default()
        })
        .unwrap();
    let expected = [
        (kind::SIGMA0, "sigma0"),
        (kind::ROOT, "root"),
        (kind::PROGRAM, "t"),
        (kind::MODULE, "blob size=5000"),
        (kind::MODULE, "data"),
    ];
    assert_eq!(texts(&list), expected);
}

#[test]
fn what_is_missing_is_named() {
    let tree = Tree::new("missing");
    tree.put("systems/mine.toml", SYSTEM.as_bytes());
    let refused = |selection: Selection, words: &str| {
        let error = format!("{:#}", tree.compose(selection).expect_err("must be refused"));
        assert!(error.contains(words), "expected `{words}` in: {error}");
    };
    let system = |name: &str| Selection { system: Some(name.into()), ..Selection::default() };
    refused(system("other"), "there is no system `other`; the systems are: mine");
    let root = Selection {
        root: Some("r.elf".into()),
        sigma0: Some("s0.elf".into()),
        ..Selection::default()
    };
    refused(
        Selection { modules: vec!["no.bin".into()], ..root.clone() },
        "there is no file `no.bin`",
    );
    tree.put("broken.elf", b"text");
    refused(Selection { root: Some("broken.elf".into()), ..root }, "broken.elf is too short");
}
