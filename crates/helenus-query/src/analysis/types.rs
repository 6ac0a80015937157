//! Resolution of types as written: user types are looked up, and freezing is checked (Cassandra's `CQL3Type.Raw.prepare`).

use helenus_cql::ast::TypeName;
use helenus_cql::error::CqlError;
use helenus_cql::types::class_name::{class_refusal, parse_class_name};
use helenus_cql::types::{CqlType, NativeType};

use crate::schema::Schema;

/// Maximum number of types that a type consists of, as [`CqlType::expanded_count`] counts them.
pub const TYPE_PARTS_MAX: usize = 10_000;

/// Resolves a type as written in a statement on `keyspace`. Types that are nested in collections must be frozen. A vector's elements stay
/// as written, even within `frozen<>`, but are stored in one piece.
///
/// # Errors
/// Cassandra's, and those for types of more than [`TYPE_PARTS_MAX`] parts.
pub fn resolve_type(schema: &Schema, keyspace: &str, name: &TypeName) -> Result<CqlType, CqlError> {
    let resolved = resolve(schema, keyspace, name)?;
    check_parts(&resolved)?;
    Ok(resolved)
}

/// Refuses a type that is too large to be sent with its user types written out.
///
/// # Errors
/// The type has more than [`TYPE_PARTS_MAX`] parts.
pub fn check_parts(ty: &CqlType) -> Result<(), CqlError> {
    match ty.expanded_count(TYPE_PARTS_MAX) > TYPE_PARTS_MAX {
        true => Err(CqlError::invalid(format!(
            "The type {ty} is made of more than {TYPE_PARTS_MAX} types, those of the fields of its user types counted, which is the limit"
        ))),
        false => Ok(()),
    }
}

fn resolve(schema: &Schema, keyspace: &str, name: &TypeName) -> Result<CqlType, CqlError> {
    match name {
        TypeName::Native(native) => Ok(CqlType::Native(*native)),
        TypeName::Frozen(inner) => Ok(resolve_frozen(schema, keyspace, inner)?.freeze()),
        TypeName::List(element) => {
            let element = resolve_nested(schema, keyspace, element, name)?;
            Ok(CqlType::list(element, false))
        }
        TypeName::Set(element) => {
            refuse_duration(element, &name.to_string(), "inside sets")?;
            let element = resolve_nested(schema, keyspace, element, name)?;
            Ok(CqlType::set(element, false))
        }
        TypeName::Map(key, value) => {
            refuse_not_frozen(value, name)?;
            refuse_counter(value, &name.to_string())?;
            refuse_counter(key, &name.to_string())?;
            refuse_duration(key, &name.to_string(), "as map keys")?;
            let key = resolve_nested(schema, keyspace, key, name)?;
            let value = resolve_nested(schema, keyspace, value, name)?;
            Ok(CqlType::map(key, value, false))
        }
        TypeName::Tuple(elements) => {
            let elements = elements
                .iter()
                .map(|element| resolve_in_tuple(schema, keyspace, element));
            Ok(CqlType::tuple(elements.collect::<Result<Vec<_>, _>>()?))
        }
        TypeName::Vector { element, dimension } => {
            let element = resolve(schema, keyspace, element)?;
            match u32::try_from(*dimension) {
                Ok(positive) if positive > 0 => Ok(CqlType::vector(element, positive)),
                _ => Err(CqlError::invalid(format!(
                    "vectors may only have positive dimensions; given {dimension}"
                ))),
            }
        }
        TypeName::UserType(qualified) => {
            let type_keyspace = qualified
                .keyspace
                .as_ref()
                .map_or(keyspace, |ident| ident.as_str());
            if type_keyspace != keyspace && !keyspace.is_empty() {
                return Err(CqlError::invalid(format!(
                    "Statement on keyspace {keyspace} cannot refer to a user type in keyspace {type_keyspace}; \
                     user types can only be used in the keyspace they are defined in"
                )));
            }
            let definition = schema
                .keyspace(type_keyspace)
                .ok_or_else(|| CqlError::invalid(format!("Unknown keyspace {type_keyspace}")))?
                .types
                .get(qualified.name.as_str())
                .ok_or_else(|| {
                    CqlError::invalid(format!("Unknown type {type_keyspace}.{}", qualified.name))
                })?;
            Ok(CqlType::Udt {
                definition: definition.clone(),
                frozen: false,
            })
        }
        TypeName::Custom(class) => parse_class_name(class).ok_or_else(|| unknown_class(class)),
    }
}

