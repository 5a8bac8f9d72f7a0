//! What a program can come to: from its entry, along everything that is referred
//! to, through its interpreter and its libraries.
//!
//! More is found than is ever done: whatever a piece refers to counts as run. Less
//! is found only for libraries that a program loads by name at run time.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::code::{Number, Pieces};
use super::object::Image;

/// Where libraries are, besides the folder of the program.
const FOLDERS: [&str; 5] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/lib", "/usr/lib"];

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Numbers of calls.
    pub numbers: BTreeSet<u32>,
    /// Places whose number is computed: file and address.
    pub unknown: Vec<(String, u64)>,
    /// The files that were read.
    pub files: Vec<String>,
}

/// The files of one program.
struct World {
    files: Vec<(Image, Pieces)>,
}

/// A piece of one of the files.
type Place = (usize, u64);

/// Follows `program`.
///
/// # Errors
/// When a file cannot be read or a library is not there.
pub fn follow(program: &Path) -> Result<Reached> {
    let world = World::load(program)?;
    let mut reached = Reached::default();
    let mut seen: BTreeSet<Place> = BTreeSet::new();
    let mut open: Vec<Place> = world.roots();
    let defined = world.definitions();
    while let Some((file, address)) = open.pop() {
        let (image, pieces) = &world.files[file];
        let Some((start, piece)) = pieces.at(address) else { continue };
        if !seen.insert((file, start)) {
            continue;
        }
        for number in &piece.calls {
            match number {
                Number::Known(number) => drop(reached.numbers.insert(*number)),
                Number::Unknown(at) => reached.unknown.push((image.name.clone(), *at)),
            }
        }
        open.extend(piece.addresses.iter().map(|to| (file, *to)));
        open.extend(piece.symbols.iter().filter_map(|name| defined.get(name.as_str()).copied()));
    }
    reached.unknown.sort();
    reached.files = world.files.into_iter().map(|(image, _)| image.name).collect();
    Ok(reached)
}

impl World {
    /// Reads the program, its interpreter, and all libraries that they need.
    fn load(program: &Path) -> Result<Self> {
        let mut world = Self { files: Vec::new() };
        let mut names = BTreeSet::new();
        let folder = program.parent().unwrap_or(Path::new("."));
        let mut wanted = vec![program.to_owned()];
        while let Some(path) = wanted.pop() {
            let image = Image::read(&path)?;
            for name in &image.needed {
                if names.insert(name.clone()) {
                    wanted.push(find(folder, name).with_context(|| {
                        format!("{} needs {name}, which is not there", image.name)
                    })?);
                }
            }
            if let Some(interpreter) = &image.interpreter {
                let name = interpreter.file_name().unwrap_or_default().to_string_lossy();
                if names.insert(name.into_owned()) {
                    wanted.push(interpreter.clone());
                }
            }
            let pieces = Pieces::of(&image);
            world.files.push((image, pieces));
        }
        Ok(world)
    }

    /// Where execution can begin.
    fn roots(&self) -> Vec<Place> {
        let mut roots = Vec::new();
        for (file, (image, _)) in self.files.iter().enumerate() {
            if file == 0 || image.name.starts_with("ld-") {
                roots.push((file, image.entry));
            }
            roots.extend(image.at_start.iter().map(|at| (file, *at)));
        }
        roots
    }

    /// Who defines each name: the first file that does.
    fn definitions(&self) -> HashMap<&str, Place> {
        let mut defined = HashMap::new();
        for (file, (image, _)) in self.files.iter().enumerate() {
            for (name, address) in &image.symbols {
                defined.entry(name.as_str()).or_insert((file, *address));
            }
        }
        defined
    }
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let folders = [folder].into_iter().chain(FOLDERS.iter().map(Path::new));
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}
