//! The interpreter of function bodies.

use std::rc::Rc;

use crate::ast::{
    Body, Case, CaseLabel, Catch, Constant, Expr, ExprKind, Operator, Statement, StatementKind, Type,
};
use crate::budget;
use crate::classes::is_exception;
use crate::context::Context;
use crate::conversion::{assigned, cast, is_instance};
use crate::error::Failure;
use crate::library;
use crate::limits::{Limits, check_whole};
use crate::number::{binary, unary};
use crate::value::{Array, EvalResult, Value, copied, parameter_type};

use helenus_cql::value::CqlValue;

/// The way in which a statement ended.
enum Flow {
    Next,
    Break,
    Continue,
    Return(Value),
}

/// The state of a function's call.
pub(crate) struct Frame<'a> {
    pub body: &'a Body,
    pub slots: Vec<Value>,
    pub context: &'a Context<'a>,
    pub limits: Limits,
}

/// Runs `body` with its arguments.
///
/// # Errors
/// The exception that it throws, or that the deadline has passed.
pub(crate) fn run(body: &Body, arguments: Vec<Value>, context: &Context<'_>) -> EvalResult<Option<CqlValue>> {
    let mut slots = arguments;
    slots.resize(body.slots.len(), Value::Null);
    let mut frame = Frame {
        body,
        slots,
        context,
        limits: Limits::default(),
    };
    let result = match frame.all(&body.statements)? {
        Flow::Return(value) => value,
        _ => Value::Null,
    };
    let signature = context.signature;
    let ty = parameter_type(&signature.returns, signature.is_called_on_null);
    let result = assigned(result, &ty)?;
    check_whole(&result)?;
    result.into_cql(&signature.returns)
}

