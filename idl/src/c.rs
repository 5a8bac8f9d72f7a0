//! Stubs in C: one header for a package, with the types, what writes and reads them, a function
//! for each function of a client, and for servers a table of functions and what calls them. They
//! stand on `lib/l4c/include/service.h` and use no heap.

mod client;
mod codec;
mod names;
mod server;
mod types;

use crate::layout;
use crate::model::{Interface, Model};
use crate::text::Text;

use names::{shout, snake};
pub use names::{ty as type_name, value as value_name};
use types::Types;

/// The stubs of every interface of `model`, as one header.
#[must_use]
pub fn generate(model: &Model) -> String {
    let model = &without_mappings(model);
    let mut out = Text::default();
    let package = model.interfaces.first().map_or("", |interface| {
        interface.full_name.rsplit_once('/').map_or(&*interface.full_name, |(package, _)| package)
    });
    let guard = format!("STUBS_{}_H", shout(&package.replace(':', "-")));
    out.line("/* Made by baton-idl from the interfaces' WIT files. Change those instead. */");
    out.line(&format!("#ifndef {guard}"));
    out.line(&format!("#define {guard}"));
    out.blank();
    out.line("#include <service.h>");
    let mut types = Types::new(model);
    for interface in &model.interfaces {
        out.blank();
        out.remark(interface.docs.as_deref(), || {
            format!("The interface `{}`.", interface.full_name)
        });
        types.of_interface(interface, &mut out);
        if interface.functions.is_empty() {
            continue;
        }
        description(model, interface, &mut out);
        for function in &interface.functions {
            out.blank();
            client::function(model, interface, function, &mut out);
        }
        server::all(model, interface, &mut out);
    }
    out.blank();
    out.line("#endif");
    out.finish()
}

/// Answers that map are for programs in Rust: what a window is, `lib/l4c` does not know.
fn without_mappings(model: &Model) -> Model {
    let mut model = model.clone();
    model.interfaces.iter_mut().for_each(|it| it.functions.retain(|function| !function.maps));
    model
}

/// The labels and the interface's description.
fn description(model: &Model, interface: &Interface, out: &mut Text) {
    let prefix = shout(&interface.name);
    let label = |name: &str| format!("{prefix}_LABEL_{}", shout(name));
    out.blank();
    out.line("/* What requests are called: the hashes of their functions, types included. */");
    for function in &interface.functions {
        let hash = layout::label(model, interface, function);
        out.line(&format!("#define {} {hash:#x}UL", label(&function.name)));
    }
    let name = snake(&interface.name);
    out.blank();
    out.block(&format!("static const service_function_t {name}__functions[] = {{"), |out| {
        for function in &interface.functions {
            out.line(&format!("{{ {}, \"{}\" }},", label(&function.name), function.name));
        }
    });
    out.replace_last("}", "};");
    let [major, minor, patch] = interface.version;
    out.blank();
    out.line(&format!("/* `{}@{major}.{minor}.{patch}`. */", interface.full_name));
    out.block(&format!("static const service_interface_t {name}_interface = {{"), |out| {
        let (id, count) = (layout::hash(&interface.full_name), interface.functions.len());
        let version = u64::from(major) << 32 | u64::from(minor) << 16 | u64::from(patch);
        out.line(&format!("\"{}\", {id:#x}UL, {version:#x}UL,", interface.full_name));
        out.line(&format!("{count}, {name}__functions,"));
    });
    out.replace_last("}", "};");
}
