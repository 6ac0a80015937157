//! INSERT, UPDATE, DELETE and BATCH.

use super::{MAX_BATCH_STATEMENTS, Parsed, Parser};
use crate::ast::{
    Assignment, AssignmentOperation, Batch, BatchKind, Delete, Deletion, Ident, Insert, InsertJson,
    InsertRows, JsonValue, Literal, LiteralKind, Modification, QualifiedName, Term, Update, UsingClause,
};
use crate::error::CqlError;
use crate::lexer::Kind;

impl Parser<'_> {
    /// Parses rule `batchStatementObjective`.
    pub(super) fn modification(&mut self) -> Parsed<Modification> {
        match self.kind() {
            Kind::Insert => self.insert(),
            Kind::Update => Ok(Modification::Update(self.update()?)),
            Kind::Delete => Ok(Modification::Delete(self.delete()?)),
            _ => Err(self.no_viable()),
        }
    }

    /// Parses rule `insertStatement`.
    fn insert(&mut self) -> Parsed<Modification> {
        self.expect_all(&[Kind::Insert, Kind::Into])?;
        let table = self.table_name()?;
        match self.kind() {
            Kind::LeftParen => Ok(Modification::Insert(self.insert_values(table)?)),
            Kind::Json => Ok(Modification::InsertJson(self.insert_json(table)?)),
            _ => Err(self.no_viable()),
        }
    }

    fn insert_values(&mut self, table: QualifiedName) -> Parsed<Insert> {
        self.expect(Kind::LeftParen)?;
        let columns = self.comma_separated(Self::column)?;
        self.expect_all(&[Kind::RightParen, Kind::Values, Kind::LeftParen])?;
        let values = self.comma_separated(Self::written_value)?;
        self.expect(Kind::RightParen)?;
        Ok(Insert {
            table,
            columns,
            values,
            if_not_exists: self.if_not_exists()?,
            using: self.using_clause()?,
        })
    }

    fn insert_json(&mut self, table: QualifiedName) -> Parsed<InsertJson> {
        self.expect(Kind::Json)?;
        let json = if self.kind().is_string() {
            JsonValue::Text(self.expect_string()?)
        } else {
            JsonValue::Marker(self.marker()?)
        };
        let mut default_unset = false;
        if self.accept(Kind::Default) {
            match self.kind() {
                Kind::Null => {}
                Kind::Unset => default_unset = true,
                _ => return Err(self.no_viable()),
            }
            self.advance();
        }
        Ok(InsertJson {
            table,
            json,
            default_unset,
            if_not_exists: self.if_not_exists()?,
            using: self.using_clause()?,
        })
    }

    /// Returns true if the next tokens are `INSERT INTO table (columns) ROWS`. Cassandra accepts no statement that begins so.
    pub(super) fn begins_insert_rows(&self) -> bool {
        /// Tokens before the list of columns, with and without a keyspace.
        const LISTS: [usize; 2] = [3, 5];
        let Some(list) = LISTS.into_iter().find(|at| self.kind_at(*at) == Kind::LeftParen) else {
            return false;
        };
        let mut after = list + 1;
        while !matches!(self.kind_at(after), Kind::RightParen | Kind::Eof) {
            after += 1;
        }
        self.has_word_at(after + 1, "ROWS")
    }

    /// Parses `INSERT INTO table (columns) ROWS blob [WITHOUT CDC]`.
    pub(super) fn insert_rows(&mut self) -> Parsed<InsertRows> {
        self.expect_all(&[Kind::Insert, Kind::Into])?;
        let table = self.table_name()?;
        self.expect(Kind::LeftParen)?;
        let columns = match self.at(Kind::RightParen) {
            true => Vec::new(),
            false => self.comma_separated(Self::column)?,
        };
        self.expect(Kind::RightParen)?;
        self.advance();
        let rows = match self.kind() {
            Kind::HexNumber => Term::Literal(self.constant()?),
            _ => Term::Marker(self.marker()?),
        };
        let without_cdc = self.has_word_at(0, "WITHOUT") && self.has_word_at(1, "CDC");
        if without_cdc {
            self.advance();
            self.advance();
        }
        Ok(InsertRows {
            table,
            columns,
            rows,
            without_cdc,
        })
    }

    /// Parses rule `usingClause`, or nothing.
    fn using_clause(&mut self) -> Parsed<UsingClause> {
        let mut using = UsingClause::default();
        if !self.accept(Kind::Using) {
            return Ok(using);
        }
        loop {
            match self.kind() {
                Kind::Timestamp => {
                    self.advance();
                    using.timestamp = Some(self.int_value()?);
                }
                Kind::Ttl => {
                    self.advance();
                    using.ttl = Some(self.int_value()?);
                }
                _ => return Err(self.no_viable()),
            }
            if !self.accept(Kind::And) {
                return Ok(using);
            }
        }
    }

    /// Parses rule `updateStatement`.
    fn update(&mut self) -> Parsed<Update> {
        self.expect(Kind::Update)?;
        let table = self.table_name()?;
        let using = self.using_clause()?;
        self.expect(Kind::Set)?;
        let mut assignments: Vec<Assignment> = Vec::new();
        loop {
            let assignment = self.assignment()?;
            self.check_compatible(&assignments, &assignment)?;
            assignments.push(assignment);
            if !self.accept(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::Where)?;
        Ok(Update {
            table,
            using,
            assignments,
            relations: self.where_clause()?,
            condition: self.if_clause()?,
        })
    }

    /// Checks that an assignment is compatible with earlier ones (Cassandra's `RawUpdate.isCompatibleWith`). Two operations on a column are
    /// incompatible if one sets the whole column, or if both set the same field.
    fn check_compatible(&self, earlier: &[Assignment], assignment: &Assignment) -> Parsed<()> {
        let clash = earlier.iter().any(|other| {
            other.column == assignment.column && !compatible(&other.operation, &assignment.operation)
        });
        if clash {
            return Err(self.recognition_error(format!(
                "Multiple incompatible setting of column {}",
                assignment.column
            )));
        }
        Ok(())
    }

    /// Parses rule `columnOperation`.
    fn assignment(&mut self) -> Parsed<Assignment> {
        let column = self.column()?;
        let operation = match self.kind() {
            Kind::EqSign => {
                self.advance();
                self.plain_assignment(&column)?
            }
            Kind::PlusEq => {
                self.advance();
                AssignmentOperation::Add(self.written_value()?)
            }
            Kind::MinusEq => {
                self.advance();
                AssignmentOperation::Subtract(self.written_value()?)
            }
            Kind::LeftBracket => {
                self.advance();
                let key = self.term()?;
                self.expect_all(&[Kind::RightBracket, Kind::EqSign])?;
                let value = self.written_value()?;
                AssignmentOperation::SetElement { key, value }
            }
            Kind::Dot => {
                self.advance();
                let field = self.ident()?;
                self.expect(Kind::EqSign)?;
                let value = self.written_value()?;
                AssignmentOperation::SetField { field, value }
            }
            _ => return Err(self.no_viable()),
        };
        Ok(Assignment { column, operation })
    }

    /// Parses rule `normalColumnOperation`.
    fn plain_assignment(&mut self, column: &Ident) -> Parsed<AssignmentOperation> {
        if let Some(reference) = self.reference()? {
            return Ok(AssignmentOperation::Set(reference));
        }
        if self.is_column_at(0) && !self.begins_call(0) {
            match self.kind_at(1) {
                Kind::Plus | Kind::Minus => return self.sum_assignment(column),
                Kind::Integer => return self.integer_assignment(column),
                Kind::Dot => {}
                _ => return Err(self.no_viable_at(1)),
            }
        }
        let term = self.term()?;
        if self.at(Kind::Plus)
            && self.is_column_at(1)
            && !matches!(self.kind_at(2), Kind::Comma | Kind::Where)
        {
            return Err(self.no_viable_at(2));
        }
        if !self.accept(Kind::Plus) {
            return Ok(AssignmentOperation::Set(term));
        }
        if self.column()? != *column {
            return Err(self.recognition_error("Only expressions of the form X = <value> + X are supported."));
        }
        Ok(AssignmentOperation::Prepend(term))
    }

    /// Parses `c + term` or `c - term`.
    fn sum_assignment(&mut self, column: &Ident) -> Parsed<AssignmentOperation> {
        let other = self.column()?;
        let plus = self.at(Kind::Plus);
        self.advance();
        let term = self.written_value()?;
        if other != *column {
            let sign = if plus { "+" } else { "-" };
            return Err(self.recognition_error(format!(
                "Only expressions of the form X = X {sign}<value> are supported."
            )));
        }
        Ok(if plus {
            AssignmentOperation::Add(term)
        } else {
            AssignmentOperation::Subtract(term)
        })
    }

    /// Parses `c -3`, whose sign the lexer took as part of the number.
    fn integer_assignment(&mut self, column: &Ident) -> Parsed<AssignmentOperation> {
        let other = self.column()?;
        let token = self.advance();
        let text = self.token_text(token);
        if other != *column {
            let sign = if text.starts_with('-') { '-' } else { '+' };
            return Err(self.recognition_error(format!(
                "Only expressions of the form X = X {sign} <value> are supported."
            )));
        }
        Ok(AssignmentOperation::Add(Term::Literal(Literal {
            kind: LiteralKind::Integer,
            text,
        })))
    }

    /// Parses rule `deleteStatement`.
    fn delete(&mut self) -> Parsed<Delete> {
        self.expect(Kind::Delete)?;
        let deletions = if self.is_column_at(0) {
            self.comma_separated(Self::deletion)?
        } else {
            Vec::new()
        };
        self.expect(Kind::From)?;
        let table = self.table_name()?;
        let mut using = UsingClause::default();
        if self.accept(Kind::Using) {
            self.expect(Kind::Timestamp)?;
            using.timestamp = Some(self.int_value()?);
        }
        self.expect(Kind::Where)?;
        Ok(Delete {
            table,
            deletions,
            using,
            relations: self.where_clause()?,
            condition: self.if_clause()?,
        })
    }

    /// Parses rule `deleteOp`.
    fn deletion(&mut self) -> Parsed<Deletion> {
        if !self.is_column_at(0) {
            return Err(self.no_viable());
        }
        if !matches!(
            self.kind_at(1),
            Kind::LeftBracket | Kind::Dot | Kind::Comma | Kind::From
        ) {
            return Err(self.no_viable_at(1));
        }
        let column = self.column()?;
        if self.accept(Kind::LeftBracket) {
            let element = self.term()?;
            self.expect(Kind::RightBracket)?;
            return Ok(Deletion::Element { column, element });
        }
        if self.accept(Kind::Dot) {
            let field = self.ident()?;
            return Ok(Deletion::Field { column, field });
        }
        Ok(Deletion::Column(column))
    }

    /// Parses rule `batchStatement`.
    pub(super) fn batch(&mut self) -> Parsed<Batch> {
        self.expect(Kind::Begin)?;
        let kind = match self.kind() {
            Kind::Unlogged => BatchKind::Unlogged,
            Kind::Counter => BatchKind::Counter,
            _ => BatchKind::Logged,
        };
        if kind != BatchKind::Logged {
            self.advance();
        }
        self.expect(Kind::Batch)?;
        let using = self.using_clause()?;
        let mut statements = Vec::new();
        while matches!(self.kind(), Kind::Insert | Kind::Update | Kind::Delete) {
            if statements.len() == MAX_BATCH_STATEMENTS {
                return Err(CqlError::invalid(format!(
                    "Too many statements in a batch: {MAX_BATCH_STATEMENTS} are allowed"
                )));
            }
            if self.begins_insert_rows() {
                return Err(CqlError::invalid(
                    "INSERT … ROWS cannot be in a batch: send it as a statement of its own",
                ));
            }
            statements.push(self.modification()?);
            self.accept(Kind::Semicolon);
        }
        self.expect_all(&[Kind::Apply, Kind::Batch])?;
        Ok(Batch {
            kind,
            using,
            statements,
        })
    }
}

fn compatible(left: &AssignmentOperation, right: &AssignmentOperation) -> bool {
    match (left, right) {
        (
            AssignmentOperation::SetField { field: left, .. },
            AssignmentOperation::SetField { field: right, .. },
        ) => left != right,
        (AssignmentOperation::Set(_), _) | (_, AssignmentOperation::Set(_)) => false,
        _ => true,
    }
}
