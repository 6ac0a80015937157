//! BEGIN TRANSACTION, as in Cassandra 6. Its words are not keywords of Cassandra 5, so the parser compares the text of tokens.

use super::message::line_and_column;
use super::relation::comparison_of;
use super::{MAX_BATCH_STATEMENTS, Parsed, Parser};
use crate::ast::{
    ConditionalWrites, LetAssignment, Located, Modification, Operator, ReferencePart, Returning,
    RowReference, Select, Term, Transaction, TransactionCondition, TransactionTest,
};
use crate::error::CqlError;
use crate::lexer::Kind;

impl Parser<'_> {
    /// Returns true at `BEGIN TRANSACTION`.
    pub(super) fn begins_transaction(&self) -> bool {
        self.at(Kind::Begin) && self.has_word_at(1, "TRANSACTION")
    }

    /// Parses rule `batchTxnStatement`, with ELSE IF, ELSE and writes behind END IF. `END TRANSACTION` is taken for `COMMIT TRANSACTION`,
    /// as YCQL writes it.
    pub(super) fn transaction(&mut self) -> Parsed<Transaction> {
        self.advance();
        self.advance();
        self.in_transaction = true;
        let mut assignments = Vec::new();
        while self.has_word_at(0, "LET") {
            check_count(assignments.len())?;
            assignments.push(self.let_assignment()?);
        }
        let returning = self.returning()?;
        let mut transaction = Transaction {
            assignments,
            returning,
            branches: Vec::new(),
            otherwise: Vec::new(),
            unconditional: Vec::new(),
        };
        let mut count = 0;
        if self.at(Kind::If) {
            self.branches(&mut transaction, &mut count)?;
        }
        self.writes(&mut transaction.unconditional, &mut count)?;
        self.end_transaction(!transaction.branches.is_empty())?;
        self.in_transaction = false;
        Ok(transaction)
    }

    /// Parses rule `letStatement` and its semicolon.
    fn let_assignment(&mut self) -> Parsed<LetAssignment> {
        self.advance();
        let name = self.ident()?;
        self.expect_all(&[Kind::EqSign, Kind::LeftParen])?;
        let select = self.located(Self::let_select)?;
        self.expect_all(&[Kind::RightParen, Kind::Semicolon])?;
        Ok(LetAssignment { name, select })
    }

    /// Parses the SELECT of a LET, which has no more clauses than WHERE and LIMIT.
    fn let_select(&mut self) -> Parsed<Select> {
        self.expect(Kind::Select)?;
        let items = self.select_items()?;
        self.expect(Kind::From)?;
        let table = self.table_name()?;
        self.expect(Kind::Where)?;
        let relations = self.where_clause()?;
        let limit = match self.accept(Kind::Limit) {
            true => Some(self.int_value()?),
            false => None,
        };
        Ok(Select {
            table,
            as_of: None,
            json: false,
            distinct: false,
            items,
            relations,
            group_by: Vec::new(),
            order_by: Vec::new(),
            per_partition_limit: None,
            limit,
            allow_filtering: false,
            timeout: None,
        })
    }

    /// Parses the SELECT of references or the ordinary SELECT, with its semicolon, or nothing.
    fn returning(&mut self) -> Parsed<Returning> {
        if !self.at(Kind::Select) {
            return Ok(Returning::Nothing);
        }
        let returning = if self.names_a_table() {
            Returning::Select(Box::new(self.located(Self::select)?))
        } else {
            self.advance();
            Returning::References(self.comma_separated(Self::row_reference)?)
        };
        self.expect(Kind::Semicolon)?;
        Ok(returning)
    }

    /// Returns true if FROM comes before the end of the statement that begins here.
    fn names_a_table(&self) -> bool {
        let mut distance = 1;
        loop {
            match self.kind_at(distance) {
                Kind::From => return true,
                Kind::Semicolon | Kind::Eof => return false,
                _ => distance += 1,
            }
        }
    }

    /// Parses rule `rowDataReference`.
    fn row_reference(&mut self) -> Parsed<RowReference> {
        let row = self.ident()?;
        if !self.accept(Kind::Dot) {
            return Ok(RowReference {
                row,
                column: None,
                part: ReferencePart::Whole,
            });
        }
        let column = Some(self.column()?);
        let part = match self.kind() {
            Kind::LeftBracket => {
                self.advance();
                let element = self.term()?;
                self.expect(Kind::RightBracket)?;
                ReferencePart::Element(Box::new(element))
            }
            Kind::Dot => {
                self.advance();
                ReferencePart::Field(self.ident()?)
            }
            _ => ReferencePart::Whole,
        };
        Ok(RowReference { row, column, part })
    }

    /// Returns true if a transaction's reference to a column begins here, and not the call of a function of a keyspace.
    fn begins_reference(&self) -> bool {
        self.in_transaction
            && self.kind().is_ident()
            && self.kind_at(1) == Kind::Dot
            && self.is_column_at(2)
            && self.kind_at(3) != Kind::LeftParen
    }

    /// Parses a written value: a term, or a reference in a transaction.
    pub(super) fn written_value(&mut self) -> Parsed<Term> {
        match self.reference()? {
            Some(reference) => Ok(reference),
            None => self.term(),
        }
    }

    /// Parses a reference to a column as a term. `None` if something else begins here.
    pub(super) fn reference(&mut self) -> Parsed<Option<Term>> {
        match self.begins_reference() {
            true => Ok(Some(Term::Reference(Box::new(self.row_reference()?)))),
            false => Ok(None),
        }
    }

    /// Parses `IF … THEN … [ELSE IF … THEN …] [ELSE …] END IF`.
    fn branches(&mut self, transaction: &mut Transaction, count: &mut usize) -> Parsed<()> {
        loop {
            self.expect(Kind::If)?;
            let conditions = self.transaction_conditions()?;
            let mut writes = Vec::new();
            self.writes(&mut writes, count)?;
            transaction
                .branches
                .push(ConditionalWrites { conditions, writes });
            if !self.has_word_at(0, "ELSE") {
                break;
            }
            self.advance();
            if !self.at(Kind::If) {
                self.writes(&mut transaction.otherwise, count)?;
                break;
            }
        }
        if !(self.has_word_at(0, "END") && self.kind_at(1) == Kind::If) {
            return Err(match self.ends_transaction() {
                true => self.failed_predicate("batchTxnStatement", "!isTxnConditional"),
                false => self.no_viable(),
            });
        }
        self.advance();
        self.advance();
        Ok(())
    }

    /// Parses rule `txnConditions` and THEN.
    fn transaction_conditions(&mut self) -> Parsed<Vec<TransactionCondition>> {
        let mut conditions = vec![self.transaction_condition()?];
        while self.accept(Kind::And) {
            check_count(conditions.len())?;
            conditions.push(self.transaction_condition()?);
        }
        match self.has_word_at(0, "THEN") {
            true => {
                self.advance();
                Ok(conditions)
            }
            false => Err(self.no_viable()),
        }
    }

    /// Parses rule `txnColumnCondition`.
    fn transaction_condition(&mut self) -> Parsed<TransactionCondition> {
        let names_row = self.kind().is_ident()
            && (self.kind_at(1) == Kind::Is || comparison_of(self.kind_at(1)).is_some());
        if !names_row && !self.begins_reference() {
            let term = self.term()?;
            let operator = self.comparison()?;
            return Ok(TransactionCondition {
                reference: self.row_reference()?,
                test: TransactionTest::Compare(mirrored(operator), term),
            });
        }
        let reference = self.row_reference()?;
        let test = if self.accept(Kind::Is) {
            let is_negated = self.accept(Kind::Not);
            self.expect(Kind::Null)?;
            match is_negated {
                true => TransactionTest::IsNotNull,
                false => TransactionTest::IsNull,
            }
        } else {
            let operator = self.comparison()?;
            TransactionTest::Compare(operator, self.term()?)
        };
        Ok(TransactionCondition { reference, test })
    }

    /// Returns true if a term of a transaction's condition may end before the token at that distance.
    pub(super) fn ends_condition_term(&self, distance: usize) -> bool {
        self.in_transaction
            && (self.has_word_at(distance, "THEN") || comparison_of(self.kind_at(distance)).is_some())
    }

    /// Parses writes, each with its semicolon. `count` is the number of writes of the transaction so far.
    fn writes(&mut self, writes: &mut Vec<Located<Modification>>, count: &mut usize) -> Parsed<()> {
        while matches!(self.kind(), Kind::Insert | Kind::Update | Kind::Delete) {
            check_count(*count)?;
            *count += 1;
            if self.begins_insert_rows() {
                return Err(CqlError::invalid(
                    "INSERT … ROWS cannot be in a transaction: send it as a statement of its own",
                ));
            }
            writes.push(self.located(Self::modification)?);
            self.expect(Kind::Semicolon)?;
        }
        Ok(())
    }

    fn ends_transaction(&self) -> bool {
        (self.has_word_at(0, "COMMIT") || self.has_word_at(0, "END")) && self.has_word_at(1, "TRANSACTION")
    }

    fn end_transaction(&mut self, is_conditional: bool) -> Parsed<()> {
        if self.ends_transaction() {
            self.advance();
            self.advance();
            return Ok(());
        }
        if !is_conditional && self.has_word_at(0, "END") && self.kind_at(1) == Kind::If {
            return Err(self.failed_predicate("batchTxnStatement", "isTxnConditional"));
        }
        Err(self.no_viable())
    }

    /// Parses a statement, and notes where it begins.
    fn located<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<Located<T>> {
        let start = self.token_at(self.position).start as usize;
        let (line, column) = line_and_column(self.text, start);
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Ok(Located {
            statement: parse(self)?,
            line: number(line),
            column: number(column + 1),
        })
    }
}

/// Refuses more statements or conditions than a batch may have.
fn check_count(count: usize) -> Parsed<()> {
    match count < MAX_BATCH_STATEMENTS {
        true => Ok(()),
        false => Err(CqlError::invalid(format!(
            "Too many statements in a transaction: {MAX_BATCH_STATEMENTS} are allowed"
        ))),
    }
}

/// Returns the operator for exchanged operands.
fn mirrored(operator: Operator) -> Operator {
    match operator {
        Operator::Lt => Operator::Gt,
        Operator::Lte => Operator::Gte,
        Operator::Gt => Operator::Lt,
        Operator::Gte => Operator::Lte,
        other => other,
    }
}

#[cfg(test)]
#[path = "transaction_tests.rs"]
mod tests;
