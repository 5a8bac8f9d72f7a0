//! What writes values into messages and reads them: `service_put_X`, `service_get_X`.

use crate::model::{Field, Plain, Ty};
use crate::text::Text;

use super::names::{tag, ty, value};

/// A type that has functions of its own.
pub struct Codec {
    /// What it is called inside names.
    pub name: String,
    /// In C.
    pub ty: String,
    /// Its flat words.
    pub flat: usize,
}

/// What a case has: where it lies in the value, how many flat words, its type.
pub struct Part {
    pub place: String,
    pub flat: usize,
    pub of: Ty,
}

/// The statement that writes what is in `place`.
pub fn put(of: &Ty, place: &str, out: &str) -> String {
    match of {
        Ty::Plain(Plain::S(_)) => format!("service_put_word({out}, (uint64_t)(int64_t){place});"),
        Ty::Plain(Plain::F(4)) => format!("service_put_f32({out}, {place});"),
        Ty::Plain(Plain::F(_)) => format!("service_put_f64({out}, {place});"),
        Ty::Plain(_) => format!("service_put_word({out}, {place});"),
        _ => format!("service_put_{}({out}, {place});", tag(of)),
    }
}

/// The expression that reads a value.
pub fn get(of: &Ty, from: &str) -> String {
    match of {
        Ty::Plain(Plain::Bool) => format!("service_get_up_to({from}, 1) != 0"),
        Ty::Plain(Plain::U(8) | Plain::Thread) => format!("service_get_word({from})"),
        Ty::Plain(Plain::U(bytes)) => {
            let bits = u32::from(*bytes) * 8;
            format!("(uint{bits}_t)service_get_up_to({from}, UINT{bits}_MAX)")
        }
        Ty::Plain(Plain::S(bytes)) => {
            let bits = u32::from(*bytes) * 8;
            format!("(int{bits}_t)service_get_signed({from}, {bits})")
        }
        _ => format!("service_get_{}({from})", tag(of)),
    }
}

/// The statements that note in `failed` if a length in `place` is beyond its bound.
pub fn bounds(of: &Ty, place: &str, failed: &str, depth: usize) -> Vec<String> {
    let inner = |of: &Ty, place: &str| bounds(of, place, failed, depth);
    let when = |condition: String, checks: Vec<String>| {
        checks.into_iter().map(move |check| format!("if ({condition}) {{ {check} }}"))
    };
    match of {
        Ty::Text(bound) | Ty::Bytes(bound) => {
            vec![format!("service_at_most({failed}, {place}.len, {bound});")]
        }
        Ty::List(element, bound) => {
            let mut checks = vec![format!("service_at_most({failed}, {place}.count, {bound});")];
            let part = format!("part{depth}");
            let inside = bounds(element, &part, failed, depth + 1);
            if !inside.is_empty() {
                let (list, name) = (ty(of), tag(element));
                checks.push(format!(
                    "{{ {list} list{depth} = {place}; {} {part}; while (service_next_{name}(&list{depth}, &{part})) {{ {} }} }}",
                    ty(element),
                    inside.join(" ")
                ));
            }
            checks
        }
        Ty::Option(of) => {
            when(format!("{place}.some"), inner(of, &format!("{place}.value"))).collect()
        }
        Ty::Result(ok, err) => {
            let side = |of: &Option<Box<Ty>>, name: &str| {
                of.as_ref().map_or(Vec::new(), |of| inner(of, &format!("{place}.as.{name}")))
            };
            let ok = when(format!("!{place}.is_err"), side(ok, "ok"));
            ok.chain(when(format!("{place}.is_err"), side(err, "err"))).collect()
        }
        Ty::Tuple(parts) => {
            let part = |(index, of)| inner(of, &format!("{place}.f{index}"));
            parts.iter().enumerate().flat_map(part).collect()
        }
        Ty::Plain(_) | Ty::Named(_) => Vec::new(),
    }
}

