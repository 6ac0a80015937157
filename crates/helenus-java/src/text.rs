//! Values as text: `String.valueOf`.

use helenus_cql::types::CqlType;
use helenus_cql::value::{civil, java, to_cql_literal, uuid};

use crate::value::{Value, field_types, whole_name};

pub(crate) fn of(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Boolean(value) => value.to_string(),
        Value::Char(unit) => String::from_utf16_lossy(&[*unit]),
        Value::Byte(value) => value.to_string(),
        Value::Short(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Long(value) => value.to_string(),
        Value::Float(value) => java::float_to_string(*value),
        Value::Double(value) => java::double_to_string(*value),
        Value::String(text) => text.as_ref().to_owned(),
        Value::BigInteger(value) => value.to_string(),
        Value::BigDecimal(value) => value.to_string(),
        Value::Uuid(value) => uuid::to_text(*value),
        Value::Inet(value) => format!("/{value}"),
        Value::Duration(value) => value.to_string(),
        Value::Date(millis) => date_time(*millis.borrow()),
        Value::LocalDate(days) => civil::date_text(*days),
        Value::ByteBuffer(bytes) => {
            let len = bytes.len();
            format!("java.nio.HeapByteBuffer[pos=0 lim={len} cap={len}]")
        }
        Value::List(values) | Value::Set(values) => format!("[{}]", joined(&values.borrow())),
        Value::Map(entries) => {
            let entries = entries.borrow();
            let entries: Vec<String> = entries.iter().map(|(key, value)| entry(key, value)).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Fields(fields) => {
            let values = fields.values.borrow();
            let values = values.iter().zip(field_types(&fields.ty));
            let shown = values.map(|(value, ty)| literal(value, ty));
            match &fields.ty {
                CqlType::Udt { definition, .. } => {
                    let named = definition.fields.iter().zip(shown);
                    let named: Vec<String> = named
                        .map(|(field, value)| format!("{}:{value}", field.name))
                        .collect();
                    format!("{{{}}}", named.join(","))
                }
                _ => format!("({})", shown.collect::<Vec<_>>().join(",")),
            }
        }
        Value::StringBuilder(text) => text.borrow().clone(),
        Value::Iterator(_) => "java.util.Iterator".to_owned(),
        Value::Entry(both) => entry(&both.0, &both.1),
        Value::Class(ty) => format!("class {}", whole_name(ty.name())),
        Value::Exception(failure) => failure.to_string(),
    }
}

fn entry(key: &Value, value: &Value) -> String {
    format!("{}={}", of(key), of(value))
}

fn joined(values: &[Value]) -> String {
    values.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// A value as CQL writes it.
fn literal(value: &Value, ty: &CqlType) -> String {
    match value.clone().into_cql(ty) {
        Ok(Some(value)) => to_cql_literal(ty, &value.encode(ty)).unwrap_or_else(|_| "null".to_owned()),
        Ok(None) => "null".to_owned(),
        Err(_) => of(value),
    }
}

/// `Date.toString`, in UTC: `Thu Jan 01 00:00:00 UTC 1970`.
fn date_time(millis: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let days = millis.div_euclid(86_400_000);
    let seconds = millis.rem_euclid(86_400_000) / 1000;
    let (year, month, day) = civil::civil_from_days(days);
    let weekday = DAYS[days.rem_euclid(7) as usize];
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!(
        "{weekday} {} {day:02} {hour:02}:{minute:02}:{second:02} UTC {year}",
        MONTHS[month as usize - 1]
    )
}
