//! From WIT to the model: `wit-parser` reads and resolves, this refuses what Baton has no
//! messages for, with the line that says it, and fills in names and bounds.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use wit_parser::{
    FunctionKind, Handle, InterfaceId, PackageId, Resolve, ResolveError, Span, Type, TypeDef,
    TypeDefKind, TypeId, TypeOwner,
};

use crate::layout::{self, MAX_BODY, MAX_WORDS};
use crate::mappings;
use crate::model::{
    Case, Definition, Field, Function, Interface, Kind, Manner, Model, Plain, Ty, TypeName,
};
use crate::options::{Options, Place};

/// The package that every interface may use: what the kernel's messages can carry.
const ABI: &str = include_str!("abi.wit");
/// Its name.
const ABI_PACKAGE: (&str, &str) = ("baton", "abi");
/// Parameters of a function, and parts of a tuple.
const MAX_PARTS: usize = 12;

/// Reads every interface of the package in `folder`.
///
/// # Errors
/// A text for the author: the file, the line, what is wrong there.
pub fn folder(folder: &Path) -> Result<Model> {
    let mut resolve = Resolve::default();
    let mut options = Options::default();
    for wit in wit_files(folder)? {
        options.read(&wit.with_extension("toml"))?;
    }
    let pushed = resolve
        .push_source("abi.wit", ABI)
        .and_then(|_| resolve.push_dir(folder).map(|(package, _)| package));
    let package = pushed.map_err(|error| anyhow!("{}", resolve.render_error(&error)))?;
    let model = Loader { resolve: &resolve, options: &options, model: Model::default() }
        .package(package)
        .map_err(|error| anyhow!("{}", resolve.render_error(&error.into())))?;
    options.complain().with_context(|| format!("in {}", folder.display()))?;
    Ok(model)
}

/// The WIT files of a folder in order.
///
/// # Errors
/// When the folder cannot be read.
pub fn wit_files(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read the folder {}", folder.display()))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "wit"));
    files.sort();
    Ok(files)
}

type Loaded<T> = std::result::Result<T, ResolveError>;

fn refuse<T>(span: Span, why: impl Into<String>) -> Loaded<T> {
    Err(ResolveError::new_semantic(span, why))
}

struct Loader<'r> {
    resolve: &'r Resolve,
    options: &'r Options,
    model: Model,
}

