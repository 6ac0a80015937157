//! CAST (Cassandra's `CastFcts`).

use bytes::Bytes;
use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value::{Decimal, is_empty_meaningless, java, to_cql_literal};

use super::native::{ColumnName, NativeFunction};
use super::number::{NUMERIC, Number};
use super::time;

/// Name of the functions that convert to a type.
pub fn function_name(to: NativeType) -> String {
    format!("cast_as_{}", to.name())
}

/// Every conversion.
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
    functions.push(convert(NativeType::Ascii, NativeType::Text, Some));
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
    body: impl Fn(Bytes) -> Option<Bytes> + Send + Sync + 'static,
) -> NativeFunction {
    let arg = CqlType::Native(from);
    let name = function_name(to);
    let function = NativeFunction::new(&name, [arg.clone()], CqlType::Native(to), move |args, _| {
        let value = args.first().cloned().flatten();
        Ok(value
            .filter(|value| !value.is_empty() || !is_empty_meaningless(&arg))
            .and_then(&body))
    });
    function.named_as(ColumnName::Cast)
}

fn numeric(from: NativeType, to: NativeType) -> NativeFunction {
    let arg = CqlType::Native(from);
    convert(from, to, move |value| {
        let number = Number::decode(&arg, Some(&value))?;
        Some(convert_number(&number, to)?.encode())
    })
}

fn convert_number(number: &Number, to: NativeType) -> Option<Number> {
    Some(match to {
        NativeType::Tinyint => Number::Byte(number.to_byte()),
        NativeType::Smallint => Number::Short(number.to_short()),
        NativeType::Int => Number::Int(number.to_int()),
        NativeType::Float => Number::Float(number.to_float()),
        NativeType::Double => Number::Double(number.to_double()),
        NativeType::Varint => Number::Varint(number.to_long().into()),
        NativeType::Decimal => Number::Decimal(match number {
            Number::Float(value) => Decimal::parse(&java::float_to_string(*value))?,
            Number::Double(value) => Decimal::from_double(*value)?,
            Number::Varint(value) => Decimal::new(value.clone(), 0),
            Number::Decimal(value) => value.clone(),
            other => Decimal::new(other.to_long(), 0),
        }),
        _ => Number::Long(number.to_long()),
    })
}

/// To ascii and to text: what a CQL literal of the value shows, without its quotes.
fn as_text(from: NativeType) -> [NativeFunction; 2] {
    let arg = CqlType::Native(from);
    [NativeType::Ascii, NativeType::Text].map(|to| {
        let arg = arg.clone();
        convert(from, to, move |value| {
            let literal = to_cql_literal(&arg, &value).ok()?;
            Some(Bytes::copy_from_slice(literal.trim_matches('\'').as_bytes()))
        })
    })
}

fn temporal(from: NativeType, to: NativeType) -> NativeFunction {
    let arg = CqlType::Native(from);
    convert(from, to, move |value| {
        let millis = time::millis_of(&arg, &value)?;
        Some(match to {
            NativeType::Date => {
                Bytes::copy_from_slice(&helenus_cql::value::date::from_millis(millis).to_be_bytes())
            }
            _ => Bytes::copy_from_slice(&millis.to_be_bytes()),
        })
    })
}
