//! Methods of texts. Positions count UTF-16 units, as in Java.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use crate::error::Failure;
use regex::Regex;

use crate::ast::Type;
use crate::limits::TEXT_MAX;
use crate::text;
use crate::value::{Array, LookupResult, Value};

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

fn find(text: &str, wanted: &Value, from: i32, is_last: bool) -> Result<Option<Value>, Failure> {
    let wanted = match wanted {
        Value::String(wanted) => wanted.as_ref().to_owned(),
        Value::Null => return Err(Failure::null_pointer()),
        other => {
            let char = other
                .as_long()
                .and_then(|unit| char::from_u32(u32::try_from(unit).ok()?));
            char.map(String::from).unwrap_or_default()
        }
    };
    let start = byte_at(text, from);
    let found = match is_last {
        true => text[start..].rfind(&wanted),
        false => text[start..].find(&wanted),
    };
    let position = found.map(|at| text[..start + at].encode_utf16().count() as i32);
    Ok(Some(Value::Int(position.unwrap_or(-1))))
}

/// Where the unit of that number begins, or the end.
fn byte_at(text: &str, unit: i32) -> usize {
    let mut units = 0;
    for (at, char) in text.char_indices() {
        if units >= unit {
            return at;
        }
        units += char.len_utf16() as i32;
    }
    text.len()
}

/// A regular expression; of Java's, those that take time by the length of the text only are understood.
fn regex(pattern: &str) -> Result<Regex, Failure> {
    Regex::new(pattern)
        .map_err(|error| Failure::thrown("java.util.regex.PatternSyntaxException", error.to_string()))
}

/// Java's `$1` in a replacement, as the library writes it.
fn replacement(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some('$') => out.push_str("$$"),
                escaped => out.extend(escaped),
            },
            '$' => match chars.next() {
                Some(digit) if digit.is_ascii_digit() => out.push_str(&format!("${{{digit}}}")),
                other => {
                    out.push('$');
                    out.extend(other);
                }
            },
            other => out.push(other),
        }
    }
    out
}

/// Replaces the first match, or all of them.
fn replace_matches(text: &str, pattern: &str, by: &str, is_first: bool) -> Result<Value, Failure> {
    let (regex, by) = (regex(pattern)?, replacement(by));
    let count = if is_first {
        1
    } else {
        regex.find_iter(text).count()
    };
    // A replacement may hold the whole text once for each of its groups.
    let longest = by.len() + text.len() * by.matches("${").count();
    if count.saturating_mul(longest).saturating_add(text.len()) > TEXT_MAX {
        return Err(Failure::out_of_memory());
    }
    let limit = usize::from(is_first);
    Ok(Value::string(regex.replacen(text, limit, by.as_str())))
}

/// `String.split`
fn split(text: &str, separator: &str, limit: i32) -> Result<Value, Failure> {
    let regex = regex(separator)?;
    let mut parts: Vec<&str> = match usize::try_from(limit) {
        Ok(limit) if limit > 0 => regex.splitn(text, limit).collect(),
        _ => regex.split(text).collect(),
    };
    // A match of nothing at the beginning parts nothing.
    if !text.is_empty() && regex.find(text).is_some_and(|found| found.end() == 0) {
        parts.remove(0);
    }
    if limit == 0 {
        while parts.len() > 1 && parts.last() == Some(&"") {
            parts.pop();
        }
    }
    let parts = parts.into_iter().map(Value::string).collect();
    Ok(Value::Array(Rc::new(Array::new(Type::class("String"), parts))))
}

