//! BEGIN TRANSACTION, as in Cassandra 6.

use super::{Ident, Modification, Operator, QualifiedName, Select, Term};

/// `BEGIN TRANSACTION ... COMMIT TRANSACTION`
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// The LET assignments, in the order written.
    pub assignments: Vec<LetAssignment>,
    pub returning: Returning,
    /// The IF block and its ELSE IF blocks. Empty if the transaction has no condition.
    pub branches: Vec<ConditionalWrites>,
    /// The writes of ELSE. Empty without ELSE.
    pub otherwise: Vec<Located<Modification>>,
    /// The writes outside of IF, which do not depend on its conditions.
    pub unconditional: Vec<Located<Modification>>,
}

/// A statement with the position at which it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Located<T> {
    pub statement: T,
    /// Line, beginning with 1.
    pub line: u32,
    /// Column, beginning with 1.
    pub column: u32,
}

/// `LET name = (SELECT ...)`
#[derive(Clone, Debug, PartialEq)]
pub struct LetAssignment {
    pub name: Ident,
    pub select: Located<Select>,
}

/// The answer of a transaction.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Returning {
    #[default]
    Nothing,
    Select(Box<Located<Select>>),
    /// `SELECT a.x, b.y;`. One row.
    References(Vec<RowReference>),
}

/// The writes of IF or ELSE IF.
#[derive(Clone, Debug, PartialEq)]
pub struct ConditionalWrites {
    /// Conditions that must all hold. Never empty.
    pub conditions: Vec<TransactionCondition>,
    pub writes: Vec<Located<Modification>>,
}

/// One condition of a transaction. A condition written as `5 < a.x` is the same as `a.x > 5`.
#[derive(Clone, Debug, PartialEq)]
pub struct TransactionCondition {
    pub reference: RowReference,
    pub test: TransactionTest,
}

/// The test of a condition.
#[derive(Clone, Debug, PartialEq)]
pub enum TransactionTest {
    IsNull,
    IsNotNull,
    /// `=`, `<`, `<=`, `>`, `>=` or `!=`.
    Compare(Operator, Term),
}

/// A reference to a row that LET has read, or to a part of that row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowReference {
    pub row: Ident,
    /// `None` for the whole row.
    pub column: Option<Ident>,
    pub part: ReferencePart,
}

/// The part of a referenced column.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ReferencePart {
    #[default]
    Whole,
    /// `a.m['k']`, `a.l[0]`
    Element(Box<Term>),
    /// `a.u.field`
    Field(Ident),
}

impl Transaction {
    /// Returns all writes: those of the branches, of ELSE, and without a condition.
    pub fn writes(&self) -> impl Iterator<Item = &Located<Modification>> {
        let branches = self.branches.iter().flat_map(|branch| &branch.writes);
        branches.chain(&self.otherwise).chain(&self.unconditional)
    }

    /// Returns the names of the tables of all statements.
    pub fn tables(&self) -> impl Iterator<Item = &QualifiedName> {
        let returned = match &self.returning {
            Returning::Select(select) => Some(&select.statement.table),
            Returning::Nothing | Returning::References(_) => None,
        };
        let read = self.assignments.iter().map(|one| &one.select.statement.table);
        let written = self.writes().map(|write| write.statement.table());
        read.chain(returned).chain(written)
    }
}
