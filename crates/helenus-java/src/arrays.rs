//! Static methods of `Arrays`, and `System.arraycopy`.

use std::rc::Rc;

use crate::budget;
use crate::conversion::{assigned, zero};
use crate::error::Failure;
use crate::limits::LEN_MAX;
use crate::value::{Array, EvalResult, LookupResult, Value, copied};

fn array(value: &Value) -> Result<&Rc<Array>, Failure> {
    match value {
        Value::Array(array) => Ok(array),
        Value::Null => Err(Failure::null_pointer()),
        other => Err(Failure::class_cast(&other.class_name(), "array")),
    }
}

/// Copies `len` elements from index `from`. Behind the last element, the copy has the default values of new arrays.
fn range(of: &Array, from: usize, len: usize) -> Result<Value, Failure> {
    if len > LEN_MAX {
        return Err(Failure::out_of_memory());
    }
    budget::room_for(len)?;
    let values = of.values.borrow();
    let mut copied: Vec<Value> = values.iter().skip(from).take(len).cloned().collect();
    copied.resize(len, zero(&of.of));
    Ok(Value::Array(Rc::new(Array::new(of.of.clone(), copied))))
}

/// Copies an array, as `clone` does.
///
/// # Errors
/// If the copy takes more memory than a call may.
pub(crate) fn copy(array: &Array) -> EvalResult {
    let values = copied(&array.values.borrow())?;
    Ok(Value::Array(Rc::new(Array::new(array.of.clone(), values))))
}

/// Calls a static method. `None` if there is no such method.
pub(crate) fn call(class: &str, method: &str, arguments: &[Value]) -> LookupResult {
    Ok(match (class, method, arguments) {
        ("Arrays", "fill", [of, value]) => {
            let of = array(of)?;
            let value = assigned(value.clone(), &of.of)?;
            budget::walk(of.values.borrow().len() / 16)?;
            of.values.borrow_mut().fill(value);
            Some(Value::Null)
        }
        ("Arrays", "copyOf", [of, len]) => {
            let len = len.to_int()?;
            let len = usize::try_from(len)
                .map_err(|_| Failure::thrown("java.lang.NegativeArraySizeException", len.to_string()))?;
            Some(range(array(of)?, 0, len)?)
        }
        ("Arrays", "copyOfRange", [of, from, to]) => {
            let (from, to) = (from.to_int()?, to.to_int()?);
            let of = array(of)?;
            let have = of.values.borrow().len();
            if from > to {
                let message = format!("{from} > {to}");
                return Err(Failure::thrown("java.lang.IllegalArgumentException", message));
            }
            let begin = usize::try_from(from).ok().filter(|from| *from <= have);
            let begin = begin.ok_or_else(|| Failure::Thrown {
                class: "java.lang.ArrayIndexOutOfBoundsException".to_owned(),
                message: None,
            })?;
            Some(range(of, begin, (to - from) as usize)?)
        }
        ("Arrays", "equals", [Value::Array(left), Value::Array(right)]) => {
            let (left, right) = (left.values.borrow(), right.values.borrow());
            let are_equal =
                left.len() == right.len() && left.iter().zip(right.iter()).all(|(a, b)| a.equals(b));
            Some(Value::Boolean(are_equal))
        }
        ("Arrays", "equals", [left, right]) => Some(Value::Boolean(left.is_null() && right.is_null())),
        ("System", "arraycopy", [from, from_at, to, to_at, len]) => {
            let (from, to) = (array(from)?, array(to)?);
            let (from_at, to_at, len) = (from_at.to_int()?, to_at.to_int()?, len.to_int()?);
            let fits = |array: &Array, at: i32| {
                let have = array.values.borrow().len() as i64;
                at >= 0 && len >= 0 && i64::from(at) + i64::from(len) <= have
            };
            if !fits(from, from_at) || !fits(to, to_at) {
                let message = format!("arraycopy: range of {len} elements is out of bounds");
                return Err(Failure::thrown(
                    "java.lang.ArrayIndexOutOfBoundsException",
                    message,
                ));
            }
            budget::room_for(len as usize)?;
            let copied: Vec<Value> =
                from.values.borrow()[from_at as usize..(from_at + len) as usize].to_vec();
            let mut into = to.values.borrow_mut();
            for (slot, value) in into.iter_mut().skip(to_at as usize).zip(copied) {
                *slot = assigned(value, &to.of)?;
            }
            Some(Value::Null)
        }
        _ => None,
    })
}
