//! Stubs in Rust: a module for each interface, with its types, a trait to implement, a dispatcher
//! and a client. They stand on the crate `service`, need no heap and no `unsafe`.

mod client;
mod names;
mod quick;
mod server;
mod types;

use crate::layout::{self, Form};
use crate::model::{Function, Interface, Manner, Model};

use crate::text::Text;

pub use names::{camel, function as function_name, shout, snake, value};
pub use types::ty as type_name;

/// The stubs of every interface of `model`, as one file of Rust.
#[must_use]
pub fn generate(model: &Model) -> String {
    let mut out = Text::default();
    out.line("// Made by baton-idl from the interfaces' WIT files. Change those instead.");
    for interface in &model.interfaces {
        out.blank();
        out.docs(interface.docs.as_deref(), || format!("The interface `{}`.", interface.full_name));
        // A caller, or a room for the result, comes to the parameters that the interface names.
        if interface.functions.iter().any(|function| function.params.len() > 5) {
            out.line("#[allow(clippy::too_many_arguments, clippy::type_complexity)]");
        }
        out.block(&format!("pub mod {} {{", snake(&interface.name)), |out| {
            module(model, interface, out);
        });
    }
    out.finish()
}

fn module(model: &Model, interface: &Interface, out: &mut Text) {
    out.line("#[allow(unused_imports)]");
    out.line("use service::{");
    out.line("    Answer, BindError, Body, Bytes, Caller, Carrier, Dispatch, Error, Handle, Interface, List,");
    out.line(
        "    Malformed, Message, Next, Room, Timeouts, TooLong, Version, Wire, Words, at_most,",
    );
    out.line("};");
    out.blank();
    let serves = !interface.functions.is_empty();
    if serves {
        description(model, interface, out);
    }
    for (name, origin) in &interface.types {
        out.blank();
        types::named(model, interface, name, origin, out);
    }
    if !serves {
        return;
    }
    out.blank();
    server::all(model, interface, out);
    out.blank();
    client::all(model, interface, out);
}

/// The labels and the interface's description.
fn description(model: &Model, interface: &Interface, out: &mut Text) {
    out.line("/// What requests are called: the hashes of their functions, types included.");
    out.block("pub mod label {", |out| {
        for function in &interface.functions {
            let label = layout::label(model, interface, function);
            out.line(&format!("/// `{}`.", function.name));
            out.line(&format!("pub const {}: u64 = {label:#x};", shout(&function.name)));
        }
        let all: Vec<String> = interface.functions.iter().map(|f| shout(&f.name)).collect();
        out.line("/// All of them.");
        out.line(&format!("pub const ALL: [u64; {}] = [{}];", all.len(), all.join(", ")));
    });
    out.blank();
    let [major, minor, patch] = interface.version;
    out.line(&format!("/// `{}@{major}.{minor}.{patch}`.", interface.full_name));
    out.block("pub static INTERFACE: Interface = Interface {", |out| {
        out.line(&format!("name: \"{}\",", interface.full_name));
        out.line(&format!("id: {:#x},", layout::hash(&interface.full_name)));
        out.line(&format!(
            "version: Version {{ major: {major}, minor: {minor}, patch: {patch} }},"
        ));
        out.block("functions: &[", |out| {
            for function in &interface.functions {
                out.line(&format!("(label::{}, \"{}\"),", shout(&function.name), function.name));
            }
        });
        out.replace_last("]", "],");
    });
    out.replace_last("}", "};");
}

/// How a function's messages look.
struct Shape {
    request: Form,
    answer: Form,
    /// Whether the result refers to bytes outside itself.
    borrows: bool,
}

impl Shape {
    fn of(model: &Model, function: &Function) -> Self {
        Self {
            request: layout::request(model, function).1,
            answer: layout::answer(model, function).1,
            borrows: function.result.as_ref().is_some_and(|ty| ty.borrows(model)),
        }
    }
}

/// Whether a function has an answer that comes when it returns.
fn is_answered(function: &Function) -> bool {
    function.manner == Manner::Answered
}
