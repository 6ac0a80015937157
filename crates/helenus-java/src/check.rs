//! What can be seen to be wrong with a body before it runs, in the words of Eclipse's compiler: types that don't match, methods that there
//! aren't, code that is never reached, and ways to its end without a result.

use crate::ast::{
    Body, Constant, Expr, ExprKind, Operator, Statement, StatementKind, Target, Type, UnaryOperator,
};
use crate::classes;
use crate::error::Mistake;
use crate::flow;
use crate::known::{Known, both, result, shown, symbol};
use crate::parser::{UNKNOWN, VAR};
use crate::signatures::{self, CONSTRUCTOR};
use crate::statics;
use crate::types::{element_of, is_assignable, is_castable, is_kind_of, is_small_constant, promoted};

/// Checks a body whose result is of type `returns`, and tells its variables the types that their values give them.
pub(crate) fn check(body: &mut Body, returns: &Type, mistakes: &mut Vec<Mistake>) {
    let mut checker = Checker {
        slots: std::mem::take(&mut body.slots),
        returns,
        mistakes,
        loops: 0,
        switches: 0,
        caught: Vec::new(),
    };
    checker.all(&body.statements);
    if flow::ends(&body.statements) {
        let message = format!("This method must return a result of type {returns}");
        checker.mistake(1, message);
    }
    body.slots = checker.slots;
}

struct Checker<'a> {
    slots: Vec<Type>,
    returns: &'a Type,
    mistakes: &'a mut Vec<Mistake>,
    loops: u32,
    switches: u32,
    /// The exceptions that are caught around, innermost last.
    caught: Vec<String>,
}