/// Both functions; `write` and `read` are what is in them.
fn pair(
    out: &mut Text,
    codec: &Codec,
    write: impl FnOnce(&mut Text),
    read: impl FnOnce(&mut Text),
) {
    let Codec { name, ty, .. } = codec;
    out.blank();
    out.line(&format!("static inline void service_put_{name}(service_out_t *out, {ty} value)"));
    out.block("{", write);
    out.blank();
    out.line(&format!("static inline {ty} service_get_{name}(service_in_t *in)"));
    out.block("{", read);
}

/// A type whose value is one word, which `read` reads.
pub fn word(out: &mut Text, codec: &Codec, place: &str, read: &str) {
    let write = format!("service_put_word(out, (uint64_t){place});");
    let read = format!("return ({}){read};", codec.ty);
    pair(out, codec, |out| out.line(&write), |out| out.line(&read));
}

/// A resource.
pub fn handle(out: &mut Text, codec: &Codec) {
    pair(
        out,
        codec,
        |out| out.line("service_put_word(out, value.handle);"),
        |out| {
            out.line(&format!("{} value = {{ service_get_word(in) }};", codec.ty));
            out.line("return value;");
        },
    );
}

/// A record or a tuple.
pub fn record(out: &mut Text, codec: &Codec, fields: &[Field], bounded: bool) {
    let place = |field: &Field| format!("value.{}", value(&field.name));
    pair(
        out,
        codec,
        |out| fields.iter().for_each(|f| out.line(&put(&f.ty, &place(f), "out"))),
        |out| {
            out.line(&format!("{} value;", codec.ty));
            for field in fields {
                out.line(&format!("{} = {};", place(field), get(&field.ty, "in")));
            }
            for field in fields.iter().filter(|_| bounded) {
                let checks = bounds(&field.ty, &place(field), "&in->failed", 0);
                checks.iter().for_each(|check| out.line(check));
            }
            out.line("return value;");
        },
    );
}

/// A value of several cases; `is` is the field that says which, of type `is_ty`.
pub fn cases(out: &mut Text, codec: &Codec, is: &str, is_ty: &str, cases: &[Option<Part>]) {
    let largest = codec.flat - 1;
    let last = cases.len() - 1;
    pair(
        out,
        codec,
        |out| {
            out.line(&format!("service_put_word(out, (uint64_t)value.{is});"));
            choose(out, is, "out", cases, |out, part| {
                let used = part.as_ref().map_or(0, |part| part.flat);
                if let Some(Part { place, of, .. }) = part {
                    out.line(&put(of, &format!("value.{place}"), "out"));
                }
                if used < largest {
                    out.line(&format!("service_put_zeros(out, {});", largest - used));
                }
            });
        },
        |out| {
            out.line(&format!("{} value;", codec.ty));
            out.line("memset(&value, 0, sizeof value);");
            out.line(&format!("value.{is} = ({is_ty})service_get_up_to(in, {last});"));
            choose(out, is, "in", cases, |out, part| {
                let used = part.as_ref().map_or(0, |part| part.flat);
                if let Some(Part { place, of, .. }) = part {
                    out.line(&format!("value.{place} = {};", get(of, "in")));
                    if is == "is" {
                        let checks = bounds(of, &format!("value.{place}"), "&in->failed", 0);
                        checks.iter().for_each(|check| out.line(check));
                    }
                }
                if used < largest {
                    out.line(&format!("service_skip(in, {});", largest - used));
                }
            });
            out.line("return value;");
        },
    );
}

/// A branch for each case.
fn choose(
    out: &mut Text,
    is: &str,
    stream: &str,
    cases: &[Option<Part>],
    branch: impl Fn(&mut Text, &Option<Part>),
) {
    out.block(&format!("switch ((unsigned)value.{is}) {{"), |out| {
        for (index, part) in cases.iter().enumerate() {
            out.line(&format!("case {index}:"));
            out.indented(|out| {
                branch(out, part);
                out.line("break;");
            });
        }
        out.line("default:");
        out.indented(|out| out.line(&format!("{stream}->failed = true;")));
    });
}

