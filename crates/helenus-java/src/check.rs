//! Checks a body before it runs, with the messages of Eclipse's compiler. The checks find mismatched types, unknown methods, unreachable
//! code, and paths to the end without a result.

use crate::ast::{Body, Expr, ExprKind, Statement, StatementKind, Type};
use crate::classes;
use crate::error::Diagnostic;
use crate::flow;
use crate::parser::{UNKNOWN, VAR};
use crate::static_type::StaticType;
use crate::types::{element_of, is_assignable, is_small_constant, promoted};

/// Checks a body with a result of type `returns`. Variables that are declared with `var` get the types of their values.
pub(crate) fn check(body: &mut Body, returns: &Type, mistakes: &mut Vec<Diagnostic>) {
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

pub(crate) struct Checker<'a> {
    pub slots: Vec<Type>,
    returns: &'a Type,
    mistakes: &'a mut Vec<Diagnostic>,
    loops: u32,
    switches: u32,
    /// Exceptions that the enclosing `try` statements catch, innermost last.
    caught: Vec<String>,
}

impl Checker<'_> {
    pub fn mistake(&mut self, line: u32, message: impl Into<String>) {
        self.mistakes.push(Diagnostic::new(line, message));
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

    fn infer(&mut self, slot: usize, known: StaticType) {
        self.slots[slot] = match known {
            StaticType::Type(ty) => ty,
            StaticType::Null | StaticType::Nothing => Type::class("Object"),
        };
    }

    fn each(&mut self, slot: usize, of: &Expr) {
        let StaticType::Type(of_type) = self.expr(of) else {
            return;
        };
        let Some(element) = element_of(&of_type) else {
            let message = "Can only iterate over an array or an instance of java.lang.Iterable";
            return self.mistake(of.line, message);
        };
        match self.slots.get(slot) {
            Some(ty) if ty.name() == VAR => self.infer(slot, StaticType::Type(element)),
            Some(ty) if ty.name() != UNKNOWN && !is_assignable(&element, ty) => {
                let message = format!("Type mismatch: cannot convert from element type {element} to {ty}");
                self.mistake(of.line, message);
            }
            _ => {}
        }
    }

    fn subject(&mut self, subject: &Expr) {
        let StaticType::Type(ty) = self.expr(subject) else {
            return;
        };
        // Cassandra compiles functions at a source level that has no `switch` on a `String`.
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
        let StaticType::Type(ty) = self.expr(value) else {
            return;
        };
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
        // A local variable is assumed to hold a caught exception, which may be thrown again.
        let is_again = matches!(value.kind, ExprKind::Local(_));
        if classes::is_checked(class) && !is_caught && !is_again {
            self.mistake(value.line, format!("Unhandled exception type {class}"));
        }
    }

    pub fn condition(&mut self, condition: &Expr) {
        self.assign(condition, &Type::Boolean);
    }

    /// Checks that a value may be assigned to a variable of type `to`.
    pub fn assign(&mut self, value: &Expr, to: &Type) {
        if let ExprKind::Conditional(condition, then, otherwise) = &value.kind {
            self.condition(condition);
            let branches = (self.expr(then), self.expr(otherwise));
            if let (StaticType::Type(then), StaticType::Type(otherwise)) = &branches
                && let (Some(then), Some(otherwise)) = (then.unboxed(), otherwise.unboxed())
            {
                let whole = promoted(&then, &otherwise)
                    .filter(|_| then != otherwise)
                    .unwrap_or(then);
                return self.assign_known(value, StaticType::Type(whole), to);
            }
            self.assign_known(then, branches.0, to);
            return self.assign_known(otherwise, branches.1, to);
        }
        let known = self.expr(value);
        self.assign_known(value, known, to);
    }

    fn assign_known(&mut self, value: &Expr, known: StaticType, to: &Type) {
        let fits = to.name() == UNKNOWN
            || match &known {
                StaticType::Nothing => true,
                StaticType::Null => !to.is_primitive(),
                StaticType::Type(from) => is_assignable(from, to) || is_small_constant(value, to),
            };
        if !fits {
            let message = format!("Type mismatch: cannot convert from {} to {to}", known.shown());
            self.mistake(value.line, message);
        }
    }
}
