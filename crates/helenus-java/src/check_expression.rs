//! The types of expressions, and what is wrong with them.

use crate::ast::{Constant, Expr, ExprKind, Operator, Target, Type, UnaryOperator};
use crate::check::Checker;
use crate::known::{Known, both, result, shown, symbol};
use crate::parser::UNKNOWN;
use crate::signatures::{self, CONSTRUCTOR};
use crate::statics;
use crate::types::{is_assignable, is_castable, is_kind_of, promoted};

impl Checker<'_> {
    fn target(&mut self, line: u32, target: &Target) -> Known {
        match target {
            Target::Local(slot) => self.variable(*slot),
            Target::Element { array, index } => self.element(line, array, index),
        }
    }

    fn variable(&self, slot: usize) -> Known {
        self.slots.get(slot).cloned().map_or(Known::Nothing, Known::of)
    }

    fn element(&mut self, line: u32, array: &Expr, index: &Expr) -> Known {
        let known = self.expr(array);
        self.assign(index, &Type::Int);
        match known {
            Known::Type(Type::Array(of)) => Known::of(of.as_ref().clone()),
            Known::Type(other) => {
                let message =
                    format!("The type of the expression must be an array type but it resolved to {other}");
                self.mistake(line, message);
                Known::Nothing
            }
            _ => Known::Nothing,
        }
    }

    pub fn expr(&mut self, expr: &Expr) -> Known {
        let line = expr.line;
        let known = match &expr.kind {
            ExprKind::Constant(constant) => match constant {
                Constant::Null => return Known::Null,
                Constant::Boolean(_) => Type::Boolean,
                Constant::Char(_) => Type::Char,
                Constant::Int(_) => Type::Int,
                Constant::Long(_) => Type::Long,
                Constant::Float(_) => Type::Float,
                Constant::Double(_) => Type::Double,
                Constant::String(_) => Type::class("String"),
            },
            ExprKind::Local(slot) => return self.variable(*slot),
            ExprKind::Meaningless => return Known::Nothing,
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
                if let Known::Type(from) = self.expr(operand)
                    && !is_castable(&from, ty)
                {
                    self.mistake(line, format!("Cannot cast from {from} to {ty}"));
                }
                return Known::of(ty.clone());
            }
            ExprKind::InstanceOf(operand, ty) => {
                if let Known::Type(from) = self.expr(operand)
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
            ExprKind::StaticField { class, field } => match statics::field(class, field) {
                Ok(value) => Type::class(value.simple_class()),
                Err(_) => {
                    self.mistake(line, format!("{field} cannot be resolved or is not a field"));
                    return Known::Nothing;
                }
            },
            ExprKind::New { class, arguments } => {
                let arguments = self.arguments(arguments);
                if class.name() == UNKNOWN {
                    return Known::Nothing;
                }
                self.method(line, class, CONSTRUCTOR, false, &arguments);
                class.clone()
            }
            ExprKind::ClassLiteral(ty) => Type::generic("Class", vec![ty.boxed()]),
            ExprKind::Element { array, index } => return self.element(line, array, index),
            ExprKind::Length(array) => {
                if let Known::Type(ty) = self.expr(array)
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
        Known::Type(known)
    }

    fn arguments(&mut self, arguments: &[Expr]) -> Vec<Known> {
        arguments.iter().map(|argument| self.expr(argument)).collect()
    }

    fn call(&mut self, line: u32, object: Known, method: &str, arguments: &[Known]) -> Known {
        match object {
            Known::Type(ty) if ty.is_primitive() => {
                let shown = shown(arguments);
                let message = format!("Cannot invoke {method}({shown}) on the primitive type {ty}");
                self.mistake(line, message);
                Known::Nothing
            }
            Known::Type(Type::Array(_)) => self.method(line, &Type::class("Object"), method, true, arguments),
            Known::Type(ty) => self.method(line, &ty, method, true, arguments),
            Known::Null | Known::Nothing => Known::Nothing,
        }
    }

    /// Finds the method that is called, and gives what it returns. Without an object, only static ones can be.
    fn method(&mut self, line: u32, of: &Type, name: &str, has_object: bool, arguments: &[Known]) -> Known {
        if !signatures::is_known(of.name()) {
            let message = format!("{of} is not supported in functions");
            self.mistake(line, message);
            return Known::Nothing;
        }
        let candidates = signatures::methods(of, name);
        for fits in [is_kind_of, is_assignable] {
            let found = candidates.iter().find_map(|(method, bindings)| {
                let bindings = signatures::bound(method, bindings, arguments.iter().map(Known::ty), fits)?;
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
                    Some(returns) => Known::of(bindings.apply(returns)),
                    None => Known::Nothing,
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
        Known::Nothing
    }

    fn assignment(&mut self, line: u32, target: &Target, operator: Option<Operator>, value: &Expr) -> Known {
        let to = self.target(line, target);
        let Known::Type(ty) = &to else {
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

    fn unary(&mut self, line: u32, operator: UnaryOperator, operand: &Expr) -> Known {
        let Known::Type(ty) = self.expr(operand) else {
            return Known::Nothing;
        };
        let result = match (operator, ty.unboxed()) {
            (UnaryOperator::Not, Some(Type::Boolean)) => Some(Type::Boolean),
            (UnaryOperator::Not, _) => None,
            (_, unboxed) => unboxed.and_then(|ty| promoted(&ty, &Type::Int)),
        };
        if let Some(result) = result {
            return Known::Type(result);
        }
        let symbol = match operator {
            UnaryOperator::Plus => "+",
            UnaryOperator::Minus => "-",
            UnaryOperator::Not => "!",
            UnaryOperator::Complement => "~",
        };
        let message = format!("The operator {symbol} is undefined for the argument type(s) {ty}");
        self.mistake(line, message);
        Known::Nothing
    }

    fn binary(&mut self, line: u32, operator: Operator, symbol: &str, left: Known, right: Known) -> Known {
        if left == Known::Nothing || right == Known::Nothing {
            return match operator {
                Operator::Equal
                | Operator::NotEqual
                | Operator::Less
                | Operator::LessOrEqual
                | Operator::Greater
                | Operator::GreaterOrEqual => Known::Type(Type::Boolean),
                _ => Known::Nothing,
            };
        }
        let text = Known::Type(Type::class("String"));
        if operator == Operator::Add && (left == text || right == text) {
            return text;
        }
        match result(operator, &left, &right) {
            Ok(ty) => Known::Type(ty),
            Err(is_incompatible) => {
                let (left, right) = (left.shown(), right.shown());
                let message = match is_incompatible {
                    true => format!("Incompatible operand types {left} and {right}"),
                    false => {
                        format!("The operator {symbol} is undefined for the argument type(s) {left}, {right}")
                    }
                };
                self.mistake(line, message);
                Known::Nothing
            }
        }
    }
}
