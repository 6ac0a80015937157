//! Methods of texts. Positions count UTF-16 units, as in Java.

use std::cell::RefCell;
use std::sync::Arc;

use crate::error::Failure;
use crate::text;
use crate::value::Value;

type Found = Result<Option<Value>, Failure>;

fn out_of_bounds(message: String) -> Failure {
    Failure::thrown("java.lang.StringIndexOutOfBoundsException", message)
}

fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

/// The difference of the first units that differ, or of the lengths.
pub(crate) fn compare(left: &str, right: &str) -> i32 {
    let (left, right) = (units(left), units(right));
    let differing = left.iter().zip(&right).find(|(left, right)| left != right);
    match differing {
        Some((left, right)) => i32::from(*left) - i32::from(*right),
        None => left.len() as i32 - right.len() as i32,
    }
}

/// The units from one position to another.
fn slice(text: &str, from: i32, to: Option<i32>) -> Result<Vec<u16>, Failure> {
    let units = units(text);
    let len = units.len() as i32;
    let to = to.unwrap_or(len);
    if from < 0 || to > len || from > to {
        return Err(out_of_bounds(format!("begin {from}, end {to}, length {len}")));
    }
    Ok(units[from as usize..to as usize].to_vec())
}

fn find(text: &str, wanted: &Value, from: i32, is_last: bool) -> Option<Value> {
    let wanted = match wanted {
        Value::String(wanted) => units(wanted),
        other => vec![u16::try_from(other.as_long()?).ok()?],
    };
    let units = units(text);
    let from = usize::try_from(from).unwrap_or(0);
    let mut starts = (from..=units.len().checked_sub(wanted.len()).unwrap_or_default())
        .filter(|&start| units.get(start..start + wanted.len()) == Some(&wanted[..]));
    let found = if is_last {
        starts.next_back()
    } else {
        starts.next()
    };
    Some(Value::Int(found.map_or(-1, |start| start as i32)))
}

pub(crate) fn call(text: &Arc<str>, method: &str, arguments: &[Value]) -> Found {
    Ok(match (method, arguments) {
        ("length", []) => Some(Value::Int(text.encode_utf16().count() as i32)),
        ("isEmpty", []) => Some(Value::Boolean(text.is_empty())),
        ("isBlank", []) => Some(Value::Boolean(text.trim().is_empty())),
        ("charAt", [index]) => {
            let index = index.to_int()?;
            let unit = usize::try_from(index)
                .ok()
                .and_then(|index| text.encode_utf16().nth(index));
            let len = text.encode_utf16().count();
            Some(Value::Char(unit.ok_or_else(|| {
                out_of_bounds(format!("index {index}, length {len}"))
            })?))
        }
        ("substring", [from]) => Some(from_units(&slice(text, from.to_int()?, None)?)),
        ("substring" | "subSequence", [from, to]) => {
            Some(from_units(&slice(text, from.to_int()?, Some(to.to_int()?))?))
        }
        ("indexOf", [wanted]) => find(text, wanted, 0, false),
        ("indexOf", [wanted, from]) => find(text, wanted, from.to_int()?, false),
        ("lastIndexOf", [wanted]) => find(text, wanted, 0, true),
        ("contains", [wanted]) => Some(Value::Boolean(text.contains(&text::of(wanted)))),
        ("startsWith", [Value::String(start)]) => Some(Value::Boolean(text.starts_with(start.as_ref()))),
        ("endsWith", [Value::String(end)]) => Some(Value::Boolean(text.ends_with(end.as_ref()))),
        ("concat", [Value::String(other)]) => Some(Value::string(format!("{text}{other}"))),
        ("toUpperCase", _) => Some(Value::string(text.to_uppercase())),
        ("toLowerCase", _) => Some(Value::string(text.to_lowercase())),
        ("trim", []) => Some(Value::string(text.trim_matches(|c| c <= ' '))),
        ("strip", []) => Some(Value::string(text.trim())),
        ("replace", [from, to]) => Some(Value::string(text.replace(&text::of(from), &text::of(to)))),
        ("repeat", [count]) => {
            let count = usize::try_from(count.to_int()?).unwrap_or_default();
            if text.len().saturating_mul(count) > 1 << 20 {
                return Err(Failure::thrown(
                    "java.lang.OutOfMemoryError",
                    "the text is too long",
                ));
            }
            Some(Value::string(text.repeat(count)))
        }
        ("compareTo", [Value::String(other)]) => Some(Value::Int(compare(text, other))),
        ("compareToIgnoreCase", [Value::String(other)]) => {
            Some(Value::Int(compare(&text.to_lowercase(), &other.to_lowercase())))
        }
        ("equalsIgnoreCase", [Value::String(other)]) => {
            Some(Value::Boolean(text.to_lowercase() == other.to_lowercase()))
        }
        ("equalsIgnoreCase", [_]) => Some(Value::Boolean(false)),
        ("intern", []) => Some(Value::String(text.clone())),
        (_, [.., Value::Null]) => return Err(Failure::null_pointer()),
        _ => None,
    })
}

fn from_units(units: &[u16]) -> Value {
    Value::string(String::from_utf16_lossy(units))
}

/// Methods of a `StringBuilder`.
pub(crate) fn build(object: &Value, text: &RefCell<String>, method: &str, arguments: &[Value]) -> Found {
    Ok(match (method, arguments) {
        ("append", [value]) => {
            if text.borrow().len() > 16 << 20 {
                return Err(Failure::thrown(
                    "java.lang.OutOfMemoryError",
                    "the text is too long",
                ));
            }
            text.borrow_mut().push_str(&text::of(value));
            Some(object.clone())
        }
        ("insert", [at, value]) => {
            let before = text.borrow().clone();
            let at = at.to_int()?;
            let (start, end) = (slice(&before, 0, Some(at))?, slice(&before, at, None)?);
            let inserted = text::of(value);
            let (start, end) = (String::from_utf16_lossy(&start), String::from_utf16_lossy(&end));
            *text.borrow_mut() = format!("{start}{inserted}{end}");
            Some(object.clone())
        }
        ("reverse", []) => {
            let reversed: String = text.borrow().chars().rev().collect();
            *text.borrow_mut() = reversed;
            Some(object.clone())
        }
        ("setLength", [len]) => {
            let cut = slice(&text.borrow(), 0, Some(len.to_int()?))?;
            *text.borrow_mut() = String::from_utf16_lossy(&cut);
            Some(Value::Null)
        }
        _ => {
            let shared: Arc<str> = Arc::from(text.borrow().as_str());
            call(&shared, method, arguments)?
        }
    })
}
