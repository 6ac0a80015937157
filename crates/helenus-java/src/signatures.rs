//! The methods of the supported classes, with the types of their parameters and results.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::ast::Type;
use crate::classes;

/// The classes. Each begins with a line `class Name<Variables> : Superclass`. Its methods follow as Java declares them, with constructors
/// called `new`.
const SIGNATURES: [&str; 2] = [
    include_str!("signatures.txt"),
    include_str!("signatures_time.txt"),
];

/// The name of constructors in the list of methods.
pub(crate) const CONSTRUCTOR: &str = "new";

/// A method or a constructor. Type names of a single capital letter are type variables, which the object or the arguments determine.
#[derive(Clone, Debug)]
pub(crate) struct Method {
    pub name: &'static str,
    pub is_static: bool,
    pub parameters: Vec<Type>,
    /// True if the last parameter accepts any number of arguments.
    pub is_variadic: bool,
    /// The type of the result. `None` for `void`.
    pub returns: Option<Type>,
}

#[derive(Debug)]
struct Class {
    variables: Vec<Type>,
    superclass: Option<Type>,
    methods: Vec<Method>,
}

impl Class {
    /// Returns the superclass of `ty`, which is a type of this class. If `ty` lacks its type arguments, so does the superclass.
    fn above(&self, ty: &Type) -> Option<Type> {
        let superclass = self.superclass.as_ref()?;
        Some(match ty.arguments().is_empty() && !self.variables.is_empty() {
            true => Type::class(superclass.name()),
            false => Bindings::of(&self.variables, ty.arguments()).apply(superclass),
        })
    }
}

fn classes() -> &'static HashMap<&'static str, Class> {
    static CLASSES: OnceLock<HashMap<&'static str, Class>> = OnceLock::new();
    CLASSES.get_or_init(|| {
        let mut classes = HashMap::new();
        for block in SIGNATURES.iter().flat_map(|classes| classes.split("\n\n")) {
            let mut lines = block.trim().lines();
            let Some(head) = lines.next().and_then(|line| line.strip_prefix("class ")) else {
                continue;
            };
            let (head, superclass) = match head.split_once(" : ") {
                Some((head, superclass)) => (head, Some(type_of(superclass))),
                None => (head, None),
            };
            let name = head.split('<').next().unwrap_or(head);
            let class = Class {
                variables: type_of(head).arguments().to_vec(),
                superclass,
                methods: lines.filter_map(method).collect(),
            };
            classes.insert(name, class);
        }
        classes
    })
}

fn method(line: &'static str) -> Option<Method> {
    let (head, parameters) = line.strip_suffix(')')?.split_once('(')?;
    let (is_static, head) = match head.strip_prefix("static ") {
        Some(head) => (true, head),
        None => (false, head),
    };
    let (returns, name) = head.rsplit_once(' ').unwrap_or(("void", head));
    Some(Method {
        name,
        is_static: is_static || name == CONSTRUCTOR,
        is_variadic: parameters.ends_with("..."),
        parameters: types_of(parameters.trim_end_matches("...")),
        returns: (returns != "void").then(|| type_of(returns)),
    })
}

/// Parses types separated by commas.
fn types_of(text: &str) -> Vec<Type> {
    let mut depth = 0;
    let parts = text.split(|c| {
        depth += match c {
            '<' => 1,
            '>' => -1,
            _ => 0,
        };
        c == ',' && depth == 0
    });
    parts
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(type_of)
        .collect()
}

fn type_of(text: &str) -> Type {
    if let Some(of) = text.strip_suffix("[]") {
        return Type::array(type_of(of));
    }
    match text.strip_suffix('>').and_then(|text| text.split_once('<')) {
        Some((name, arguments)) => Type::generic(name, types_of(arguments)),
        None => Type::primitive(text).unwrap_or_else(|| Type::class(text)),
    }
}

/// The types that the type variables of a declaration stand for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bindings(Vec<(Type, Type)>);

impl Bindings {
    fn of(variables: &[Type], arguments: &[Type]) -> Bindings {
        Bindings(variables.iter().cloned().zip(arguments.iter().cloned()).collect())
    }

    /// Binds the unbound type variables of a parameter to the corresponding types of the argument.
    pub fn bind(&mut self, parameter: &Type, argument: &Type) {
        if is_variable(parameter) {
            if self.0.iter().all(|(variable, _)| variable != parameter) {
                self.0.push((parameter.clone(), argument.boxed()));
            }
            return;
        }
        if let (Type::Array(parameter), Type::Array(argument)) = (parameter, argument) {
            return self.bind(parameter, argument);
        }
        let argument = as_class(argument, parameter.name()).unwrap_or_else(|| argument.clone());
        for (parameter, argument) in parameter.arguments().iter().zip(argument.arguments()) {
            self.bind(parameter, argument);
        }
    }

