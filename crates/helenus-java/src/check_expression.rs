//! Checks expressions and finds their types.

use crate::ast::{AssignTarget, Constant, Expr, ExprKind, Operator, Type, UnaryOperator};
use crate::check::Checker;
use crate::library;
use crate::parser::UNKNOWN;
use crate::signatures::{self, CONSTRUCTOR};
use crate::static_type::{StaticType, both, result, shown, symbol};
use crate::types::{is_assignable, is_castable, is_kind_of, promoted};

impl Checker<'_> {
    fn target(&mut self, line: u32, target: &AssignTarget) -> StaticType {
        match target {
            AssignTarget::Local(slot) => self.variable(*slot),
            AssignTarget::Element { array, index } => self.element(line, array, index),
        }
    }

    fn variable(&self, slot: usize) -> StaticType {
        self.slots
            .get(slot)
            .cloned()
            .map_or(StaticType::Nothing, StaticType::of)
    }

    fn element(&mut self, line: u32, array: &Expr, index: &Expr) -> StaticType {
        let known = self.expr(array);
        self.assign(index, &Type::Int);
        match known {
            StaticType::Type(Type::Array(of)) => StaticType::of(of.as_ref().clone()),
            StaticType::Type(other) => {
                let message =
                    format!("The type of the expression must be an array type but it resolved to {other}");
                self.mistake(line, message);
                StaticType::Nothing
            }
            _ => StaticType::Nothing,
        }
    }

    pub fn expr(&mut self, expr: &Expr) -> StaticType {
        let line = expr.line;
        let known = match &expr.kind {
            ExprKind::Constant(constant) => match constant {
                Constant::Null => return StaticType::Null,
                Constant::Boolean(_) => Type::Boolean,
                Constant::Char(_) => Type::Char,
                Constant::Int(_) => Type::Int,
                Constant::Long(_) => Type::Long,
                Constant::Float(_) => Type::Float,
                Constant::Double(_) => Type::Double,
                Constant::String(_) => Type::class("String"),
            },
            ExprKind::Local(slot) => return self.variable(*slot),
            ExprKind::Meaningless => return StaticType::Nothing,
            ExprKind::Context => Type::class("UDFContext"),
            ExprKind::Assign {
                target,
                operator,
                value,
            } => return self.assignment(line, target, *operator, value),
            ExprKind::Increment { target, .. } => return self.target(line, target),
            ExprKind::Unary(operator, operand) => return self.unary(line, *operator, operand),
            ExprKind::Binary(operator, left, right) => {
                let (left, right) = (self.expr(left), self.expr(right));
                return self.binary(line, *operator, symbol(*operator), left, right);
            }
            ExprKind::AndThen(left, right) | ExprKind::OrElse(left, right) => {
                self.condition(left);
                self.condition(right);
                Type::Boolean
            }
            ExprKind::Conditional(condition, then, otherwise) => {
                self.condition(condition);
                return both(self.expr(then), self.expr(otherwise));
            }
            ExprKind::Cast(ty, operand) => {
                if let StaticType::Type(from) = self.expr(operand)
                    && !is_castable(&from, ty)
                {
                    self.mistake(line, format!("Cannot cast from {from} to {ty}"));
                }
                return StaticType::of(ty.clone());
            }
            ExprKind::InstanceOf(operand, ty) => {
                if let StaticType::Type(from) = self.expr(operand)
                    && (from.is_primitive() || !is_castable(&from, ty))
                {
                    let message = format!("Incompatible conditional operand types {from} and {ty}");
                    self.mistake(line, message);
                }
                Type::Boolean
            }
            ExprKind::Call {
                object,
                method,
                arguments,
            } => {
                let object = self.expr(object);
                let arguments = self.arguments(arguments);
                return self.call(line, object, method, &arguments);
            }
            ExprKind::StaticCall {
                class,
                method,
                arguments,
            } => {
                let arguments = self.arguments(arguments);
                return self.method(line, &Type::class(class), method, false, &arguments);
            }
            ExprKind::StaticField { class, field } => match library::field(class, field) {
                Ok(value) => Type::class(value.simple_class()),
                Err(_) => {
                    self.mistake(line, format!("{field} cannot be resolved or is not a field"));
                    return StaticType::Nothing;
                }
            },
            ExprKind::New { class, arguments } => {
                let arguments = self.arguments(arguments);
                if class.name() == UNKNOWN {
                    return StaticType::Nothing;
                }
                self.method(line, class, CONSTRUCTOR, false, &arguments);
                class.clone()
            }
            ExprKind::ClassLiteral(ty) => Type::generic("Class", vec![ty.boxed()]),
            ExprKind::Element { array, index } => return self.element(line, array, index),
            ExprKind::Length(array) => {
                if let StaticType::Type(ty) = self.expr(array)
                    && !matches!(ty, Type::Array(_))
                {
                    self.mistake(line, "length cannot be resolved or is not a field");
                }
                Type::Int
            }
            ExprKind::NewArray { ty, lengths } => {
                lengths.iter().for_each(|len| self.assign(len, &Type::Int));
                ty.clone()
            }
            ExprKind::ArrayOf { ty, elements } => {
                if let Type::Array(of) = ty {
                    elements.iter().for_each(|element| self.assign(element, of));
                }
                ty.clone()
            }
        };
        StaticType::Type(known)
    }

    fn arguments(&mut self, arguments: &[Expr]) -> Vec<StaticType> {
        arguments.iter().map(|argument| self.expr(argument)).collect()
    }

    fn call(&mut self, line: u32, object: StaticType, method: &str, arguments: &[StaticType]) -> StaticType {
        match object {
            StaticType::Type(ty) if ty.is_primitive() => {
                let shown = shown(arguments);
                let message = format!("Cannot invoke {method}({shown}) on the primitive type {ty}");
                self.mistake(line, message);
                StaticType::Nothing
            }
            StaticType::Type(array @ Type::Array(_)) if method == "clone" && arguments.is_empty() => {
                StaticType::Type(array)
            }
            StaticType::Type(Type::Array(_)) => {
                self.method(line, &Type::class("Object"), method, true, arguments)
            }
            StaticType::Type(ty) => self.method(line, &ty, method, true, arguments),
            StaticType::Null | StaticType::Nothing => StaticType::Nothing,
        }
    }

    /// Finds the called method and returns the type of its result. Without an object, only static methods can be called.
    fn method(
        &mut self,
        line: u32,
        of: &Type,
        name: &str,
        has_object: bool,
        arguments: &[StaticType],
    ) -> StaticType {
        if !signatures::is_known(of.name()) {
            let message = format!("{of} is not supported in functions");
            self.mistake(line, message);
            return StaticType::Nothing;
        }
        let candidates = signatures::methods(of, name);
        for fits in [is_kind_of, is_assignable] {
            let found = candidates.iter().find_map(|(method, bindings)| {
                let bindings = signatures::bound(
                    method,
                    bindings,
                    arguments.iter().map(StaticType::as_argument),
                    fits,
                )?;
                Some((method, bindings))
            });
            if let Some((method, bindings)) = found {
                if !has_object && !method.is_static {
                    let parameters: Vec<String> = method
                        .parameters
                        .iter()
                        .map(|ty| bindings.apply(ty).to_string())
                        .collect();
                    let message = format!(
                        "Cannot make a static reference to the non-static method {name}({}) from the type {of}",
                        parameters.join(", ")
                    );
                    self.mistake(line, message);
                }
                return match &method.returns {
                    Some(returns) => StaticType::of(bindings.apply(returns)),
                    None => StaticType::Nothing,
                };
            }
        }
        let given = shown(arguments);
        let message = match (
            name,
            candidates
                .iter()
                .rev()
                .min_by_key(|(method, _)| method.parameters.len().abs_diff(arguments.len())),
        ) {
            (CONSTRUCTOR, _) => format!("The constructor {}({given}) is undefined", of.name()),
            (_, None) => format!("The method {name}({given}) is undefined for the type {of}"),
            (_, Some((method, bindings))) => {
                let parameters = method.parameters.iter();
                let parameters: Vec<String> = parameters.map(|ty| bindings.apply(ty).to_string()).collect();
                format!(
                    "The method {name}({}) in the type {of} is not applicable for the arguments ({given})",
                    parameters.join(", ")
                )
            }
        };
        self.mistake(line, message);
        StaticType::Nothing
    }

    fn assignment(
        &mut self,
        line: u32,
        target: &AssignTarget,
        operator: Option<Operator>,
        value: &Expr,
    ) -> StaticType {
        let to = self.target(line, target);
        let StaticType::Type(ty) = &to else {
            self.expr(value);
            return to;
        };
        match operator {
            None => self.assign(value, ty),
            Some(operator) => {
                let value = self.expr(value);
                let symbol = format!("{}=", symbol(operator));
                self.binary(line, operator, &symbol, to.clone(), value);
            }
        }
        to
    }

    fn unary(&mut self, line: u32, operator: UnaryOperator, operand: &Expr) -> StaticType {
        let StaticType::Type(ty) = self.expr(operand) else {
            return StaticType::Nothing;
        };
        let result = match (operator, ty.unboxed()) {
            (UnaryOperator::Not, Some(Type::Boolean)) => Some(Type::Boolean),
            (UnaryOperator::Not, _) => None,
            (_, unboxed) => unboxed.and_then(|ty| promoted(&ty, &Type::Int)),
        };
        if let Some(result) = result {
            return StaticType::Type(result);
        }
        let symbol = match operator {
            UnaryOperator::Plus => "+",
            UnaryOperator::Minus => "-",
            UnaryOperator::Not => "!",
            UnaryOperator::Complement => "~",
        };
        let message = format!("The operator {symbol} is undefined for the argument type(s) {ty}");
        self.mistake(line, message);
        StaticType::Nothing
    }

    fn binary(
        &mut self,
        line: u32,
        operator: Operator,
        symbol: &str,
        left: StaticType,
        right: StaticType,
    ) -> StaticType {
        if left == StaticType::Nothing || right == StaticType::Nothing {
            return match operator {
                Operator::Equal
                | Operator::NotEqual
                | Operator::Less
                | Operator::LessOrEqual
                | Operator::Greater
                | Operator::GreaterOrEqual => StaticType::Type(Type::Boolean),
                _ => StaticType::Nothing,
            };
        }
        let text = StaticType::Type(Type::class("String"));
        if operator == Operator::Add && (left == text || right == text) {
            return text;
        }
        match result(operator, &left, &right) {
            Ok(ty) => StaticType::Type(ty),
            Err(is_incompatible) => {
                let (left, right) = (left.shown(), right.shown());
                let message = match is_incompatible {
                    true => format!("Incompatible operand types {left} and {right}"),
                    false => {
                        format!("The operator {symbol} is undefined for the argument type(s) {left}, {right}")
                    }
                };
                self.mistake(line, message);
                StaticType::Nothing
            }
        }
    }
}
