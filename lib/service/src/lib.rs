//! What the stubs that `baton-idl` generates stand on; `docs/services.md` has the rules to the bit.
//!
//! `wire` says how a value becomes words and bytes and comes back checked, `list` and `text` what
//! needs bytes; `message` what carries both; `call` the client's side of a call and `answer` the
//! server's; `bind` who may talk to whom; `handles` what a server keeps for its clients. Nothing
//! here allocates, blocks or knows the kernel: `runtime::service` carries the messages, and tests
//! carry them inside one process.
#![no_std]
#![forbid(unsafe_code)]

mod answer;
mod bind;
mod body;
mod call;
mod compound;
mod handles;
mod inside;
mod list;
mod mappings;
mod message;
mod text;
mod wire;

pub use abi::{MsgTag, ThreadId, Timeouts};

pub use answer::{
    Answer, Dispatch, Next, Room, answer_bytes, answer_inline, answer_string, answer_words, likely,
    quick_arguments, quick_words, read_inline, read_string, read_words,
};
pub use bind::{
    BIND, BindError, IS_FAR, Interface, OFFERS_CALLS, Version, Whereabouts, check, describe,
};
pub use body::{Scratch, from_registers, partial, take_partial, to_registers};
pub use call::{
    Carrier, Error, SHORT, request_inline, request_string, request_words, result_behind,
    result_inline, result_string, result_words, timeouts,
};
pub use handles::{Handle, Handles};
pub use inside::{Inside, Near};
pub use list::{Iter, List};
pub use mappings::{MAX_MAPPINGS, Mappings, answer_mapped, result_mapped};
pub use message::{MAX_WORDS, Message, SHAPE_AND_LABEL, body_len, label};
pub use wire::{Body, Bytes, Malformed, TooLong, Wire, Words, at_most, skip};

/// Who called: a thread, as the kernel names it.
pub type Caller = ThreadId;