    /// Returns a type with its variables replaced by their types. Unbound variables become `Object`.
    pub fn apply(&self, ty: &Type) -> Type {
        match ty {
            Type::Array(of) => Type::array(self.apply(of)),
            _ if is_variable(ty) => {
                let found = self.0.iter().find(|(variable, _)| variable == ty);
                found.map_or_else(|| Type::class("Object"), |(_, bound)| bound.clone())
            }
            _ if ty.arguments().is_empty() => ty.clone(),
            _ => Type::generic(
                ty.name(),
                ty.arguments()
                    .iter()
                    .map(|argument| self.apply(argument))
                    .collect(),
            ),
        }
    }
}

pub(crate) fn is_variable(ty: &Type) -> bool {
    matches!(ty, Type::Class(name, _) if name.len() == 1)
}

/// Returns the class of that name. All exceptions share the class `Throwable`.
fn class(name: &str) -> Option<&'static Class> {
    let name = match classes::is_throwable(name) {
        true => "Throwable",
        false => name,
    };
    classes().get(name)
}

/// Returns true if the methods of a class are known.
pub(crate) fn is_known(name: &str) -> bool {
    class(name).is_some()
}

/// Returns the methods of that name in a class and its superclasses. Each comes with the types of the type variables of its class.
pub(crate) fn methods(of: &Type, name: &str) -> Vec<(&'static Method, Bindings)> {
    let mut found = Vec::new();
    let mut above = Some(of.clone());
    while let Some(ty) = above {
        let Some(class) = class(ty.name()) else { break };
        let bindings = Bindings::of(&class.variables, ty.arguments());
        let own = class.methods.iter().filter(|method| method.name == name);
        found.extend(own.map(|method| (method, bindings.clone())));
        if name == CONSTRUCTOR {
            break;
        }
        above = class.above(&ty);
    }
    found
}

/// The static type of an argument of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Argument<'a> {
    Of(&'a Type),
    Null,
    /// An argument of unknown type, which fits any parameter.
    Any,
}

/// Returns the types of a method's variables for a call with these arguments. `None` if the method can't be called with them. `fits`
/// returns true if a value of the first type may be passed as one of the second.
pub(crate) fn bound<'a>(
    method: &Method,
    bindings: &Bindings,
    arguments: impl Iterator<Item = Argument<'a>>,
    fits: fn(&Type, &Type) -> bool,
) -> Option<Bindings> {
    let arguments: Vec<_> = arguments.collect();
    let required = method.parameters.len() - usize::from(method.is_variadic);
    let is_count_right = match method.is_variadic {
        true => arguments.len() >= required,
        false => arguments.len() == required,
    };
    if !is_count_right {
        return None;
    }
    let mut bindings = bindings.clone();
    for (at, argument) in arguments.into_iter().enumerate() {
        let parameter = &method.parameters[at.min(method.parameters.len() - 1)];
        let argument = match argument {
            Argument::Of(ty) => ty,
            Argument::Null if parameter.is_primitive() => return None,
            Argument::Null | Argument::Any => continue,
        };
        // An array may be passed in place of all variadic arguments.
        let argument = match argument {
            Type::Array(of) if method.is_variadic && at >= required => of,
            other => other,
        };
        bindings.bind(parameter, argument);
        if !fits(argument, &bindings.apply(parameter)) {
            return None;
        }
    }
    Some(bindings)
}

/// Returns the supertype of `ty` with this name: `List<Integer>` as a `Collection` is `Collection<Integer>`. `None` if there is none.
pub(crate) fn as_class(ty: &Type, name: &str) -> Option<Type> {
    let mut above = Some(ty.clone());
    while let Some(ty) = above {
        if ty.name() == name {
            return Some(ty);
        }
        if classes::is_throwable(ty.name()) && classes::is_exception(ty.name(), name) {
            return Some(Type::class(name));
        }
        above = class(ty.name())?.above(&ty);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        let lines = SIGNATURES
            .iter()
            .flat_map(|classes| classes.lines())
            .filter(|line| !line.is_empty());
        let read: usize = classes().values().map(|class| class.methods.len() + 1).sum();
        assert_eq!(lines.count(), read);
        let known = |ty: &Type| ty.is_primitive() || is_variable(ty) || is_known(ty.name());
        for method in classes().values().flat_map(|class| &class.methods) {
            let mut types = method.parameters.iter().chain(&method.returns);
            let unknown = types.find(|ty| !matches!(ty, Type::Array(_)) && !known(ty));
            assert_eq!(unknown, None, "{method:?}");
        }
    }

    #[test]
    fn what_is_inherited_has_the_types_of_the_object() {
        let list = type_of("ArrayList<Map<String, Integer>>");
        let (method, bindings) = methods(&list, "iterator").remove(0);
        let returns = bindings.apply(method.returns.as_ref().unwrap());
        assert_eq!(returns.to_string(), "Iterator<Map<String,Integer>>");
        assert_eq!(
            as_class(&list, "Iterable").unwrap().to_string(),
            "Iterable<Map<String,Integer>>"
        );
        assert_eq!(as_class(&list, "Set"), None);
    }
}
