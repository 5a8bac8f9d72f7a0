//! For each interface a server that knows what is coming, and tests that send it.

use std::fmt::Write as _;

use baton_idl::model::{Function, Interface, Model, Ty};
use baton_idl::rust::{camel, function_name, snake, type_name, value};

use crate::literal;
use crate::random::Random;

/// Calls of each function.
const TURNS: usize = 6;
/// Rounds of garbage for a client, and of those that go through C.
const ROUNDS: usize = 400;
const ROUNDS_IN_C: usize = 60;

/// The file of trials.
pub fn all(model: &Model, random: &mut Random) -> String {
    let mut out = String::new();
    for (number, interface) in model.interfaces.iter().enumerate() {
        let trial = Trial { number, model, interface };
        out += &trial.text(random);
        out += &trial.in_c();
    }
    out
}

struct Trial<'m> {
    number: usize,
    model: &'m Model,
    interface: &'m Interface,
}

impl Trial<'_> {
    fn text(&self, random: &mut Random) -> String {
        let functions = &self.interface.functions;
        let constants: String = functions.iter().map(|f| self.constants(f, random)).collect();
        let methods: String = functions.iter().map(|f| self.method(f)).collect();
        let exact = |f| format!("assert_eq!({}, Ok({}));\n", self.call(f), self.expected(f));
        let calls: String = functions.iter().map(exact).collect();
        let loose: String =
            functions.iter().map(|f| format!("let _ = {};\n", self.call(f))).collect();
        let module = snake(&self.interface.name);
        let server = format!("{}Server", camel(&self.interface.name));
        format!(
            "{constants}\n/// Knows what comes, and what it says to it.\n\
             struct {server} {{ turn: usize, strict: bool }}\n\n\
             impl {module}::Server for {server} {{\n{methods}}}\n\n\
             #[test]\nfn values_go_through_{module}_and_come_back() {{\n\
             for turn in 0..{TURNS} {{\n\
             let server = {server} {{ turn, strict: true }};\n\
             let serve = {module}::Serve(&server);\n\
             let client = {module}::Client::bind(Inside(&serve)).unwrap();\n\
             let mut room = [0u8; 32768];\n{calls}}}\n}}\n\n\
             #[test]\nfn values_go_to_{module}_as_a_function_and_come_back() {{\n\
             for turn in 0..{TURNS} {{\n\
             let server: &'static _ = Box::leak(Box::new({server} {{ turn, strict: true }}));\n\
             let serve: &'static _ = Box::leak(Box::new({module}::Serve(server)));\n\
             let client = {module}::Client::bind(Near(serve)).unwrap();\n\
             let mut room = [0u8; 32768];\n{calls}}}\n}}\n\n\
             #[test]\nfn garbage_to_{module}_is_answered() {{\n\
             let server = {server} {{ turn: 0, strict: false }};\n\
             garbage_to_server(&{module}::Serve(&server), &{module}::label::ALL);\n}}\n\n\
             #[test]\nfn garbage_from_{module}_is_an_error() {{\n\
             for seed in 0..{ROUNDS} {{\n\
             let client = {module}::Client::new(Nonsense(seed));\nlet turn = 0;\n\
             let mut room = [0u8; 32768];\n{loose}}}\n}}\n\n"
        )
    }

    /// The same through the relay, which is in C.
    fn in_c(&self) -> String {
        let functions = &self.interface.functions;
        let exact = |f| format!("assert_eq!({}, Ok({}));\n", self.call(f), self.expected(f));
        let calls: String = functions.iter().map(exact).collect();
        let lies: String = functions
            .iter()
            .map(|f| {
                let call = self.call(f);
                let other = call.replace("client.", "in_c.").replace("room", "other");
                format!("same_end(&relay, {:?}, &{call}, &{other});\n", f.name)
            })
            .collect();
        let (module, number) = (snake(&self.interface.name), self.number);
        let server = format!("{}Server", camel(&self.interface.name));
        format!(
            "#[test]\nfn values_go_through_{module}_in_c_and_come_back() {{\n\
             let relay = Relay::new();\n\
             for turn in 0..{TURNS} {{\n\
             let server = {server} {{ turn, strict: true }};\n\
             let serve = {module}::Serve(&server);\n\
             let inside = Inside(&serve);\n\
             let client = {module}::Client::bind(Through(&relay, {number}, &inside)).unwrap();\n\
             let mut room = [0u8; 32768];\n{calls}}}\n}}\n\n\
             #[test]\nfn garbage_to_{module}_is_answered_alike() {{\n\
             let server = {server} {{ turn: 0, strict: false }};\n\
             garbage_to_both({number}, &{module}::Serve(&server), &{module}::label::ALL);\n}}\n\n\
             #[test]\nfn garbage_from_{module}_ends_alike() {{\n\
             let relay = Relay::new();\n\
             for seed in 0..{ROUNDS_IN_C} {{\n\
             let liar = Liar(Nonsense(seed));\n\
             let client = {module}::Client::new(liar);\n\
             let in_c = {module}::Client::new(Through(&relay, {number}, &liar));\n\
             let turn = 0;\nlet mut room = [0u8; 32768];\nlet mut other = room;\n{lies}}}\n}}\n\n"
        )
    }

    /// A type as the trials, which stand outside of the interfaces' modules, call it.
    fn ty(&self, ty: &Ty, life: &str) -> String {
        type_name(self.model, "", ty, life).replace("super::", "")
    }

    /// The values of one part of a function, one a turn.
    fn name(&self, function: &Function, part: &str) -> String {
        format!("{}_{}_{part}", snake(&self.interface.name), snake(&function.name)).to_uppercase()
    }

    fn constants(&self, function: &Function, random: &mut Random) -> String {
        let params = function.params.iter().map(|param| (snake(&param.name), &param.ty));
        let result = function.result.iter().map(|ty| ("result".to_owned(), ty));
        let constant = |(part, ty): (String, &Ty)| {
            let values = (0..TURNS).map(|_| literal::of(self.model, ty, random));
            let values = values.collect::<Vec<_>>().join(",\n");
            let name = self.name(function, &part);
            format!("const {name}: [{}; {TURNS}] = [{values}];\n", self.ty(ty, "'static"))
        };
        params.chain(result).map(constant).collect()
    }

    fn method(&self, function: &Function) -> String {
        let borrows = self.borrows(function);
        let (generics, this, life) =
            if borrows { ("<'r>", "&'r self", "'r") } else { ("", "&self", "") };
        let mut params = format!("{this}, _: service::Caller");
        let mut checks = String::new();
        for param in &function.params {
            let (name, values) = (value(&param.name), self.name(function, &snake(&param.name)));
            let _ = write!(params, ", {name}: {}", self.ty(&param.ty, ""));
            let check = format!("assert_eq!({name}, {values}[self.turn])");
            let _ = writeln!(checks, "if self.strict {{ {check}; }}");
        }
        if borrows {
            params += ", _: service::Room<'r>";
        }
        let result = function.result.as_ref().map_or("()".to_owned(), |ty| self.ty(ty, life));
        let answer = self.expected(function).replace("[turn]", "[self.turn]");
        let name = function_name(&function.name);
        format!("fn {name}{generics}({params}) -> {result} {{\n{checks}{answer}\n}}\n")
    }

    fn borrows(&self, function: &Function) -> bool {
        function.result.as_ref().is_some_and(|ty| ty.borrows(self.model))
    }

    fn expected(&self, function: &Function) -> String {
        match &function.result {
            Some(_) => format!("{}[turn]", self.name(function, "result")),
            None => "()".to_owned(),
        }
    }

    fn call(&self, function: &Function) -> String {
        let param = |param: &baton_idl::model::Field| {
            format!("{}[turn]", self.name(function, &snake(&param.name)))
        };
        let mut arguments: Vec<String> = function.params.iter().map(param).collect();
        if self.borrows(function) {
            arguments.push("&mut room".to_owned());
        }
        format!("client.{}({})", function_name(&function.name), arguments.join(", "))
    }
}
