//! Random values, as constants of Rust.

use baton_idl::model::{Kind, Model, Plain, Ty};
use baton_idl::rust::{camel, shout, snake, value};

use crate::random::Random;

/// A value of `ty`.
pub fn of(model: &Model, ty: &Ty, random: &mut Random) -> String {
    match ty {
        Ty::Plain(plain) => plain_value(*plain, random),
        Ty::Text(bound) => format!("{:?}", text(random, *bound)),
        Ty::Bytes(bound) => {
            let bytes: Vec<u8> =
                (0..random.below(bound + 1)).map(|_| random.next() as u8).collect();
            format!("&{bytes:?}")
        }
        Ty::List(element, bound) => {
            let len = random.below((*bound).min(4) + 1);
            let elements: Vec<String> = (0..len).map(|_| of(model, element, random)).collect();
            format!("List::new(&[{}])", elements.join(", "))
        }
        Ty::Option(ty) => match random.below(3) {
            0 => "None".to_owned(),
            _ => format!("Some({})", of(model, ty, random)),
        },
        Ty::Result(ok, err) => {
            let (name, ty) = if random.below(2) == 0 { ("Ok", ok) } else { ("Err", err) };
            let value = ty.as_ref().map_or("()".to_owned(), |ty| of(model, ty, random));
            format!("{name}({value})")
        }
        Ty::Tuple(parts) => {
            let parts: Vec<String> = parts.iter().map(|ty| of(model, ty, random)).collect();
            format!("({},)", parts.join(", "))
        }
        Ty::Named(name) => {
            let path = format!("{}::{}", snake(&name.0), camel(&name.1));
            named(model, model.kind(name), &path, random)
        }
    }
}

fn named(model: &Model, kind: &Kind, path: &str, random: &mut Random) -> String {
    match kind {
        Kind::Record(fields) => {
            let field = |field: &baton_idl::model::Field| {
                format!("{}: {}", value(&field.name), of(model, &field.ty, random))
            };
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("{path} {{ {} }}", fields.join(", "))
        }
        Kind::Variant(cases) | Kind::Enum(cases) => {
            let case = random.one_of(cases);
            let value = case.ty.as_ref().map(|ty| format!("({})", of(model, ty, random)));
            format!("{path}::{}{}", camel(&case.name), value.unwrap_or_default())
        }
        Kind::Flags(flags) => {
            let some = flags.iter().filter(|_| random.below(3) == 0);
            some.fold(format!("{path}::NONE"), |value, flag| {
                format!("{value}.with({path}::{})", shout(&flag.name))
            })
        }
        Kind::Resource => format!("{path}(service::Handle({}))", random.next()),
    }
}

fn plain_value(plain: Plain, random: &mut Random) -> String {
    let bits = random.next() >> [0, 7, 63][random.below(3)];
    match plain {
        Plain::Bool => (bits & 1 == 1).to_string(),
        Plain::Char => {
            format!("{:?}", random.one_of(&['a', '\0', 'é', '\u{D7FF}', '\u{E000}', '\u{10FFFF}']))
        }
        Plain::Thread => format!("service::ThreadId({bits})"),
        Plain::Mappings => "()".to_owned(),
        Plain::U(1) => (bits as u8).to_string(),
        Plain::U(2) => (bits as u16).to_string(),
        Plain::U(4) => (bits as u32).to_string(),
        Plain::U(_) => bits.to_string(),
        Plain::S(1) => (bits as i8).to_string(),
        Plain::S(2) => (bits as i16).to_string(),
        Plain::S(4) => (bits as i32).to_string(),
        Plain::S(_) => (bits as i64).to_string(),
        Plain::F(4) => format!("{:?}f32", (bits as i32) as f32),
        Plain::F(_) => format!("{:?}f64", (bits as i64) as f64),
    }
}

fn text(random: &mut Random, bound: usize) -> String {
    let mut text = String::new();
    for _ in 0..random.below(bound + 1) {
        let char = *random.one_of(&['a', 'z', ' ', '\n', '"', 'é', '\u{20AC}', '\u{1F600}']);
        if text.len() + char.len_utf8() <= bound {
            text.push(char);
        }
    }
    text
}
