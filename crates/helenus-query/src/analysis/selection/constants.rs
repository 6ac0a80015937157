//! Checks of the parts of a SELECT clause that depend on no row. They fail even if no row is found.

use helenus_cql::error::CqlError;

use super::eval::Evaluation;
use super::typed::{Node, Typed};
use super::{Selection, bind};
use crate::analysis::EvalContext;

impl Selection {
    /// Binds the terms of the clause, and calls its functions of constants.
    ///
    /// # Errors
    /// A bound value does not fit, or a function fails.
    pub fn check_constants(&self, ctx: &EvalContext<'_>) -> Result<(), CqlError> {
        if self.parts.terms.is_empty() {
            return Ok(());
        }
        let terms = self.parts.terms.iter().map(|term| bind(term, ctx));
        let evaluation = Evaluation {
            ctx: *ctx,
            terms: &terms.collect::<Result<Vec<_>, CqlError>>()?,
            row: None,
            aggregates: &[],
        };
        let arguments = self.parts.aggregates.iter().flat_map(|call| &call.args);
        self.selectors
            .iter()
            .chain(arguments)
            .try_for_each(|selector| check(&evaluation, selector))
    }
}

fn check(evaluation: &Evaluation<'_>, typed: &Typed) -> Result<(), CqlError> {
    if is_constant(typed) {
        return evaluation.value(typed).map(drop);
    }
    children(typed)
        .into_iter()
        .try_for_each(|child| check(evaluation, child))?;
    match &typed.node {
        Node::Scalar { function, args } if function.checks_constants() => {
            let constant = |arg: &Typed| match is_constant(arg) {
                true => evaluation.value(arg),
                false => Ok(None),
            };
            function.check_constants(&args.iter().map(constant).collect::<Result<Vec<_>, _>>()?)
        }
        _ => Ok(()),
    }
}

/// Returns true for terms, and for calls with terms that always give the same result.
fn is_constant(typed: &Typed) -> bool {
    match &typed.node {
        Node::Term(_) => true,
        Node::Scalar { function, args } => {
            !args.is_empty() && function.is_pure() && args.iter().all(is_constant)
        }
        _ => false,
    }
}

fn children(typed: &Typed) -> Vec<&Typed> {
    match &typed.node {
        Node::Column(_)
        | Node::PackedRow { .. }
        | Node::Masked { .. }
        | Node::Term(_)
        | Node::Aggregate(_) => Vec::new(),
        Node::Attribute { selected: inner, .. }
        | Node::Field { receiver: inner, .. }
        | Node::Element { receiver: inner, .. }
        | Node::Slice { receiver: inner, .. } => vec![inner],
        Node::Scalar { args: items, .. }
        | Node::List(items)
        | Node::Set { items, .. }
        | Node::Vector { items, .. }
        | Node::Tuple(items) => items.iter().collect(),
        Node::Map { entries, .. } => entries.iter().flat_map(|(key, value)| [key, value]).collect(),
        Node::UserType(fields) => fields.iter().flatten().collect(),
    }
}
