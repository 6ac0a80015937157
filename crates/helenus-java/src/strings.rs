//! Methods of texts. Positions count UTF-16 units, as in Java.

use std::cell::RefCell;
use std::rc::Rc;

use crate::budget::{self, ELEMENT};
use crate::error::Failure;
use regex::{Regex, RegexBuilder};

use crate::ast::Type;
use crate::limits::{LEN_MAX, TEXT_MAX};
use crate::text;
use crate::value::{Array, LookupResult, Value};

fn out_of_bounds(message: String) -> Failure {
    Failure::thrown("java.lang.StringIndexOutOfBoundsException", message)
}

/// Returns the number of a text's UTF-16 units.
fn units_len(text: &str) -> i32 {
    text.encode_utf16().count() as i32
}

/// Returns the difference of the first units that differ. If no units differ, returns the difference of the lengths.
pub(crate) fn compare(left: &str, right: &str) -> Result<i32, Failure> {
    budget::walk_bytes(left.len().min(right.len()))?;
    let mut both = left.encode_utf16().zip(right.encode_utf16());
    Ok(match both.find(|(left, right)| left != right) {
        Some((left, right)) => i32::from(left) - i32::from(right),
        None => units_len(left) - units_len(right),
    })
}

/// Returns the units from one position to another. `to` is `None` for the end of the text.
fn slice(text: &str, from: i32, to: Option<i32>) -> Result<Vec<u16>, Failure> {
    budget::walk_bytes(text.len())?;
    let len = units_len(text);
    let to = to.unwrap_or(len);
    if from < 0 || to > len || from > to {
        return Err(out_of_bounds(format!("begin {from}, end {to}, length {len}")));
    }
    let (from, to) = (from as usize, to as usize);
    budget::room(4 * (to - from))?;
    Ok(text.encode_utf16().skip(from).take(to - from).collect())
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

/// Returns the byte offset of a UTF-16 unit. Returns the text's length if there are fewer units.
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

/// Maximum bytes of a compiled regular expression.
const REGEX_MAX: usize = 2 << 20;

/// Compiles a regular expression. Only those that match in linear time are supported.
fn regex(pattern: &str) -> Result<Regex, Failure> {
    // Compiling takes long compared with other operations of one step.
    budget::look()?;
    let built = RegexBuilder::new(pattern).size_limit(REGEX_MAX).build();
    built.map_err(|error| Failure::thrown("java.util.regex.PatternSyntaxException", error.to_string()))
}

/// Translates Java's `$1` in a replacement into the syntax of the `regex` crate.
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
    budget::walk_bytes(text.len())?;
    let mut count = 1usize;
    if !is_first {
        count = 0;
        for _ in regex.find_iter(text) {
            budget::walk(1)?;
            count += 1;
        }
    }
    // A replacement may contain the whole text once for each of its groups.
    let longest = by.len() + text.len() * by.matches("${").count();
    if count.saturating_mul(longest).saturating_add(text.len()) > TEXT_MAX {
        return Err(Failure::out_of_memory());
    }
    let mut out = String::new();
    let mut copied = 0;
    for captures in regex.captures_iter(text).take(count) {
        budget::walk(4)?;
        let Some(whole) = captures.get(0) else { continue };
        out.push_str(&text[copied..whole.start()]);
        captures.expand(&by, &mut out);
        budget::room(2 * out.len())?;
        copied = whole.end();
    }
    out.push_str(&text[copied..]);
    Ok(Value::string(out))
}

/// Implements `String.split`.
fn split(text: &str, separator: &str, limit: i32) -> Result<Value, Failure> {
    let regex = regex(separator)?;
    let parts_max = usize::try_from(limit).ok().filter(|limit| *limit > 0);
    let mut parts = Vec::new();
    let mut from = 0;
    for found in regex.find_iter(text) {
        if parts_max.is_some_and(|most| parts.len() + 1 >= most) {
            break;
        }
        // An empty match at the beginning does not split the text.
        if found.end() == 0 {
            continue;
        }
        push_part(&mut parts, &text[from..found.start()])?;
        from = found.end();
    }
    let is_parted = !parts.is_empty();
    push_part(&mut parts, &text[from..])?;
    if limit == 0 && is_parted {
        let is_empty = |part: &Value| matches!(part, Value::String(part) if part.is_empty());
        while parts.last().is_some_and(is_empty) {
            parts.pop();
        }
    }
    Ok(Value::Array(Rc::new(Array::new(Type::class("String"), parts))))
}

/// Appends a part of the split text to the parts.
fn push_part(parts: &mut Vec<Value>, part: &str) -> Result<(), Failure> {
    if parts.len() >= LEN_MAX {
        return Err(Failure::out_of_memory());
    }
    budget::walk(budget::steps_of(part.len()))?;
    budget::room((parts.len() + 1) * ELEMENT)?;
    budget::spend(part.len())?;
    parts.push(Value::string(part));
    Ok(())
}

