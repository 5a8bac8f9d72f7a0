//! An interpreter of the fast paths' own text (`arch/x86_64/entry`), up to where they have chosen a receiver, at a
//! `POINT OF NO RETURN`, or leave for the complete path. It knows the instructions that stand before those
//! and refuses all others.

use std::collections::HashMap;

/// What is known by name in the text.
pub type Names = HashMap<&'static str, i64>;

/// What an operand's address is made of.
#[derive(Clone, Debug)]
struct Place {
    registers: Vec<usize>,
    offset: u64,
}

#[derive(Clone, Debug)]
enum Operand {
    /// A register, and how many bits of it.
    Register(usize, u32),
    Number(u64),
    /// Memory, and how many bits of it, if that is said.
    Memory(Place, Option<u32>),
}

#[derive(Clone, Debug)]
enum Step {
    Do(&'static str, Operand, Operand),
    /// A jump, under a condition.
    Jump(&'static str, String),
    /// Here only stores follow.
    NoReturn,
    Unknown(String),
}

/// What is found in memory.
pub trait Memory {
    /// The word at `address`, a multiple of eight.
    fn word(&self, address: u64) -> u64;
    /// Something is written to the word at `address` before the point of no return.
    fn written(&self, address: u64);
}

/// What has come of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End<'a> {
    /// This is the receiver's place in the array.
    Found(u64),
    /// Where it goes on without one.
    Refused(&'a str),
}

const REGISTERS: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];
const TWO: [&str; 9] = ["mov", "lea", "cmp", "test", "and", "xor", "add", "shr", "ror"];
const JUMPS: [&str; 10] = ["jmp", "je", "jne", "jz", "jnz", "ja", "jae", "jb", "jbe", "call"];
/// Lines that do nothing to what is chosen.
const IDLE: [&str; 5] = [".section", ".balign", ".global", "divert", "message_words"];
/// Where the receiver of a string is chosen: it is copied, and only then is the point of no return.
const CHOSEN: &str = ".Lstring_copy";

/// The number of the register of this name.
#[must_use]
pub fn register(name: &str) -> usize {
    named(name).map(|(number, _)| number).expect("it is a register")
}

fn named(name: &str) -> Option<(usize, u32)> {
    let find = |name: &str| REGISTERS.iter().position(|it| *it == name);
    let low = |bits| move |number| (number, bits);
    if let Some(number) = find(name) {
        return Some((number, 64));
    }
    if let Some(rest) = name.strip_prefix('e') {
        return find(&format!("r{rest}")).map(low(32));
    }
    let bits = match name.chars().last()? {
        'd' => 32,
        'w' => 16,
        'b' => 8,
        'l' => return find(&format!("r{}x", &name[..1])).map(low(8)),
        _ => return None,
    };
    find(&name[..name.len() - 1]).map(low(bits))
}

/// The text, ready to be gone through.
pub struct Text {
    steps: Vec<Step>,
    labels: HashMap<String, usize>,
    /// Those that are only numbers, in their order.
    numbers: Vec<(String, usize)>,
}

struct Reader<'a> {
    names: &'a Names,
    macros: HashMap<String, (Vec<String>, Vec<String>)>,
    text: Text,
}

impl Text {
    /// Reads `sources`, one behind the other.
    #[must_use]
    pub fn read(sources: &[&str], names: &Names) -> Self {
        let text = Self { steps: Vec::new(), labels: HashMap::new(), numbers: Vec::new() };
        let mut reader = Reader { names, macros: HashMap::new(), text };
        for source in sources {
            let lines: Vec<String> = source.lines().map(str::to_owned).collect();
            reader.lines(&lines);
        }
        reader.text.resolve();
        reader.text
    }

    /// Jumps to numbers get the name of the place.
    fn resolve(&mut self) {
        for at in 0..self.steps.len() {
            let Step::Jump(_, target) = &mut self.steps[at] else { continue };
            let Some((number, way)) = target.split_at_checked(target.len() - 1) else { continue };
            if number.is_empty() || !number.bytes().all(|it| it.is_ascii_digit()) {
                continue;
            }
            let like = self.numbers.iter().filter(|(name, _)| name == number);
            let place = match way {
                "f" => like.map(|it| it.1).find(|place| *place > at),
                _ => like.map(|it| it.1).rfind(|place| *place <= at),
            };
            let place = place.expect("the label is there");
            *target = format!("@{place}");
            self.labels.insert(target.clone(), place);
        }
    }

