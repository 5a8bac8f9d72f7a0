//! Interfaces as the generators see them: names resolved, bounds filled in, nothing refused left.

use std::collections::BTreeMap;

/// Every interface of a folder, in the order of their files.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The interfaces.
    pub interfaces: Vec<Interface>,
    /// Every named type, by interface and name.
    pub types: BTreeMap<TypeName, Definition>,
}

/// A named type: its interface, its name in the interface.
pub type TypeName = (String, String);

/// One interface.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Its name, as in `console`.
    pub name: String,
    /// Package and name, as in `baton:system/console`.
    pub full_name: String,
    /// The package's version.
    pub version: [u16; 3],
    /// What its author says of it.
    pub docs: Option<String>,
    /// Names of the types that it defines or uses, in order; used ones with their origin.
    pub types: Vec<(String, TypeName)>,
    /// Its functions in order.
    pub functions: Vec<Function>,
}

/// A named type and what its author says of it.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Its author's words.
    pub docs: Option<String>,
    /// What it is.
    pub kind: Kind,
}

/// What a named type is.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Fields in order.
    Record(Vec<Field>),
    /// Cases, of which each may have a value.
    Variant(Vec<Case>),
    /// Cases without values.
    Enum(Vec<Case>),
    /// Up to 64 bits.
    Flags(Vec<Case>),
    /// A server's object, known by a handle.
    Resource,
}

/// A field of a record, or a parameter.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its author's words.
    pub docs: Option<String>,
    /// Its type.
    pub ty: Ty,
}

/// A case of a variant or an enum, or a flag.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// Its author's words.
    pub docs: Option<String>,
    /// Its value's type.
    pub ty: Option<Ty>,
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ty {
    /// A type without parts, by its name in WIT.
    Plain(Plain),
    /// Text of at most so many bytes.
    Text(usize),
    /// At most so many bytes.
    Bytes(usize),
    /// At most so many elements.
    List(Box<Ty>, usize),
    /// A value or none.
    Option(Box<Ty>),
    /// A value or an error.
    Result(Option<Box<Ty>>, Option<Box<Ty>>),
    /// Several values.
    Tuple(Vec<Ty>),
    /// A named type.
    Named(TypeName),
}

/// A type without parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {
    /// Yes or no.
    Bool,
    /// Unsigned, so many bytes.
    U(u8),
    /// Signed, so many bytes.
    S(u8),
    /// Floating point, so many bytes.
    F(u8),
    /// A character.
    Char,
    /// A thread or an interrupt line, of `baton:abi`.
    Thread,
    /// What an answer maps, of `baton:abi`. No value: [`Function::maps`] instead.
    Mappings,
}

/// One function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name, as in `write`, `blob.read`, `blob.drop`.
    pub name: String,
    /// Its author's words.
    pub docs: Option<String>,
    /// Parameters; of a resource's method, the resource first.
    pub params: Vec<Field>,
    /// What it returns.
    pub result: Option<Ty>,
    /// Whether its answer maps something, which is no part of `result`.
    pub maps: bool,
    /// How it is called.
    pub manner: Manner,
    /// How long the client waits, µs: until the server takes the request, and for the answer.
    /// None: as long as it takes.
    pub timeouts_us: [Option<u64>; 2],
}

/// How a function is called and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// The answer comes when the function returns.
    Answered,
    /// The server may keep the answer for later.
    Later,
    /// There is no answer.
    OneWay,
}

impl Ty {
    /// Whether a value refers to bytes outside itself.
    #[must_use]
    pub fn borrows(&self, model: &Model) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Text(_) | Self::Bytes(_) | Self::List(..) => true,
            Self::Option(ty) => ty.borrows(model),
            Self::Result(ok, err) => [ok, err].into_iter().flatten().any(|ty| ty.borrows(model)),
            Self::Tuple(parts) => parts.iter().any(|ty| ty.borrows(model)),
            Self::Named(name) => model.kind(name).borrows(model),
        }
    }
}

impl Kind {
    /// Whether a value refers to bytes outside itself.
    #[must_use]
    pub fn borrows(&self, model: &Model) -> bool {
        match self {
            Self::Record(fields) => fields.iter().any(|field| field.ty.borrows(model)),
            Self::Variant(cases) => {
                cases.iter().filter_map(|case| case.ty.as_ref()).any(|ty| ty.borrows(model))
            }
            Self::Enum(_) | Self::Flags(_) | Self::Resource => false,
        }
    }
}

impl Model {
    /// What the type `name` is. Every name in a model is defined in it.
    #[must_use]
    pub fn kind(&self, name: &TypeName) -> &Kind {
        const NOTHING: &Kind = &Kind::Resource;
        self.types.get(name).map_or(NOTHING, |definition| &definition.kind)
    }
}
