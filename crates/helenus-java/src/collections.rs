//! Methods of lists, sets, maps and iterators.

use std::cell::RefCell;
use std::rc::Rc;

use crate::ast::Type;
use crate::budget;
use crate::error::Failure;
use crate::limits::LEN_MAX;
use crate::ordered::Ordered;
use crate::value::{Array, LookupResult, Value, copied};

fn room(len: usize) -> Result<(), Failure> {
    match len < LEN_MAX {
        true => Ok(()),
        false => Err(Failure::out_of_memory()),
    }
}

fn position(values: &[Value], wanted: &Value) -> Option<usize> {
    values.iter().position(|value| value.equals(wanted))
}

fn iterator_of(values: Vec<Value>) -> Value {
    Value::Iterator(Rc::new(RefCell::new(values.into_iter())))
}

fn elements(of: &Value) -> Result<Vec<Value>, Failure> {
    match of.elements() {
        Some(elements) => copied(&elements),
        None if of.is_null() => Err(Failure::null_pointer()),
        None => Err(Failure::class_cast(&of.class_name(), "java.util.Collection")),
    }
}

/// Calls a method that lists and sets have in common.
fn collection(values: &RefCell<Vec<Value>>, method: &str, arguments: &[Value]) -> LookupResult {
    Ok(match (method, arguments) {
        ("size", []) => Some(Value::Int(values.borrow().len() as i32)),
        ("isEmpty", []) => Some(Value::Boolean(values.borrow().is_empty())),
        ("contains", [wanted]) => Some(Value::Boolean(position(&values.borrow(), wanted).is_some())),
        ("containsAll", [others]) => {
            let values = values.borrow();
            let others = elements(others)?;
            Some(Value::Boolean(
                others.iter().all(|other| position(&values, other).is_some()),
            ))
        }
        ("clear", []) => {
            values.borrow_mut().clear();
            Some(Value::Null)
        }
        ("toArray", into) => {
            let of = match into {
                [Value::Array(array)] => array.of.clone(),
                _ => Type::class("Object"),
            };
            Some(Value::Array(Rc::new(Array::new(of, copied(&values.borrow())?))))
        }
        ("iterator", []) => Some(iterator_of(copied(&values.borrow())?)),
        ("removeAll" | "retainAll", [others]) => {
            let others = elements(others)?;
            let before = values.borrow().len();
            let keeps = method == "retainAll";
            values
                .borrow_mut()
                .retain(|value| position(&others, value).is_some() == keeps);
            Some(Value::Boolean(values.borrow().len() != before))
        }
        _ => None,
    })
}

fn index(at: &Value, len: usize) -> Result<usize, Failure> {
    let at = at.to_int()?;
    let index = usize::try_from(at).ok().filter(|index| *index < len);
    index.ok_or_else(|| {
        Failure::thrown(
            "java.lang.IndexOutOfBoundsException",
            format!("Index {at} out of bounds for length {len}"),
        )
    })
}

pub(crate) fn list(values: &RefCell<Vec<Value>>, method: &str, arguments: &[Value]) -> LookupResult {
    let len = values.borrow().len();
    Ok(match (method, arguments) {
        ("get", [at]) => Some(values.borrow()[index(at, len)?].clone()),
        ("add", [value]) => {
            room(len)?;
            values.borrow_mut().push(value.clone());
            Some(Value::Boolean(true))
        }
        ("add", [at, value]) => {
            room(len)?;
            values.borrow_mut().insert(index(at, len + 1)?, value.clone());
            Some(Value::Null)
        }
        ("addAll", [others]) => {
            let others = elements(others)?;
            room(len + others.len())?;
            let changes = !others.is_empty();
            values.borrow_mut().extend(others);
            Some(Value::Boolean(changes))
        }
        ("set", [at, value]) => {
            let at = index(at, len)?;
            Some(std::mem::replace(&mut values.borrow_mut()[at], value.clone()))
        }
        ("remove", [at @ Value::Int(_)]) => Some(values.borrow_mut().remove(index(at, len)?)),
        ("remove", [wanted]) => {
            let found = position(&values.borrow(), wanted);
            if let Some(at) = found {
                values.borrow_mut().remove(at);
            }
            Some(Value::Boolean(found.is_some()))
        }
        ("indexOf", [wanted]) => {
            let found = position(&values.borrow(), wanted);
            Some(Value::Int(found.map_or(-1, |at| at as i32)))
        }
        ("subList", [from, to]) => {
            let (from, to) = (from.to_int()?, to.to_int()?);
            let outside = |text: String| Failure::thrown("java.lang.IndexOutOfBoundsException", text);
            let begin = usize::try_from(from).map_err(|_| outside(format!("fromIndex = {from}")))?;
            if to > len as i32 {
                return Err(outside(format!("toIndex = {to}")));
            }
            if from > to {
                let message = format!("fromIndex({from}) > toIndex({to})");
                return Err(Failure::thrown("java.lang.IllegalArgumentException", message));
            }
            Some(Value::list(copied(&values.borrow()[begin..to as usize])?))
        }
        _ => collection(values, method, arguments)?,
    })
}

