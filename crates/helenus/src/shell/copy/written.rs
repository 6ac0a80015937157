//! Values in files of COPY TO, in cqlsh's format. The option NULL applies to nulls within values too.

use std::borrow::Cow;

use bytes::Bytes;
use helenus_cql::identifier::quote_identifier;
use helenus_cql::types::CqlType;
use helenus_cql::value::{read_elements, read_map, read_tuple, read_vector, to_cql_literal};

use crate::shell::results::plain_text;

/// Returns the text of a column's value.
pub fn written(ty: &CqlType, bytes: &Bytes, null: &str) -> String {
    // Only values with fields, such as tuples, can contain nulls.
    let with_fields = has_fields(ty).then(|| literal(ty, bytes, null));
    match with_fields {
        Some(Ok(text)) => text,
        _ => plain_text(ty, bytes),
    }
}

/// Returns true if the type is, or contains, a tuple or a user type.
fn has_fields(ty: &CqlType) -> bool {
    ty.any(&|ty: &CqlType| matches!(ty, CqlType::Tuple(_) | CqlType::Udt { .. }))
}

fn literal(ty: &CqlType, bytes: &[u8], null: &str) -> Result<String, String> {
    let joined = |element: &CqlType, values: Vec<&[u8]>| {
        let literals = values.into_iter().map(|value| literal(element, value, null));
        literals.collect::<Result<Vec<_>, _>>().map(|all| all.join(", "))
    };
    let field = |ty: &CqlType, value: Option<&[u8]>| match value {
        Some(value) => literal(ty, value, null),
        None => Ok(null.to_owned()),
    };
    Ok(match ty {
        CqlType::Native(_) | CqlType::Custom(_) => to_cql_literal(ty, bytes)?,
        CqlType::List { element, .. } => format!("[{}]", joined(element, read_elements(ty, bytes)?)?),
        CqlType::Set { element, .. } => format!("{{{}}}", joined(element, read_elements(ty, bytes)?)?),
        CqlType::Vector { element, .. } => format!("[{}]", joined(element, read_vector(ty, bytes)?)?),
        CqlType::Map { key, value, .. } => {
            let entries = read_map(ty, bytes)?.into_iter();
            let entries = entries.map(|(k, v)| {
                Ok(format!(
                    "{}: {}",
                    literal(key, k, null)?,
                    literal(value, v, null)?
                ))
            });
            format!("{{{}}}", entries.collect::<Result<Vec<_>, String>>()?.join(", "))
        }
        CqlType::Tuple(types) => {
            let fields = read_tuple(ty, bytes)?.into_iter().zip(types.iter());
            let fields = fields.map(|(value, ty)| field(ty, value));
            format!("({})", fields.collect::<Result<Vec<_>, _>>()?.join(", "))
        }
        CqlType::Udt { definition, .. } => {
            let fields = read_tuple(ty, bytes)?.into_iter().zip(&definition.fields);
            let fields =
                fields.map(|(value, of)| Ok(format!("{}: {}", field_name(&of.name), field(&of.ty, value)?)));
            format!("{{{}}}", fields.collect::<Result<Vec<_>, String>>()?.join(", "))
        }
    })
}

/// Returns the name of a field as cqlsh writes it. The name is quoted only if it has other characters than letters, digits and underscores.
fn field_name(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || c == '_';
    match !name.is_empty() && name.chars().all(is_plain) {
        true => Cow::Borrowed(name),
        false => quote_identifier(name).into(),
    }
}
