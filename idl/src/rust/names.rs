//! Names of WIT as Rust writes them.

/// Words that Rust keeps for itself.
const KEYWORDS: [&str; 41] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let",
    "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return",
    "static", "struct", "trait", "true", "try", "type", "use",
];
/// Further ones, and words that the stubs use themselves.
const TAKEN: [&str; 24] = [
    "typeof", "unsafe", "unsized", "virtual", "where", "while", "yield", "answer", "body",
    "caller", "carrier", "crate", "input", "later", "output", "request", "room", "super", "words",
    "label", "bind", "new", "bind_for", "union",
];

/// `two-words` or `blob.read` as a function, a field or a module.
pub fn snake(name: &str) -> String {
    name.replace(['-', '.'], "_").to_lowercase()
}

/// A parameter or a field: never a word that means something else.
pub fn value(name: &str) -> String {
    match snake(name) {
        name if name == "self" => "this".to_owned(),
        name if KEYWORDS.contains(&name.as_str()) || TAKEN.contains(&name.as_str()) => name + "_",
        name => name,
    }
}

/// A function.
pub fn function(name: &str) -> String {
    value(name)
}

/// As a constant.
pub fn shout(name: &str) -> String {
    snake(name).to_uppercase()
}

/// As a type or a case.
pub fn camel(name: &str) -> String {
    let words = name.split(['-', '.']);
    let camel: String = words.map(capital).collect();
    if camel == "Self" { "Self_".to_owned() } else { camel }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars.map(|char| char.to_ascii_lowercase())).collect()
}