    /// Goes through it from `start`.
    pub fn run(&self, start: &str, registers: [u64; 16], memory: &impl Memory) -> End<'_> {
        let mut machine = Machine { registers, memory, is_zero: false, is_below: false };
        let mut at = self.labels[start];
        for _ in 0..1000 {
            match &self.steps[at] {
                Step::NoReturn => return End::Found(machine.registers[register("rbp")]),
                Step::Unknown(line) => panic!("not known before a point of no return: {line}"),
                Step::Do(name, to, from) => machine.step(name, to, from),
                Step::Jump(condition, target) if machine.holds(condition) => {
                    let Some(place) = self.labels.get(target) else { return End::Refused(target) };
                    at = *place;
                    continue;
                }
                Step::Jump(..) => {}
            }
            at += 1;
        }
        panic!("no end");
    }
}

impl Reader<'_> {
    fn lines(&mut self, lines: &[String]) {
        let mut lines = lines.iter();
        while let Some(line) = lines.next() {
            if let Some(head) = line.trim().strip_prefix(".macro ") {
                let words: Vec<String> =
                    head.split([' ', ',']).filter(|it| !it.is_empty()).map(str::to_owned).collect();
                let body = lines.by_ref().take_while(|it| it.trim() != ".endm").cloned().collect();
                self.macros.insert(words[0].clone(), (words[1..].to_vec(), body));
            } else {
                self.line(line);
            }
        }
    }

    fn line(&mut self, line: &str) {
        let (mut code, comment) = line.split_once("//").unwrap_or((line, ""));
        while let Some((label, rest)) = code.split_once(':') {
            let (label, at) = (label.trim().to_owned(), self.text.steps.len());
            if label.bytes().all(|it| it.is_ascii_digit()) {
                self.text.numbers.push((label, at));
            } else {
                if label == CHOSEN {
                    self.text.steps.push(Step::NoReturn);
                }
                self.text.labels.insert(label, at);
            }
            code = rest;
        }
        if comment.trim().starts_with("POINT OF NO RETURN") {
            self.text.steps.push(Step::NoReturn);
        }
        let code = code.trim();
        let (name, rest) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
        // Both ways of a technique are read, and the first is gone.
        let is_idle = name.is_empty() || IDLE.contains(&name) || name.starts_with(".if");
        if is_idle || [".else", ".endif"].contains(&name) {
            return;
        }
        let words: Vec<&str> = rest.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
        if let Some((parameters, body)) = self.macros.get(name).cloned() {
            let fill = |line: &String| {
                parameters.iter().zip(&words).fold(line.clone(), |line, (parameter, word)| {
                    line.replace(&format!("\\{parameter}"), word)
                })
            };
            return self.lines(&body.iter().map(fill).collect::<Vec<_>>());
        }
        let step = self.step(name, &words).unwrap_or_else(|| Step::Unknown(code.to_owned()));
        self.text.steps.push(step);
    }

    fn step(&self, name: &str, words: &[&str]) -> Option<Step> {
        if let Some(jump) = JUMPS.iter().find(|it| **it == name) {
            return Some(Step::Jump(jump, (*words.first()?).to_owned())).filter(|_| name != "call");
        }
        let name = TWO.iter().find(|it| **it == name)?;
        let [to, from] = words else {
            // `inc` apart: that of beside.S, which nobody comes to here.
            return None;
        };
        Some(Step::Do(name, self.operand(to)?, self.operand(from)?))
    }

    fn operand(&self, word: &str) -> Option<Operand> {
        let sizes = [("qword ptr ", 64), ("dword ptr ", 32), ("byte ptr ", 8)];
        let size = sizes.into_iter().find(|(prefix, _)| word.starts_with(prefix));
        let bare = size.map_or(word, |(prefix, _)| word[prefix.len()..].trim());
        if let Some((number, bits)) = named(bare) {
            return Some(Operand::Register(number, bits));
        }
        let Some(inner) = bare.strip_prefix('[').and_then(|it| it.strip_suffix(']')) else {
            return self.number(bare).map(Operand::Number);
        };
        let mut place = Place { registers: Vec::new(), offset: 0 };
        for (sign, term) in terms(inner) {
            match named(&term) {
                Some((number, 64)) if sign > 0 => place.registers.push(number),
                _ if term == "rip" => {}
                _ => {
                    let number = self.number(&term)?;
                    let number = if sign < 0 { number.wrapping_neg() } else { number };
                    place.offset = place.offset.wrapping_add(number);
                }
            }
        }
        Some(Operand::Memory(place, size.map(|(_, bits)| bits)))
    }

    /// The number that `text` comes to; what is joined by `^` before what is added.
    fn number(&self, text: &str) -> Option<u64> {
        let value = |word: &str| match word.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
            Some(name) => self.names.get(name).map(|value| *value as u64),
            None => word.parse().ok(),
        };
        terms(text).into_iter().try_fold(0u64, |sum, (sign, term)| {
            let all = term.split('^').map(|it| value(it.trim()));
            let number = all.collect::<Option<Vec<u64>>>()?.into_iter().fold(0, |a, b| a ^ b);
            Some(if sign < 0 { sum.wrapping_sub(number) } else { sum.wrapping_add(number) })
        })
    }
}

