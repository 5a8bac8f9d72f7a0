//! The client's side: a method for each function.

use crate::layout::{self, Form};
use crate::model::{Function, Interface, Manner, Model, Ty};

use super::Shape;
use super::names::{function as function_name, shout, value};
use super::types::{bounds, tuple, ty};
use crate::text::Text;

/// Everything that a client needs.
pub fn all(model: &Model, interface: &Interface, out: &mut Text) {
    out.line("/// A server, as its clients see it, reached by `C`.");
    out.line("#[derive(Clone, Copy, Debug)]");
    out.line("pub struct Client<C>(C);");
    out.blank();
    out.block("impl<C: Carrier> Client<C> {", |out| {
        out.line("/// The server behind `carrier`, unasked: a function that it does not have says so when called.");
        out.block("pub const fn new(carrier: C) -> Self {", |out| out.line("Self(carrier)"));
        out.blank();
        out.line("/// The server behind `carrier`, if it has every function of the interface.");
        out.line("///");
        out.line("/// # Errors");
        out.line("/// A sentence that names both sides when it has not.");
        out.block("pub fn bind(carrier: C) -> Result<Self, BindError> {", |out| {
            out.line("Self::bind_for(carrier, &label::ALL)");
        });
        out.blank();
        out.line("/// The server behind `carrier`, if it has those functions that are going to be used.");
        out.line("///");
        out.line("/// # Errors");
        out.line("/// As [`Client::bind`].");
        out.block("pub fn bind_for(carrier: C, uses: &[u64]) -> Result<Self, BindError> {", |out| {
            out.line("service::check(&carrier, &INTERFACE, uses, service::timeouts(None, None))?;");
            out.line("Ok(Self(carrier))");
        });
        for function in &interface.functions {
            out.blank();
            method(model, interface, function, out);
        }
    });
}

fn method(model: &Model, interface: &Interface, function: &Function, out: &mut Text) {
    let shape = Shape::of(model, function);
    out.docs(function.docs.as_deref(), || format!("The function `{}`.", function.name));
    out.line("///");
    out.line("/// # Errors");
    out.line("/// When there is no result: the server was not reached, or does not understand.");
    out.line("#[inline]");
    let (generics, life) = if shape.borrows { ("<'r>", "'r") } else { ("", "") };
    let mut params = vec!["&self".to_owned()];
    for param in &function.params {
        params.push(format!(
            "{}: {}",
            value(&param.name),
            ty(model, &interface.name, &param.ty, "")
        ));
    }
    if shape.borrows {
        params.push("room: &'r mut [u8]".to_owned());
    }
    let result = function.result.as_ref();
    let result = result.map_or("()".to_owned(), |of| ty(model, &interface.name, of, life));
    let head = format!(
        "pub fn {}{generics}({}) -> Result<{result}, Error> {{",
        function_name(&function.name),
        params.join(", ")
    );
    out.block(&head, |out| {
        body(model, function, &shape, out);
        if function.manner != Manner::OneWay {
            the_result(function, &shape, &result, out);
        }
    });
}

fn body(model: &Model, function: &Function, shape: &Shape, out: &mut Text) {
    for param in &function.params {
        for check in bounds(&param.ty, &value(&param.name), 0) {
            out.line(&check.replace(")?;", ").map_err(|_| Error::TooLong)?;"));
        }
    }
    request(function, shape, out);
    let [send_us, answer_us] = function.timeouts_us.map(|us| format!("{us:?}"));
    let timeouts = format!("const {{ service::timeouts({send_us}, {answer_us}) }}");
    let sent = if matches!(shape.request, Form::String(_)) { "Some(body)" } else { "None" };
    if function.manner == Manner::OneWay {
        out.line(&format!("self.0.send(request, {sent}, {timeouts})"));
        return;
    }
    let flat = layout::answer(model, function).0;
    let call = match (shape.request, shape.answer) {
        (Form::Words, Form::Words) if flat <= SHORT => {
            format!("self.0.exchange(request, {timeouts})")
        }
        (Form::Words, Form::Words) => format!("self.0.exchange_long(request, {timeouts})"),
        (Form::String(_), Form::Words | Form::Inline(_)) => {
            format!("self.0.call_with(request, {sent}, &mut [], {timeouts})?")
        }
        (_, Form::String(_)) => format!("self.0.call_with(request, {sent}, room, {timeouts})?"),
        (form, answer) => {
            let body = if form == Form::Words { "&[]" } else { "body" };
            let room = if answer == Form::Words { "&mut []" } else { "room" };
            format!("self.0.exchange_with(request, {body}, ({flat}, {room}), {timeouts})")
        }
    };
    out.line(&format!("let answer = {call};"));
}

/// The words of an answer that `service::SHORT` says.
const SHORT: usize = 7;

/// The request's words, and its body, if that is not among them.
fn request(function: &Function, shape: &Shape, out: &mut Text) {
    let label = format!("label::{}", shout(&function.name));
    let values = tuple(function.params.iter().map(|param| value(&param.name)));
    // A string goes beside the words; else the carrier puts the body behind them, if it gets one.
    let in_words = function.manner == Manner::OneWay || matches!(shape.answer, Form::String(_));
    match (shape.request, direct(function)) {
        (Form::Inline(bytes), _) if in_words => out.line(&format!(
            "let request = service::request_inline({label}, &{values}, &mut [0; {bytes}])?;"
        )),
        (Form::Words, _) => {
            out.line(&format!("let request = service::request_words({label}, &{values});"));
        }
        (_, Some(bytes)) => {
            out.line(&format!("let request = service::request_words({label}, &{values});"));
            out.line(&format!("let body = {bytes};"));
        }
        (Form::String(bytes) | Form::Inline(bytes), None) => {
            out.line(&format!("let mut body = [0; {bytes}];"));
            out.line(&format!(
                "let (request, body) = service::request_string({label}, &{values}, &mut body)?;"
            ));
        }
    }
}

/// Reads the result, and checks its lengths: a server may lie.
fn the_result(function: &Function, shape: &Shape, ty: &str, out: &mut Text) {
    let read = match (shape.answer, shape.request) {
        (Form::Words, _) => "service::result_words(&self.0, &answer)",
        (Form::Inline(_), Form::String(_)) => "service::result_inline(&answer, room)",
        (Form::Inline(_), _) => "service::result_behind(&self.0, &answer, room)",
        (Form::String(_), _) => "service::result_string(&answer, room)",
    };
    let checks = function.result.as_ref().map_or(Vec::new(), |of| bounds(of, "result", 0));
    if checks.is_empty() {
        out.line(read);
        return;
    }
    out.line(&format!("let result: {ty} = {read}?;"));
    checks.iter().for_each(|check| out.line(check));
    out.line("Ok(result)");
}

/// The body of a request that is one text or one run of bytes: it goes from where it is.
fn direct(function: &Function) -> Option<String> {
    let mut long = function.params.iter().filter(|param| !matches!(param.ty, Ty::Plain(_)));
    let (first, second) = (long.next()?, long.next());
    match (&first.ty, second) {
        (Ty::Text(_), None) => Some(format!("{}.as_bytes()", value(&first.name))),
        (Ty::Bytes(_), None) => Some(value(&first.name)),
        _ => None,
    }
}
