//! Reachability of statements (Java's specification, 14.22).

use crate::ast::{CaseLabel, Constant, Expr, ExprKind, Statement, StatementKind};

/// Returns true if control can reach the end of the statements.
pub(crate) fn ends(statements: &[Statement]) -> bool {
    statements.iter().all(statement_ends)
}

/// Returns true if control can reach the code that follows a statement.
pub(crate) fn statement_ends(statement: &Statement) -> bool {
    match &statement.kind {
        StatementKind::Return(_)
        | StatementKind::Throw(_)
        | StatementKind::Break
        | StatementKind::Continue => false,
        StatementKind::Block(statements) => ends(statements),
        StatementKind::If { then, otherwise, .. } => {
            otherwise
                .as_ref()
                .is_none_or(|otherwise| statement_ends(otherwise))
                || statement_ends(then)
        }
        StatementKind::While { condition, body } => !is_true(condition) || breaks(body),
        StatementKind::DoWhile { body, condition } => {
            breaks(body) || (statement_ends(body) || continues(body)) && !is_true(condition)
        }
        StatementKind::For { condition, body, .. } => {
            condition.as_ref().is_some_and(|condition| !is_true(condition)) || breaks(body)
        }
        StatementKind::Switch { cases, .. } => {
            let has_default = cases.iter().any(|case| case.labels.contains(&CaseLabel::Default));
            let last = cases.last().is_none_or(|case| ends(&case.body));
            !has_default || last || cases.iter().flat_map(|case| &case.body).any(breaks)
        }
        StatementKind::Try {
            body,
            catches,
            finally,
        } => {
            finally.as_ref().is_none_or(|finally| ends(finally))
                && (ends(body) || catches.iter().any(|catch| ends(&catch.body)))
        }
        StatementKind::Local { .. } | StatementKind::Expr(_) | StatementKind::ForEach { .. } => true,
    }
}

fn is_true(condition: &Expr) -> bool {
    condition.kind == ExprKind::Constant(Constant::Boolean(true))
}

/// Returns true if the statement holds a `break` that ends an enclosing loop or `switch`.
fn breaks(statement: &Statement) -> bool {
    match &statement.kind {
        StatementKind::Break => true,
        _ => inside(statement).is_some_and(|mut inside| inside.any(breaks)),
    }
}

/// Returns true if the statement holds a `continue` of an enclosing loop, which may be inside a `switch`.
fn continues(statement: &Statement) -> bool {
    match &statement.kind {
        StatementKind::Continue => true,
        StatementKind::Switch { cases, .. } => cases.iter().flat_map(|case| &case.body).any(continues),
        _ => inside(statement).is_some_and(|mut inside| inside.any(continues)),
    }
}

/// Returns the statements inside a statement. `None` for loops, `switch`, and statements without inner ones.
fn inside(statement: &Statement) -> Option<Box<dyn Iterator<Item = &Statement> + '_>> {
    match &statement.kind {
        StatementKind::Block(statements) => Some(Box::new(statements.iter())),
        StatementKind::If { then, otherwise, .. } => {
            let branches = std::iter::once(then).chain(otherwise);
            Some(Box::new(branches.map(AsRef::as_ref)))
        }
        StatementKind::Try {
            body,
            catches,
            finally,
        } => {
            let catches = catches.iter().flat_map(|catch| &catch.body);
            Some(Box::new(
                body.iter().chain(catches).chain(finally.iter().flatten()),
            ))
        }
        _ => None,
    }
}
