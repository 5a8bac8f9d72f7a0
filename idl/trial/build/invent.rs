//! Interfaces that nobody would write.

use std::fmt::Write as _;

use crate::random::Random;

const PLAIN: [&str; 14] = [
    "bool", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64", "char", "thread",
    "u64",
];

/// The text of an interface, and of the options beside it.
pub fn interface(random: &mut Random, number: usize) -> (String, String) {
    let mut wit = String::new();
    let _ = writeln!(wit, "package test:trial@1.2.3;\n\n/// Invented.\ninterface i{number} {{");
    let _ = writeln!(wit, "    use baton:abi/handles@1.0.0.{{thread}};");
    let mut named = Vec::new();
    let mut toml = String::new();
    for index in 0..4 {
        let name = format!("t{index}");
        let text = definition(random, &name, &named);
        let _ = writeln!(wit, "{text}");
        let (head, parts) = text.split_once('{').unwrap_or_default();
        if head.contains("record") || head.contains("variant") {
            let letter = if head.contains("record") { "x" } else { "c" };
            let part = |part| format!("{letter}{part}");
            let there = |part: &String| {
                parts.contains(&format!("{part}:")) || parts.contains(&format!("{part}("))
            };
            let bounds = (0..4).map(part).filter(there).map(|part| format!("{part} = [5, 3, 2]"));
            let bounds = bounds.collect::<Vec<_>>().join(", ");
            let _ = writeln!(toml, "[i{number}.{name}]\nbounds = {{ {bounds} }}");
        }
        named.push(name);
    }
    let _ = writeln!(
        wit,
        "    resource thing {{\n        constructor(a: u8);\n        poke: func(b: u16) -> u32;\n    }}"
    );
    named.push("thing".to_owned());
    for index in 0..6 {
        let params: Vec<String> = (0..random.below(4))
            .map(|param| format!("p{param}: {}", ty(random, &named, 2)))
            .collect();
        let result = if random.below(5) == 0 {
            String::new()
        } else {
            format!(" -> {}", ty(random, &named, 2))
        };
        let _ = writeln!(wit, "    f{index}: func({}){result};", params.join(", "));
        options(
            random,
            &mut toml,
            &format!("i{number}.f{index}"),
            params.len(),
            !result.is_empty(),
        );
    }
    wit += "}\n";
    (wit, toml)
}

/// Small bounds for some, so that their messages go in words.
fn options(random: &mut Random, toml: &mut String, name: &str, params: usize, result: bool) {
    let small = random.below(2) == 0;
    let bound = if small { "[5, 3, 2]" } else { "[20, 5, 3]" };
    let mut bounds: Vec<String> = (0..params).map(|param| format!("p{param} = {bound}")).collect();
    if result {
        bounds.push(format!("result = {bound}"));
    }
    let _ = writeln!(toml, "[{name}]\nbounds = {{ {} }}", bounds.join(", "));
}

fn definition(random: &mut Random, name: &str, named: &[String]) -> String {
    match random.below(4) {
        0 => {
            let fields =
                (0..1 + random.below(4)).map(|field| format!("x{field}: {}", ty(random, named, 1)));
            format!("    record {name} {{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
        1 => {
            let cases = (0..1 + random.below(4)).map(|case| match random.below(3) {
                0 => format!("c{case}"),
                _ => format!("c{case}({})", ty(random, named, 1)),
            });
            format!("    variant {name} {{ {} }}", cases.collect::<Vec<_>>().join(", "))
        }
        2 => {
            let cases = (0..1 + random.below(6)).map(|case| format!("e{case}"));
            format!("    enum {name} {{ {} }}", cases.collect::<Vec<_>>().join(", "))
        }
        _ => {
            let flags = (0..1 + random.below(32)).map(|flag| format!("g{flag}"));
            format!("    flags {name} {{ {} }}", flags.collect::<Vec<_>>().join(", "))
        }
    }
}

fn ty(random: &mut Random, named: &[String], depth: usize) -> String {
    let deeper = depth.saturating_sub(1);
    match random.below(if depth == 0 { 4 } else { 10 }) {
        0 | 1 => match random.one_of(&PLAIN) {
            &"thread" => "own<thread>".to_owned(),
            plain => (*plain).to_owned(),
        },
        2 => "string".to_owned(),
        3 if !named.is_empty() => random.one_of(named).clone(),
        3 | 4 => format!("option<{}>", ty(random, named, deeper)),
        5 => format!("result<{}, {}>", ty(random, named, deeper), ty(random, named, deeper)),
        6 => ["result", "result<_, u8>", "result<char>"][random.below(3)].to_owned(),
        7 => format!("tuple<{}, {}>", ty(random, named, deeper), ty(random, named, deeper)),
        _ => format!("list<{}>", ty(random, named, deeper)),
    }
}
