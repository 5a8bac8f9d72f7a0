//! Types: how they are called, the named ones, and how these travel.

use crate::layout;
use crate::model::{Case, Definition, Field, Interface, Kind, Model, Plain, Ty, TypeName};

use super::names::{camel, snake, value};
use crate::text::Text;

/// A type in Rust; what it refers to lives for `life` (`""`: elided).
pub fn ty(model: &Model, interface: &str, of: &Ty, life: &str) -> String {
    let inner = |of: &Ty| ty(model, interface, of, life);
    let optional = |of: &Option<Box<Ty>>| of.as_ref().map_or("()".to_owned(), |of| inner(of));
    let reference = if life.is_empty() { "&".to_owned() } else { format!("&{life} ") };
    match of {
        Ty::Plain(plain) => plain_type(*plain),
        Ty::Text(_) => format!("{reference}str"),
        Ty::Bytes(_) => format!("{reference}[u8]"),
        Ty::List(element, _) => {
            format!("List<{}, {}>", if life.is_empty() { "'_" } else { life }, inner(element))
        }
        Ty::Option(of) => format!("Option<{}>", inner(of)),
        Ty::Result(ok, err) => format!("Result<{}, {}>", optional(ok), optional(err)),
        Ty::Tuple(parts) => tuple(parts.iter().map(inner)),
        Ty::Named(name) => {
            let path = if name.0 == interface {
                camel(&name.1)
            } else {
                format!("super::{}::{}", snake(&name.0), camel(&name.1))
            };
            match (model.kind(name).borrows(model), life) {
                (false, _) => path,
                (true, "") => format!("{path}<'_>"),
                (true, life) => format!("{path}<{life}>"),
            }
        }
    }
}

/// `(A, B)`, and `(A,)`.
pub fn tuple(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<String> = parts.collect();
    match &parts[..] {
        [one] => format!("({one},)"),
        parts => format!("({})", parts.join(", ")),
    }
}

fn plain_type(plain: Plain) -> String {
    match plain {
        Plain::Bool => "bool".to_owned(),
        Plain::Char => "char".to_owned(),
        Plain::Thread => "service::ThreadId".to_owned(),
        Plain::Mappings => "()".to_owned(),
        Plain::U(bytes) => format!("u{}", u32::from(bytes) * 8),
        Plain::S(bytes) => format!("i{}", u32::from(bytes) * 8),
        Plain::F(bytes) => format!("f{}", u32::from(bytes) * 8),
    }
}

/// Statements that fail with `?` if a length in `place`, which is of the type, is beyond its bound.
pub fn bounds(of: &Ty, place: &str, depth: usize) -> Vec<String> {
    let inner = format!("part{depth}");
    let inside = |pattern: &str, of: &Ty| {
        bounds(of, &inner, depth + 1)
            .into_iter()
            .map(|check| format!("if let {pattern}({inner}) = {place} {{ {check} }}"))
            .collect::<Vec<_>>()
    };
    match of {
        Ty::Text(bound) | Ty::Bytes(bound) => vec![format!("at_most({place}.len(), {bound})?;")],
        Ty::List(element, bound) => {
            let mut checks = vec![format!("at_most({place}.len(), {bound})?;")];
            let inside = bounds(element, &inner, depth + 1);
            if !inside.is_empty() {
                checks.push(format!("for {inner} in {place}.iter() {{ {} }}", inside.join(" ")));
            }
            checks
        }
        Ty::Option(of) => inside("Some", of),
        Ty::Result(ok, err) => {
            let mut checks = ok.as_ref().map_or(Vec::new(), |of| inside("Ok", of));
            checks.extend(err.as_ref().map_or(Vec::new(), |of| inside("Err", of)));
            checks
        }
        Ty::Tuple(parts) => {
            let part = |(index, of)| bounds(of, &format!("{place}.{index}"), depth);
            parts.iter().enumerate().flat_map(part).collect()
        }
        Ty::Plain(_) | Ty::Named(_) => Vec::new(),
    }
}

/// The named type `name` of `interface`: its definition, or another name of one.
pub fn named(model: &Model, interface: &Interface, name: &str, origin: &TypeName, out: &mut Text) {
    let Some(definition) = model.types.get(origin) else { return };
    let camel_name = camel(name);
    if (&interface.name, name) != (&origin.0, origin.1.as_str()) {
        let path = if origin.0 == interface.name {
            camel(&origin.1)
        } else {
            format!("super::{}::{}", snake(&origin.0), camel(&origin.1))
        };
        let life = if definition.kind.borrows(model) { "<'a>" } else { "" };
        out.line(&format!("/// `{}` of `{}`.", origin.1, origin.0));
        out.line(&format!("pub type {camel_name}{life} = {path}{life};"));
        return;
    }
    out.docs(definition.docs.as_deref(), || format!("The type `{name}`."));
    match &definition.kind {
        Kind::Record(fields) => record(model, interface, &camel_name, fields, out),
        Kind::Variant(cases) => variant(model, interface, &camel_name, cases, definition, out),
        Kind::Enum(cases) => enumeration(&camel_name, cases, out),
        Kind::Flags(cases) => flags(&camel_name, cases, out),
        Kind::Resource => resource(&camel_name, out),
    }
}

