//! Runs a body.

use std::rc::Rc;
use std::time::Instant;

use crate::ast::{Body, Case, Catch, Constant, Expr, ExprKind, Operator, Statement, Type};
use crate::context::Context;
use crate::error::Failure;
use crate::number::{binary, convert, unary};
use crate::value::{Value, whole_name};
use crate::{methods, statics};

/// Steps between two looks at the clock.
const STEPS: u32 = 1024;

type Run<T> = Result<T, Failure>;

/// How a statement ended.
enum Flow {
    Next,
    Break,
    Continue,
    Return(Value),
}

/// A call of a function.
pub(crate) struct Frame<'a> {
    body: &'a Body,
    slots: Vec<Value>,
    context: &'a Context<'a>,
    deadline: Instant,
    steps: u32,
}

/// Runs `body` over its arguments.
///
/// # Errors
/// What it throws, or that the deadline has passed.
pub(crate) fn run(
    body: &Body,
    arguments: Vec<Value>,
    context: &Context<'_>,
    deadline: Instant,
) -> Run<Value> {
    let mut slots = arguments;
    slots.resize(body.slots.len(), Value::Null);
    let mut frame = Frame {
        body,
        slots,
        context,
        deadline,
        steps: 0,
    };
    match frame.all(&body.statements)? {
        Flow::Return(value) => Ok(value),
        _ => Ok(Value::Null),
    }
}