pub(crate) fn set(values: &Ordered<Value>, method: &str, arguments: &[Value]) -> LookupResult {
    Ok(match (method, arguments) {
        ("add", [value]) => {
            room(values.borrow().len())?;
            let is_new = values.find(value).is_none();
            if is_new {
                values.insert(value.clone())?;
            }
            Some(Value::Boolean(is_new))
        }
        ("addAll", [others]) => {
            let mut changes = false;
            for other in elements(others)? {
                let added = set(values, "add", &[other])?;
                changes |= matches!(added, Some(Value::Boolean(true)));
            }
            Some(Value::Boolean(changes))
        }
        ("remove", [wanted]) => {
            let found = position(&values.borrow(), wanted);
            if let Some(at) = found {
                values.borrow_mut().remove(at);
            }
            Some(Value::Boolean(found.is_some()))
        }
        ("first", []) => values.borrow().first().cloned(),
        ("last", []) => values.borrow().last().cloned(),
        _ => collection(values, method, arguments)?,
    })
}

pub(crate) fn map(entries: &Ordered<(Value, Value)>, method: &str, arguments: &[Value]) -> LookupResult {
    let find = |wanted: &Value| entries.find(wanted);
    let value_at = |at: usize| {
        entries
            .borrow()
            .get(at)
            .map_or(Value::Null, |(_, value)| value.clone())
    };
    Ok(match (method, arguments) {
        ("size", []) => Some(Value::Int(entries.borrow().len() as i32)),
        ("isEmpty", []) => Some(Value::Boolean(entries.borrow().is_empty())),
        ("get", [key]) => Some(find(key).map_or(Value::Null, value_at)),
        ("getOrDefault", [key, default]) => Some(find(key).map_or_else(|| default.clone(), value_at)),
        ("containsKey", [key]) => Some(Value::Boolean(find(key).is_some())),
        ("containsValue", [wanted]) => {
            let has = entries.borrow().iter().any(|(_, value)| value.equals(wanted));
            Some(Value::Boolean(has))
        }
        ("put", [key, value]) => {
            let found = find(key);
            Some(match found {
                Some(at) => std::mem::replace(&mut entries.borrow_mut()[at].1, value.clone()),
                None => {
                    room(entries.borrow().len())?;
                    entries.insert((key.clone(), value.clone()))?;
                    Value::Null
                }
            })
        }
        ("putIfAbsent", [key, value]) => match find(key) {
            Some(at) if !value_at(at).is_null() => Some(value_at(at)),
            _ => map(entries, "put", &[key.clone(), value.clone()])?,
        },
        ("putAll", [Value::Map(others)]) => {
            let others = copied(&others.borrow())?;
            for (key, value) in others {
                map(entries, "put", &[key, value])?;
            }
            Some(Value::Null)
        }
        ("remove", [key]) => Some(match find(key) {
            Some(at) => entries.borrow_mut().remove(at).1,
            None => Value::Null,
        }),
        ("clear", []) => {
            entries.borrow_mut().clear();
            Some(Value::Null)
        }
        ("keySet", []) => {
            let entries = entries.borrow();
            budget::room_for(entries.len())?;
            Some(Value::set(entries.iter().map(|(key, _)| key.clone()).collect()))
        }
        ("values", []) => {
            let entries = entries.borrow();
            budget::room_for(entries.len())?;
            Some(Value::list(
                entries.iter().map(|(_, value)| value.clone()).collect(),
            ))
        }
        ("entrySet", []) => {
            let entries = entries.borrow();
            budget::room_for(3 * entries.len())?;
            let entries = entries.iter().map(|entry| Value::Entry(Rc::new(entry.clone())));
            Some(Value::set(entries.collect()))
        }
        _ => None,
    })
}

pub(crate) fn iterator(rest: &RefCell<std::vec::IntoIter<Value>>, method: &str) -> Option<Value> {
    match method {
        "hasNext" => Some(Value::Boolean(rest.borrow().len() > 0)),
        "next" => rest.borrow_mut().next(),
        _ => None,
    }
}
