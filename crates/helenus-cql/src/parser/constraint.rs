//! CHECK.

use super::{Parsed, Parser};
use crate::ast::ColumnConstraint;
use crate::lexer::Kind;

impl Parser<'_> {
    /// Parses rule `columnConstraints`, or nothing.
    pub(super) fn column_constraints(&mut self) -> Parsed<Vec<ColumnConstraint>> {
        let mut constraints = Vec::new();
        if !self.accept(Kind::Check) {
            return Ok(constraints);
        }
        loop {
            constraints.push(self.column_constraint()?);
            if !self.accept(Kind::And) {
                return Ok(constraints);
            }
        }
    }

    /// Parses rule `columnConstraint`.
    fn column_constraint(&mut self) -> Parsed<ColumnConstraint> {
        if self.accept(Kind::Not) {
            self.expect(Kind::Null)?;
            return Ok(ColumnConstraint::NotNull);
        }
        if self.kind_at(1) != Kind::LeftParen {
            return Ok(ColumnConstraint::Compare {
                column: self.ident()?,
                operator: self.comparison()?,
                term: self.constant()?,
            });
        }
        let name = self.ident()?;
        self.expect(Kind::LeftParen)?;
        let arguments = match self.at(Kind::RightParen) {
            true => Vec::new(),
            false => self.comma_separated(Self::constant)?,
        };
        self.expect(Kind::RightParen)?;
        let comparison = match self.at_comparison() {
            true => Some((self.comparison()?, self.constant()?)),
            false => None,
        };
        Ok(ColumnConstraint::Function {
            name,
            arguments,
            comparison,
        })
    }
}
