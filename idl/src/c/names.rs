//! Names of WIT as C writes them.

use crate::model::{Model, Plain, Ty};
pub use crate::rust::{shout, snake};

/// Words of C and C++, and those that the stubs use themselves.
const TAKEN: [&str; 79] = [
    "alignas",
    "alignof",
    "and",
    "asm",
    "auto",
    "bool",
    "break",
    "call",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "constexpr",
    "continue",
    "default",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "error",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "in",
    "inline",
    "int",
    "limits",
    "long",
    "message",
    "mutable",
    "namespace",
    "new",
    "not",
    "operator",
    "or",
    "out",
    "private",
    "protected",
    "public",
    "register",
    "result",
    "return",
    "room",
    "room_bytes",
    "self",
    "server",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typeof",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "while",
    "xor",
    "body",
    "unix",
];

/// A parameter or a field: never a word that means something else.
pub fn value(name: &str) -> String {
    let name = snake(name);
    if TAKEN.contains(&name.as_str()) { name + "_" } else { name }
}

/// What a type is called inside the names of other types and of functions.
pub fn tag(ty: &Ty) -> String {
    let optional = |ty: &Option<Box<Ty>>| ty.as_ref().map_or("void".to_owned(), |ty| tag(ty));
    match ty {
        Ty::Plain(Plain::Bool) => "bool".to_owned(),
        Ty::Plain(Plain::Char) => "char".to_owned(),
        Ty::Plain(Plain::Thread) => "thread".to_owned(),
        Ty::Plain(Plain::Mappings) => "mappings".to_owned(),
        Ty::Plain(Plain::U(bytes)) => format!("u{}", u32::from(*bytes) * 8),
        Ty::Plain(Plain::S(bytes)) => format!("s{}", u32::from(*bytes) * 8),
        Ty::Plain(Plain::F(bytes)) => format!("f{}", u32::from(*bytes) * 8),
        Ty::Text(_) => "string".to_owned(),
        Ty::Bytes(_) => "bytes".to_owned(),
        Ty::List(element, _) => format!("list_{}", tag(element)),
        Ty::Option(ty) => format!("option_{}", tag(ty)),
        Ty::Result(ok, err) => format!("result_{}_{}", optional(ok), optional(err)),
        Ty::Tuple(parts) => {
            let parts: Vec<String> = parts.iter().map(tag).collect();
            format!("tuple{}_{}", parts.len(), parts.join("_"))
        }
        Ty::Named((interface, name)) => format!("{}_{}", snake(interface), snake(name)),
    }
}

/// A type.
pub fn ty(ty: &Ty) -> String {
    match ty {
        Ty::Plain(Plain::Bool) => "bool".to_owned(),
        Ty::Plain(Plain::U(bytes)) => format!("uint{}_t", u32::from(*bytes) * 8),
        Ty::Plain(Plain::S(bytes)) => format!("int{}_t", u32::from(*bytes) * 8),
        Ty::Plain(Plain::F(4)) => "float".to_owned(),
        Ty::Plain(Plain::F(_)) => "double".to_owned(),
        Ty::Plain(Plain::Char) => "uint32_t".to_owned(),
        Ty::Named(_) => format!("{}_t", tag(ty)),
        _ => format!("service_{}_t", tag(ty)),
    }
}

/// Whether values of `ty` refer to bytes outside themselves.
pub fn borrows(model: &Model, ty: Option<&Ty>) -> bool {
    ty.is_some_and(|ty| ty.borrows(model))
}
