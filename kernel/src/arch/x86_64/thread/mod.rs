//! The processor's half of threads: the array of tcbs, who runs, vector registers, and what keeps a thread out of the
//! fast path.

pub mod mend;
pub mod pad;
pub mod running;
pub mod special;
pub mod tcbs;
pub mod vector;

pub use running::{current, leave, set_current};
pub use special::{
    close as close_fast_path, has_gate as has_vector_gate, is_closed as is_fast_path_closed,
    update as update_special,
};
pub use tcbs::VECTOR_AREA as VECTOR_BYTES;
pub use tcbs::{
    LINKAGE_BASE, STACK_BYTES, STRETCH, TcbRef, frames_of, has_stretch, install, last_version,
    lookup, lookup_number, remove, set_last_version,
};
pub use vector::{
    abandon as abandon_vector, clear as clear_vector, declare as declare_vector,
    keeps as keeps_vector, pass as pass_vector, sanitise as sanitise_vector, saved as vector_state,
};
