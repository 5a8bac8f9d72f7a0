//! The client's side: a function for each function.

use crate::layout::{self, Form};
use crate::model::{Function, Interface, Manner, Model, Ty};
use crate::text::Text;

use super::codec::{bounds, get, put};
use super::names::{borrows, shout, snake, ty, value};

/// What calls one function of a server.
pub fn function(model: &Model, interface: &Interface, function: &Function, out: &mut Text) {
    out.remark(function.docs.as_deref(), || format!("The function `{}`.", function.name));
    let mut params = vec!["const service_client_t *server".to_owned()];
    params.extend(function.params.iter().map(|p| format!("{} {}", ty(&p.ty), value(&p.name))));
    if let Some(result) = &function.result {
        params.push(format!("{} *result", ty(result)));
    }
    if borrows(model, function.result.as_ref()) {
        params.push("void *room".to_owned());
        params.push("size_t room_bytes".to_owned());
    }
    let name = format!("{}_{}", snake(&interface.name), snake(&function.name));
    out.line(&format!("static inline service_error_t {name}({})", params.join(", ")));
    out.block("{", |out| {
        let label = format!("{}_LABEL_{}", shout(&interface.name), shout(&function.name));
        request(model, function, &label, out);
        if function.manner == Manner::OneWay {
            out.line("return server->send(server, &message, limits);");
        } else {
            answer(model, function, out);
        }
    });
}

/// Says where a body goes: nowhere, behind the words, into `buffer`.
pub fn begin(message: &str, label: &str, flat: usize, form: Form, buffer: [&str; 2]) -> String {
    let (body, bound) = match form {
        Form::Words => ("NULL".to_owned(), "0".to_owned()),
        Form::Inline(bytes) => (format!("{message}.words + {flat}"), bytes.to_string()),
        Form::String(_) => (buffer[0].to_owned(), buffer[1].to_owned()),
    };
    format!("service_begin(&{message}, {label}, {flat}, {body}, {bound})")
}

fn request(model: &Model, function: &Function, label: &str, out: &mut Text) {
    let (flat, form) = layout::request(model, function);
    let limit = |us: Option<u64>| us.map_or("SERVICE_NEVER".to_owned(), |us| us.to_string());
    let [send, answer] = function.timeouts_us.map(limit);
    out.line(&format!("const service_limits_t limits = {{ {send}, {answer} }};"));
    out.line("service_message_t message;");
    let direct = matches!(form, Form::String(_)).then(|| direct(function)).flatten();
    if let (Form::String(bytes), None) = (form, &direct) {
        out.line(&format!("uint8_t body[{bytes}];"));
    }
    let buffer = if direct.is_some() { ["NULL", "0"] } else { ["body", "sizeof body"] };
    out.line(&format!("service_out_t out = {};", begin("message", label, flat, form, buffer)));
    for param in &function.params {
        let checks = bounds(&param.ty, &value(&param.name), "&out.failed", 0);
        checks.iter().for_each(|check| out.line(check));
    }
    for param in &function.params {
        let name = value(&param.name);
        match &direct {
            Some(text) if *text == name => {
                out.line(&format!("service_put_word(&out, {name}.len);"));
            }
            _ => out.line(&put(&param.ty, &name, "&out")),
        }
    }
    out.block("if (out.failed) {", |out| out.line("return SERVICE_TOO_LONG;"));
    match (form, direct) {
        (Form::Words, _) => {}
        (Form::Inline(_), _) => out.line("service_end_inline(&message, &out);"),
        (Form::String(_), None) => out.line("service_end_string(&message, &out, body);"),
        (Form::String(_), Some(text)) => {
            out.line(&format!(
                "message.string = {text}.at != NULL ? (const void *){text}.at : \"\";"
            ));
            out.line(&format!("message.string_bytes = {text}.len;"));
        }
    }
}

/// The parameter that is the body of a request as it is: the only one that has any.
fn direct(function: &Function) -> Option<String> {
    let mut long = function.params.iter().filter(|param| !matches!(param.ty, Ty::Plain(_)));
    let (first, second) = (long.next()?, long.next());
    let is_text = matches!(first.ty, Ty::Text(_) | Ty::Bytes(_));
    (is_text && second.is_none()).then(|| value(&first.name))
}

fn answer(model: &Model, function: &Function, out: &mut Text) {
    let (flat, form) = layout::answer(model, function);
    let room = match form {
        Form::String(_) => "room, room_bytes",
        _ => "NULL, 0",
    };
    out.line(&format!("service_error_t error = server->call(server, &message, {room}, limits);"));
    out.line("service_in_t in;");
    out.block("if (error == SERVICE_OK) {", |out| out.line("error = service_answered(&message);"));
    if let Form::Inline(_) = form {
        out.block("if (error == SERVICE_OK) {", |out| {
            out.line(&format!(
                "error = service_keep_inline(&message, {flat}, room, room_bytes, &in);"
            ));
        });
    }
    out.block("if (error != SERVICE_OK) {", |out| out.line("return error;"));
    match form {
        Form::Words => out.line(&format!("in = service_read_words(&message, {flat});")),
        Form::Inline(_) => {}
        Form::String(_) => {
            out.line(&format!("in = service_read_string(&message, {flat}, room, room_bytes);"));
        }
    }
    out.block("if (in.failed) {", |out| out.line("return SERVICE_BAD_ANSWER;"));
    if let Some(result) = &function.result {
        out.line(&format!("*result = {};", get(result, "&in")));
        let checks = bounds(result, "(*result)", "&in.failed", 0);
        checks.iter().for_each(|check| out.line(check));
    }
    let left = if matches!(form, Form::Inline(_)) { 7 } else { 0 };
    out.line(&format!("return service_is_read(&in, {left}) ? SERVICE_OK : SERVICE_BAD_ANSWER;"));
}
