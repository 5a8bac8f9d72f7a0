//! The server's side: the trait, and what calls it.

use crate::layout::Form;
use crate::model::{Function, Interface, Manner, Model, Ty};

use super::names::{camel, function as function_name, shout, snake, value};
use super::quick::{quick, quick_bytes};
use super::types::{bounds, tuple, ty};
use super::{Shape, is_answered};
use crate::text::Text;

/// Everything that a server needs.
pub fn all(model: &Model, interface: &Interface, out: &mut Text) {
    sizes(model, interface, out);
    out.blank();
    functions(model, interface, out);
    for function in interface.functions.iter().filter(|f| f.manner == Manner::Later) {
        out.blank();
        token(model, interface, function, out);
    }
    out.blank();
    out.line("/// Answers requests by calling a server.");
    out.line("#[derive(Debug)]");
    out.line("pub struct Serve<'s, S>(pub &'s S);");
    out.blank();
    out.block("impl<S: Server> Dispatch for Serve<'_, S> {", |out| {
        constants(interface, out);
        quick(model, interface, out);
        quick_bytes(model, interface, out);
        out.line("#[inline(always)]");
        out.line("#[allow(unused_variables)]");
        out.line("fn dispatch<M: Message>(");
        out.line("    &self,");
        out.line("    caller: Caller,");
        out.line("    request: &M,");
        out.line("    input: &[u8],");
        out.line("    room: &mut [u8],");
        out.line("    output: &mut [u8],");
        out.block(") -> Answer<M> {", |out| {
            out.block("match request.tag().label() {", |out| {
                for function in &interface.functions {
                    arm(model, function, out);
                }
                out.line("service::BIND => service::describe(&INTERFACE, request),");
                out.line("_ => Answer::Unknown,");
            });
        });
    });
    out.blank();
    inside(out);
    for function in &interface.functions {
        out.blank();
        arguments(model, interface, function, out);
    }
}

/// What some of its answers do.
fn constants(interface: &Interface, out: &mut Text) {
    let any = |of: fn(&Function) -> bool| interface.functions.iter().any(of);
    for (name, is) in [("LATER", any(|it| it.manner == Manner::Later)), ("MAPS", any(|it| it.maps))]
    {
        if is {
            out.line(&format!("const {name}: bool = true;"));
            out.blank();
        }
    }
}

/// The trait.
fn functions(model: &Model, interface: &Interface, out: &mut Text) {
    out.line("/// What a server of this interface does. It may be called by anybody who can send it a message.");
    out.block("pub trait Server {", |out| {
        for function in &interface.functions {
            let docs = function.docs.as_deref();
            out.docs(docs, || format!("The function `{}`.", function.name));
            out.line(&format!("{};", signature(model, interface, function)));
        }
    });
    out.blank();
    out.line("/// A server of the client's own task.");
    out.line("pub type Own = dyn Server + Sync;");
}

/// How clients of the server's own task come to it.
fn inside(out: &mut Text) {
    out.block("impl<S: Server + Sync + 'static> service::Inside for Serve<'static, S> {", |out| {
        out.block("fn give(&'static self, place: &mut dyn core::any::Any) {", |out| {
            out.block(
                "if let Some(place) = place.downcast_mut::<Option<&'static Own>>() {",
                |out| {
                    out.line("*place = Some(self.0);");
                },
            );
        });
    });
}

/// How much room a server's loop has to have.
fn sizes(model: &Model, interface: &Interface, out: &mut Text) {
    let (mut input, mut room, mut output) = (0, 0, 0);
    for shape in interface.functions.iter().map(|function| Shape::of(model, function)) {
        if let Form::String(bytes) = shape.request {
            input = input.max(bytes);
        }
        if let Form::String(bytes) = shape.answer {
            output = output.max(bytes);
        }
        if let (true, Form::String(bytes) | Form::Inline(bytes)) = (shape.borrows, shape.answer) {
            room = room.max(bytes);
        }
    }
    for (name, bytes, what) in [
        ("INPUT", input, "Bytes of the longest string of a request."),
        ("ROOM", room, "Bytes that a result may refer to."),
        ("OUTPUT", output, "Bytes of the longest string of an answer."),
    ] {
        out.line(&format!("/// {what}"));
        out.line("#[allow(dead_code)]");
        out.line(&format!("pub const {name}: usize = {bytes};"));
    }
}

/// `fn name(&self, ...) -> ...`.
fn signature(model: &Model, interface: &Interface, function: &Function) -> String {
    let borrows = Shape::of(model, function).borrows && is_answered(function);
    let (generics, this) = if borrows { ("<'r>", "&'r self") } else { ("", "&self") };
    let mut params = vec![this.to_owned(), "caller: Caller".to_owned()];
    for param in &function.params {
        params.push(format!(
            "{}: {}",
            value(&param.name),
            ty(model, &interface.name, &param.ty, "")
        ));
    }
    if borrows {
        params.push("room: Room<'r>".to_owned());
    }
    if function.manner == Manner::Later {
        params.push(format!("later: {}Reply", camel(&function.name)));
    }
    if function.maps {
        params.push("mappings: &mut service::Mappings".to_owned());
    }
    let life = if borrows { "'r" } else { "" };
    let result = match &function.result {
        Some(result) if is_answered(function) => {
            format!(" -> {}", ty(model, &interface.name, result, life))
        }
        _ => String::new(),
    };
    format!("fn {}{generics}({}){result}", function_name(&function.name), params.join(", "))
}