pub(crate) fn call(text: &str, method: &str, arguments: &[Value]) -> LookupResult {
    budget::walk_bytes(text.len())?;
    Ok(match (method, arguments) {
        ("length", []) => Some(Value::Int(units_len(text))),
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
        ("contains", [Value::String(wanted)]) => Some(Value::Boolean(text.contains(wanted.as_ref()))),
        ("contains", [wanted]) => Some(Value::Boolean(text.contains(&text::of(wanted)?))),
        ("startsWith", [Value::String(start)]) => Some(Value::Boolean(text.starts_with(start.as_ref()))),
        ("endsWith", [Value::String(end)]) => Some(Value::Boolean(text.ends_with(end.as_ref()))),
        ("concat", [Value::String(other)]) => {
            budget::room(2 * (text.len() + other.len()))?;
            let joined = format!("{text}{other}");
            text::check_len(&joined)?;
            Some(Value::string(joined))
        }
        ("toUpperCase" | "toLowerCase", _) => {
            // One letter may become three.
            budget::room(6 * text.len())?;
            Some(Value::string(match method {
                "toUpperCase" => text.to_uppercase(),
                _ => text.to_lowercase(),
            }))
        }
        ("trim", []) => Some(Value::string(text.trim_matches(|c| c <= ' '))),
        ("strip", []) => Some(Value::string(text.trim())),
        ("replace", [from, to]) => {
            let (from, to) = (text::of(from)?, text::of(to)?);
            budget::walk_bytes(text.len())?;
            let added = text.matches(&from).count().saturating_mul(to.len());
            if added.saturating_add(text.len()) > TEXT_MAX {
                return Err(Failure::out_of_memory());
            }
            budget::room(2 * (added + text.len()))?;
            // The replacement takes time for each match.
            budget::walk(text.matches(&from).count() / 16)?;
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
        ("getBytes", []) => Some(bytes_array(text.as_bytes())?),
        ("toCharArray", []) => {
            budget::room_for(units_len(text) as usize)?;
            let units = text.encode_utf16().map(Value::Char).collect();
            Some(Value::Array(Rc::new(Array::new(Type::Char, units))))
        }
        ("repeat", [count]) => {
            let count = usize::try_from(count.to_int()?).unwrap_or_default();
            if text.len().saturating_mul(count) > TEXT_MAX {
                return Err(Failure::out_of_memory());
            }
            budget::room(2 * text.len() * count)?;
            Some(Value::string(text.repeat(count)))
        }
        ("compareTo", [Value::String(other)]) => Some(Value::Int(compare(text, other)?)),
        ("compareToIgnoreCase", [Value::String(other)]) => {
            budget::room(3 * (text.len() + other.len()))?;
            Some(Value::Int(compare(&text.to_lowercase(), &other.to_lowercase())?))
        }
        ("equalsIgnoreCase", [Value::String(other)]) => {
            budget::room(3 * (text.len() + other.len()))?;
            budget::walk_bytes(other.len())?;
            Some(Value::Boolean(text.to_lowercase() == other.to_lowercase()))
        }
        ("equalsIgnoreCase", [_]) => Some(Value::Boolean(false)),
        ("intern", []) => Some(Value::string(text)),
        (_, [.., Value::Null]) => return Err(Failure::null_pointer()),
        _ => None,
    })
}

/// Returns a `byte[]` of the bytes.
///
/// # Errors
/// If it takes more memory than a call may, or too much time.
pub(crate) fn bytes_array(bytes: &[u8]) -> Result<Value, Failure> {
    budget::room_for(bytes.len())?;
    let bytes = bytes.iter().map(|byte| Value::Byte(*byte as i8)).collect();
    Ok(Value::Array(Rc::new(Array::new(Type::Byte, bytes))))
}

/// Returns the text of an array of `char`, or of `byte` in UTF-8.
///
/// # Errors
/// If it takes more memory than a call may, or too much time.
pub(crate) fn of_array(array: &Array) -> Result<Value, Failure> {
    let values = array.values.borrow();
    budget::room(6 * values.len())?;
    budget::walk(values.len() / 16)?;
    let numbers = values.iter().map(|value| value.as_long().unwrap_or_default());
    Ok(match array.of {
        Type::Char => from_units(&numbers.map(|unit| unit as u16).collect::<Vec<_>>()),
        _ => Value::string(String::from_utf8_lossy(
            &numbers.map(|byte| byte as u8).collect::<Vec<_>>(),
        )),
    })
}

fn from_units(units: &[u16]) -> Value {
    Value::string(String::from_utf16_lossy(units))
}

/// Calls a method of a `StringBuilder`.
pub(crate) fn build(
    object: &Value,
    text: &RefCell<String>,
    method: &str,
    arguments: &[Value],
) -> LookupResult {
    Ok(match (method, arguments) {
        ("append", [value]) => {
            let appended = text::of(value)?;
            if text.borrow().len() + appended.len() > TEXT_MAX {
                return Err(Failure::out_of_memory());
            }
            text.borrow_mut().push_str(&appended);
            Some(object.clone())
        }
        ("insert", [at, value]) => {
            let inserted = text::of(value)?;
            let at = at.to_int()?;
            let joined = {
                let before = text.borrow();
                let (start, end) = (slice(&before, 0, Some(at))?, slice(&before, at, None)?);
                budget::room(2 * before.len() + inserted.len())?;
                let (start, end) = (String::from_utf16_lossy(&start), String::from_utf16_lossy(&end));
                format!("{start}{inserted}{end}")
            };
            text::check_len(&joined)?;
            *text.borrow_mut() = joined;
            Some(object.clone())
        }
        ("reverse", []) => {
            budget::room(text.borrow().len())?;
            budget::walk_bytes(text.borrow().len())?;
            let reversed: String = text.borrow().chars().rev().collect();
            *text.borrow_mut() = reversed;
            Some(object.clone())
        }
        ("setLength", [len]) => {
            let cut = slice(&text.borrow(), 0, Some(len.to_int()?))?;
            *text.borrow_mut() = String::from_utf16_lossy(&cut);
            Some(Value::Null)
        }
        _ => call(&text.borrow(), method, arguments)?,
    })
}
