//! The server's side: a table of functions, and what calls them.

use crate::layout::{self, Form};
use crate::model::{Function, Interface, Manner, Model};
use crate::text::Text;

use super::client::begin;
use super::codec::{bounds, get, put};
use super::names::{borrows, shout, snake, ty, value};

/// Everything that a server needs.
pub fn all(model: &Model, interface: &Interface, out: &mut Text) {
    let name = snake(&interface.name);
    sizes(model, interface, out);
    out.blank();
    out.remark(None, || {
        "What a server of this interface does; every function has to be there. Anybody who can send\n\
         it a message may call it: call->caller says who. `self` is the server's own."
            .to_owned()
    });
    out.block("typedef struct {", |out| {
        for function in &interface.functions {
            out.remark(function.docs.as_deref(), || format!("The function `{}`.", function.name));
            let params = handler(function).join(", ");
            out.line(&format!("void (*{})({params});", value(&function.name)));
        }
    });
    out.replace_last("}", &format!("}} {name}_server_t;"));
    for function in &interface.functions {
        if function.manner != Manner::OneWay {
            out.blank();
            answer(model, interface, function, out);
        }
        out.blank();
        serve(model, interface, function, out);
    }
    out.blank();
    dispatch(interface, out);
}

/// Parameters of what the server writes for a function.
fn handler(function: &Function) -> Vec<String> {
    let mut params = vec!["void *self".to_owned(), "service_call_t *call".to_owned()];
    params.extend(function.params.iter().map(|p| format!("{} {}", ty(&p.ty), value(&p.name))));
    if let (Some(result), Manner::Answered) = (&function.result, function.manner) {
        params.push(format!("{} *result", ty(result)));
    }
    params
}

/// How much room a server's loop has to have.
fn sizes(model: &Model, interface: &Interface, out: &mut Text) {
    let (mut input, mut room, mut output) = (0, 0, 0);
    for function in &interface.functions {
        if let Form::String(bytes) = layout::request(model, function).1 {
            input = input.max(bytes);
        }
        let form = layout::answer(model, function).1;
        if let Form::String(bytes) = form {
            output = output.max(bytes);
        }
        if let (true, Form::String(bytes) | Form::Inline(bytes)) =
            (borrows(model, function.result.as_ref()), form)
        {
            room = room.max(bytes);
        }
    }
    out.blank();
    out.line("/* Bytes of the longest string of a request, that results refer to, of an answer's string. */");
    for (what, bytes) in [("INPUT", input), ("ROOM", room), ("OUTPUT", output)] {
        out.line(&format!("#define {}_{what} {bytes}", shout(&interface.name)));
    }
}

/// What makes a function's answer. Of one that is answered later, the server calls it.
fn answer(model: &Model, interface: &Interface, function: &Function, out: &mut Text) {
    let (flat, form) = layout::answer(model, function);
    let (name, function_name) = (snake(&interface.name), snake(&function.name));
    let mut params = "service_call_t *call".to_owned();
    if let Some(result) = &function.result {
        params = format!("{params}, {} result", ty(result));
    }
    let lines = if function.manner == Manner::Later { "_" } else { "__" };
    if function.manner == Manner::Later {
        out.line(&format!(
            "/* Makes the answer of a `{}` that was kept; whoever asked gets it by service_reply. */",
            function.name
        ));
    }
    out.line(&format!(
        "static inline service_outcome_t {name}{lines}answer_{function_name}({params})"
    ));
    out.block("{", |out| {
        let buffer = ["call->output", "call->output_bytes"];
        let begin = begin("call->answer", "SERVICE_LABEL_OK", flat, form, buffer);
        out.line(&format!("service_out_t out = {begin};"));
        if let Some(result) = &function.result {
            out.line(&put(result, "result", "&out"));
        }
        out.block("if (out.failed) {", |out| {
            out.line("return service_refuse(call, SERVICE_LABEL_TOO_LONG);");
        });
        match form {
            Form::Words => {}
            Form::Inline(_) => out.line("service_end_inline(&call->answer, &out);"),
            Form::String(_) => out.line("service_end_string(&call->answer, &out, call->output);"),
        }
        out.line("return SERVICE_ANSWERED;");
    });
}

