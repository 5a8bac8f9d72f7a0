//! The client's side: a method for each function.

use crate::layout::{self, Form, IN_REGISTERS};
use crate::model::{Function, Interface, Manner, Model, Ty};

use super::names::{function as function_name, shout, value};
use super::types::{bounds, tuple, ty};
use super::{Shape, is_answered};
use crate::text::Text;

/// Everything that a client needs.
pub fn all(model: &Model, interface: &Interface, out: &mut Text) {
    out.line("/// A server, as its clients see it, reached by `C`.");
    out.line("#[derive(Clone, Copy, Debug)]");
    // A client that has no use for it has no place for where its server is.
    let keeps = interface.functions.iter().any(|function| is_direct(model, function));
    let (place, none) =
        if keeps { (", service::Near<Own>", ", service::Near::none()") } else { ("", "") };
    out.line(&format!("pub struct Client<C>(C{place});"));
    out.blank();
    out.block("impl<C: Carrier> Client<C> {", |out| {
        out.line("/// The server behind `carrier`, unasked: a function that it does not have says so when called.");
        out.block("pub const fn new(carrier: C) -> Self {", |out| out.line(&format!("Self(carrier{none})")));
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
            if keeps {
                out.line("let own = service::Near::find(&carrier);");
            }
            out.line(if keeps { "Ok(Self(carrier, own))" } else { "Ok(Self(carrier))" });
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
    let rest = format!("{generics}({}) -> Result<{result}, Error> {{", params.join(", "));
    ways(model, interface, function, (&shape, &rest, &result), out);
}

/// The method with this head behind its name: the server's function, if that is of the own task, or a message.
fn ways(
    model: &Model,
    interface: &Interface,
    function: &Function,
    (shape, head, result): (&Shape, &str, &str),
    out: &mut Text,
) {
    let name = function_name(&function.name);
    let by_message = |out: &mut Text| {
        body(model, function, shape, out);
        if function.manner != Manner::OneWay {
            the_result(function, shape, result, out);
        }
    };
    let is_direct = is_direct(model, function);
    let is_short = is_direct && is_short(model, function);
    out.line(if is_direct { "#[inline(always)]" } else { "#[inline]" });
    out.block(&format!("pub fn {name}{head}"), |out| {
        checks(function, out);
        if is_direct {
            inside(model, interface, function, shape, out);
        }
        if !is_direct || is_short {
            return by_message(out);
        }
        let mut given: Vec<String> =
            function.params.iter().map(|param| value(&param.name)).collect();
        given.extend(shape.borrows.then(|| "room".to_owned()));
        out.line(&format!("self.{name}_by_message({})", given.join(", ")));
    });
    if is_direct && !is_short {
        out.blank();
        out.line("#[inline]");
        out.block(&format!("fn {name}_by_message{head}"), by_message);
    }
}

/// Whether messages of the function are words for which there are registers.
fn is_short(model: &Model, function: &Function) -> bool {
    let (request, answer) = (layout::request(model, function), layout::answer(model, function));
    (request.1, answer.1) == (Form::Words, Form::Words) && request.0.max(answer.0) <= IN_REGISTERS
}

/// Looks at the lengths of the arguments.
fn checks(function: &Function, out: &mut Text) {
    for param in &function.params {
        for check in bounds(&param.ty, &value(&param.name), 0) {
            out.line(&too_long(&check));
        }
    }
}

/// Whether the function can be called without a message: its answer comes at once, and what is looked at when a message is
/// read would be looked at here, too.
fn is_direct(model: &Model, function: &Function) -> bool {
    let is_known = |ty: &Ty| !has_named_contents(model, ty);
    is_answered(function)
        && !function.maps
        && function.timeouts_us == [None; 2]
        && function.params.iter().all(|param| is_known(&param.ty))
        && function.result.as_ref().is_none_or(is_known)
}

/// Whether there is a named type in it that has texts or lists: reading it checks their lengths.
fn has_named_contents(model: &Model, ty: &Ty) -> bool {
    let inside = |ty: &Ty| has_named_contents(model, ty);
    match ty {
        Ty::Plain(_) | Ty::Text(_) | Ty::Bytes(_) => false,
        Ty::List(ty, _) | Ty::Option(ty) => inside(ty),
        Ty::Result(ok, err) => [ok, err].into_iter().flatten().any(|ty| inside(ty)),
        Ty::Tuple(parts) => parts.iter().any(inside),
        Ty::Named(name) => model.kind(name).borrows(model),
    }
}

/// The call of a server of the own task.
fn inside(
    model: &Model,
    interface: &Interface,
    function: &Function,
    shape: &Shape,
    out: &mut Text,
) {
    // A server's room has this size: with less its result could come out otherwise than by a message.
    let room = if shape.borrows { "room.len() >= ROOM && " } else { "" };
    let head = format!("if {room}let Some((server, caller)) = self.1.inside(&self.0) {{");
    out.block(&head, |out| {
        let mut given = vec!["caller".to_owned()];
        given.extend(function.params.iter().map(|param| value(&param.name)));
        if shape.borrows {
            given.push("Room::new(room)".to_owned());
        }
        let call = format!("server.{}({})", function_name(&function.name), given.join(", "));
        let checks = function.result.as_ref().map_or(Vec::new(), |of| bounds(of, "result", 0));
        if function.result.is_none() {
            out.line(&format!("{call};"));
            out.line("return Ok(());");
            return;
        }
        if checks.is_empty() {
            out.line(&format!("return Ok({call});"));
            return;
        }
        let life = if shape.borrows { "'r" } else { "" };
        let of = function
            .result
            .as_ref()
            .map_or(String::new(), |of| ty(model, &interface.name, of, life));
        out.line(&format!("let result: {of} = {call};"));
        checks.iter().for_each(|check| out.line(&too_long(check)));
        out.line("return Ok(result);");
    });
}

/// The check whose failure is the client's fault, or that of a server which it trusts.
fn too_long(check: &str) -> String {
    check.replace(")?;", ").map_err(|_| Error::TooLong)?;")
}

fn body(model: &Model, function: &Function, shape: &Shape, out: &mut Text) {
    request(function, shape, out);
    let [send_us, answer_us] = function.timeouts_us.map(|us| format!("{us:?}"));
    let timeouts = format!("const {{ service::timeouts({send_us}, {answer_us}) }}");
    let sent = if matches!(shape.request, Form::String(_)) { "Some(body)" } else { "None" };
    if function.manner == Manner::OneWay {
        out.line(&format!("self.0.send(request, {sent}, {timeouts})"));
        return;
    }
    let flat = layout::answer(model, function).0;
    let most = flat.max(layout::request(model, function).0);
    let call = match (shape.request, shape.answer) {
        (Form::Words, Form::Words) if most <= 1 && !function.maps => {
            format!("self.0.exchange_one(request, {timeouts})")
        }
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
        (Form::Words, _) if function.maps => "service::result_mapped(&self.0, &answer)",
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
