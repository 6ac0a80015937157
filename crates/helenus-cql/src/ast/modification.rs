//! INSERT, UPDATE, DELETE and BATCH.

use super::{Ident, InValues, Operator, QualifiedName, Relation, Term};

/// The USING clause. Both are integer literals or markers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UsingClause {
    pub timestamp: Option<Term>,
    pub ttl: Option<Term>,
}

/// The IF clause of a modification.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum IfClause {
    #[default]
    None,
    Exists,
    NotExists,
    Conditions(Vec<Condition>),
}

/// One condition of an IF clause.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub column: Ident,
    pub target: ConditionTarget,
    pub test: ConditionTest,
}

/// What of the column a condition looks at.
#[derive(Clone, Debug, PartialEq)]
pub enum ConditionTarget {
    Column,
    /// `m['k']`, `l[1]`
    Element(Term),
    /// `u.field`
    Field(Ident),
}

/// How a condition compares.
#[derive(Clone, Debug, PartialEq)]
pub enum ConditionTest {
    /// A comparison, or (for whole columns only) CONTAINS and CONTAINS KEY.
    Compare(Operator, Term),
    In(InValues),
}

/// `INSERT INTO table (columns) VALUES (values)`. The numbers of columns and values may differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    pub table: QualifiedName,
    pub columns: Vec<Ident>,
    pub values: Vec<Term>,
    pub if_not_exists: bool,
    pub using: UsingClause,
}

/// The document of INSERT JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonValue {
    Text(String),
    Marker(usize),
}

/// `INSERT INTO table JSON '...' [DEFAULT NULL | UNSET]`
#[derive(Clone, Debug, PartialEq)]
pub struct InsertJson {
    pub table: QualifiedName,
    pub json: JsonValue,
    /// DEFAULT UNSET: columns that the document lacks are left as they are instead of deleted.
    pub default_unset: bool,
    pub if_not_exists: bool,
    pub using: UsingClause,
}

/// One assignment of an UPDATE.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    pub column: Ident,
    pub operation: AssignmentOperation,
}

/// What an assignment does (Cassandra's `Operation.RawUpdate`).
#[derive(Clone, Debug, PartialEq)]
pub enum AssignmentOperation {
    /// `c = v`
    Set(Term),
    /// `c = c + v`, `c += v`. `c = c - 3` is `Add(-3)`, as the lexer takes `-3` for one number.
    Add(Term),
    /// `c = c - v`, `c -= v`
    Subtract(Term),
    /// `c = v + c`
    Prepend(Term),
    /// `c[k] = v`
    SetElement { key: Term, value: Term },
    /// `c.field = v`
    SetField { field: Ident, value: Term },
}

/// `UPDATE table SET ... WHERE ...`
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub table: QualifiedName,
    pub using: UsingClause,
    pub assignments: Vec<Assignment>,
    pub relations: Vec<Relation>,
    /// Never [`IfClause::NotExists`].
    pub condition: IfClause,
}

/// What of a row a DELETE names.
#[derive(Clone, Debug, PartialEq)]
pub enum Deletion {
    Column(Ident),
    /// `m['k']`
    Element {
        column: Ident,
        element: Term,
    },
    /// `u.field`
    Field {
        column: Ident,
        field: Ident,
    },
}

/// `DELETE ... FROM table WHERE ...`
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    pub table: QualifiedName,
    /// Empty when whole rows are deleted.
    pub deletions: Vec<Deletion>,
    /// Only the timestamp can be given.
    pub using: UsingClause,
    pub relations: Vec<Relation>,
    /// Never [`IfClause::NotExists`].
    pub condition: IfClause,
}

/// Kind of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BatchKind {
    Logged,
    Unlogged,
    Counter,
}

/// `BEGIN BATCH ... APPLY BATCH`; may be empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    pub kind: BatchKind,
    pub using: UsingClause,
    pub statements: Vec<Modification>,
}

/// A statement that may stand in a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum Modification {
    Insert(Insert),
    InsertJson(InsertJson),
    Update(Update),
    Delete(Delete),
}