impl Loader<'_> {
    fn package(mut self, package: PackageId) -> Loaded<Model> {
        let ids: Vec<InterfaceId> =
            self.resolve.packages[package].interfaces.values().copied().collect();
        for id in ids {
            let interface = self.interface(id)?;
            self.model.interfaces.push(interface);
        }
        for (id, interface) in self.resolve.packages[package].interfaces.values().zip(0..) {
            self.check(*id, &self.model.interfaces[interface])?;
        }
        Ok(self.model)
    }

    fn interface(&mut self, id: InterfaceId) -> Loaded<Interface> {
        let source = &self.resolve.interfaces[id];
        let name = source.name.clone().unwrap_or_default();
        let package = source.package.map(|id| &self.resolve.packages[id].name);
        let full_name = package.map_or(name.clone(), |package| {
            format!("{}:{}/{name}", package.namespace, package.name)
        });
        let version = package.and_then(|package| package.version.as_ref());
        let part = |part: u64| u16::try_from(part).unwrap_or(u16::MAX);
        let Some(version) = version.map(|v| [part(v.major), part(v.minor), part(v.patch)]) else {
            return refuse(source.span, "the package needs a version, as in `package a:b@1.0.0;`");
        };
        let mut interface = Interface {
            name,
            full_name,
            version,
            docs: source.docs.contents.clone(),
            types: Vec::new(),
            functions: Vec::new(),
        };
        for (name, ty) in &source.types {
            if let Some(origin) = self.define(*ty)? {
                interface.types.push((name.clone(), origin));
            }
        }
        for function in source.functions.values() {
            let function = self.function(&interface, function)?;
            interface.functions.push(function);
        }
        let resources = source
            .types
            .iter()
            .filter(|(_, ty)| matches!(self.resolve.types[**ty].kind, TypeDefKind::Resource));
        for (name, _) in resources {
            interface.functions.push(drop_function(&interface.name, name));
        }
        Ok(interface)
    }

    /// Puts a named type into the model; the name of what it really is. None if it has no name
    /// of its own: another name of a text, say.
    fn define(&mut self, id: TypeId) -> Loaded<Option<TypeName>> {
        let ty = &self.resolve.types[id];
        let Some(name) = self.type_name(ty) else { return Ok(None) };
        let place = Place::of(&name.0, &name.1);
        self.options.see(&place);
        let kind = match &ty.kind {
            TypeDefKind::Type(Type::Id(other)) => return self.define(*other),
            TypeDefKind::Resource if self.is_abi(ty) => return Ok(None),
            TypeDefKind::Resource => Kind::Resource,
            TypeDefKind::Record(record) => {
                let field = |field: &wit_parser::Field| {
                    Ok(Field {
                        name: field.name.clone(),
                        docs: field.docs.contents.clone(),
                        ty: self.ty(&field.ty, field.span, place.at(&field.name))?,
                    })
                };
                let fields: Vec<Field> = record.fields.iter().map(field).collect::<Loaded<_>>()?;
                Kind::Record(fields)
            }
            TypeDefKind::Variant(variant) => {
                let case = |case: &wit_parser::Case| {
                    let value = case.ty.as_ref();
                    let value = value.map(|ty| self.ty(ty, case.span, place.at(&case.name)));
                    Ok(self::case(&case.name, &case.docs, value.transpose()?))
                };
                Kind::Variant(variant.cases.iter().map(case).collect::<Loaded<_>>()?)
            }
            TypeDefKind::Enum(cases) => {
                let case = |case: &wit_parser::EnumCase| self::case(&case.name, &case.docs, None);
                Kind::Enum(cases.cases.iter().map(case).collect())
            }
            TypeDefKind::Flags(flags) => {
                let case = |flag: &wit_parser::Flag| self::case(&flag.name, &flag.docs, None);
                Kind::Flags(flags.flags.iter().map(case).collect())
            }
            _ => {
                // Another name of a type without a name; it is checked where it is used.
                self.ty(&Type::Id(id), ty.span, Place::of("", ""))?;
                return Ok(None);
            }
        };
        let definition = Definition { docs: ty.docs.contents.clone(), kind };
        self.model.types.insert(name.clone(), definition);
        Ok(Some(name))
    }

    fn type_name(&self, ty: &TypeDef) -> Option<TypeName> {
        let TypeOwner::Interface(owner) = ty.owner else { return None };
        Some((self.resolve.interfaces[owner].name.clone()?, ty.name.clone()?))
    }

    /// Whether a type is one of `baton:abi`.
    fn is_abi(&self, ty: &TypeDef) -> bool {
        let TypeOwner::Interface(owner) = ty.owner else { return false };
        let package = self.resolve.interfaces[owner].package;
        package.is_some_and(|id| {
            let name = &self.resolve.packages[id].name;
            (name.namespace.as_str(), name.name.as_str()) == ABI_PACKAGE
        })
    }

    fn function(
        &mut self,
        interface: &Interface,
        source: &wit_parser::Function,
    ) -> Loaded<Function> {
        if source.kind.is_async() {
            return refuse(
                source.span,
                "`async` has no message; say `later = true` in the TOML file beside this one, and the \
                 server may keep the answer",
            );
        }
        if source.kind.accessor().is_some() {
            return refuse(source.span, "`get` and `set` are not known here; write a function");
        }
        let name = self.function_name(source);
        let options = self.options.item(&interface.name, &name);
        let place = Place::of(&interface.name, &name);
        let param = |param: &wit_parser::Param| {
            Ok(Field {
                name: param.name.clone(),
                docs: None,
                ty: self.ty(&param.ty, param.span, place.at(&param.name))?,
            })
        };
        let params: Vec<Field> = source.params.iter().map(param).collect::<Loaded<_>>()?;
        let result = source.result.as_ref();
        let result = result.map(|ty| self.ty(ty, source.span, place.at("result"))).transpose()?;
        let manner = match (options.one_way, options.later) {
            (false, false) => Manner::Answered,
            (false, true) => Manner::Later,
            (true, false) if result.is_none() => Manner::OneWay,
            (true, false) => {
                return refuse(source.span, "a function that is one-way has no result");
            }
            (true, true) => return refuse(source.span, "a function is one-way or answered later"),
        };
        let (result, maps) = mappings::split(result);
        let parts = params.iter().map(|param| &param.ty).chain(&result);
        if maps && manner != Manner::Answered || parts.into_iter().any(mappings::is_in) {
            return refuse(
                source.span,
                "`mappings` are the last part of a result, or all of it, of a function that answers at once",
            );
        }
        let timeouts_us = [options.send_us, options.answer_us];
        let docs = source.docs.contents.clone();
        Ok(Function { name, docs, params, result, maps, manner, timeouts_us })
    }

    fn function_name(&self, source: &wit_parser::Function) -> String {
        let resource = source.kind.resource().and_then(|id| self.resolve.types[id].name.clone());
        match (&source.kind, resource) {
            (FunctionKind::Constructor(_), Some(resource)) => format!("{resource}.new"),
            (_, Some(resource)) => format!("{resource}.{}", source.item_name()),
            _ => source.name.clone(),
        }
    }

    /// A type; `span` is where it is used, `place` what bounds its outermost lengths.
    fn ty(&self, ty: &Type, span: Span, place: Place<'_>) -> Loaded<Ty> {
        let plain = |plain| Ok(Ty::Plain(plain));
        self.options.see(&place);
        match ty {
            Type::Bool => plain(Plain::Bool),
            Type::U8 => plain(Plain::U(1)),
            Type::U16 => plain(Plain::U(2)),
            Type::U32 => plain(Plain::U(4)),
            Type::U64 => plain(Plain::U(8)),
            Type::S8 => plain(Plain::S(1)),
            Type::S16 => plain(Plain::S(2)),
            Type::S32 => plain(Plain::S(4)),
            Type::S64 => plain(Plain::S(8)),
            Type::F32 => plain(Plain::F(4)),
            Type::F64 => plain(Plain::F(8)),
            Type::Char => plain(Plain::Char),
            Type::String => Ok(Ty::Text(self.options.bytes(&place))),
            Type::ErrorContext => refuse(span, "`error-context` has no message; return a `result`"),
            Type::Id(id) => self.id(*id, span, place),
        }
    }

    fn id(&self, id: TypeId, span: Span, place: Place<'_>) -> Loaded<Ty> {
        let source = &self.resolve.types[id];
        let boxed = |ty: &Type, place| self.ty(ty, span, place).map(Box::new);
        let optional = |ty: &Option<Type>| ty.as_ref().map(|ty| boxed(ty, place)).transpose();
        match &source.kind {
            TypeDefKind::Type(ty) => self.ty(ty, span, place),
            TypeDefKind::List(Type::U8) => Ok(Ty::Bytes(self.options.bytes(&place))),
            TypeDefKind::List(element) => {
                Ok(Ty::List(boxed(element, place.element())?, self.options.elements(&place)))
            }
            TypeDefKind::Option(ty) => Ok(Ty::Option(boxed(ty, place)?)),
            TypeDefKind::Result(result) => {
                Ok(Ty::Result(optional(&result.ok)?, optional(&result.err)?))
            }
            TypeDefKind::Tuple(tuple) if (1..=MAX_PARTS).contains(&tuple.types.len()) => {
                let parts = tuple.types.iter().map(|ty| self.ty(ty, span, place));
                Ok(Ty::Tuple(parts.collect::<Loaded<_>>()?))
            }
            TypeDefKind::Tuple(_) => {
                refuse(span, format!("a tuple has 1 to {MAX_PARTS} parts; make a record"))
            }
            TypeDefKind::Handle(Handle::Own(id) | Handle::Borrow(id)) => self.handle(*id, span),
            TypeDefKind::Map(..) => refuse(span, "`map` has no message; use a list of tuples"),
            TypeDefKind::Future(_) => refuse(
                span,
                "`future` has no message; say `later = true` in the TOML file, and the answer comes later",
            ),
            TypeDefKind::Stream(_) => {
                refuse(span, "`stream` has no message; use a function that is called for each part")
            }
            TypeDefKind::FixedLengthList(..) => {
                refuse(span, "lists of a fixed length are not known here; use a tuple or a list")
            }
            TypeDefKind::Resource | TypeDefKind::Unknown => {
                refuse(span, "this type is not known here")
            }
            TypeDefKind::Record(_)
            | TypeDefKind::Variant(_)
            | TypeDefKind::Enum(_)
            | TypeDefKind::Flags(_) => match self.type_name(source) {
                Some(name) => Ok(Ty::Named(name)),
                None => {
                    refuse(span, "a type of a world is not known here; define it in an interface")
                }
            },
        }
    }

    fn handle(&self, id: TypeId, span: Span) -> Loaded<Ty> {
        let mut resource = &self.resolve.types[id];
        while let TypeDefKind::Type(Type::Id(other)) = &resource.kind {
            resource = &self.resolve.types[*other];
        }
        let name = self.type_name(resource);
        match (self.is_abi(resource), name) {
            (true, Some((_, name))) if name == "thread" || name == "interrupt" => {
                Ok(Ty::Plain(Plain::Thread))
            }
            (true, Some((_, name))) if name == "mappings" => Ok(Ty::Plain(Plain::Mappings)),
            (false, Some(name)) => Ok(Ty::Named(name)),
            _ => refuse(span, "a resource without a name is not known here"),
        }
    }

    /// Whether every function of an interface has messages that can be sent.
    fn check(&self, id: InterfaceId, interface: &Interface) -> Loaded<()> {
        let source = &self.resolve.interfaces[id];
        let spans = source.functions.values().map(|function| function.span);
        let spans = spans.chain(std::iter::repeat(source.span));
        let mut labels = std::collections::BTreeMap::new();
        for (function, span) in interface.functions.iter().zip(spans) {
            if function.params.len() > MAX_PARTS {
                return refuse(
                    span,
                    format!("there are {MAX_PARTS} parameters at most; make a record"),
                );
            }
            let parts =
                [layout::request(&self.model, function), layout::answer(&self.model, function)];
            for ((words, form), what) in parts.into_iter().zip(["parameters", "result"]) {
                let room =
                    if matches!(form, layout::Form::String(_)) { MAX_WORDS - 2 } else { MAX_WORDS };
                if words > room {
                    return refuse(
                        span,
                        format!("the {what} take {words} words, and a message has {room}"),
                    );
                }
                if let layout::Form::String(bytes) = form
                    && bytes > MAX_BODY
                {
                    return refuse(
                        span,
                        format!(
                            "the {what} may take {bytes} bytes, and a message has {MAX_BODY}; give the texts and \
                         lists smaller bounds in the TOML file beside this one"
                        ),
                    );
                }
            }
            mappings::check(&self.model, function).or_else(|why| refuse(span, why))?;
            let label = layout::label(&self.model, interface, function);
            if let Some(other) = labels.insert(label, &function.name) {
                return refuse(
                    span,
                    format!("it has the same label as `{other}` by chance; rename one"),
                );
            }
        }
        Ok(())
    }
}

fn case(name: &str, docs: &wit_parser::Docs, ty: Option<Ty>) -> Case {
    Case { name: name.to_owned(), docs: docs.contents.clone(), ty }
}

/// Every resource can be given back.
fn drop_function(interface: &str, resource: &str) -> Function {
    let ty = Ty::Named((interface.to_owned(), resource.to_owned()));
    Function {
        name: format!("{resource}.drop"),
        docs: Some("Gives the resource back.".to_owned()),
        params: vec![Field { name: "self".to_owned(), docs: None, ty }],
        result: None,
        maps: false,
        manner: Manner::Answered,
        timeouts_us: [None; 2],
    }
}
