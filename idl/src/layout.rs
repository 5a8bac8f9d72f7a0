//! The form of messages: how many words, how many bytes, and the hash that names a function.
//! `docs/services.md` states these rules for those who write stubs of their own.

use crate::model::{Field, Function, Interface, Kind, Manner, Model, Plain, Ty};

/// Words that a message carries behind its tag.
pub const MAX_WORDS: usize = 63;
/// Words that every transport has in registers, there and back.
pub const IN_REGISTERS: usize = 6;
/// Longest body of a message: stubs keep it on their stacks.
pub const MAX_BODY: usize = 16 * 1024;

/// How the body of a message travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// There is none.
    Words,
    /// In the words behind the flat ones; at most so many bytes.
    Inline(usize),
    /// As a string of at most so many bytes.
    String(usize),
}

/// Flat words of a type.
#[must_use]
pub fn flat(model: &Model, ty: &Ty) -> usize {
    match ty {
        Ty::Plain(_) | Ty::Text(_) | Ty::Bytes(_) | Ty::List(..) => 1,
        Ty::Option(ty) => 1 + flat(model, ty),
        Ty::Result(ok, err) => {
            let of = |ty: &Option<Box<Ty>>| ty.as_ref().map_or(0, |ty| flat(model, ty));
            1 + of(ok).max(of(err))
        }
        Ty::Tuple(parts) => parts.iter().map(|ty| flat(model, ty)).sum(),
        Ty::Named(name) => flat_of_kind(model, model.kind(name)),
    }
}

/// Flat words of a named type.
#[must_use]
pub fn flat_of_kind(model: &Model, kind: &Kind) -> usize {
    match kind {
        Kind::Record(fields) => fields.iter().map(|field| flat(model, &field.ty)).sum(),
        Kind::Variant(cases) => {
            let values = cases.iter().filter_map(|case| case.ty.as_ref());
            1 + values.map(|ty| flat(model, ty)).max().unwrap_or(0)
        }
        Kind::Enum(_) | Kind::Flags(_) | Kind::Resource => 1,
    }
}

/// Bytes that a value has in a body at most.
#[must_use]
pub fn body(model: &Model, ty: &Ty) -> usize {
    match ty {
        Ty::Plain(_) => 0,
        Ty::Text(bound) | Ty::Bytes(bound) => *bound,
        Ty::List(element, bound) => bound.saturating_mul(element_bytes(model, element)),
        Ty::Option(ty) => body(model, ty),
        Ty::Result(ok, err) => {
            let of = |ty: &Option<Box<Ty>>| ty.as_ref().map_or(0, |ty| body(model, ty));
            of(ok).max(of(err))
        }
        Ty::Tuple(parts) => sum(parts.iter().map(|ty| body(model, ty))),
        Ty::Named(name) => match model.kind(name) {
            Kind::Record(fields) => sum(fields.iter().map(|field| body(model, &field.ty))),
            Kind::Variant(cases) => {
                let values = cases.iter().filter_map(|case| case.ty.as_ref());
                values.map(|ty| body(model, ty)).max().unwrap_or(0)
            }
            Kind::Enum(_) | Kind::Flags(_) | Kind::Resource => 0,
        },
    }
}

fn sum(parts: impl Iterator<Item = usize>) -> usize {
    parts.fold(0, usize::saturating_add)
}

/// Bytes that an element of a list has at most.
#[must_use]
pub fn element_bytes(model: &Model, ty: &Ty) -> usize {
    match ty {
        Ty::Plain(Plain::Bool) => 1,
        Ty::Plain(Plain::Char) => 4,
        Ty::Plain(Plain::U(bytes) | Plain::S(bytes) | Plain::F(bytes)) => usize::from(*bytes),
        _ => (8 * flat(model, ty)).saturating_add(body(model, ty)),
    }
}

/// The form of a message that carries values with so many flat words and at most so many bytes.
#[must_use]
pub const fn form(flat: usize, body: usize) -> Form {
    if body == 0 {
        Form::Words
    } else if flat + body.div_ceil(8) <= MAX_WORDS {
        Form::Inline(body)
    } else {
        Form::String(body)
    }
}

