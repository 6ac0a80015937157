//! Parameters of functions whose overloads are made from the arguments (Cassandra's `FunctionParameter`).

use std::fmt;

use helenus_cql::ast::FunctionName;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value::test_assignment;

use super::number::NUMERIC;
use crate::analysis::PlanContext;
use crate::analysis::assignable::Assignable;

/// The kind of arguments that a parameter accepts.
#[derive(Clone, Debug)]
pub enum Parameter {
    /// This type, or a type that is compatible with it.
    Fixed(CqlType),
    /// One of these types, or a type that is compatible with one. An argument of an unknown type has the first.
    OneOf(&'static [CqlType]),
    /// Text or ascii.
    String,
    Any {
        infer_from_receiver: bool,
    },
    /// The type of the parameter at `index`. With `prefer_other`, the type of the other argument is used where it is known.
    SameAs {
        index: usize,
        prefer_other: bool,
        parameter: Box<Parameter>,
    },
    AnyCollection,
    SetOrList,
    NumericSetOrList,
    AnyMap,
    FloatVector,
    Optional(Box<Parameter>),
}

impl Parameter {
    pub fn is_optional(&self) -> bool {
        matches!(self, Parameter::Optional(_))
    }

    /// Returns the type of an argument, given the known types of the other arguments.
    pub fn infer(
        &self,
        ctx: &PlanContext<'_>,
        arg: &dyn Assignable,
        receiver: Option<&CqlType>,
        others: &[Option<CqlType>],
    ) -> Option<CqlType> {
        match self {
            Parameter::Fixed(ty) => arg.compatible_type(ctx).or_else(|| Some(ty.clone())),
            Parameter::OneOf(types) => arg.compatible_type(ctx).or_else(|| types.first().cloned()),
            Parameter::String => arg.compatible_type(ctx).or(Some(CqlType::TEXT)),
            Parameter::Any { infer_from_receiver } => arg
                .compatible_type(ctx)
                .or_else(|| receiver.filter(|_| *infer_from_receiver).cloned()),
            Parameter::SameAs {
                index,
                prefer_other,
                parameter,
            } => {
                let other = others.get(*index).cloned().flatten();
                let inferred = || parameter.infer(ctx, arg, receiver, others);
                if *prefer_other {
                    other.or_else(inferred)
                } else {
                    inferred().or(other)
                }
            }
            Parameter::FloatVector => match arg.list_literal_len() {
                Some(len) => Some(CqlType::vector(CqlType::FLOAT, u32::try_from(len).ok()?)),
                None => arg.compatible_type(ctx).or_else(|| receiver.cloned()),
            },
            Parameter::Optional(parameter) => parameter.infer(ctx, arg, receiver, others),
            Parameter::AnyCollection
            | Parameter::SetOrList
            | Parameter::NumericSetOrList
            | Parameter::AnyMap => arg.compatible_type(ctx),
        }
    }

    /// Checks the type of an argument.
    pub fn validate(&self, name: &FunctionName, arg: &dyn Assignable, ty: &CqlType) -> Result<(), CqlError> {
        let element = match ty {
            CqlType::List { element, .. } | CqlType::Set { element, .. } => Some(element.as_ref()),
            _ => None,
        };
        let is_number = |ty: &CqlType| matches!(ty, CqlType::Native(native) if NUMERIC.contains(native));
        let (fits, wanted) = match self {
            Parameter::Fixed(allowed) => (
                test_assignment(ty, allowed).is_assignable(),
                format!("an argument of type {self}"),
            ),
            Parameter::OneOf(types) => (
                types
                    .iter()
                    .any(|allowed| test_assignment(ty, allowed).is_assignable()),
                format!("an argument of type {self}"),
            ),
            Parameter::String => (
                [CqlType::TEXT, CqlType::ASCII]
                    .iter()
                    .any(|allowed| test_assignment(ty, allowed).is_assignable()),
                format!("an argument of type {self}"),
            ),
            Parameter::Any { .. } => return Ok(()),
            Parameter::SameAs { parameter, .. } | Parameter::Optional(parameter) => {
                return parameter.validate(name, arg, ty);
            }
            Parameter::AnyCollection => (ty.is_collection(), "a collection argument".to_owned()),
            Parameter::SetOrList => (element.is_some(), "a set or list argument".to_owned()),
            Parameter::NumericSetOrList => (
                element.is_some_and(is_number),
                "a numeric set/list argument".to_owned(),
            ),
            Parameter::AnyMap => (matches!(ty, CqlType::Map { .. }), "a map argument".to_owned()),
            // A list whose elements are not floats passes here. It fails when the function is made.
            Parameter::FloatVector => (
                matches!(ty, CqlType::List { element, .. } if **element != CqlType::FLOAT)
                    || matches!(ty, CqlType::Vector { element, .. } if **element == CqlType::FLOAT),
                "a float vector argument".to_owned(),
            ),
        };
        let names_types = matches!(
            self,
            Parameter::Fixed(_) | Parameter::OneOf(_) | Parameter::String
        );
        let sees_type = !arg.is_reversed_column() || names_types;
        if fits && sees_type {
            return Ok(());
        }
        let text = arg.text();
        Err(CqlError::invalid(format!(
            "Function {name} requires {wanted}, but found argument {text} of type {ty}"
        )))
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Parameter::Fixed(ty) => write!(f, "{ty}"),
            Parameter::OneOf(types) => {
                let names: Vec<String> = types.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", names.join("|"))
            }
            Parameter::String => f.write_str("[text|varchar|ascii]"),
            Parameter::Any { .. } => f.write_str("any"),
            Parameter::SameAs { parameter, .. } => write!(f, "{parameter}"),
            Parameter::AnyCollection => f.write_str("collection"),
            Parameter::SetOrList | Parameter::NumericSetOrList => f.write_str("numeric_set_or_list"),
            Parameter::AnyMap => f.write_str("map"),
            Parameter::FloatVector => f.write_str("vector<float, n>"),
            Parameter::Optional(parameter) => write!(f, "[{parameter}]"),
        }
    }
}
