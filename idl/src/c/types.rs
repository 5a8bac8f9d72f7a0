//! Types: each is defined once, behind those that it is made of, with what writes and reads it.

use std::collections::BTreeSet;

use crate::layout;
use crate::model::{Case, Definition, Field, Interface, Kind, Model, Ty, TypeName};
use crate::text::Text;

use super::codec::{self, Codec, Part};
use super::names::{shout, tag, ty, value};

/// The types of a header.
pub struct Types<'m> {
    model: &'m Model,
    done: BTreeSet<String>,
}

impl<'m> Types<'m> {
    pub const fn new(model: &'m Model) -> Self {
        Self { model, done: BTreeSet::new() }
    }

    /// All that an interface defines or uses.
    pub fn of_interface(&mut self, interface: &Interface, out: &mut Text) {
        for (name, origin) in &interface.types {
            let of = Ty::Named(origin.clone());
            self.need(&of, out);
            if (&interface.name, name) != (&origin.0, &origin.1) {
                let alias = tag(&Ty::Named((interface.name.clone(), name.clone())));
                out.blank();
                out.line(&format!("/* `{}` of `{}`. */", origin.1, origin.0));
                out.line(&format!("typedef {} {alias}_t;", ty(&of)));
            }
        }
        for function in &interface.functions {
            let params = function.params.iter().map(|param| &param.ty);
            params.chain(&function.result).for_each(|of| self.need(of, out));
        }
    }

    /// Defines a type unless it is.
    fn need(&mut self, of: &Ty, out: &mut Text) {
        if matches!(of, Ty::Plain(_) | Ty::Text(_) | Ty::Bytes(_)) || !self.done.insert(tag(of)) {
            return;
        }
        self.parts(of).iter().for_each(|part| self.need(part, out));
        out.blank();
        if let Ty::Named(name) = of {
            if let Some(definition) = self.model.types.get(name) {
                self.named(name, definition, out);
            }
            return;
        }
        // Another package may have it, too.
        let guard = format!("SERVICE_{}", shout(&tag(of)));
        out.line(&format!("#ifndef {guard}"));
        out.line(&format!("#define {guard}"));
        self.unnamed(of, out);
        out.line("#endif");
    }

    /// What a type is made of.
    fn parts(&self, of: &Ty) -> Vec<Ty> {
        match of {
            Ty::List(part, _) | Ty::Option(part) => vec![(**part).clone()],
            Ty::Result(ok, err) => {
                [ok, err].into_iter().flatten().map(|ty| (**ty).clone()).collect()
            }
            Ty::Tuple(parts) => parts.clone(),
            Ty::Named(name) => match self.model.kind(name) {
                Kind::Record(fields) => fields.iter().map(|field| field.ty.clone()).collect(),
                Kind::Variant(cases) => cases.iter().filter_map(|case| case.ty.clone()).collect(),
                Kind::Enum(_) | Kind::Flags(_) | Kind::Resource => Vec::new(),
            },
            Ty::Plain(_) | Ty::Text(_) | Ty::Bytes(_) => Vec::new(),
        }
    }

    fn part(&self, place: String, of: Option<&Ty>) -> Option<Part> {
        let of = of?.clone();
        Some(Part { place, flat: layout::flat(self.model, &of), of })
    }

    fn codec(&self, of: &Ty) -> Codec {
        Codec { name: tag(of), ty: ty(of), flat: layout::flat(self.model, of) }
    }

    fn unnamed(&self, of: &Ty, out: &mut Text) {
        let codec = self.codec(of);
        match of {
            Ty::List(element, _) => {
                structure(out, &codec.ty, |out| {
                    out.line("size_t count;");
                    out.line(&format!(
                        "const {} *items; /* NULL in a list that came: */",
                        ty(element)
                    ));
                    out.line("const uint8_t *stored; /* there its elements lie */");
                    out.line("size_t stored_bytes;");
                });
                codec::list(out, &codec, element, layout::flat(self.model, element));
            }
            Ty::Option(part) => {
                structure(out, &codec.ty, |out| {
                    out.line("bool some;");
                    out.line(&format!("{} value;", ty(part)));
                });
                let some = self.part("value".to_owned(), Some(part));
                codec::cases(out, &codec, "some", "bool", &[None, some]);
            }
            Ty::Result(ok, err) => {
                let parts = [("ok", ok), ("err", err)];
                structure(out, &codec.ty, |out| {
                    out.line("bool is_err;");
                    let parts = parts.iter().filter_map(|(name, of)| Some((*name, of.as_deref()?)));
                    union(out, parts.map(|(name, of)| (name.to_owned(), of)));
                });
                let cases = parts.map(|(name, of)| self.part(format!("as.{name}"), of.as_deref()));
                codec::cases(out, &codec, "is_err", "bool", &cases);
            }
            Ty::Tuple(parts) => {
                let fields: Vec<Field> = (0..)
                    .zip(parts)
                    .map(|(n, ty)| Field { name: format!("f{n}"), docs: None, ty: ty.clone() })
                    .collect();
                record(out, &codec, &fields, false);
            }
            Ty::Plain(_) | Ty::Text(_) | Ty::Bytes(_) | Ty::Named(_) => {}
        }
    }

