//! Reads one Rust file: where `unsafe` stands and which functions are long.

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A function over the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongFunction {
    /// The file.
    pub file: String,
    /// Its first line.
    pub line: usize,
    /// Its name.
    pub name: String,
    /// From signature to closing brace.
    pub lines: usize,
}

/// What one file shows.
#[derive(Debug, Default)]
pub struct Seen {
    /// Lines on which the keyword `unsafe` stands.
    pub unsafe_lines: Vec<usize>,
    /// Functions longer than the limit.
    pub long_functions: Vec<LongFunction>,
    /// Functions with a parameter that says nothing but true or false.
    pub bool_parameters: Vec<String>,
    /// The file's tokens.
    pub tokens: TokenStream,
}

/// Reads `text`.
///
/// # Errors
/// When it is not Rust.
pub fn read(file: &str, text: &str, max_lines: usize) -> Result<Seen> {
    let tree = syn::parse_file(text).with_context(|| format!("{file} is not Rust"))?;
    let tokens: TokenStream = text.parse().ok().with_context(|| format!("{file} is not Rust"))?;
    let mut unsafe_lines = Vec::new();
    find_unsafe(tokens.clone(), &mut unsafe_lines);
    let mut functions = Functions { file, max_lines, long: Vec::new(), bools: Vec::new() };
    functions.visit_file(&tree);
    Ok(Seen {
        unsafe_lines,
        long_functions: functions.long,
        bool_parameters: functions.bools,
        tokens,
    })
}

/// Every keyword `unsafe`, also inside macros; comments and strings are no tokens.
fn find_unsafe(tokens: TokenStream, lines: &mut Vec<usize>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => find_unsafe(group.stream(), lines),
            TokenTree::Ident(word) if word == "unsafe" => lines.push(word.span().start().line),
            _ => {}
        }
    }
}

/// Measures functions and methods.
struct Functions<'a> {
    file: &'a str,
    max_lines: usize,
    long: Vec<LongFunction>,
    bools: Vec<String>,
}

impl Functions<'_> {
    fn measure(&mut self, signature: &syn::Signature, block: &syn::Block) {
        if signature.inputs.iter().any(is_bool) {
            self.bools.push(signature.ident.to_string());
        }
        let first = signature.span().start().line;
        let lines = block.span().end().line + 1 - first;
        if lines > self.max_lines {
            let name = signature.ident.to_string();
            self.long.push(LongFunction { file: self.file.to_owned(), line: first, name, lines });
        }
    }
}

fn is_bool(argument: &syn::FnArg) -> bool {
    let syn::FnArg::Typed(argument) = argument else { return false };
    matches!(&*argument.ty, syn::Type::Path(path) if path.path.is_ident("bool"))
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.measure(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.measure(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.measure(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_functions_are_found_wherever_they_stand() {
        let body = "x();\n".repeat(10);
        let text = format!(
            "fn short() {{}}\nfn long() {{\n{body}}}\nimpl T {{ fn method(&self) {{\n{body}}} }}\n\
             trait U {{ fn given(&self) {{\n{body}}} fn wanted(&self); }}\n"
        );
        let seen = read("f.rs", &text, 10).unwrap();
        let names: Vec<(&str, usize, usize)> =
            seen.long_functions.iter().map(|f| (f.name.as_str(), f.line, f.lines)).collect();
        assert_eq!(names, [("long", 2, 12), ("method", 14, 12), ("given", 26, 12)]);
        assert!(read("f.rs", &text, 12).unwrap().long_functions.is_empty());
    }

    #[test]
    fn functions_with_parameters_that_are_true_or_false_are_named_once() {
        let text = "fn f(a: bool, b: bool) {} fn g(a: u8) -> bool { true }\n\
                    impl T { fn h(&self, is: bool) {} fn i(&self, f: fn(bool)) {} }\n";
        assert_eq!(read("f.rs", text, 50).unwrap().bool_parameters, ["f", "h"]);
    }

    #[test]
    fn unsafe_in_macros_counts_in_comments_and_strings_does_not() {
        let text = "/* unsafe */ m! { unsafe { } }\n// unsafe\nconst S: &str = \"unsafe\";\n\
                    fn f() { unsafe { g(); } }\n";
        assert_eq!(read("f.rs", text, 50).unwrap().unsafe_lines, [1, 4]);
    }
}
