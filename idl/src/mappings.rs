//! Results that map something: what is mapped travels as items of the message, not among its words.

use crate::layout::{self, Form, MAX_WORDS};
use crate::model::{Function, Model, Plain, Ty};

/// Words of an answer's mappings at most (`service::MAX_MAPPINGS`, two each).
const WORDS: usize = 48;

/// A result without what it maps, and whether it maps.
pub fn split(result: Option<Ty>) -> (Option<Ty>, bool) {
    match result {
        Some(Ty::Plain(Plain::Mappings)) => (None, true),
        Some(Ty::Tuple(mut parts)) if parts.last() == Some(&Ty::Plain(Plain::Mappings)) => {
            parts.pop();
            (if parts.len() == 1 { parts.pop() } else { Some(Ty::Tuple(parts)) }, true)
        }
        Some(Ty::Result(ok, err)) => {
            let (ok, maps) = split(ok.map(|ok| *ok));
            (Some(Ty::Result(ok.map(Box::new), err)), maps)
        }
        other => (other, false),
    }
}

/// Whether there are mappings in a type, named ones left out.
pub fn is_in(ty: &Ty) -> bool {
    let optional = |ty: &Option<Box<Ty>>| ty.as_deref().is_some_and(is_in);
    match ty {
        Ty::Plain(plain) => *plain == Plain::Mappings,
        Ty::Text(_) | Ty::Bytes(_) | Ty::Named(_) => false,
        Ty::List(ty, _) | Ty::Option(ty) => is_in(ty),
        Ty::Result(ok, err) => optional(ok) || optional(err),
        Ty::Tuple(parts) => parts.iter().any(is_in),
    }
}

/// Whether the answer has room for what it maps.
pub fn check(model: &Model, function: &Function) -> Result<(), String> {
    match layout::answer(model, function) {
        (words, Form::Words) if words <= MAX_WORDS - WORDS => Ok(()),
        _ if !function.maps => Ok(()),
        _ => Err(format!(
            "a result that maps has {} words at most, and no text or list",
            MAX_WORDS - WORDS
        )),
    }
}