/// Reads and checks the arguments of one function, and calls what the server has for it.
fn serve(model: &Model, interface: &Interface, function: &Function, out: &mut Text) {
    let (flat, form) = layout::request(model, function);
    let (name, function_name) = (snake(&interface.name), snake(&function.name));
    let read = match form {
        Form::Words => format!("service_read_words(&call->request, {flat})"),
        Form::Inline(bytes) => format!("service_read_inline(&call->request, {flat}, {bytes})"),
        Form::String(_) => {
            format!("service_read_string(&call->request, {flat}, call->input, call->input_bytes)")
        }
    };
    let params = format!("const {name}_server_t *server, void *self, service_call_t *call");
    out.line(&format!("static inline service_outcome_t {name}__serve_{function_name}({params})"));
    out.block("{", |out| {
        out.line(&format!("service_in_t in = {read};"));
        for param in &function.params {
            out.line(&format!("{} {};", ty(&param.ty), value(&param.name)));
        }
        let result = function.result.as_ref().filter(|_| function.manner == Manner::Answered);
        if let Some(result) = result {
            out.line(&format!("{} result;", ty(result)));
        }
        let refuse = |out: &mut Text| {
            out.line("return service_refuse(call, SERVICE_LABEL_MALFORMED);");
        };
        out.block("if (in.failed) {", refuse);
        for param in &function.params {
            out.line(&format!("{} = {};", value(&param.name), get(&param.ty, "&in")));
        }
        for param in &function.params {
            let checks = bounds(&param.ty, &value(&param.name), "&in.failed", 0);
            checks.iter().for_each(|check| out.line(check));
        }
        let left = if matches!(form, Form::Inline(_)) { 7 } else { 0 };
        out.block(&format!("if (!service_is_read(&in, {left})) {{"), refuse);
        let mut given = vec!["self".to_owned(), "call".to_owned()];
        given.extend(function.params.iter().map(|param| value(&param.name)));
        if result.is_some() {
            out.line("memset(&result, 0, sizeof result);");
            given.push("&result".to_owned());
        }
        out.line(&format!("server->{}({});", value(&function.name), given.join(", ")));
        let given = if result.is_some() { ", result" } else { "" };
        out.line(&match function.manner {
            Manner::Answered => format!("return {name}__answer_{function_name}(call{given});"),
            Manner::Later | Manner::OneWay => "return SERVICE_KEPT;".to_owned(),
        });
    });
}

fn dispatch(interface: &Interface, out: &mut Text) {
    let name = snake(&interface.name);
    out.line("/* Answers call->request by calling the server; the answer is in call->answer. */");
    let params = format!("const {name}_server_t *server, void *self, service_call_t *call");
    out.line(&format!("static inline service_outcome_t {name}_dispatch({params})"));
    out.block("{", |out| {
        out.line("call->room_used = 0;");
        out.block("switch (call->request.tag >> 16) {", |out| {
            for function in &interface.functions {
                let label = format!("{}_LABEL_{}", shout(&interface.name), shout(&function.name));
                let serve = format!("{name}__serve_{}", snake(&function.name));
                out.line(&format!("case {label}:"));
                out.indented(|out| out.line(&format!("return {serve}(server, self, call);")));
            }
            out.line("case SERVICE_LABEL_BIND:");
            out.indented(|out| {
                out.line(&format!("return service_describe(&{name}_interface, call);"));
            });
            out.line("default:");
            out.indented(|out| out.line("return service_refuse(call, SERVICE_LABEL_UNKNOWN);"));
        });
    });
}