/// `impl Wire` for a type, with its words, its body and how it is read.
fn wire(
    out: &mut Text,
    name: &str,
    words: usize,
    flat: impl FnOnce(&mut Text),
    body: impl FnOnce(&mut Text),
    take: impl FnOnce(&mut Text),
) {
    out.blank();
    out.block(&format!("impl<'a> Wire<'a> for {name} {{"), |out| {
        out.line(&format!("const FLAT: usize = {words};"));
        out.blank();
        out.line("#[inline(always)]");
        out.block("fn flat(&self, put: &mut impl FnMut(u64)) {", flat);
        out.blank();
        body(out);
        out.line("#[inline(always)]");
        out.line("#[allow(unused_variables)]");
        out.block(
            "fn take(words: &mut impl Words, body: &mut Bytes<'a>) -> Result<Self, Malformed> {",
            take,
        );
    });
}

fn record(model: &Model, interface: &Interface, name: &str, fields: &[Field], out: &mut Text) {
    let borrows = fields.iter().any(|field| field.ty.borrows(model));
    let life = if borrows { "<'a>" } else { "" };
    out.line("#[derive(Clone, Copy, PartialEq, Debug)]");
    out.block(&format!("pub struct {name}{life} {{"), |out| {
        for field in fields {
            out.docs(field.docs.as_deref(), || format!("The field `{}`.", field.name));
            let of = ty(model, &interface.name, &field.ty, "'a");
            out.line(&format!("pub {}: {of},", value(&field.name)));
        }
    });
    let words = fields.iter().map(|field| layout::flat(model, &field.ty)).sum();
    wire(
        out,
        &format!("{name}{life}"),
        words,
        |out| {
            for field in fields {
                out.line(&format!("self.{}.flat(put);", value(&field.name)));
            }
        },
        |out| {
            if borrows {
                out.block("fn body(&self, body: &mut Body<'_>) -> Result<(), TooLong> {", |out| {
                    for field in fields.iter().filter(|field| field.ty.borrows(model)) {
                        out.line(&format!("self.{}.body(body)?;", value(&field.name)));
                    }
                    out.line("Ok(())");
                });
                out.blank();
            }
        },
        |out| {
            out.block("let value = Self {", |out| {
                for field in fields {
                    out.line(&format!("{}: Wire::take(words, body)?,", value(&field.name)));
                }
            });
            out.replace_last("}", "};");
            for field in fields {
                let place = format!("value.{}", value(&field.name));
                for check in bounds(&field.ty, &place, 0) {
                    out.line(&check);
                }
            }
            out.line("Ok(value)");
        },
    );
}