impl Frame<'_> {
    fn step(&mut self) -> Run<()> {
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS) && Instant::now() >= self.deadline {
            return Err(Failure::TimedOut);
        }
        Ok(())
    }

    fn all(&mut self, statements: &[Statement]) -> Run<Flow> {
        for statement in statements {
            match self.statement(statement)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, statement: &Statement) -> Run<Flow> {
        self.step()?;
        match statement {
            Statement::Local { slot, value } => {
                let value = match value {
                    Some(value) => self.expr(value)?,
                    None => Value::Null,
                };
                match value.is_null() {
                    true => self.slots[*slot] = Value::Null,
                    false => self.set(*slot, value)?,
                }
            }
            Statement::Expr(expr) => drop(self.expr(expr)?),
            Statement::Block(statements) => return self.all(statements),
            Statement::If {
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
            Statement::While { condition, body } => {
                while self.condition(condition)? {
                    match self.statement(body)? {
                        Flow::Break => break,
                        Flow::Return(value) => return Ok(Flow::Return(value)),
                        Flow::Next | Flow::Continue => {}
                    }
                }
            }
            Statement::DoWhile { body, condition } => loop {
                match self.statement(body)? {
                    Flow::Break => break,
                    Flow::Return(value) => return Ok(Flow::Return(value)),
                    Flow::Next | Flow::Continue => {}
                }
                if !self.condition(condition)? {
                    break;
                }
            },
            Statement::For {
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
            Statement::ForEach { slot, of, body } => {
                let elements = match self.expr(of)? {
                    Value::List(values) | Value::Set(values) => values.borrow().clone(),
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
            Statement::Switch { subject, cases } => return self.switch(subject, cases),
            Statement::Return(value) => return Ok(Flow::Return(self.expr(value)?)),
            Statement::Throw(value) => {
                return Err(match self.expr(value)? {
                    Value::Exception(failure) => failure.as_ref().clone(),
                    Value::Null => Failure::null_pointer(),
                    other => Failure::class_cast(&other.class_name(), "java.lang.Throwable"),
                });
            }
            Statement::Try {
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
            Statement::Break => return Ok(Flow::Break),
            Statement::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn switch(&mut self, subject: &Expr, cases: &[Case]) -> Run<Flow> {
        let subject = self.expr(subject)?;
        if subject.is_null() {
            return Err(Failure::null_pointer());
        }
        let mut from = None;
        'search: for (number, case) in cases.iter().enumerate() {
            for label in case.labels.iter().flatten() {
                let label = self.expr(label)?;
                if matches!(binary(Operator::Equal, &subject, &label)?, Value::Boolean(true)) {
                    from = Some(number);
                    break 'search;
                }
            }
        }
        let default = || cases.iter().position(|case| case.labels.contains(&None));
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

    fn condition(&mut self, condition: &Expr) -> Run<bool> {
        self.step()?;
        match self.expr(condition)? {
            Value::Boolean(value) => Ok(value),
            Value::Null => Err(Failure::null_pointer()),
            other => Err(Failure::class_cast(&other.class_name(), "java.lang.Boolean")),
        }
    }

    /// Sets a variable, to what its type makes of the value.
    fn set(&mut self, slot: usize, value: Value) -> Run<()> {
        let ty = self.body.slots.get(slot);
        self.slots[slot] = match ty {
            Some(ty) => assigned(value, ty)?,
            None => value,
        };
        Ok(())
    }

    fn get(&self, slot: usize) -> Value {
        self.slots.get(slot).cloned().unwrap_or(Value::Null)
    }

    fn arguments(&mut self, arguments: &[Expr]) -> Run<Vec<Value>> {
        arguments.iter().map(|argument| self.expr(argument)).collect()
    }

    fn expr(&mut self, expr: &Expr) -> Run<Value> {
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
                slot,
                operator,
                value,
            } => {
                let value = self.expr(value)?;
                let value = match operator {
                    Some(operator) => self.compound(*slot, *operator, &value)?,
                    None => value,
                };
                self.set(*slot, value)?;
                Ok(self.get(*slot))
            }
            ExprKind::Increment { slot, by, is_postfix } => {
                let before = self.get(*slot);
                let after = self.compound(*slot, Operator::Add, &Value::Int(i32::from(*by)))?;
                self.set(*slot, after)?;
                Ok(if *is_postfix { before } else { self.get(*slot) })
            }
            ExprKind::Unary(operator, operand) => unary(*operator, &self.expr(operand)?),
            ExprKind::Binary(operator, left, right) => {
                let left = self.expr(left)?;
                binary(*operator, &left, &self.expr(right)?)
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
                let object = self.expr(object)?;
                let arguments = self.arguments(arguments)?;
                methods::call(&object, method, &arguments)
            }
            ExprKind::StaticCall {
                class,
                method,
                arguments,
            } => {
                let arguments = self.arguments(arguments)?;
                statics::call(class, method, &arguments)
            }
            ExprKind::StaticField { class, field } => statics::field(class, field),
            ExprKind::New { class, arguments } => {
                let arguments = self.arguments(arguments)?;
                statics::create(class, &arguments)
            }
            ExprKind::ClassLiteral(ty) => Ok(Value::Class(ty.clone())),
        }
    }

    /// What `variable operator= value` sets the variable to: a number is cut off to the variable's type.
    fn compound(&self, slot: usize, operator: Operator, value: &Value) -> Run<Value> {
        let result = binary(operator, &self.get(slot), value)?;
        let ty = self.body.slots.get(slot).and_then(Type::unboxed);
        Ok(ty.and_then(|ty| convert(&result, &ty)).unwrap_or(result))
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

/// What a variable of that type holds after the value was assigned to it.
///
/// # Errors
/// If it is of another class, or null and the type is primitive.
pub(crate) fn assigned(value: Value, ty: &Type) -> Run<Value> {
    match ty {
        Type::Boolean => match value {
            Value::Boolean(_) => Ok(value),
            Value::Null => Err(Failure::null_pointer()),
            other => Err(Failure::class_cast(&other.class_name(), "java.lang.Boolean")),
        },
        Type::Class(class) => match ty.unboxed() {
            // A constant that fits goes into a smaller box.
            Some(unboxed)
                if matches!(value, Value::Int(_))
                    && matches!(unboxed, Type::Byte | Type::Short | Type::Char) =>
            {
                convert(&value, &unboxed)
                    .ok_or_else(|| Failure::class_cast("java.lang.Integer", whole_name(class)))
            }
            _ if value.is_null() || is_instance(&value, class) => Ok(value),
            _ => Err(Failure::class_cast(&value.class_name(), whole_name(class))),
        },
        primitive => match value {
            Value::Null => Err(Failure::null_pointer()),
            value => convert(&value, primitive)
                .ok_or_else(|| Failure::class_cast(&value.class_name(), "java.lang.Number")),
        },
    }
}

fn cast(value: Value, ty: &Type) -> Run<Value> {
    match ty {
        Type::Class(class) if value.is_null() || is_instance(&value, class) => Ok(value),
        Type::Class(class) => Err(Failure::class_cast(&value.class_name(), whole_name(class))),
        primitive => assigned(value, primitive),
    }
}

/// As `instanceof`.
fn is_instance(value: &Value, class: &str) -> bool {
    let own = value.simple_class();
    if value.is_null() {
        return false;
    }
    match class {
        "Object" | "Comparable" | "Serializable" => true,
        _ if own == class => true,
        "Number" => matches!(
            value,
            Value::Byte(_)
                | Value::Short(_)
                | Value::Int(_)
                | Value::Long(_)
                | Value::Float(_)
                | Value::Double(_)
                | Value::BigInteger(_)
                | Value::BigDecimal(_)
        ),
        "CharSequence" => matches!(value, Value::String(_) | Value::StringBuilder(_)),
        "Collection" | "Iterable" => matches!(value, Value::List(_) | Value::Set(_)),
        "ArrayList" | "LinkedList" => matches!(value, Value::List(_)),
        "HashSet" | "LinkedHashSet" | "TreeSet" | "SortedSet" => matches!(value, Value::Set(_)),
        "HashMap" | "LinkedHashMap" | "TreeMap" | "SortedMap" => matches!(value, Value::Map(_)),
        _ => matches!(value, Value::Exception(_)) && is_exception(own, class),
    }
}

/// Whether an exception of class `own` is one of class `wanted`.
fn is_exception(own: &str, wanted: &str) -> bool {
    match wanted {
        _ if own == wanted => true,
        "Throwable" => true,
        "Exception" => own != "Error",
        "RuntimeException" => !matches!(own, "Error" | "Exception" | "Throwable"),
        "IllegalArgumentException" => own == "NumberFormatException",
        "IndexOutOfBoundsException" => own.ends_with("IndexOutOfBoundsException"),
        _ => false,
    }
}
