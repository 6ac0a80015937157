//! CAST (Cassandra's `CastFcts`).

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value::{Decimal, date, is_empty_meaningless, java, to_cql_literal};

use super::native::{ColumnName, Output};
use super::number::{NUMERIC, Number};
use super::{NativeFunction, time};

/// Returns the name of the functions that convert to a type.
pub fn function_name(to: NativeType) -> String {
    format!("cast_as_{}", to.name())
}

/// Returns every conversion.
pub fn functions() -> Vec<NativeFunction> {
    let mut functions = Vec::new();
    for from in NUMERIC {
        for to in NUMERIC {
            if to != from && to != NativeType::Counter {
                functions.push(numeric(from, to));
            }
        }
        functions.extend(as_text(from));
    }
    functions.push(convert(NativeType::Ascii, NativeType::Text, |value| {
        Ok(Some(value))
    }));
    for from in [
        NativeType::Inet,
        NativeType::Boolean,
        NativeType::Timeuuid,
        NativeType::Timestamp,
        NativeType::Date,
        NativeType::Time,
        NativeType::Uuid,
    ] {
        functions.extend(as_text(from));
    }
    for (from, to) in [
        (NativeType::Timeuuid, NativeType::Date),
        (NativeType::Timeuuid, NativeType::Timestamp),
        (NativeType::Timestamp, NativeType::Date),
        (NativeType::Date, NativeType::Timestamp),
    ] {
        functions.push(temporal(from, to));
    }
    functions
}

fn convert(
    from: NativeType,
    to: NativeType,
    body: impl Fn(Bytes) -> Output + Send + Sync + 'static,
) -> NativeFunction {
    let arg = CqlType::Native(from);
    let name = function_name(to);
    let function = NativeFunction::new(&name, [arg.clone()], CqlType::Native(to), move |args, _| {
        let value = args.first().cloned().flatten();
        match value.filter(|value| !value.is_empty() || !is_empty_meaningless(&arg)) {
            Some(value) => body(value),
            None => Ok(None),
        }
    });
    function.named_as(ColumnName::Cast)
}

fn numeric(from: NativeType, to: NativeType) -> NativeFunction {
    let arg = CqlType::Native(from);
    convert(from, to, move |value| {
        let Some(number) = Number::decode(&arg, Some(&value)) else {
            return Ok(None);
        };
        let digits = match number {
            Number::Float(value) if to == NativeType::Decimal => java::float_to_string(value),
            Number::Double(value) if to == NativeType::Decimal => java::double_to_string(value),
            other => return Ok(Some(convert_number(&other, to).encode())),
        };
        let decimal = Decimal::parse(&digits).ok_or_else(|| not_a_number(&digits))?;
        Ok(Some(decimal.to_bytes()))
    })
}

/// Returns the message of Java's exception for text that is no number. Clients see it as a server error.
fn not_a_number(digits: &str) -> CqlError {
    let first = digits.trim_start_matches('-').chars().next().unwrap_or_default();
    CqlError::Server(format!(
        "java.lang.NumberFormatException: Character {first} is neither a decimal digit number, decimal point, \
         nor \"e\" notation exponential mark."
    ))
}

fn convert_number(number: &Number, to: NativeType) -> Number {
    match to {
        NativeType::Tinyint => Number::Byte(number.to_byte()),
        NativeType::Smallint => Number::Short(number.to_short()),
        NativeType::Int => Number::Int(number.to_int()),
        NativeType::Float => Number::Float(number.to_float()),
        NativeType::Double => Number::Double(number.to_double()),
        NativeType::Varint => Number::Varint(number.to_long().into()),
        NativeType::Decimal => Number::Decimal(match number {
            Number::Varint(value) => Decimal::new(value.clone(), 0),
            Number::Decimal(value) => value.clone(),
            other => Decimal::new(other.to_long(), 0),
        }),
        _ => Number::Long(number.to_long()),
    }
}

/// Returns the casts to ascii and to text. Their result is the CQL literal of the value without its quotes.
fn as_text(from: NativeType) -> [NativeFunction; 2] {
    let arg = CqlType::Native(from);
    [NativeType::Ascii, NativeType::Text].map(|to| {
        let arg = arg.clone();
        convert(from, to, move |value| {
            let literal = to_cql_literal(&arg, &value).map_err(CqlError::Server)?;
            Ok(Some(Bytes::copy_from_slice(
                literal.trim_matches('\'').as_bytes(),
            )))
        })
    })
}

fn temporal(from: NativeType, to: NativeType) -> NativeFunction {
    let arg = CqlType::Native(from);
    convert(from, to, move |value| {
        Ok(time::millis_of(&arg, &value).map(|millis| match to {
            NativeType::Date => Bytes::copy_from_slice(&date::from_millis(millis).to_be_bytes()),
            _ => Bytes::copy_from_slice(&millis.to_be_bytes()),
        }))
    })
}