/// The right to answer one request, once.
fn token(model: &Model, interface: &Interface, function: &Function, out: &mut Text) {
    let name = format!("{}Reply", camel(&function.name));
    out.line(&format!("/// The right to answer one `{}`, once.", function.name));
    out.line("#[must_use = \"a caller that gets no answer waits\"]");
    out.line("#[derive(PartialEq, Eq, Debug)]");
    out.line(&format!("pub struct {name}(Caller);"));
    out.blank();
    out.block(&format!("impl {name} {{"), |out| {
        out.line("/// Who waits for it.");
        out.line("#[must_use]");
        out.block("pub const fn caller(&self) -> Caller {", |out| out.line("self.0"));
        out.blank();
        let (borrows, of) = function.result.as_ref().map_or((false, "()".to_owned()), |result| {
            (result.borrows(model), ty(model, &interface.name, result, ""))
        });
        out.line("/// Makes the answer. What sends it is the server's loop or `runtime::service::answer`;");
        out.line("/// a string of it lies in `output`.");
        out.line("#[allow(unused_variables)]");
        let line = format!(
            "pub fn answer<M: Message>(self, result: {of}, output: &mut [u8]) -> (Caller, Answer<M>) {{"
        );
        let _ = borrows;
        out.block(&line, |out| {
            let form = Shape::of(model, function).answer;
            let answer = answer(function, form, "result", "M::new(service::label::OK)");
            out.line(&format!("(self.0, {answer})"));
        });
    });
}

/// What makes an answer of this form of `result`, behind the empty message `to`.
pub fn answer(function: &Function, form: Form, result: &str, to: &str) -> String {
    match (form, &function.result) {
        (Form::Words, _) => format!("service::answer_words(&{result}, {to})"),
        (Form::Inline(bytes), Some(Ty::Bytes(_))) => {
            format!("service::answer_bytes({result}, {bytes}, {to})")
        }
        (Form::Inline(bytes), Some(Ty::Text(_))) => {
            format!("service::answer_bytes({result}.as_bytes(), {bytes}, {to})")
        }
        (Form::Inline(bytes), _) => {
            format!("service::answer_inline(&{result}, &mut [0; {bytes}], {to})")
        }
        (Form::String(_), _) => format!("service::answer_string(&{result}, output, {to})"),
    }
}

/// The arm of one function.
fn arm(model: &Model, function: &Function, out: &mut Text) {
    let shape = Shape::of(model, function);
    let name = snake(&function.name);
    let source = match shape.request {
        Form::Words => "request",
        Form::Inline(_) => "request, &mut body",
        Form::String(_) => "request, input",
    };
    let params = || function.params.iter().map(|param| value(&param.name));
    out.block(&format!("label::{} => {{", shout(&function.name)), |out| {
        if let Form::Inline(bytes) = shape.request {
            out.line(&format!("let mut body = service::Scratch::<{bytes}>::new();"));
        }
        let pattern = tuple(params());
        out.block(&format!("let Ok({pattern}) = {name}_arguments({source}) else {{"), |out| {
            out.line("return Answer::malformed();");
        });
        out.replace_last("}", "};");
        let mut given = vec!["caller".to_owned()];
        given.extend(params());
        if is_answered(function) && shape.borrows {
            given.push("Room::new(room)".to_owned());
        }
        if function.manner == Manner::Later {
            given.push(format!("{}Reply(caller)", camel(&function.name)));
        }
        if function.maps {
            given.push("&mut mappings".to_owned());
            out.line("let mut mappings = service::Mappings::new();");
        }
        let call = format!("self.0.{}({})", function_name(&function.name), given.join(", "));
        if function.maps {
            let to = "request.emptied(service::label::OK)";
            out.line(&format!("let result = {call};"));
            out.line(&format!("service::answer_mapped(&result, {to}, &mappings)"));
        } else if is_answered(function) {
            let to = "request.emptied(service::label::OK)";
            out.line(&answer(function, shape.answer, &call, to));
        } else {
            out.line(&format!("{call};"));
            out.line("Answer::Nothing");
        }
    });
}

/// What reads and checks the arguments of one function.
fn arguments(model: &Model, interface: &Interface, function: &Function, out: &mut Text) {
    let name = snake(&function.name);
    let types = |life: &str| {
        tuple(function.params.iter().map(|param| ty(model, &interface.name, &param.ty, life)))
    };
    let (generics, request, source, read, life) = match Shape::of(model, function).request {
        Form::Words => ("", "&", String::new(), "read_words(request)", "'static"),
        Form::Inline(bytes) => {
            let scratch = format!(", body: &'a mut service::Scratch<{bytes}>");
            ("<'a>", "&'a ", scratch, "read_inline(request, body)", "'a")
        }
        Form::String(_) => {
            ("<'a>", "&", ", input: &'a [u8]".to_owned(), "read_string(request, input)", "'a")
        }
    };
    out.line("#[inline(always)]");
    out.line(&format!("fn {name}_arguments{generics}("));
    out.line(&format!("    request: {request}impl Message{source},"));
    let checks: Vec<String> = function
        .params
        .iter()
        .flat_map(|param| bounds(&param.ty, &value(&param.name), 0))
        .collect();
    out.block(&format!(") -> Result<{}, Malformed> {{", types(life)), |out| {
        if checks.is_empty() {
            out.line(&format!("service::{read}"));
            return;
        }
        let pattern = tuple(function.params.iter().map(|param| value(&param.name)));
        out.line(&format!("let {pattern}: {} = service::{read}?;", types(life)));
        for check in &checks {
            out.line(check);
        }
        out.line(&format!("Ok({pattern})"));
    });
}
