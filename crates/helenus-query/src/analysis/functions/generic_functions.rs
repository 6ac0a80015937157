//! Functions whose overload is made from the arguments of a call (Cassandra's `FunctionFactory`).

use std::fmt;
use std::sync::Arc;

use helenus_cql::ast::FunctionName;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;

use super::parameter::Parameter;
use super::{Function, NativeFunction, aggregate, collection, format, json, masking, vector};
use crate::analysis::PlanContext;
use crate::analysis::assignable::Assignable;

type Build = fn(&GenericFunction, &[CqlType], Option<&CqlType>) -> Result<Function, CqlError>;

/// A function whose overloads are made from the arguments.
pub struct GenericFunction {
    pub name: FunctionName,
    parameters: Vec<Parameter>,
    build: Build,
}

impl GenericFunction {
    fn new(name: &str, parameters: Vec<Parameter>, build: Build) -> GenericFunction {
        GenericFunction {
            name: FunctionName::native(name),
            parameters,
            build,
        }
    }

    /// Returns the name without its keyspace.
    pub fn short_name(&self) -> &str {
        self.name.name.as_str()
    }

    /// Returns the error for too few or too many arguments.
    pub fn wrong_arguments(&self) -> CqlError {
        CqlError::invalid(format!("Invalid number of arguments for function {self}"))
    }

    /// Returns the overload for the arguments.
    pub fn function(
        &self,
        ctx: &PlanContext<'_>,
        args: &[&dyn Assignable],
        receiver: Option<&CqlType>,
    ) -> Result<Function, CqlError> {
        let mandatory = self
            .parameters
            .iter()
            .filter(|parameter| !parameter.is_optional())
            .count();
        if args.len() < mandatory || args.len() > self.parameters.len() {
            return Err(self.wrong_arguments());
        }
        let pairs = || args.iter().zip(&self.parameters);
        let mut types: Vec<Option<CqlType>> = pairs()
            .map(|(arg, parameter)| parameter.infer(ctx, *arg, receiver, &[]))
            .collect();
        for (position, (arg, parameter)) in pairs().enumerate() {
            let ty = parameter.infer(ctx, *arg, receiver, &types).ok_or_else(|| {
                let text = arg.text();
                CqlError::invalid(format!(
                    "Cannot infer type of argument {text} in call to function {self}: use type casts to disambiguate"
                ))
            })?;
            parameter.validate(&self.name, *arg, &ty)?;
            if let Some(slot) = types.get_mut(position) {
                *slot = Some(ty);
            }
        }
        let types: Vec<CqlType> = types.into_iter().flatten().collect();
        (self.build)(self, &types, receiver)
    }
}

impl fmt::Display for GenericFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters: Vec<String> = self.parameters.iter().map(ToString::to_string).collect();
        write!(f, "{}({})", self.name, parameters.join(", "))
    }
}

fn any(infer_from_receiver: bool) -> Parameter {
    Parameter::Any { infer_from_receiver }
}

fn fixed(ty: CqlType) -> Parameter {
    Parameter::Fixed(ty)
}

fn optional_text() -> Parameter {
    Parameter::Optional(Box::new(fixed(CqlType::TEXT)))
}

fn scalar(function: NativeFunction) -> Result<Function, CqlError> {
    Ok(Function::Scalar(Arc::new(function)))
}

/// Returns the type of the first argument. Factories check the number of arguments before they build.
fn first(types: &[CqlType]) -> Result<&CqlType, CqlError> {
    types
        .first()
        .ok_or_else(|| CqlError::Server("a function without its argument".to_owned()))
}

/// Returns all factories except that of `token`, which needs the table.
pub fn factories() -> Vec<GenericFunction> {
    let mut factories = vec![
        GenericFunction::new("to_json", vec![any(false)], |factory, types, _| {
            scalar(json::to_json(factory.short_name(), first(types)?))
        }),
        GenericFunction::new("tojson", vec![any(false)], |factory, types, _| {
            scalar(json::to_json(factory.short_name(), first(types)?))
        }),
        GenericFunction::new("from_json", vec![fixed(CqlType::TEXT)], from_json),
        GenericFunction::new("fromjson", vec![fixed(CqlType::TEXT)], from_json),
        GenericFunction::new("min", vec![any(true)], |_, types, _| {
            Ok(Function::Aggregate(Arc::new(aggregate::min(first(types)?))))
        }),
        GenericFunction::new("max", vec![any(true)], |_, types, _| {
            Ok(Function::Aggregate(Arc::new(aggregate::max(first(types)?))))
        }),
    ];
    factories.extend(collection_factories());
    factories.extend(format_factories());
    factories.extend(vector_factories());
    factories.extend(masking_factories());
    factories
}