/// What is added and taken away in `text`.
fn terms(text: &str) -> Vec<(i32, String)> {
    let mut all = vec![(1, String::new())];
    for character in text.chars() {
        match character {
            '+' => all.push((1, String::new())),
            '-' => all.push((-1, String::new())),
            other => all.last_mut().expect("there is one").1.push(other),
        }
    }
    let trimmed = all.into_iter().map(|(sign, term)| (sign, term.trim().to_owned()));
    trimmed.filter(|(_, term)| !term.is_empty()).collect()
}

struct Machine<'a, M> {
    registers: [u64; 16],
    memory: &'a M,
    is_zero: bool,
    is_below: bool,
}

fn cut(value: u64, bits: u32) -> u64 {
    if bits == 64 { value } else { value & ((1 << bits) - 1) }
}

impl<M: Memory> Machine<'_, M> {
    fn address(&self, place: &Place) -> u64 {
        let sum = |sum: u64, number: &usize| sum.wrapping_add(self.registers[*number]);
        place.registers.iter().fold(place.offset, sum)
    }

    fn read(&self, operand: &Operand, bits: u32) -> u64 {
        let value = match operand {
            Operand::Register(number, _) => self.registers[*number],
            Operand::Number(number) => *number,
            Operand::Memory(place, _) => {
                let address = self.address(place);
                let (place, shift) = (address & !7, 8 * (address & 7) as u32);
                let own = self.memory.word(place) >> shift;
                let is_whole = bits + shift <= 64;
                own | if is_whole { 0 } else { self.memory.word(place + 8) << (64 - shift) }
            }
        };
        cut(value, bits)
    }

    fn write(&mut self, operand: &Operand, value: u64, bits: u32) {
        match operand {
            // Half a register's other half becomes zero, and a smaller part's others stay.
            Operand::Register(number, _) if bits >= 32 => self.registers[*number] = value,
            Operand::Register(number, _) => {
                let old = self.registers[*number];
                self.registers[*number] = old - cut(old, bits) + value;
            }
            Operand::Memory(place, _) => self.memory.written(self.address(place)),
            Operand::Number(_) => panic!("a number is nowhere"),
        }
    }

    fn step(&mut self, name: &str, to: &Operand, from: &Operand) {
        let bits = [to, from].into_iter().find_map(|it| match it {
            Operand::Register(_, bits) | Operand::Memory(_, Some(bits)) => Some(*bits),
            _ => None,
        });
        let bits = bits.expect("the size is said");
        if name == "lea" {
            let Operand::Memory(place, _) = from else { panic!("no place") };
            return self.write(to, cut(self.address(place), bits), bits);
        }
        let other = self.read(from, bits);
        if name == "mov" {
            return self.write(to, other, bits);
        }
        let own = self.read(to, bits);
        let value = match name {
            "cmp" => cut(own.wrapping_sub(other), bits),
            "test" | "and" => own & other,
            "xor" => own ^ other,
            "add" => cut(own.wrapping_add(other), bits),
            "shr" => own >> other,
            "ror" if bits == 64 => own.rotate_right(other as u32),
            _ => panic!("{name} is not known"),
        };
        self.is_below = name == "cmp" && own < other;
        // Turning changes no flag of these.
        self.is_zero = if name == "ror" { self.is_zero } else { value == 0 };
        if !["cmp", "test"].contains(&name) {
            self.write(to, value, bits);
        }
    }

    fn holds(&self, condition: &str) -> bool {
        match condition {
            "jmp" => true,
            "je" | "jz" => self.is_zero,
            "jne" | "jnz" => !self.is_zero,
            "ja" => !self.is_below && !self.is_zero,
            "jae" => !self.is_below,
            "jb" => self.is_below,
            "jbe" => self.is_below || self.is_zero,
            _ => panic!("{condition} is not known"),
        }
    }
}
