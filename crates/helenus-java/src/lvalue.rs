//! Arrays, and assignment to variables and elements.

use std::rc::Rc;

use crate::ast::{AssignTarget, Expr, ExprKind, Operator, Type};
use crate::budget;
use crate::conversion::{assigned, zero};
use crate::error::Failure;
use crate::interpret::{Frame, element_type};
use crate::limits::{LEN_MAX, check_whole};
use crate::number::{binary, convert};
use crate::value::{Array, EvalResult, Value};

impl Frame<'_> {
    /// Creates a value from its arguments with `make`, and counts it against the limits.
    pub fn made(
        &mut self,
        arguments: Vec<Value>,
        method: &str,
        make: impl FnOnce(&[Value]) -> EvalResult<Value>,
    ) -> EvalResult<Value> {
        self.limits.calling(method, None, &arguments)?;
        let result = make(&arguments)?;
        self.limits.made(&result)?;
        if arguments.iter().any(|argument| !argument.is_plain()) {
            self.limits.keep(&result);
        }
        Ok(result)
    }

    pub fn new_array(&mut self, ty: &Type, lengths: &[Value]) -> EvalResult<Value> {
        let of = element_type(ty);
        let Some((len, inner)) = lengths.split_first() else {
            return Ok(Value::Null);
        };
        let len = len.to_int()?;
        let len = usize::try_from(len)
            .map_err(|_| Failure::thrown("java.lang.NegativeArraySizeException", len.to_string()))?;
        if len > LEN_MAX {
            return Err(Failure::out_of_memory());
        }
        budget::room_for(len)?;
        let mut values = Vec::with_capacity(len);
        for _ in 0..len {
            self.step()?;
            values.push(match inner {
                [] => zero(&of),
                inner => self.new_array(&of, inner)?,
            });
        }
        let array = Value::Array(Rc::new(Array::new(of, values)));
        self.limits.made(&array)?;
        self.limits.keep(&array);
        Ok(array)
    }

    /// Returns an element of an array, or the array's length.
    pub fn part(&mut self, expr: &Expr) -> EvalResult<Value> {
        match &expr.kind {
            ExprKind::Element { array, index } => {
                let (array, index) = self.element(array, index)?;
                array.get(index)
            }
            ExprKind::Length(array) => {
                let array = self.array(array)?;
                let len = array.values.borrow().len();
                Ok(Value::Int(len as i32))
            }
            _ => Err(Failure::null_pointer()),
        }
    }

    fn array(&mut self, array: &Expr) -> EvalResult<Rc<Array>> {
        match self.expr(array)? {
            Value::Array(array) => Ok(array),
            Value::Null => Err(Failure::null_pointer()),
            other => Err(Failure::class_cast(&other.class_name(), "array")),
        }
    }

    fn element(&mut self, array: &Expr, index: &Expr) -> EvalResult<(Rc<Array>, i32)> {
        let array = self.array(array)?;
        let index = self.expr(index)?.to_int()?;
        Ok((array, index))
    }

    pub fn lvalue(&mut self, target: &AssignTarget) -> EvalResult<LValue> {
        Ok(match target {
            AssignTarget::Local(slot) => LValue::Slot(*slot),
            AssignTarget::Element { array, index } => {
                let (array, index) = self.element(array, index)?;
                LValue::Element(array, index)
            }
        })
    }

    /// Returns the value that `variable operator= value` assigns. A number is converted to the variable's type, and may lose digits.
    pub fn compound(
        &mut self,
        target: &AssignTarget,
        place: &LValue,
        operator: Operator,
        before: Value,
        value: &Value,
    ) -> EvalResult<Value> {
        check_whole(value)?;
        let result = binary(operator, &before, value).map_err(|failure| match target {
            AssignTarget::Local(slot) if before.is_null() => self.unboxed_null(failure, *slot),
            _ => failure,
        })?;
        self.limits.made(&result)?;
        let ty = match place {
            LValue::Slot(slot) => self.body.slots.get(*slot).and_then(Type::unboxed),
            LValue::Element(array, _) => array.of.unboxed(),
        };
        Ok(ty.and_then(|ty| convert(&result, &ty)).unwrap_or(result))
    }
}

/// The place that a value is assigned to.
pub(crate) enum LValue {
    Slot(usize),
    Element(Rc<Array>, i32),
}

impl LValue {
    pub fn get(&self, frame: &Frame<'_>) -> EvalResult<Value> {
        match self {
            LValue::Slot(slot) => Ok(frame.get(*slot)),
            LValue::Element(array, index) => array.get(*index),
        }
    }

    /// Assigns a value, and returns the new value of the place.
    pub fn set(&self, frame: &mut Frame<'_>, value: Value) -> EvalResult<Value> {
        match self {
            LValue::Slot(slot) => {
                frame.set(*slot, value)?;
                Ok(frame.get(*slot))
            }
            LValue::Element(array, index) => {
                if !value.is_plain() {
                    frame.limits.keep(&value);
                }
                array.set(*index, assigned(value, &array.of)?)?;
                array.get(*index)
            }
        }
    }
}