impl Checker<'_> {
    fn mistake(&mut self, line: u32, message: impl Into<String>) {
        self.mistakes.push(Mistake::new(line, message));
    }

    fn all(&mut self, statements: &[Statement]) {
        let mut is_reached = true;
        for statement in statements {
            if !is_reached {
                self.mistake(statement.line, "Unreachable code");
                return;
            }
            self.statement(statement);
            let is_jump = matches!(statement.kind, StatementKind::Break | StatementKind::Continue);
            let is_misplaced = is_jump && self.loops + self.switches == 0;
            is_reached = is_misplaced || flow::statement_ends(statement);
        }
    }

    fn repeated(&mut self, body: &Statement) {
        self.loops += 1;
        self.statement(body);
        self.loops -= 1;
    }

    fn statement(&mut self, statement: &Statement) {
        let line = statement.line;
        match &statement.kind {
            StatementKind::Local { slot, value } => self.local(*slot, value.as_ref()),
            StatementKind::Expr(expr) => drop(self.expr(expr)),
            StatementKind::Block(statements) => self.all(statements),
            StatementKind::If {
                condition,
                then,
                otherwise,
            } => {
                self.condition(condition);
                self.statement(then);
                if let Some(otherwise) = otherwise {
                    self.statement(otherwise);
                }
            }
            StatementKind::While { condition, body } | StatementKind::DoWhile { body, condition } => {
                self.condition(condition);
                self.repeated(body);
            }
            StatementKind::For {
                init,
                condition,
                update,
                body,
            } => {
                self.all(init);
                if let Some(condition) = condition {
                    self.condition(condition);
                }
                update.iter().for_each(|expr| drop(self.expr(expr)));
                self.repeated(body);
            }
            StatementKind::ForEach { slot, of, body } => {
                self.each(*slot, of);
                self.repeated(body);
            }
            StatementKind::Switch { subject, cases } => {
                self.subject(subject);
                self.switches += 1;
                cases.iter().for_each(|case| self.all(&case.body));
                self.switches -= 1;
            }
            StatementKind::Return(value) => {
                let returns = self.returns;
                self.assign(value, returns);
            }
            StatementKind::Throw(value) => self.throw(value),
            StatementKind::Try {
                body,
                catches,
                finally,
            } => {
                let around = self.caught.len();
                let classes = catches.iter().flat_map(|catch| catch.classes.iter().cloned());
                self.caught.extend(classes);
                self.all(body);
                self.caught.truncate(around);
                catches.iter().for_each(|catch| self.all(&catch.body));
                finally.iter().for_each(|finally| self.all(finally));
            }
            StatementKind::Break if self.loops + self.switches == 0 => {
                self.mistake(line, "break cannot be used outside of a loop or a switch");
            }
            StatementKind::Continue if self.loops == 0 => {
                self.mistake(line, "continue cannot be used outside of a loop");
            }
            StatementKind::Break | StatementKind::Continue => {}
        }
    }

    fn local(&mut self, slot: usize, value: Option<&Expr>) {
        let (Some(value), Some(ty)) = (value, self.slots.get(slot).cloned()) else {
            return;
        };
        if ty.name() != VAR {
            return self.assign(value, &ty);
        }
        let known = self.expr(value);
        self.infer(slot, known);
    }

    fn infer(&mut self, slot: usize, known: Known) {
        self.slots[slot] = match known {
            Known::Type(ty) => ty,
            Known::Null | Known::Nothing => Type::class("Object"),
        };
    }

    fn each(&mut self, slot: usize, of: &Expr) {
        let Known::Type(of_type) = self.expr(of) else {
            return;
        };
        let Some(element) = element_of(&of_type) else {
            let message = "Can only iterate over an array or an instance of java.lang.Iterable";
            return self.mistake(of.line, message);
        };
        match self.slots.get(slot) {
            Some(ty) if ty.name() == VAR => self.infer(slot, Known::Type(element)),
            Some(ty) if ty.name() != UNKNOWN && !is_assignable(&element, ty) => {
                let message = format!("Type mismatch: cannot convert from element type {element} to {ty}");
                self.mistake(of.line, message);
            }
            _ => {}
        }
    }

    fn subject(&mut self, subject: &Expr) {
        let Known::Type(ty) = self.expr(subject) else {
            return;
        };
        if !matches!(
            ty.unboxed(),
            Some(Type::Byte | Type::Short | Type::Char | Type::Int)
        ) {
            let message = format!(
                "Cannot switch on a value of type {ty}. Only convertible int values, strings or enum variables are permitted"
            );
            self.mistake(subject.line, message);
        }
    }

    fn throw(&mut self, value: &Expr) {
        let Known::Type(ty) = self.expr(value) else { return };
        let class = ty.name();
        if !classes::is_throwable(class) {
            let message = format!(
                "No exception of type {ty} can be thrown; an exception type must be a subclass of Throwable"
            );
            return self.mistake(value.line, message);
        }
        let is_caught = self
            .caught
            .iter()
            .any(|caught| classes::is_exception(class, caught));
        // What is thrown again is of the class that it was caught as.
        let is_again = matches!(value.kind, ExprKind::Local(_));
        if classes::is_checked(class) && !is_caught && !is_again {
            self.mistake(value.line, format!("Unhandled exception type {class}"));
        }
    }

    fn condition(&mut self, condition: &Expr) {
        self.assign(condition, &Type::Boolean);
    }

    /// Checks that a value may be assigned to a variable of type `to`.
    fn assign(&mut self, value: &Expr, to: &Type) {
        if let ExprKind::Conditional(condition, then, otherwise) = &value.kind {
            self.condition(condition);
            let branches = (self.expr(then), self.expr(otherwise));
            if let (Known::Type(then), Known::Type(otherwise)) = &branches
                && let (Some(then), Some(otherwise)) = (then.unboxed(), otherwise.unboxed())
            {
                let whole = promoted(&then, &otherwise)
                    .filter(|_| then != otherwise)
                    .unwrap_or(then);
                return self.assign_known(value, Known::Type(whole), to);
            }
            self.assign_known(then, branches.0, to);
            return self.assign_known(otherwise, branches.1, to);
        }
        let known = self.expr(value);
        self.assign_known(value, known, to);
    }

    fn assign_known(&mut self, value: &Expr, known: Known, to: &Type) {
        let fits = to.name() == UNKNOWN
            || match &known {
                Known::Nothing => true,
                Known::Null => !to.is_primitive(),
                Known::Type(from) => is_assignable(from, to) || is_small_constant(value, to),
            };
        if !fits {
            let message = format!("Type mismatch: cannot convert from {} to {to}", known.shown());
            self.mistake(value.line, message);
        }
    }

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

    fn expr(&mut self, expr: &Expr) -> Known {
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
