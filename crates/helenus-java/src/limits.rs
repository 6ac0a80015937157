//! Limits of a call: the size of a collection and of a text, and how deep collections nest.
//!
//! Values are reference-counted, so collections that hold each other are never freed. Freeing a long chain of collections would need an
//! equally deep recursion. Therefore a call keeps all collections that values were put into, and empties them at its end.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use crate::budget::{self, ELEMENT};
use crate::error::Failure;
use crate::value::Value;

/// Maximum bytes of a text.
pub(crate) const TEXT_MAX: usize = 16 << 20;

/// Maximum elements of a collection.
pub(crate) const LEN_MAX: usize = 1 << 20;

/// Maximum values in a value that an operation reads as a whole. A collection that is held twice counts twice.
const VALUES_MAX: usize = 1 << 20;

/// Maximum depth of a value that an operation reads as a whole.
const DEPTH_MAX: usize = 64;

/// The nested collections of a call, which are emptied at the call's end.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// Collections that hold a collection or are held in one, in the order in which they were first nested.
    nested: Vec<Value>,
    known: HashSet<usize>,
}

impl Limits {
    /// Counts the memory of an operation's result.
    ///
    /// # Errors
    /// If the call has used up its time or memory.
    pub fn made(&self, value: &Value) -> Result<(), Failure> {
        budget::check()?;
        budget::spend(fresh_size(value))
    }

    /// Counts a call of a method before the call.
    ///
    /// # Errors
    /// As [`made`](Self::made), or if the method reads whole values that are too large or nest too deeply.
    pub fn calling(
        &mut self,
        method: &str,
        object: Option<&Value>,
        arguments: &[Value],
    ) -> Result<(), Failure> {
        let copied = match method {
            "append" | "insert" | "addAll" | "putAll" => arguments.iter().map(size).sum(),
            _ => 0,
        };
        budget::spend(ELEMENT + copied)?;
        if arguments.iter().any(|argument| !argument.is_plain()) {
            if arguments.iter().any(|value| matches!(value, Value::Iterator(_))) {
                return Err(Failure::thrown(
                    "java.lang.UnsupportedOperationException",
                    "iterators can't be passed",
                ));
            }
            object
                .into_iter()
                .chain(arguments)
                .for_each(|value| self.keep(value));
        }
        if self.nested.is_empty() || is_shallow(object, method) {
            return Ok(());
        }
        object.into_iter().chain(arguments).try_for_each(check_whole)
    }

    /// Keeps a collection until the end of the call.
    pub fn keep(&mut self, value: &Value) {
        if let Some(address) = address(value)
            && self.known.insert(address)
        {
            self.nested.push(value.clone());
        }
    }
}

impl Drop for Limits {
    fn drop(&mut self) {
        for value in &self.nested {
            match value {
                Value::List(values) => values.borrow_mut().clear(),
                Value::Set(values) => values.borrow_mut().clear(),
                Value::Map(entries) => entries.borrow_mut().clear(),
                Value::Array(array) => array.values.borrow_mut().clear(),
                Value::Fields(fields) => fields.values.borrow_mut().clear(),
                _ => {}
            }
        }
    }
}

/// Returns true if a method reads at most one level of its object and arguments.
fn is_shallow(object: Option<&Value>, method: &str) -> bool {
    match method {
        "size" | "isEmpty" | "iterator" | "hasNext" | "next" | "getKey" | "getValue" | "keySet"
        | "values" | "entrySet" | "clear" => true,
        "add" | "addAll" | "get" | "set" | "subList" => matches!(object, Some(Value::List(_))),
        _ => false,
    }
}

fn address(value: &Value) -> Option<usize> {
    Some(match value {
        Value::List(values) => Rc::as_ptr(values).addr(),
        Value::Set(values) => Rc::as_ptr(values).addr(),
        Value::Map(entries) => Rc::as_ptr(entries).addr(),
        Value::Array(array) => Rc::as_ptr(array).addr(),
        Value::Fields(fields) => Rc::as_ptr(fields).addr(),
        _ => return None,
    })
}

/// Returns the bytes of a value, without those of the values that it refers to.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::StringBuilder(text) => text.borrow().len(),
        Value::BigInteger(number) => number.bits() as usize / 8,
        Value::List(values) => values.borrow().len() * ELEMENT,
        Value::Set(values) => values.borrow().len() * ELEMENT,
        Value::Map(entries) => entries.borrow().len() * 2 * ELEMENT,
        Value::Array(array) => array.values.borrow().len() * ELEMENT,
        _ => 0,
    }
}

/// Returns the bytes allocated for a value if no other value shares it.
fn fresh_size(value: &Value) -> usize {
    let is_fresh = match value {
        Value::String(text) => Arc::strong_count(text) == 1,
        Value::StringBuilder(text) => Rc::strong_count(text) == 1,
        Value::List(values) => Rc::strong_count(values) == 1,
        Value::Set(values) => Rc::strong_count(values) == 1,
        Value::Map(entries) => Rc::strong_count(entries) == 1,
        Value::Array(array) => Rc::strong_count(array) == 1,
        _ => true,
    };
    if is_fresh { size(value) } else { 0 }
}

/// Checks a value that an operation reads as a whole.
///
/// # Errors
/// If the value is too large or nests too deeply.
pub(crate) fn check_whole(value: &Value) -> Result<(), Failure> {
    let mut left = VALUES_MAX;
    check_level(value, 0, &mut left)
}

fn check_level(value: &Value, depth: usize, left: &mut usize) -> Result<(), Failure> {
    if depth == DEPTH_MAX {
        return Err(Failure::Thrown {
            class: "java.lang.StackOverflowError".to_owned(),
            message: None,
        });
    }
    *left = left.checked_sub(1).ok_or_else(Failure::out_of_memory)?;
    budget::walk(1)?;
    let mut inside = |value: &Value| check_level(value, depth + 1, left);
    match value {
        Value::List(values) => values.borrow().iter().try_for_each(inside),
        Value::Set(values) => values.borrow().iter().try_for_each(inside),
        Value::Array(array) => array.values.borrow().iter().try_for_each(inside),
        Value::Fields(fields) => fields.values.borrow().iter().try_for_each(inside),
        Value::Map(entries) => {
            let entries = entries.borrow();
            entries
                .iter()
                .try_for_each(|(key, value)| inside(key).and_then(|()| inside(value)))
        }
        Value::Entry(entry) => inside(&entry.0).and_then(|()| inside(&entry.1)),
        _ => Ok(()),
    }
}