impl Frame<'_> {
    pub fn step(&mut self) -> EvalResult<()> {
        budget::walk(1)
    }

    fn all(&mut self, statements: &[Statement]) -> EvalResult<Flow> {
        for statement in statements {
            match self.statement(statement)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, statement: &Statement) -> EvalResult<Flow> {
        self.step()?;
        match &statement.kind {
            StatementKind::Local { slot, value } => {
                let value = match value {
                    Some(value) => self.assigned_to(*slot, value)?,
                    None => Value::Null,
                };
                self.slots[*slot] = value;
            }
            StatementKind::Expr(expr) => drop(self.expr(expr)?),
            StatementKind::Block(statements) => return self.all(statements),
            StatementKind::If {
                condition,
                then,
                otherwise,
            } => {
                if self.condition(condition)? {
                    return self.statement(then);
                }
                if let Some(otherwise) = otherwise {
                    return self.statement(otherwise);
                }
            }
            StatementKind::While { condition, body } => {
                while self.condition(condition)? {
                    match self.statement(body)? {
                        Flow::Break => break,
                        Flow::Return(value) => return Ok(Flow::Return(value)),
                        Flow::Next | Flow::Continue => {}
                    }
                }
            }
            StatementKind::DoWhile { body, condition } => loop {
                match self.statement(body)? {
                    Flow::Break => break,
                    Flow::Return(value) => return Ok(Flow::Return(value)),
                    Flow::Next | Flow::Continue => {}
                }
                if !self.condition(condition)? {
                    break;
                }
            },
            StatementKind::For {
                init,
                condition,
                update,
                body,
            } => {
                self.all(init)?;
                while condition
                    .as_ref()
                    .map_or(Ok(true), |condition| self.condition(condition))?
                {
                    match self.statement(body)? {
                        Flow::Break => break,
                        Flow::Return(value) => return Ok(Flow::Return(value)),
                        Flow::Next | Flow::Continue => {}
                    }
                    for expr in update {
                        self.expr(expr)?;
                    }
                }
            }
            StatementKind::ForEach { slot, of, body } => {
                let elements = match self.expr(of)? {
                    Value::List(values) => copied(&values.borrow())?,
                    Value::Set(values) => copied(&values.borrow())?,
                    Value::Array(array) => copied(&array.values.borrow())?,
                    Value::Null => return Err(Failure::null_pointer()),
                    other => return Err(Failure::class_cast(&other.class_name(), "java.lang.Iterable")),
                };
                for element in elements {
                    self.set(*slot, element)?;
                    match self.statement(body)? {
                        Flow::Break => break,
                        Flow::Return(value) => return Ok(Flow::Return(value)),
                        Flow::Next | Flow::Continue => {}
                    }
                }
            }
            StatementKind::Switch { subject, cases } => return self.switch(subject, cases),
            StatementKind::Return(value) => return Ok(Flow::Return(self.expr(value)?)),
            StatementKind::Throw(value) => {
                return Err(match self.expr(value)? {
                    Value::Exception(failure) => failure.as_ref().clone(),
                    Value::Null => Failure::null_pointer(),
                    other => Failure::class_cast(&other.class_name(), "java.lang.Throwable"),
                });
            }
            StatementKind::Try {
                body,
                catches,
                finally,
            } => {
                let mut result = self.all(body);
                if let Err(failure @ Failure::Thrown { .. }) = &result {
                    result = match catching(catches, failure) {
                        Some(catch) => {
                            self.slots[catch.slot] = Value::Exception(Rc::new(failure.clone()));
                            self.all(&catch.body)
                        }
                        None => result,
                    };
                }
                if let Some(finally) = finally {
                    match self.all(finally)? {
                        Flow::Next => {}
                        flow => return Ok(flow),
                    }
                }
                return result;
            }
            StatementKind::Break => return Ok(Flow::Break),
            StatementKind::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn switch(&mut self, subject: &Expr, cases: &[Case]) -> EvalResult<Flow> {
        let subject = self.expr(subject)?;
        if subject.is_null() {
            return Err(Failure::null_pointer());
        }
        let mut from = None;
        'search: for (number, case) in cases.iter().enumerate() {
            for label in case.labels.iter().filter_map(CaseLabel::value) {
                let label = self.expr(label)?;
                if matches!(binary(Operator::Equal, &subject, &label)?, Value::Boolean(true)) {
                    from = Some(number);
                    break 'search;
                }
            }
        }
        let default = || {
            cases
                .iter()
                .position(|case| case.labels.contains(&CaseLabel::Default))
        };
        let Some(from) = from.or_else(default) else {
            return Ok(Flow::Next);
        };
        for case in cases.iter().skip(from) {
            match self.all(&case.body)? {
                Flow::Next => {}
                Flow::Break => return Ok(Flow::Next),
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn condition(&mut self, condition: &Expr) -> EvalResult<bool> {
        self.step()?;
        match self.expr(condition)? {
            Value::Boolean(value) => Ok(value),
            Value::Null => Err(Failure::null_pointer()),
            other => Err(Failure::class_cast(&other.class_name(), "java.lang.Boolean")),
        }
    }

    /// Returns the value that a variable holds once an expression's value is assigned to it.
    fn assigned_to(&mut self, slot: usize, value: &Expr) -> EvalResult<Value> {
        let from = self.expr(value)?;
        let Some(ty) = self.body.slots.get(slot) else {
            return Ok(from);
        };
        let is_null = from.is_null();
        assigned(from, ty).map_err(|failure| match value.kind {
            ExprKind::Local(from) if is_null => self.unboxed_null(failure, from),
            _ => failure,
        })
    }

    /// Sets a variable to the value, converted to the variable's type.
    pub fn set(&mut self, slot: usize, value: Value) -> EvalResult<()> {
        let ty = self.body.slots.get(slot);
        self.slots[slot] = match ty {
            Some(ty) => assigned(value, ty)?,
            None => value,
        };
        Ok(())
    }

    pub fn get(&self, slot: usize) -> Value {
        self.slots.get(slot).cloned().unwrap_or(Value::Null)
    }

    fn arguments(&mut self, arguments: &[Expr]) -> EvalResult<Vec<Value>> {
        arguments.iter().map(|argument| self.expr(argument)).collect()
    }

    pub fn expr(&mut self, expr: &Expr) -> EvalResult<Value> {
        self.step()?;
        match &expr.kind {
            ExprKind::Constant(constant) => Ok(match constant {
                Constant::Null => Value::Null,
                Constant::Boolean(value) => Value::Boolean(*value),
                Constant::Char(value) => Value::Char(*value),
                Constant::Int(value) => Value::Int(*value),
                Constant::Long(value) => Value::Long(*value),
                Constant::Float(value) => Value::Float(*value),
                Constant::Double(value) => Value::Double(*value),
                Constant::String(text) => Value::String(text.clone()),
            }),
            ExprKind::Local(slot) => Ok(self.get(*slot)),
            ExprKind::Context => Err(Failure::null_pointer()),
            ExprKind::Assign {
                target,
                operator,
                value,
            } => {
                let place = self.lvalue(target)?;
                // Java reads the variable before it evaluates the new value.
                let before = match operator {
                    Some(_) => place.get(self)?,
                    None => Value::Null,
                };
                let value = self.expr(value)?;
                let value = match operator {
                    Some(operator) => self.compound(target, &place, *operator, before, &value)?,
                    None => value,
                };
                place.set(self, value)
            }
            ExprKind::Increment {
                target,
                by,
                is_postfix,
            } => {
                let place = self.lvalue(target)?;
                let before = place.get(self)?;
                let by = Value::Int(i32::from(*by));
                let after = self.compound(target, &place, Operator::Add, before.clone(), &by)?;
                let after = place.set(self, after)?;
                Ok(if *is_postfix { before } else { after })
            }
            ExprKind::Unary(operator, operand) => {
                let value = self.expr(operand)?;
                unary(*operator, &value).map_err(|failure| self.because(failure, &[(operand, &value)]))
            }
            ExprKind::Binary(operator, left, right) => {
                let (a, b) = (self.expr(left)?, self.expr(right)?);
                if *operator == Operator::Add {
                    check_whole(&a)?;
                    check_whole(&b)?;
                }
                budget::room(added_len(*operator, &a, &b))?;
                let result = binary(*operator, &a, &b)
                    .map_err(|failure| self.because(failure, &[(left, &a), (right, &b)]))?;
                self.limits.made(&result)?;
                Ok(result)
            }
            ExprKind::AndThen(left, right) => {
                Ok(Value::Boolean(self.condition(left)? && self.condition(right)?))
            }
            ExprKind::OrElse(left, right) => {
                Ok(Value::Boolean(self.condition(left)? || self.condition(right)?))
            }
            ExprKind::Conditional(condition, then, otherwise) => match self.condition(condition)? {
                true => self.expr(then),
                false => self.expr(otherwise),
            },
            ExprKind::Cast(ty, operand) => cast(self.expr(operand)?, ty),
            ExprKind::InstanceOf(operand, ty) => {
                Ok(Value::Boolean(is_instance(&self.expr(operand)?, ty.name())))
            }
            ExprKind::Call {
                object,
                method,
                arguments,
            } => {
                if object.kind == ExprKind::Context {
                    let arguments = self.arguments(arguments)?;
                    return self.context.call(method, &arguments);
                }
                let value = self.expr(object)?;
                let arguments = self.arguments(arguments)?;
                if value.is_null() {
                    return Err(self.asked_of_null(object, method, arguments.len()));
                }
                self.limits.calling(method, Some(&value), &arguments)?;
                budget::walk(effort(&value))?;
                let result = library::call(&value, method, &arguments)?;
                self.limits.made(&result)?;
                Ok(result)
            }
            ExprKind::StaticCall {
                class,
                method,
                arguments,
            } => {
                let arguments = self.arguments(arguments)?;
                self.made(arguments, method, |arguments| {
                    library::call_static(class, method, arguments)
                })
            }
            ExprKind::StaticField { class, field } => library::field(class, field),
            ExprKind::New { class, arguments } => {
                let arguments = self.arguments(arguments)?;
                self.made(arguments, "new", |arguments| {
                    library::create(class.name(), arguments)
                })
            }
            ExprKind::NewArray { ty, lengths } => {
                let lengths = self.arguments(lengths)?;
                self.new_array(ty, &lengths)
            }
            ExprKind::ArrayOf { ty, elements } => {
                let of = element_type(ty);
                let elements = self.arguments(elements)?.into_iter();
                let elements = elements
                    .map(|element| assigned(element, &of))
                    .collect::<EvalResult<_>>()?;
                let array = Value::Array(Rc::new(Array::new(of, elements)));
                self.limits.made(&array)?;
                self.limits.keep(&array);
                Ok(array)
            }
            ExprKind::Element { .. } | ExprKind::Length(_) | ExprKind::Meaningless => self.part(expr),
            ExprKind::ClassLiteral(ty) => Ok(Value::Class(ty.clone())),
        }
    }
}

/// Returns the number of steps that a call of a method of the value may cost.
fn effort(object: &Value) -> usize {
    match object {
        Value::List(values) => values.borrow().len() / 16,
        Value::Set(values) => values.borrow().len() / 16,
        Value::Map(entries) => entries.borrow().len() / 16,
        Value::String(text) => text.len() / 256,
        Value::StringBuilder(text) => text.borrow().len() / 4096,
        Value::BigInteger(number) => number.bits() as usize / 256,
        _ => 0,
    }
}

/// Returns the bytes of the text that `+` makes of two texts. 0 for other operators and values.
fn added_len(operator: Operator, left: &Value, right: &Value) -> usize {
    let len = |value: &Value| match value {
        Value::String(text) => text.len(),
        Value::StringBuilder(text) => text.borrow().len(),
        _ => 0,
    };
    match operator {
        Operator::Add => len(left) + len(right),
        _ => 0,
    }
}

pub(crate) fn element_type(array: &Type) -> Type {
    match array {
        Type::Array(of) => of.as_ref().clone(),
        other => other.clone(),
    }
}

fn catching<'a>(catches: &'a [Catch], failure: &Failure) -> Option<&'a Catch> {
    let Failure::Thrown { class, .. } = failure else {
        return None;
    };
    let class = class.rsplit('.').next().unwrap_or_default();
    catches
        .iter()
        .find(|catch| catch.classes.iter().any(|wanted| is_exception(class, wanted)))
}