fn from_json(
    factory: &GenericFunction,
    _: &[CqlType],
    receiver: Option<&CqlType>,
) -> Result<Function, CqlError> {
    let name = factory.short_name();
    match receiver {
        Some(receiver) => scalar(json::from_json(name, receiver)),
        None => Err(CqlError::invalid(format!(
            "{name}() cannot be used in the selection clause of a SELECT statement"
        ))),
    }
}

fn collection_factories() -> Vec<GenericFunction> {
    vec![
        GenericFunction::new("map_keys", vec![Parameter::AnyMap], |_, types, _| {
            scalar(collection::map_keys(first(types)?))
        }),
        GenericFunction::new("map_values", vec![Parameter::AnyMap], |_, types, _| {
            scalar(collection::map_values(first(types)?))
        }),
        GenericFunction::new(
            "collection_count",
            vec![Parameter::AnyCollection],
            |_, types, _| scalar(collection::count(first(types)?)),
        ),
        GenericFunction::new("collection_min", vec![Parameter::SetOrList], collection_aggregate),
        GenericFunction::new("collection_max", vec![Parameter::SetOrList], collection_aggregate),
        GenericFunction::new(
            "collection_sum",
            vec![Parameter::NumericSetOrList],
            collection_aggregate,
        ),
        GenericFunction::new(
            "collection_avg",
            vec![Parameter::NumericSetOrList],
            collection_aggregate,
        ),
    ]
}

fn collection_aggregate(
    factory: &GenericFunction,
    types: &[CqlType],
    _: Option<&CqlType>,
) -> Result<Function, CqlError> {
    let (CqlType::List { element, .. } | CqlType::Set { element, .. }) = first(types)? else {
        return Err(CqlError::Server(
            "a function of collections without one".to_owned(),
        ));
    };
    let name = factory.short_name();
    let aggregate = match (name, element.as_ref()) {
        ("collection_min", element) => aggregate::min(element),
        ("collection_max", element) => aggregate::max(element),
        ("collection_sum", CqlType::Native(native)) => aggregate::sum(*native),
        (_, CqlType::Native(native)) => aggregate::avg(*native),
        _ => return Err(factory.wrong_arguments()),
    };
    scalar(collection::aggregated(name, first(types)?, aggregate))
}

fn format_factories() -> Vec<GenericFunction> {
    let unit = || Parameter::Optional(Box::new(fixed(CqlType::ASCII)));
    let parameters = || vec![Parameter::OneOf(format::FORMATTED), unit(), unit()];
    vec![
        GenericFunction::new("format_bytes", parameters(), |_, types, _| {
            scalar(format::bytes(types))
        }),
        GenericFunction::new("format_time", parameters(), |_, types, _| {
            scalar(format::time(types))
        }),
    ]
}

fn vector_factories() -> Vec<GenericFunction> {
    [
        "similarity_cosine",
        "similarity_euclidean",
        "similarity_dot_product",
    ]
    .into_iter()
    .map(|name| {
        let as_other = |index| Parameter::SameAs {
            index,
            prefer_other: false,
            parameter: Box::new(Parameter::FloatVector),
        };
        GenericFunction::new(name, vec![as_other(1), as_other(0)], |factory, types, _| {
            scalar(vector::similarity(factory.short_name(), types)?)
        })
    })
    .collect()
}

fn masking_factories() -> Vec<GenericFunction> {
    let replacement = Parameter::SameAs {
        index: 0,
        prefer_other: true,
        parameter: Box::new(any(true)),
    };
    let partial = || {
        vec![
            Parameter::String,
            fixed(CqlType::INT),
            fixed(CqlType::INT),
            optional_text(),
        ]
    };
    vec![
        GenericFunction::new("mask_null", vec![any(false)], |_, types, _| {
            scalar(masking::null(first(types)?))
        }),
        GenericFunction::new("mask_default", vec![any(false)], |_, types, _| {
            scalar(masking::default(first(types)?))
        }),
        GenericFunction::new("mask_replace", vec![any(true), replacement], |_, types, _| {
            scalar(masking::replace(first(types)?))
        }),
        GenericFunction::new("mask_hash", vec![any(false), optional_text()], |_, types, _| {
            scalar(masking::hash(first(types)?, types.len() == 2))
        }),
        GenericFunction::new("mask_inner", partial(), |_, types, _| {
            scalar(masking::partial("mask_inner", first(types)?, types.len() == 4))
        }),
        GenericFunction::new("mask_outer", partial(), |_, types, _| {
            scalar(masking::partial("mask_outer", first(types)?, types.len() == 4))
        }),
    ]
}