fn variant(
    model: &Model,
    interface: &Interface,
    name: &str,
    cases: &[Case],
    definition: &Definition,
    out: &mut Text,
) {
    let borrows = definition.kind.borrows(model);
    let life = if borrows { "<'a>" } else { "" };
    let flat_of = |case: &Case| case.ty.as_ref().map_or(0, |ty| layout::flat(model, ty));
    let words = layout::flat_of_kind(model, &definition.kind);
    let cases_of = || cases.iter().enumerate();
    out.line("#[derive(Clone, Copy, PartialEq, Debug)]");
    out.block(&format!("pub enum {name}{life} {{"), |out| {
        for case in cases {
            out.docs(case.docs.as_deref(), || format!("The case `{}`.", case.name));
            let of = case.ty.as_ref().map(|of| ty(model, &interface.name, of, "'a"));
            let of = of.map_or(String::new(), |of| format!("({of})"));
            out.line(&format!("{}{of},", camel(&case.name)));
        }
    });
    wire(
        out,
        &format!("{name}{life}"),
        words,
        |out| {
            out.block("let used = match self {", |out| {
                for (index, case) in cases_of() {
                    let pattern = if case.ty.is_some() { "(value)" } else { "" };
                    out.block(&format!("Self::{}{pattern} => {{", camel(&case.name)), |out| {
                        out.line(&format!("put({index});"));
                        if case.ty.is_some() {
                            out.line("value.flat(put);");
                        }
                        out.line(&format!("{}", 1 + flat_of(case)));
                    });
                }
            });
            out.replace_last("}", "};");
            out.line("(used..Self::FLAT).for_each(|_| put(0));");
        },
        |out| {
            if borrows {
                out.block("fn body(&self, body: &mut Body<'_>) -> Result<(), TooLong> {", |out| {
                    out.block("match self {", |out| {
                        for case in cases.iter().filter(|case| case.ty.is_some()) {
                            out.line(&format!(
                                "Self::{}(value) => value.body(body),",
                                camel(&case.name)
                            ));
                        }
                        if cases.iter().any(|case| case.ty.is_none()) {
                            out.line("_ => Ok(()),");
                        }
                    });
                });
                out.blank();
            }
        },
        |out| {
            out.block("let (value, used) = match words.next() {", |out| {
                for (index, case) in cases_of() {
                    let value = if case.ty.is_some() { "(Wire::take(words, body)?)" } else { "" };
                    let used = 1 + flat_of(case);
                    out.line(&format!("{index} => (Self::{}{value}, {used}),", camel(&case.name)));
                }
                out.line("_ => return Err(Malformed),");
            });
            out.replace_last("}", "};");
            for case in cases {
                let checks = case.ty.as_ref().map_or(Vec::new(), |ty| bounds(ty, "part", 0));
                for check in checks {
                    let case = camel(&case.name);
                    let lines = match cases.len() {
                        1 => format!("let Self::{case}(part) = value;\n{check}"),
                        _ => format!("if let Self::{case}(part) = value {{ {check} }}"),
                    };
                    lines.lines().for_each(|line| out.line(line));
                }
            }
            out.line("service::skip(words, Self::FLAT - used);");
            out.line("Ok(value)");
        },
    );
}

fn enumeration(name: &str, cases: &[Case], out: &mut Text) {
    out.line("#[derive(Clone, Copy, PartialEq, Eq, Debug)]");
    out.block(&format!("pub enum {name} {{"), |out| {
        for (index, case) in cases.iter().enumerate() {
            out.docs(case.docs.as_deref(), || format!("The case `{}`.", case.name));
            out.line(&format!("{} = {index},", camel(&case.name)));
        }
    });
    wire(
        out,
        name,
        1,
        |out| out.line("put(*self as u64);"),
        |_| {},
        |out| {
            out.block("match words.next() {", |out| {
                for (index, case) in cases.iter().enumerate() {
                    out.line(&format!("{index} => Ok(Self::{}),", camel(&case.name)));
                }
                out.line("_ => Err(Malformed),");
            });
        },
    );
}

fn flags(name: &str, cases: &[Case], out: &mut Text) {
    let all = cases.iter().enumerate().fold(0_u64, |all, (bit, _)| all | 1 << bit);
    out.line("#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]");
    out.line(&format!("pub struct {name}(u64);"));
    out.blank();
    out.block(&format!("impl {name} {{"), |out| {
        for (bit, case) in cases.iter().enumerate() {
            out.docs(case.docs.as_deref(), || format!("The flag `{}`.", case.name));
            let constant = super::names::shout(&case.name);
            out.line(&format!("pub const {constant}: Self = Self(1 << {bit});"));
        }
        out.line("/// None.");
        out.line("pub const NONE: Self = Self(0);");
        out.blank();
        out.line("/// As bits, the first flag in bit 0.");
        out.line("#[must_use]");
        out.block("pub const fn bits(self) -> u64 {", |out| out.line("self.0"));
        out.blank();
        out.line("/// Whether all of `flags` are among these.");
        out.line("#[must_use]");
        out.block("pub const fn has(self, flags: Self) -> bool {", |out| {
            out.line("self.0 & flags.0 == flags.0");
        });
        out.blank();
        out.line("/// These and `flags`.");
        out.line("#[must_use]");
        out.block("pub const fn with(self, flags: Self) -> Self {", |out| {
            out.line("Self(self.0 | flags.0)");
        });
    });
    wire(
        out,
        name,
        1,
        |out| out.line("put(self.0);"),
        |_| {},
        |out| {
            out.line("let bits = words.next();");
            out.line(&format!(
                "if bits & !{all:#x} == 0 {{ Ok(Self(bits)) }} else {{ Err(Malformed) }}"
            ));
        },
    );
}

fn resource(name: &str, out: &mut Text) {
    out.line("#[derive(Clone, Copy, PartialEq, Eq, Debug)]");
    out.line(&format!("pub struct {name}(pub Handle);"));
    wire(
        out,
        name,
        1,
        |out| out.line("self.0.flat(put);"),
        |_| {},
        |out| out.line("Handle::take(words, body).map(Self)"),
    );
}
