//! WHERE clauses and the conditions of IF.

use super::{Parsed, Parser};
use crate::ast::{
    Compared, Condition, ConditionTarget, ConditionTest, Ident, IfClause, InValues, Operator, QualifiedName,
    Relation, Term,
};
use crate::lexer::Kind;

impl Parser<'_> {
    /// Parses rule `whereClause`.
    pub(super) fn where_clause(&mut self) -> Parsed<Vec<Relation>> {
        let mut relations = vec![self.relation_or_expression()?];
        while self.accept(Kind::And) {
            relations.push(self.relation_or_expression()?);
        }
        Ok(relations)
    }

    /// Parses rule `relationOrExpression`.
    fn relation_or_expression(&mut self) -> Parsed<Relation> {
        if !self.accept(Kind::ExprOpen) {
            return self.relation();
        }
        let name = self.plain_index_name()?;
        self.expect(Kind::Comma)?;
        let term = self.term()?;
        self.expect(Kind::RightParen)?;
        Ok(Relation::CustomIndex {
            index: QualifiedName { keyspace: None, name },
            term,
        })
    }

    /// Parses rule `relation`.
    fn relation(&mut self) -> Parsed<Relation> {
        match self.kind() {
            Kind::Token => self.token_relation(),
            Kind::LeftParen if self.is_column_at(1) => match self.kind_at(2) {
                Kind::Comma | Kind::RightParen => self.tuple_relation(),
                kind if follows_relation_column(kind) => self.relation_in_parentheses(),
                _ => Err(self.no_viable_at(2)),
            },
            Kind::LeftParen if matches!(self.kind_at(1), Kind::LeftParen | Kind::Token) => {
                self.relation_in_parentheses()
            }
            Kind::LeftParen => Err(self.no_viable_at(1)),
            _ if self.is_column_at(0) => self.column_relation(),
            _ => Err(self.no_viable()),
        }
    }

    fn relation_in_parentheses(&mut self) -> Parsed<Relation> {
        self.nested(|parser| {
            parser.advance();
            let relation = parser.relation()?;
            parser.expect(Kind::RightParen)?;
            Ok(relation)
        })
    }

    fn token_relation(&mut self) -> Parsed<Relation> {
        self.advance();
        let columns = self.columns_in_parentheses()?;
        if self.at(Kind::Between) {
            return self.between(Compared::Token(columns), Self::term);
        }
        let operator = self.comparison()?;
        Ok(Relation::Token {
            columns,
            operator,
            term: self.term()?,
        })
    }

    /// Parses rule `tupleOfIdentifiers`.
    fn columns_in_parentheses(&mut self) -> Parsed<Vec<Ident>> {
        self.expect(Kind::LeftParen)?;
        let columns = self.comma_separated(Self::column)?;
        self.expect(Kind::RightParen)?;
        Ok(columns)
    }

    fn column_relation(&mut self) -> Parsed<Relation> {
        let after = self.kind_at(1);
        if !follows_relation_column(after) {
            return Err(self.no_viable_at(1));
        }
        self.check_operator_words(1)?;
        let column = self.column()?;
        let operator = match after {
            Kind::Is => {
                self.advance();
                self.expect_all(&[Kind::Not, Kind::Null])?;
                return Ok(Relation::IsNotNull { column });
            }
            Kind::In => return self.in_relation(column, false),
            Kind::Not if self.kind_at(1) == Kind::In => {
                self.advance();
                return self.in_relation(column, true);
            }
            Kind::Not => {
                self.advance();
                match self.contains()? {
                    Operator::ContainsKey => Operator::NotContainsKey,
                    _ => Operator::NotContains,
                }
            }
            Kind::Between => return self.between(Compared::Column(column), Self::term),
            Kind::LeftBracket => return self.element_relation(column),
            Kind::Like => {
                self.advance();
                Operator::Like
            }
            Kind::Contains => self.contains()?,
            _ => self.comparison()?,
        };
        Ok(Relation::Column {
            column,
            operator,
            term: self.term()?,
        })
    }

    /// Refuses NOT before another word than IN or CONTAINS, and IN before another token than those of its values. The operator is
    /// `distance` tokens ahead.
    fn check_operator_words(&mut self, distance: usize) -> Parsed<()> {
        let mut place = distance;
        if self.kind_at(place) == Kind::Not {
            place += 1;
            if !matches!(self.kind_at(place), Kind::In | Kind::Contains) {
                return Err(self.no_viable_at(place));
            }
        }
        let begins_values = matches!(
            self.kind_at(place + 1),
            Kind::LeftParen | Kind::QuestionMark | Kind::Colon
        );
        match self.kind_at(place) == Kind::In && !begins_values {
            true => Err(self.no_viable_at(place + 1)),
            false => Ok(()),
        }
    }

    fn in_relation(&mut self, column: Ident, is_negated: bool) -> Parsed<Relation> {
        self.expect(Kind::In)?;
        Ok(Relation::ColumnIn {
            column,
            is_negated,
            values: self.in_values()?,
        })
    }

    /// Parses rule `singleColumnBetweenValues`, with BETWEEN. `bound` parses each bound.
    fn between(&mut self, compared: Compared, bound: fn(&mut Self) -> Parsed<Term>) -> Parsed<Relation> {
        self.expect(Kind::Between)?;
        let first = bound(self)?;
        self.expect(Kind::And)?;
        Ok(Relation::Between {
            compared,
            first,
            second: bound(self)?,
        })
    }

    fn element_relation(&mut self, column: Ident) -> Parsed<Relation> {
        self.advance();
        let key = self.term()?;
        self.expect(Kind::RightBracket)?;
        let operator = self.comparison()?;
        Ok(Relation::Element {
            column,
            key,
            operator,
            term: self.term()?,
        })
    }

    /// Returns true if the next token is a comparison.
    pub(super) fn at_comparison(&self) -> bool {
        comparison_of(self.kind()).is_some()
    }

    /// Parses rules `relationType`, `txnConditionKind`.
    pub(super) fn comparison(&mut self) -> Parsed<Operator> {
        let Some(operator) = comparison_of(self.kind()) else {
            return Err(self.no_viable());
        };
        self.advance();
        Ok(operator)
    }

    /// Parses rule `containsOperator`.
    fn contains(&mut self) -> Parsed<Operator> {
        self.expect(Kind::Contains)?;
        Ok(if self.accept(Kind::Key) {
            Operator::ContainsKey
        } else {
            Operator::Contains
        })
    }

    /// Parses rules `singleColumnInValues` and `inMarker`, after IN.
    fn in_values(&mut self) -> Parsed<InValues> {
        match self.kind() {
            Kind::LeftParen => Ok(InValues::Values(
                self.term_list(Kind::LeftParen, Kind::RightParen)?,
            )),
            _ => Ok(InValues::Marker(self.marker()?)),
        }
    }

    fn tuple_relation(&mut self) -> Parsed<Relation> {
        let columns = self.columns_in_parentheses()?;
        let is_negated = self.at(Kind::Not) && self.kind_at(1) == Kind::In;
        if self.at(Kind::In) || is_negated {
            self.accept(Kind::Not);
            self.advance();
            let values = self.tuple_in_values()?;
            return Ok(Relation::TupleIn {
                columns,
                is_negated,
                values,
            });
        }
        if self.at(Kind::Between) {
            return self.between(Compared::Tuple(columns), Self::tuple_value);
        }
        let Some(operator) = comparison_of(self.kind()) else {
            return Err(self.no_viable());
        };
        if !matches!(
            self.kind_at(1),
            Kind::LeftParen | Kind::QuestionMark | Kind::Colon
        ) {
            return Err(self.no_viable_at(1));
        }
        self.advance();
        Ok(Relation::Tuple {
            columns,
            operator,
            term: self.tuple_value()?,
        })
    }

    /// Parses rule `multiColumnValue`.
    fn tuple_value(&mut self) -> Parsed<Term> {
        match self.at_marker() {
            true => Ok(Term::Marker(self.marker()?)),
            false => self.tuple_literal(),
        }
    }

    fn tuple_in_values(&mut self) -> Parsed<InValues> {
        if self.at_marker() {
            return Ok(InValues::Marker(self.marker()?));
        }
        if !self.at(Kind::LeftParen) {
            return Err(self.no_viable());
        }
        let values = match self.kind_at(1) {
            Kind::RightParen => {
                self.advance();
                Vec::new()
            }
            Kind::LeftParen => {
                self.advance();
                self.comma_separated(Self::tuple_literal)?
            }
            Kind::QuestionMark | Kind::Colon => {
                self.advance();
                self.comma_separated(|parser| parser.marker().map(Term::Marker))?
            }
            _ => return Err(self.no_viable_at(1)),
        };
        self.expect(Kind::RightParen)?;
        Ok(InValues::Values(values))
    }

    /// Parses the IF clause of UPDATE and DELETE, or nothing.
    pub(super) fn if_clause(&mut self) -> Parsed<IfClause> {
        if !self.accept(Kind::If) {
            return Ok(IfClause::None);
        }
        if self.at(Kind::Exists) && !follows_condition_column(self.kind_at(1)) {
            if !follows_if_exists(self.kind_at(1)) {
                return Err(self.no_viable_at(1));
            }
            self.advance();
            return Ok(IfClause::Exists);
        }
        if !self.is_column_at(0) {
            return Err(self.no_viable());
        }
        let mut conditions = vec![self.condition()?];
        while self.accept(Kind::And) {
            conditions.push(self.condition()?);
        }
        Ok(IfClause::Conditions(conditions))
    }

    /// Parses rule `columnCondition`.
    fn condition(&mut self) -> Parsed<Condition> {
        let column = self.column()?;
        let target = match self.kind() {
            Kind::LeftBracket => {
                self.advance();
                let element = self.term()?;
                self.expect(Kind::RightBracket)?;
                ConditionTarget::Element(element)
            }
            Kind::Dot => {
                self.advance();
                ConditionTarget::Field(self.ident()?)
            }
            _ => ConditionTarget::Column,
        };
        let test = match self.kind() {
            Kind::In => {
                self.advance();
                ConditionTest::In(self.in_values()?)
            }
            Kind::Contains if target == ConditionTarget::Column => {
                let operator = self.contains()?;
                ConditionTest::Compare(operator, self.term()?)
            }
            _ => {
                let operator = self.comparison()?;
                ConditionTest::Compare(operator, self.term()?)
            }
        };
        Ok(Condition { column, target, test })
    }
}

pub(super) fn comparison_of(kind: Kind) -> Option<Operator> {
    match kind {
        Kind::EqSign => Some(Operator::Eq),
        Kind::Less => Some(Operator::Lt),
        Kind::LessEq => Some(Operator::Lte),
        Kind::Greater => Some(Operator::Gt),
        Kind::GreaterEq => Some(Operator::Gte),
        Kind::NeqSign => Some(Operator::Neq),
        _ => None,
    }
}

fn follows_relation_column(kind: Kind) -> bool {
    comparison_of(kind).is_some()
        || matches!(
            kind,
            Kind::Is | Kind::In | Kind::Not | Kind::Between | Kind::LeftBracket | Kind::Like | Kind::Contains
        )
}

fn follows_condition_column(kind: Kind) -> bool {
    comparison_of(kind).is_some() || matches!(kind, Kind::In | Kind::LeftBracket | Kind::Dot | Kind::Contains)
}

/// Returns true for tokens that may follow `IF EXISTS` at the end of a modification, alone or in a batch.
fn follows_if_exists(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Eof | Kind::Semicolon | Kind::Insert | Kind::Update | Kind::Delete | Kind::Apply
    )
}