    fn named(&self, name: &TypeName, definition: &Definition, out: &mut Text) {
        let codec = self.codec(&Ty::Named(name.clone()));
        let prefix = shout(&codec.name);
        out.remark(definition.docs.as_deref(), || format!("The type `{}`.", name.1));
        match &definition.kind {
            Kind::Record(fields) => record(out, &codec, fields, true),
            Kind::Variant(cases) => {
                let is = format!("{}_is_t", codec.name);
                enumeration(out, &prefix, &is, cases);
                out.blank();
                structure(out, &codec.ty, |out| {
                    out.line(&format!("{is} is;"));
                    let parts = cases
                        .iter()
                        .filter_map(|case| Some((value(&case.name), case.ty.as_ref()?)));
                    union(out, parts);
                });
                let part =
                    |case: &Case| self.part(format!("as.{}", value(&case.name)), case.ty.as_ref());
                let cases: Vec<Option<Part>> = cases.iter().map(part).collect();
                codec::cases(out, &codec, "is", &is, &cases);
            }
            Kind::Enum(cases) => {
                enumeration(out, &prefix, &codec.ty, cases);
                let read = format!("service_get_up_to(in, {})", cases.len() - 1);
                codec::word(out, &codec, "value", &read);
            }
            Kind::Flags(flags) => {
                out.line(&format!("typedef uint64_t {};", codec.ty));
                for (bit, flag) in flags.iter().enumerate() {
                    let text = format!("#define {prefix}_{} (1UL << {bit})", shout(&flag.name));
                    out.line(&with_remark(text, flag.docs.as_deref()));
                }
                let all = (0..flags.len()).fold(0_u64, |all, bit| all | 1 << bit);
                codec::word(out, &codec, "value", &format!("service_get_flags(in, {all:#x}UL)"));
            }
            Kind::Resource => {
                structure(out, &codec.ty, |out| out.line("uint64_t handle;"));
                codec::handle(out, &codec);
            }
        }
    }
}

fn structure(out: &mut Text, name: &str, fields: impl FnOnce(&mut Text)) {
    out.block("typedef struct {", fields);
    out.replace_last("}", &format!("}} {name};"));
}

/// The values of which one is there; none if no case has any.
fn union<'a>(out: &mut Text, parts: impl Iterator<Item = (String, &'a Ty)>) {
    let mut parts = parts.peekable();
    if parts.peek().is_some() {
        out.block("union {", |out| {
            parts.for_each(|(name, of)| out.line(&format!("{} {name};", ty(of))))
        });
        out.replace_last("}", "} as;");
    }
}

fn record(out: &mut Text, codec: &Codec, fields: &[Field], bounded: bool) {
    structure(out, &codec.ty, |out| {
        for field in fields {
            let text = format!("{} {};", ty(&field.ty), value(&field.name));
            out.line(&with_remark(text, field.docs.as_deref()));
        }
    });
    codec::record(out, codec, fields, bounded);
}

fn enumeration(out: &mut Text, prefix: &str, name: &str, cases: &[Case]) {
    out.block("typedef enum {", |out| {
        for case in cases {
            let text = format!("{prefix}_{},", shout(&case.name));
            out.line(&with_remark(text, case.docs.as_deref()));
        }
    });
    out.replace_last("}", &format!("}} {name};"));
}

/// `text` with the author's words behind it, if these are one line.
fn with_remark(text: String, docs: Option<&str>) -> String {
    match docs.map(str::trim) {
        Some(docs) if !docs.contains(['\n', '*']) => format!("{text} /* {docs} */"),
        _ => text,
    }
}