/// Resolves a type within `frozen<>`. All types nested in it are frozen too.
fn resolve_frozen(schema: &Schema, keyspace: &str, name: &TypeName) -> Result<CqlType, CqlError> {
    let freeze = |inner: &TypeName| -> Result<CqlType, CqlError> {
        Ok(resolve_frozen(schema, keyspace, inner)?.freeze())
    };
    match name {
        TypeName::List(element) => {
            refuse_counter(element, &shown_frozen(name))?;
            Ok(CqlType::list(freeze(element)?, true))
        }
        TypeName::Set(element) => {
            refuse_counter(element, &shown_frozen(name))?;
            refuse_duration(element, &shown_frozen(name), "inside sets")?;
            Ok(CqlType::set(freeze(element)?, true))
        }
        TypeName::Map(key, value) => {
            refuse_counter(key, &shown_frozen(name))?;
            refuse_counter(value, &shown_frozen(name))?;
            refuse_duration(key, &shown_frozen(name), "as map keys")?;
            Ok(CqlType::map(freeze(key)?, freeze(value)?, true))
        }
        TypeName::Tuple(elements) => {
            let elements = elements
                .iter()
                .map(|element| resolve_in_tuple(schema, keyspace, element));
            Ok(CqlType::tuple(elements.collect::<Result<Vec<_>, _>>()?))
        }
        TypeName::Native(_)
        | TypeName::Frozen(_)
        | TypeName::Vector { .. }
        | TypeName::UserType(_)
        | TypeName::Custom(_) => resolve(schema, keyspace, name),
    }
}

/// Returns the text of a type within `frozen<>` as Cassandra shows it, with nested types marked as frozen.
fn shown_frozen(name: &TypeName) -> String {
    match name {
        TypeName::List(element) => format!("frozen<list<{}>>", shown_frozen(element)),
        TypeName::Set(element) => format!("frozen<set<{}>>", shown_frozen(element)),
        TypeName::Map(key, value) => format!("frozen<map<{}, {}>>", shown_frozen(key), shown_frozen(value)),
        TypeName::UserType(_) => format!("frozen<{name}>"),
        TypeName::Frozen(inner) => shown_frozen(inner),
        other => other.to_string(),
    }
}

/// Resolves a type within a tuple. Tuples are always frozen, and so are their elements.
fn resolve_in_tuple(schema: &Schema, keyspace: &str, name: &TypeName) -> Result<CqlType, CqlError> {
    if matches!(name, TypeName::Native(NativeType::Counter)) {
        return Err(CqlError::invalid("Counters are not allowed inside tuples"));
    }
    Ok(resolve_frozen(schema, keyspace, name)?.freeze())
}

fn resolve_nested(
    schema: &Schema,
    keyspace: &str,
    nested: &TypeName,
    outer: &TypeName,
) -> Result<CqlType, CqlError> {
    refuse_counter(nested, &outer.to_string())?;
    refuse_not_frozen(nested, outer)?;
    resolve_type(schema, keyspace, nested)
}

fn refuse_not_frozen(nested: &TypeName, outer: &TypeName) -> Result<(), CqlError> {
    let what = match nested {
        TypeName::UserType(_) => "UDTs",
        TypeName::List(_) | TypeName::Set(_) | TypeName::Map(..) => "collections",
        _ => return Ok(()),
    };
    Err(CqlError::invalid(format!(
        "Non-frozen {what} are not allowed inside collections: {outer}"
    )))
}

fn refuse_counter(nested: &TypeName, outer: &str) -> Result<(), CqlError> {
    if matches!(nested, TypeName::Native(NativeType::Counter)) {
        return Err(CqlError::invalid(format!(
            "Counters are not allowed inside collections: {outer}"
        )));
    }
    Ok(())
}

fn refuse_duration(nested: &TypeName, outer: &str, place: &str) -> Result<(), CqlError> {
    if matches!(nested, TypeName::Native(NativeType::Duration)) {
        return Err(CqlError::invalid(format!(
            "Durations are not allowed {place}: {outer}"
        )));
    }
    Ok(())
}

/// Returns the reason for which a Java class is no type here.
fn unknown_class(class: &str) -> CqlError {
    match class_refusal(class) {
        Some(refusal) => CqlError::Syntax(refusal),
        None => CqlError::invalid(format!("Custom type {class} is not supported: use a CQL type")),
    }
}

/// Returns the type as written, with the keyspaces of user types added, as Cassandra shows it.
pub fn qualified_type_name(ty: &TypeName, keyspace: &str) -> String {
    let nested = |ty: &TypeName| qualified_type_name(ty, keyspace);
    match ty {
        TypeName::UserType(name) if name.keyspace.is_none() => format!("{keyspace}.{name}"),
        TypeName::Frozen(inner) => format!("frozen<{}>", nested(inner)),
        TypeName::List(element) => format!("list<{}>", nested(element)),
        TypeName::Set(element) => format!("set<{}>", nested(element)),
        TypeName::Map(key, value) => format!("map<{}, {}>", nested(key), nested(value)),
        TypeName::Vector { element, dimension } => format!("vector<{}, {dimension}>", nested(element)),
        TypeName::Tuple(elements) => {
            let elements: Vec<String> = elements.iter().map(nested).collect();
            format!("tuple<{}>", elements.join(", "))
        }
        other => other.to_string(),
    }
}
