//! The boot loader's framebuffer: where it lies, whether that can be, and its pages for the one task
//! whose description names it.
//!
//! What the loader says is not believed where it can be seen to be wrong: pixels that would be memory,
//! the kernel's devices, or another task's, are nobody's, and the task starts without.

use abi::{Framebuffer, Rights};
use bootcfg::{Screen as Named, Spec, claims};
use interfaces::parent::Picture;
use proto::Refusal;
use runtime::service::Mappings;
use runtime::window::Window;
use runtime::{direct_println, sigma0};

use crate::Root;
use crate::boot::is_memory;
use crate::modules::{Blocks, blocks, map_all};

/// What the loader has said, and the pages, once somebody has asked.
pub struct Screen {
    said: Option<Framebuffer>,
    window: Option<Window>,
}

impl Screen {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self { said: None, window: None }
    }

    /// What the bootinfo says.
    pub fn learn(&mut self, said: Framebuffer) {
        match said.check() {
            Ok(()) => self.said = Some(said),
            Err(defect) => {
                direct_println!(
                    "root: the boot loader's framebuffer cannot be as it says: {defect}."
                );
            }
        }
    }
}

impl Root {
    /// The description with the place of the framebuffer, if it names that and can have it; says why
    /// it cannot.
    pub fn with_screen(&self, spec: Spec) -> Spec {
        let Some(said) = self.screen.said.filter(|_| spec.framebuffer == Named::Named) else {
            return spec;
        };
        let name = spec.name;
        let (first, last) = said.pages();
        let mut with = spec;
        with.framebuffer = Named::At((first, last));
        let others = self.tasks.iter().flatten().map(|task| &task.spec);
        if is_memory((first, last)) {
            direct_println!(
                "root: {name} starts without the boot loader's framebuffer: {first:#x} to {last:#x} is the \
                 machine's memory, no device's."
            );
            return spec;
        }
        if let Err(claim) = claims::check(&with, others) {
            direct_println!("root: {name} starts without the boot loader's framebuffer: {claim}.");
            return spec;
        }
        with
    }

    /// Maps the framebuffer, to the task whose description names it: where it begins in its first page
    /// is where it begins in physical memory.
    pub fn framebuffer(
        &mut self,
        slot: usize,
        mappings: &mut Mappings,
    ) -> Result<Picture, Refusal> {
        let spec = &self.task(slot).ok_or(Refusal::Unknown)?.spec;
        let (first, last) = match spec.framebuffer {
            Named::Unnamed => return Err(Refusal::NotAllowed),
            Named::Named => return Err(Refusal::Unknown),
            Named::At(range) => range,
        };
        let said = self.screen.said.ok_or(Refusal::Unknown)?;
        if self.screen.window.is_none() {
            self.screen.window = sigma0::range(first, last + 1);
        }
        if self.screen.window.is_none() {
            return Err(Refusal::Taken);
        }
        let Blocks { list, count, end } = blocks(first, last + 1, Rights::RW);
        if end <= last {
            return Err(Refusal::Exhausted);
        }
        map_all(&list[..count], mappings)?;
        let [address, row, height, bits, format] = Framebuffer::words(&said);
        Ok(Picture { address, row, height, bits, format })
    }
}