/// A list: its elements one after the other.
pub fn list(out: &mut Text, codec: &Codec, element: &Ty, flat: usize) {
    element_codec(out, element, flat);
    let (name, part) = (tag(element), ty(element));
    let list = &codec.ty;
    out.blank();
    out.line("/* Takes the first element off a list; false: it has none. */");
    out.line(&format!("static inline bool service_next_{name}({list} *list, {part} *element)"));
    out.block("{", |out| {
        out.line("service_in_t in = { NULL, list->stored, list->stored_bytes, false };");
        out.block("if (list->count == 0) {", |out| out.line("return false;"));
        out.line("list->count--;");
        out.block("if (list->items != NULL) {", |out| {
            out.line("*element = *list->items++;");
            out.line("return true;");
        });
        out.line(&format!("*element = service_get_element_{name}(&in);"));
        out.line("list->stored = in.body;");
        out.line("list->stored_bytes = in.left;");
        out.line("return !in.failed;");
    });
    pair(
        out,
        codec,
        |out| {
            out.line(&format!("{part} element;"));
            out.line("size_t left = value.count;");
            out.line("service_put_word(out, left);");
            out.block(
                &format!("for (; left != 0 && service_next_{name}(&value, &element); left--) {{"),
                |out| {
                    out.line(&format!("service_put_element_{name}(out, element);"));
                },
            );
            out.line("out->failed |= left != 0;");
        },
        |out| {
            out.line(&format!("{list} value = {{ 0, NULL, in->body, 0 }};"));
            out.line("uint64_t count = service_get_word(in);");
            out.line("size_t before = in->left;");
            out.line("/* An element takes a byte at least. */");
            out.line("in->failed |= count > in->left;");
            out.block("while (!in->failed && value.count < count) {", |out| {
                out.line(&format!("(void)service_get_element_{name}(in);"));
                out.line("value.count++;");
            });
            out.line("value.stored_bytes = before - in->left;");
            out.line("return value;");
        },
    );
}

/// An element lies in the body: numbers as they are, all else as its flat words.
fn element_codec(out: &mut Text, element: &Ty, flat: usize) {
    let (name, part) = (tag(element), ty(element));
    let raw = matches!(element, Ty::Plain(plain) if *plain != Plain::Thread);
    out.line(&format!(
        "static inline void service_put_element_{name}(service_out_t *out, {part} value)"
    ));
    out.block("{", |out| {
        if raw {
            out.line("service_put_contents(out, &value, sizeof value);");
            return;
        }
        out.line("uint8_t *words = out->words;");
        out.line(&format!("out->words = service_put_room(out, {});", 8 * flat));
        out.block("if (out->words != NULL) {", |out| out.line(&put(element, "value", "out")));
        out.line("out->words = words;");
    });
    out.blank();
    out.line(&format!("static inline {part} service_get_element_{name}(service_in_t *in)"));
    out.block("{", |out| {
        out.line(&format!("{part} value;"));
        if raw {
            raw_element(out, element);
        } else {
            out.line("const uint8_t *words = in->words;");
            out.line("memset(&value, 0, sizeof value);");
            out.line(&format!("in->words = service_get_contents(in, {});", 8 * flat));
            out.block("if (in->words != NULL) {", |out| {
                out.line(&format!("value = {};", get(element, "in")));
            });
            out.line("in->words = words;");
        }
        out.line("return value;");
    });
}

/// Reads a number as it is.
fn raw_element(out: &mut Text, element: &Ty) {
    out.line("const uint8_t *at = service_get_contents(in, sizeof value);");
    out.line("memset(&value, 0, sizeof value);");
    out.block("if (at != NULL) {", |out| match element {
        Ty::Plain(Plain::Bool) => {
            out.line("in->failed |= *at > 1;");
            out.line("value = *at == 1;");
        }
        Ty::Plain(Plain::Char) => {
            out.line("memcpy(&value, at, sizeof value);");
            out.line("in->failed |= !service_is_char(value);");
        }
        _ => out.line("memcpy(&value, at, sizeof value);"),
    });
}
