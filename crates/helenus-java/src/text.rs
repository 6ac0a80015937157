//! Values as text: `String.valueOf`.

use helenus_cql::types::CqlType;
use helenus_cql::value::{civil, java, to_cql_literal, uuid};

use crate::budget;
use crate::classes::whole_name;
use crate::error::Failure;
use crate::limits::TEXT_MAX;
use crate::value::{Fields, Value, field_types};

/// Returns the value's text.
///
/// # Errors
/// If the text is too long.
pub(crate) fn of(value: &Value) -> Result<String, Failure> {
    let mut text = String::new();
    write(value, &mut text)?;
    Ok(text)
}

/// Appends a value's text.
///
/// # Errors
/// If the whole becomes too long.
pub(crate) fn write(value: &Value, out: &mut String) -> Result<(), Failure> {
    budget::walk(1)?;
    match value {
        Value::Null => out.push_str("null"),
        Value::Char(unit) => out.push_str(&String::from_utf16_lossy(&[*unit])),
        Value::Float(value) => out.push_str(&java::float_to_string(*value)),
        Value::Double(value) => out.push_str(&java::double_to_string(*value)),
        Value::String(text) => push(out, text)?,
        Value::StringBuilder(text) => push(out, &text.borrow())?,
        Value::Uuid(value) => out.push_str(&uuid::to_text(*value)),
        Value::Date(millis) => out.push_str(&date_time(*millis.borrow())),
        Value::LocalDate(days) => out.push_str(&civil::date_text(*days)),
        Value::List(_) | Value::Set(_) => {
            let values = value.elements();
            list(
                out,
                ["[", ", ", "]"],
                values.iter().flat_map(|values| values.iter()),
                |out, value| write(value, out),
            )?;
        }
        Value::Map(entries) => {
            list(
                out,
                ["{", ", ", "}"],
                entries.borrow().iter(),
                |out, (key, value)| entry(out, key, value),
            )?;
        }
        Value::Entry(both) => entry(out, &both.0, &both.1)?,
        Value::Fields(fields) => literal_fields(out, fields)?,
        plain => out.push_str(&plain_text(plain)),
    }
    check_len(out)
}

/// Appends a text.
///
/// # Errors
/// If the whole becomes too long.
fn push(out: &mut String, text: &str) -> Result<(), Failure> {
    if out.len() + text.len() > TEXT_MAX {
        return Err(Failure::out_of_memory());
    }
    budget::room(out.len() + text.len())?;
    budget::walk_bytes(text.len())?;
    out.push_str(text);
    Ok(())
}

fn plain_text(value: &Value) -> String {
    match value {
        Value::Boolean(value) => value.to_string(),
        Value::Byte(value) => value.to_string(),
        Value::Short(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Long(value) => value.to_string(),
        Value::BigInteger(value) => value.to_string(),
        Value::BigDecimal(value) => value.to_string(),
        Value::Inet(value) => format!("/{value}"),
        Value::Duration(value) => value.to_string(),
        Value::ByteBuffer(buffer) => buffer.shown(),
        Value::Class(ty) => format!("class {}", whole_name(ty.name())),
        Value::RoundingMode(mode) => mode.name().to_owned(),
        Value::Temporal(temporal) => temporal.shown(),
        Value::Exception(failure) => failure.to_string(),
        other => other.class_name(),
    }
}

/// Checks the length of a text.
///
/// # Errors
/// If the text is longer than allowed.
pub(crate) fn check_len(text: &str) -> Result<(), Failure> {
    match text.len() <= TEXT_MAX {
        true => Ok(()),
        false => Err(Failure::out_of_memory()),
    }
}

fn list<T>(
    out: &mut String,
    [open, between, close]: [&str; 3],
    values: impl Iterator<Item = T>,
    write: impl Fn(&mut String, T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    out.push_str(open);
    for (at, value) in values.enumerate() {
        if at > 0 {
            out.push_str(between);
        }
        write(out, value)?;
    }
    out.push_str(close);
    Ok(())
}

fn entry(out: &mut String, key: &Value, value: &Value) -> Result<(), Failure> {
    write(key, out)?;
    out.push('=');
    write(value, out)
}

/// Appends a tuple or a value of a user type. Its fields are written as in CQL, without blanks (`AbstractData.toString`).
fn literal_fields(out: &mut String, fields: &Fields) -> Result<(), Failure> {
    let values = fields.values.borrow();
    let values = values.iter().zip(field_types(&fields.ty));
    match &fields.ty {
        CqlType::Udt { definition, .. } => {
            let named = definition.fields.iter().zip(values);
            list(out, ["{", ",", "}"], named, |out, (field, (value, ty))| {
                out.push_str(&field.name);
                out.push(':');
                literal(out, value, ty)
            })
        }
        _ => list(out, ["(", ",", ")"], values, |out, (value, ty)| {
            literal(out, value, ty)
        }),
    }
}

/// Appends a value as CQL writes it.
fn literal(out: &mut String, value: &Value, ty: &CqlType) -> Result<(), Failure> {
    check_len(out)?;
    match (value, ty) {
        // The driver's codecs turn null into empty collections.
        (Value::Null, CqlType::List { .. }) => out.push_str("[]"),
        (Value::Null, CqlType::Set { .. } | CqlType::Map { .. }) => out.push_str("{}"),
        (Value::Null, _) => out.push_str("NULL"),
        (Value::List(values), CqlType::List { element, .. } | CqlType::Vector { element, .. }) => {
            list(out, ["[", ",", "]"], values.borrow().iter(), |out, value| {
                literal(out, value, element)
            })?;
        }
        (Value::Set(values), CqlType::Set { element, .. }) => {
            list(out, ["{", ",", "}"], values.borrow().iter(), |out, value| {
                literal(out, value, element)
            })?;
        }
        (Value::Map(entries), CqlType::Map { key, value, .. }) => {
            list(out, ["{", ",", "}"], entries.borrow().iter(), |out, (k, v)| {
                literal(out, k, key)?;
                out.push(':');
                literal(out, v, value)
            })?;
        }
        (Value::Fields(fields), _) => literal_fields(out, fields)?,
        (value, ty) => match value.clone().into_cql(ty) {
            Ok(Some(value)) => {
                let shown = to_cql_literal(ty, &value.encode(ty));
                out.push_str(shown.as_deref().unwrap_or("NULL"));
            }
            _ => write(value, out)?,
        },
    }
    Ok(())
}

/// Implements `Date.toString`, in UTC: `Thu Jan 01 00:00:00 UTC 1970`.
fn date_time(millis: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let days = millis.div_euclid(86_400_000);
    let seconds = millis.rem_euclid(86_400_000) / 1000;
    let (year, month, day) = crate::time::calendar::date_of(days);
    let weekday = DAYS[days.rem_euclid(7) as usize];
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!(
        "{weekday} {} {day:02} {hour:02}:{minute:02}:{second:02} UTC {year}",
        MONTHS[month as usize - 1]
    )
}
