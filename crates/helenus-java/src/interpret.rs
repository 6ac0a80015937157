//! Runs a body.

use std::rc::Rc;
use std::time::Instant;

use crate::ast::{Body, Case, Catch, Constant, Expr, ExprKind, Operator, Statement, StatementKind, Target, Type};
use crate::context::Context;
use crate::error::Failure;
use crate::limits::{LEN_MAX, Limits, check_whole};
use crate::number::{binary, convert, unary};
use crate::classes::{is_exception, whole_name};
use crate::value::{Array, Value, parameter_type};
use crate::{methods, statics};
use helenus_cql::value::CqlValue;

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
    limits: Limits,
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
) -> Run<Option<CqlValue>> {
    let mut slots = arguments;
    slots.resize(body.slots.len(), Value::Null);
    let mut frame = Frame {
        body,
        slots,
        context,
        deadline,
        steps: 0,
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
    fn step(&mut self) -> Run<()> {
        self.steps_of(1)
    }

    /// Counts what takes as long as so many steps.
    fn steps_of(&mut self, steps: u32) -> Run<()> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps < STEPS {
            return Ok(());
        }
        self.steps = 0;
        match Instant::now() < self.deadline {
            true => Ok(()),
            false => Err(Failure::TimedOut),
        }
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
        match &statement.kind {
            StatementKind::Local { slot, value } => {
                let value = match value {
                    Some(value) => self.expr(value)?,
                    None => Value::Null,
                };
                match value.is_null() {
                    true => self.slots[*slot] = Value::Null,
                    false => self.set(*slot, value)?,
                }
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
                    Value::List(values) | Value::Set(values) => values.borrow().clone(),
                    Value::Array(array) => array.values.borrow().clone(),
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
                target,
                operator,
                value,
            } => {
                let place = self.place(target)?;
                // What the variable holds before its new value is worked out.
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
                let place = self.place(target)?;
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
                self.steps_of(effort(&value))?;
                let result = methods::call(&value, method, &arguments)?;
                self.limits.made(&result)?;
                Ok(result)
            }
            ExprKind::StaticCall {
                class,
                method,
                arguments,
            } => {
                let arguments = self.arguments(arguments)?;
                self.made(arguments, method, |arguments| statics::call(class, method, arguments))
            }
            ExprKind::StaticField { class, field } => statics::field(class, field),
            ExprKind::New { class, arguments } => {
                let arguments = self.arguments(arguments)?;
                self.made(arguments, "new", |arguments| statics::create(class.name(), arguments))
            }
            ExprKind::NewArray { ty, lengths } => {
                let lengths = self.arguments(lengths)?;
                self.new_array(ty, &lengths)
            }
            ExprKind::ArrayOf { ty, elements } => {
                let of = element_type(ty);
                let elements = self.arguments(elements)?.into_iter();
                let elements = elements.map(|element| assigned(element, &of)).collect::<Run<_>>()?;
                let array = Value::Array(Rc::new(Array::new(of, elements)));
                self.limits.keep(&array);
                Ok(array)
            }
            ExprKind::Element { .. } | ExprKind::Length(_) | ExprKind::Meaningless => self.part(expr),
            ExprKind::ClassLiteral(ty) => Ok(Value::Class(ty.clone())),
        }
    }

    /// Calls what makes a value of its arguments.
    fn made(
        &mut self,
        arguments: Vec<Value>,
        method: &str,
        make: impl FnOnce(&[Value]) -> Run<Value>,
    ) -> Run<Value> {
        self.limits.calling(method, None, &arguments)?;
        let result = make(&arguments)?;
        self.limits.made(&result)?;
        if arguments.iter().any(|argument| !argument.is_plain()) {
            self.limits.keep(&result);
        }
        Ok(result)
    }

    fn new_array(&mut self, ty: &Type, lengths: &[Value]) -> Run<Value> {
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

    /// An element, or the length of an array.
    fn part(&mut self, expr: &Expr) -> Run<Value> {
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

    fn array(&mut self, array: &Expr) -> Run<Rc<Array>> {
        match self.expr(array)? {
            Value::Array(array) => Ok(array),
            Value::Null => Err(Failure::null_pointer()),
            other => Err(Failure::class_cast(&other.class_name(), "array")),
        }
    }

    fn element(&mut self, array: &Expr, index: &Expr) -> Run<(Rc<Array>, i32)> {
        let array = self.array(array)?;
        let index = self.expr(index)?.to_int()?;
        Ok((array, index))
    }

    fn place(&mut self, target: &Target) -> Run<Place> {
        Ok(match target {
            Target::Local(slot) => Place::Slot(*slot),
            Target::Element { array, index } => {
                let (array, index) = self.element(array, index)?;
                Place::Element(array, index)
            }
        })
    }

    /// What `variable operator= value` sets the variable to: a number is cut off to the variable's type.
    fn compound(
        &mut self,
        target: &Target,
        place: &Place,
        operator: Operator,
        before: Value,
        value: &Value,
    ) -> Run<Value> {
        check_whole(value)?;
        let result = binary(operator, &before, value).map_err(|failure| match target {
            Target::Local(slot) if before.is_null() => self.unboxed_null(failure, *slot),
            _ => failure,
        })?;
        self.limits.made(&result)?;
        let ty = match place {
            Place::Slot(slot) => self.body.slots.get(*slot).and_then(Type::unboxed),
            Place::Element(array, _) => array.of.unboxed(),
        };
        Ok(ty.and_then(|ty| convert(&result, &ty)).unwrap_or(result))
    }

    /// Says of a null which variable it was that had to be taken out of its box.
    fn because(&self, failure: Failure, operands: &[(&Expr, &Value)]) -> Failure {
        let null = operands.iter().find_map(|(expr, value)| match expr.kind {
            ExprKind::Local(slot) if value.is_null() => Some(slot),
            _ => None,
        });
        match null {
            Some(slot) => self.unboxed_null(failure, slot),
            None => failure,
        }
    }

    fn unboxed_null(&self, failure: Failure, slot: usize) -> Failure {
        let Some(ty) = self.body.slots.get(slot) else { return failure };
        match ty.unboxed() {
            Some(unboxed) if failure.is_bare_null_pointer() => {
                let method = format!("{}.{}Value()", whole_name(ty.name()), unboxed.name());
                self.null_because(&method, slot)
            }
            _ => failure,
        }
    }

    /// What is thrown when a method is called of a variable that is null. What else can be null has no name.
    fn asked_of_null(&self, object: &Expr, method: &str, arguments: usize) -> Failure {
        match (&object.kind, arguments) {
            (ExprKind::Local(slot), 0) => {
                let Some(ty) = self.body.slots.get(*slot) else {
                    return Failure::null_pointer();
                };
                let class = whole_name(ty.name());
                let class = match class {
                    "java.lang.String" | "java.lang.Object" => ty.name(),
                    _ => class,
                };
                self.null_because(&format!("{class}.{method}()"), *slot)
            }
            _ => Failure::null_pointer(),
        }
    }

    /// In the words of Java, which has no names of variables: `<parameter1>`, `<local3>`.
    fn null_because(&self, method: &str, slot: usize) -> Failure {
        let parameters = self.context.signature.arguments.len();
        let variable = match slot < parameters {
            true => format!("parameter{}", slot + 1),
            false => {
                // The method's object comes first; `long` and `double` take two places.
                let size = |ty: &Type| if matches!(ty, Type::Long | Type::Double) { 2 } else { 1 };
                let before: usize = self.body.slots.iter().take(slot).map(size).sum();
                format!("local{}", before + 1)
            }
        };
        Failure::null_pointer_because(format!("Cannot invoke \"{method}\" because \"<{variable}>\" is null"))
    }
}

/// Where a value is assigned to.
enum Place {
    Slot(usize),
    Element(Rc<Array>, i32),
}

impl Place {
    fn get(&self, frame: &Frame<'_>) -> Run<Value> {
        match self {
            Place::Slot(slot) => Ok(frame.get(*slot)),
            Place::Element(array, index) => array.get(*index),
        }
    }

    /// Sets it, and gives what it is then.
    fn set(&self, frame: &mut Frame<'_>, value: Value) -> Run<Value> {
        match self {
            Place::Slot(slot) => {
                frame.set(*slot, value)?;
                Ok(frame.get(*slot))
            }
            Place::Element(array, index) => {
                if !value.is_plain() {
                    frame.limits.keep(&value);
                }
                array.set(*index, assigned(value, &array.of)?)?;
                array.get(*index)
            }
        }
    }
}

/// How many steps a method of a large value may take as long as.
fn effort(object: &Value) -> u32 {
    let steps = match object {
        Value::List(values) | Value::Set(values) => values.borrow().len() / 16,
        Value::Map(entries) => entries.borrow().len() / 16,
        Value::String(text) => text.len() / 256,
        Value::StringBuilder(text) => text.borrow().len() / 4096,
        Value::BigInteger(number) => number.bits() as usize / 256,
        _ => 0,
    };
    u32::try_from(steps).unwrap_or(u32::MAX)
}

fn element_type(array: &Type) -> Type {
    match array {
        Type::Array(of) => of.as_ref().clone(),
        other => other.clone(),
    }
}

/// What an array's elements are at first.
fn zero(ty: &Type) -> Value {
    match ty {
        Type::Boolean => Value::Boolean(false),
        Type::Class(..) | Type::Array(_) => Value::Null,
        number => convert(&Value::Int(0), number).unwrap_or(Value::Null),
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
        Type::Array(_) => match value {
            Value::Null | Value::Array(_) => Ok(value),
            other => Err(Failure::class_cast(&other.class_name(), "array")),
        },
        Type::Class(class, _) => match ty.unboxed() {
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
        Type::Class(class, _) if value.is_null() || is_instance(&value, class) => Ok(value),
        Type::Class(class, _) => Err(Failure::class_cast(&value.class_name(), whole_name(class))),
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