pub(crate) fn call(text: &Arc<str>, method: &str, arguments: &[Value]) -> LookupResult {
    Ok(match (method, arguments) {
        ("length", []) => Some(Value::Int(text.encode_utf16().count() as i32)),
        ("isEmpty", []) => Some(Value::Boolean(text.is_empty())),
        ("isBlank", []) => Some(Value::Boolean(text.trim().is_empty())),
        ("charAt", [index]) => {
            let index = index.to_int()?;
            let unit = usize::try_from(index)
                .ok()
                .and_then(|index| text.encode_utf16().nth(index));
            Some(Value::Char(unit.ok_or_else(|| {
                out_of_bounds(format!("String index out of range: {index}"))
            })?))
        }
        ("substring", [from]) => Some(from_units(&slice(text, from.to_int()?, None)?)),
        ("substring" | "subSequence", [from, to]) => {
            Some(from_units(&slice(text, from.to_int()?, Some(to.to_int()?))?))
        }
        ("indexOf", [wanted]) => find(text, wanted, 0, false)?,
        ("indexOf", [wanted, from]) => find(text, wanted, from.to_int()?, false)?,
        ("lastIndexOf", [wanted]) => find(text, wanted, 0, true)?,
        ("contains", [wanted]) => Some(Value::Boolean(text.contains(&text::of(wanted)?))),
        ("startsWith", [Value::String(start)]) => Some(Value::Boolean(text.starts_with(start.as_ref()))),
        ("endsWith", [Value::String(end)]) => Some(Value::Boolean(text.ends_with(end.as_ref()))),
        ("concat", [Value::String(other)]) => Some(Value::string(format!("{text}{other}"))),
        ("toUpperCase", _) => Some(Value::string(text.to_uppercase())),
        ("toLowerCase", _) => Some(Value::string(text.to_lowercase())),
        ("trim", []) => Some(Value::string(text.trim_matches(|c| c <= ' '))),
        ("strip", []) => Some(Value::string(text.trim())),
        ("replace", [from, to]) => {
            let (from, to) = (text::of(from)?, text::of(to)?);
            let added = text.matches(&from).count().saturating_mul(to.len());
            if added.saturating_add(text.len()) > TEXT_MAX {
                return Err(Failure::out_of_memory());
            }
            Some(Value::string(text.replace(&from, &to)))
        }
        ("matches", [Value::String(pattern)]) => {
            let whole = regex(&format!("^(?:{pattern})$"))?;
            Some(Value::Boolean(whole.is_match(text)))
        }
        ("replaceAll" | "replaceFirst", [Value::String(pattern), Value::String(by)]) => {
            Some(replace_matches(text, pattern, by, method == "replaceFirst")?)
        }
        ("split", [Value::String(separator)]) => Some(split(text, separator, 0)?),
        ("split", [Value::String(separator), limit]) => Some(split(text, separator, limit.to_int()?)?),
        ("getBytes", []) => Some(bytes_array(text.as_bytes())),
        ("toCharArray", []) => {
            let units = text.encode_utf16().map(Value::Char).collect();
            Some(Value::Array(Rc::new(Array::new(Type::Char, units))))
        }
        ("repeat", [count]) => {
            let count = usize::try_from(count.to_int()?).unwrap_or_default();
            if text.len().saturating_mul(count) > TEXT_MAX {
                return Err(Failure::out_of_memory());
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

/// A `byte[]`.
pub(crate) fn bytes_array(bytes: &[u8]) -> Value {
    let bytes = bytes.iter().map(|byte| Value::Byte(*byte as i8)).collect();
    Value::Array(Rc::new(Array::new(Type::Byte, bytes)))
}

/// The text of an array of `char`, or of `byte` in UTF-8.
pub(crate) fn of_array(array: &Array) -> Value {
    let values = array.values.borrow();
    let numbers = values.iter().map(|value| value.as_long().unwrap_or_default());
    match array.of {
        Type::Char => from_units(&numbers.map(|unit| unit as u16).collect::<Vec<_>>()),
        _ => Value::string(String::from_utf8_lossy(
            &numbers.map(|byte| byte as u8).collect::<Vec<_>>(),
        )),
    }
}

fn from_units(units: &[u16]) -> Value {
    Value::string(String::from_utf16_lossy(units))
}

/// Methods of a `StringBuilder`.
pub(crate) fn build(
    object: &Value,
    text: &RefCell<String>,
    method: &str,
    arguments: &[Value],
) -> LookupResult {
    Ok(match (method, arguments) {
        ("append", [value]) => {
            let appended = text::of(value)?;
            text.borrow_mut().push_str(&appended);
            text::check_len(&text.borrow())?;
            Some(object.clone())
        }
        ("insert", [at, value]) => {
            let before = text.borrow().clone();
            let at = at.to_int()?;
            let (start, end) = (slice(&before, 0, Some(at))?, slice(&before, at, None)?);
            let inserted = text::of(value)?;
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
