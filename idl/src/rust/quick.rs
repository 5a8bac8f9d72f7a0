//! The functions whose messages stay where they are: in registers, and what is longer in the words behind them.

use super::names::{function as function_name, shout, snake, value};
use super::server::answer;
use super::types::{tuple, ty};
use super::{Shape, is_answered};
use crate::layout::{self, Form, IN_REGISTERS};
use crate::model::{Function, Interface, Model, Ty};
use crate::text::Text;

/// The functions that need no memory, if there are any.
pub fn quick(model: &Model, interface: &Interface, out: &mut Text) {
    let is_quick = |function: &&Function| {
        let shape = Shape::of(model, function);
        is_answered(function)
            && !function.maps
            && (shape.request, shape.answer) == (Form::Words, Form::Words)
    };
    let functions: Vec<&Function> = interface.functions.iter().filter(is_quick).collect();
    if functions.is_empty() {
        return;
    }
    out.line("#[inline(always)]");
    out.line("fn quick<M: Message, N: Next<M>>(");
    out.line("    &self,");
    out.line("    caller: Caller,");
    out.line("    request: M,");
    out.line("    next: &N,");
    out.block(") -> Result<N::Request, M> {", |out| {
        out.line("let tag = request.tag().0 & !N::FLAGS;");
        out.block("match tag {", |out| {
            for (index, function) in functions.into_iter().enumerate() {
                quick_arm(model, interface, (function, index == 0), out);
            }
            out.line("_ => Err(request),");
        });
    });
    out.blank();
}

/// The arm of one of them; what an interface names first is asked for first.
fn quick_arm(
    model: &Model,
    interface: &Interface,
    (function, is_first): (&Function, bool),
    out: &mut Text,
) {
    let params: Vec<String> = function.params.iter().map(|p| value(&p.name)).collect();
    let words = layout::request(model, function).0;
    let tag = layout::label(model, interface, function) << 16 | words as u64;
    out.line(&format!("// `{}`, {words} words.", function.name));
    let most = words.max(layout::answer(model, function).0);
    let guard = match most > IN_REGISTERS {
        true => format!(" if N::WORDS >= {most}"),
        false => String::new(),
    };
    let arm = match is_first && guard.is_empty() {
        true => format!("_ if service::likely(tag == {tag:#x}) => {{"),
        false => format!("{tag:#x}{guard} => {{"),
    };
    out.block(&arm, |out| {
        let pattern = tuple(params.iter().cloned());
        let types = function.params.iter().map(|p| ty(model, &interface.name, &p.ty, "'static"));
        let types = tuple(types);
        out.block(
            &format!(
                "let Ok::<{types}, _>({pattern}) = service::quick_arguments(&request) else {{"
            ),
            |out| {
                out.line("return Err(request);");
            },
        );
        out.replace_last("}", "};");
        let given = ["caller".to_owned()].into_iter().chain(params).collect::<Vec<_>>();
        let call = format!("self.0.{}({})", function_name(&function.name), given.join(", "));
        out.line(&format!("Ok(next.request(service::quick_words(request, &{call})))"));
    });
}

/// The functions whose messages are words because what is long in them is bytes that fit there.
pub fn quick_bytes(model: &Model, interface: &Interface, out: &mut Text) {
    let functions: Vec<&Function> =
        interface.functions.iter().filter(|function| has_bytes_in_words(model, function)).collect();
    if functions.is_empty() {
        return;
    }
    out.line("#[inline(always)]");
    out.line("#[allow(unused_variables)]");
    out.line("fn quick_bytes<M: Message, N: Next<M>>(");
    out.line("    &self,");
    out.line("    caller: Caller,");
    out.line("    request: M,");
    out.line("    room: &mut [u8],");
    out.line("    next: &N,");
    out.block(") -> Result<N::Request, M> {", |out| {
        out.block("match (request.tag().0 & !N::FLAGS) >> 16 {", |out| {
            functions.iter().for_each(|function| quick_bytes_arm(model, function, out));
            out.line("_ => Err(request),");
        });
    });
    out.blank();
}

/// The arm of one of them.
fn quick_bytes_arm(model: &Model, function: &Function, out: &mut Text) {
    let shape = Shape::of(model, function);
    let params = || function.params.iter().map(|param| value(&param.name));
    out.block(&format!("label::{} => {{", shout(&function.name)), |out| {
        let mut source = "&request";
        if let Form::Inline(bytes) = shape.request {
            out.line(&format!("let mut body = service::Scratch::<{bytes}>::new();"));
            source = "&request, &mut body";
        }
        let (pattern, name) = (tuple(params()), snake(&function.name));
        out.block(&format!("let Ok({pattern}) = {name}_arguments({source}) else {{"), |out| {
            out.line("return Err(request);");
        });
        out.replace_last("}", "};");
        let mut given = vec!["caller".to_owned()];
        given.extend(params());
        given.extend(shape.borrows.then(|| "Room::new(room)".to_owned()));
        let call = format!("self.0.{}({})", function_name(&function.name), given.join(", "));
        let to = "request.emptied(service::label::OK)";
        out.line(&format!("let answer = {};", answer(function, shape.answer, &call, to)));
        out.line("Ok(next.request(answer.words()))");
    });
}

/// Whether one argument of the function is a text or a run of bytes, or its result, the rest numbers and the like, and
/// all of it travels in words.
fn has_bytes_in_words(model: &Model, function: &Function) -> bool {
    let shape = Shape::of(model, function);
    let is_short = |ty: &Ty| matches!(ty, Ty::Plain(_) | Ty::Text(_) | Ty::Bytes(_));
    let is_in_words = |form: Form| matches!(form, Form::Words | Form::Inline(_));
    let long = function.params.iter().filter(|param| !matches!(param.ty, Ty::Plain(_)));
    is_answered(function)
        && !function.maps
        && is_in_words(shape.request)
        && is_in_words(shape.answer)
        && (shape.request, shape.answer) != (Form::Words, Form::Words)
        && long.count() <= 1
        && function.params.iter().all(|param| is_short(&param.ty))
        && function.result.as_ref().is_none_or(is_short)
}