/// Flat words and form of a function's request.
#[must_use]
pub fn request(model: &Model, function: &Function) -> (usize, Form) {
    let flat = function.params.iter().map(|param| flat(model, &param.ty)).sum();
    (flat, form(flat, sum(function.params.iter().map(|param| body(model, &param.ty)))))
}

/// Flat words and form of a function's answer.
#[must_use]
pub fn answer(model: &Model, function: &Function) -> (usize, Form) {
    let Some(result) = &function.result else { return (0, Form::Words) };
    let flat = flat(model, result);
    (flat, form(flat, body(model, result)))
}

/// FNV-1a, 64 bits.
#[must_use]
pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// A function's label: 2^30 plus the low 30 bits of its normal form's hash, folded.
#[must_use]
pub fn label(model: &Model, interface: &Interface, function: &Function) -> u64 {
    let hash = hash(&normal_form(model, interface, function));
    1 << 30 | (hash ^ hash >> 32) & 0x3FFF_FFFF
}

/// What is hashed: the interface with the part of its version that says what fits together, the
/// function, the types without their names, and the forms of both messages.
#[must_use]
pub fn normal_form(model: &Model, interface: &Interface, function: &Function) -> String {
    let version = match interface.version {
        [0, minor, _] => format!("0.{minor}"),
        [major, ..] => major.to_string(),
    };
    let params = list(function.params.iter().map(|param| normal_type(model, &param.ty)));
    let result = function.result.as_ref().map_or(String::new(), |ty| normal_type(model, ty));
    let manner = match (function.manner, function.maps) {
        (Manner::OneWay, _) => "!",
        (_, true) => "+mappings",
        _ => "",
    };
    let letter = |form| match form {
        Form::Words => 'w',
        Form::Inline(_) => 'i',
        Form::String(_) => 's',
    };
    let forms = [letter(request(model, function).1), letter(answer(model, function).1)];
    format!(
        "{}@{version}.{}({params})->{result}{manner}:{}{}",
        interface.full_name, function.name, forms[0], forms[1]
    )
}

fn list(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(",")
}

fn normal_type(model: &Model, ty: &Ty) -> String {
    let optional =
        |ty: &Option<Box<Ty>>| ty.as_ref().map_or("_".to_owned(), |ty| normal_type(model, ty));
    match ty {
        Ty::Plain(plain) => match plain {
            Plain::Bool => "bool".to_owned(),
            Plain::Char => "char".to_owned(),
            Plain::Thread => "thread".to_owned(),
            Plain::Mappings => "mappings".to_owned(),
            Plain::U(bytes) => format!("u{}", u32::from(*bytes) * 8),
            Plain::S(bytes) => format!("s{}", u32::from(*bytes) * 8),
            Plain::F(bytes) => format!("f{}", u32::from(*bytes) * 8),
        },
        Ty::Text(_) => "string".to_owned(),
        Ty::Bytes(_) => "list<u8>".to_owned(),
        Ty::List(element, _) => format!("list<{}>", normal_type(model, element)),
        Ty::Option(ty) => format!("option<{}>", normal_type(model, ty)),
        Ty::Result(ok, err) => format!("result<{},{}>", optional(ok), optional(err)),
        Ty::Tuple(parts) => {
            format!("tuple<{}>", list(parts.iter().map(|ty| normal_type(model, ty))))
        }
        Ty::Named(name) => match model.kind(name) {
            Kind::Record(fields) => format!("record{{{}}}", fields_of(model, fields)),
            Kind::Variant(cases) => {
                let case = |case: &crate::model::Case| match &case.ty {
                    Some(ty) => format!("{}:{}", case.name, normal_type(model, ty)),
                    None => case.name.clone(),
                };
                format!("variant{{{}}}", list(cases.iter().map(case)))
            }
            Kind::Enum(cases) => {
                format!("enum{{{}}}", list(cases.iter().map(|case| case.name.clone())))
            }
            Kind::Flags(cases) => {
                format!("flags{{{}}}", list(cases.iter().map(|case| case.name.clone())))
            }
            Kind::Resource => format!("own<{}/{}>", name.0, name.1),
        },
    }
}

fn fields_of(model: &Model, fields: &[Field]) -> String {
    list(fields.iter().map(|field| format!("{}:{}", field.name, normal_type(model, &field.ty))))
}
