//! A program in C that is a server and a client of every interface: it asks the other side of its
//! pipe what its own client asks it, so that each value is read and written by C both ways.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use baton_idl::c::{type_name, value_name};
use baton_idl::model::{Function, Interface, Model};
use baton_idl::rust::snake;

/// What does not depend on the interfaces.
const FRAME: &str = include_str!("relay.c");

/// Writes and compiles it.
pub fn build(model: &Model, out: &Path) -> Result<()> {
    std::fs::write(out.join("trial.h"), baton_idl::c::generate(model))?;
    let relays: String = model.interfaces.iter().map(|i| relay(model, i)).collect();
    let arms: String = (0..)
        .zip(&model.interfaces)
        .map(|(number, interface)| {
            let name = snake(&interface.name);
            format!(
                "    case {number}:\n        return {name}_dispatch(&relay_{name}, NULL, call);\n"
            )
        })
        .collect();
    let dispatch = format!(
        "static service_outcome_t dispatch(uint64_t interface, service_call_t *call)\n{{\n    \
         switch (interface) {{\n{arms}    default:\n        abort();\n    }}\n}}\n"
    );
    let text = FRAME.replace("/* RELAYS */", &format!("{relays}{dispatch}"));
    std::fs::write(out.join("relay.c"), text)?;
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lib/l4c");
    println!("cargo:rerun-if-changed={}", library.display());
    let output = Command::new("gcc")
        .args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"])
        .args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"])
        .arg("-idirafter")
        .arg(library.join("include"))
        .arg(out.join("relay.c"))
        .arg(library.join("src/service.c"))
        .arg("-o")
        .arg(out.join("relay"))
        .output()
        .context("cannot run gcc; is it installed?")?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "gcc refused the stubs:\n{words}");
    Ok(())
}

fn relay(model: &Model, interface: &Interface) -> String {
    let name = snake(&interface.name);
    let functions: String = interface.functions.iter().map(|f| handler(model, &name, f)).collect();
    let entries: String = interface
        .functions
        .iter()
        .map(|f| format!("    .{} = relay_{name}_{},\n", value_name(&f.name), snake(&f.name)))
        .collect();
    format!("{functions}static const {name}_server_t relay_{name} = {{\n{entries}}};\n\n")
}

/// Asks the same, and answers what it is answered.
fn handler(model: &Model, interface: &str, function: &Function) -> String {
    let name = snake(&function.name);
    let mut params = "void *self, service_call_t *call".to_owned();
    let mut given = "&upstream".to_owned();
    for param in &function.params {
        let value = value_name(&param.name);
        let _ = write!(params, ", {} {value}", type_name(&param.ty));
        let _ = write!(given, ", {value}");
    }
    if let Some(result) = &function.result {
        let _ = write!(params, ", {} *result", type_name(result));
        given += ", result";
        if result.borrows(model) {
            given += ", room, sizeof room";
        }
    }
    format!(
        "static void relay_{interface}_{name}({params})\n{{\n    (void)self;\n    (void)call;\n    \
         status = {interface}_{name}({given});\n}}\n\n"
    )
}
