//! INSERT, UPDATE, DELETE and BATCH.

use super::{Ident, InValues, Operator, QualifiedName, Relation, Term};

/// The USING clause. Both values are integer literals or markers.
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

/// The part of a column that a condition tests.
#[derive(Clone, Debug, PartialEq)]
pub enum ConditionTarget {
    Column,
    /// `m['k']`, `l[1]`
    Element(Term),
    /// `u.field`
    Field(Ident),
}

/// The comparison of a condition.
#[derive(Clone, Debug, PartialEq)]
pub enum ConditionTest {
    /// A comparison. CONTAINS and CONTAINS KEY apply to whole columns only.
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
    /// True for DEFAULT UNSET: columns that the document lacks keep their values instead of being deleted.
    pub default_unset: bool,
    pub if_not_exists: bool,
    pub using: UsingClause,
}

/// `INSERT INTO table (columns) ROWS ? [WITHOUT CDC]`, an extension: rows with their timestamps, TTLs and deletions. No batch may contain it.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertRows {
    pub table: QualifiedName,
    /// The columns of the rows, without key columns. May be empty.
    pub columns: Vec<Ident>,
    /// The blob of the rows: a marker or a literal.
    pub rows: Term,
    /// True for WITHOUT CDC: the table's log of changes does not list the rows.
    pub without_cdc: bool,
}

/// One assignment of an UPDATE.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    pub column: Ident,
    pub operation: AssignmentOperation,
}

/// The operation of an assignment (Cassandra's `Operation.RawUpdate`).
#[derive(Clone, Debug, PartialEq)]
pub enum AssignmentOperation {
    /// `c = v`
    Set(Term),
    /// `c = c + v`, `c += v`. `c = c -3` is `Add(-3)`, as the lexer reads `-3` as one number.
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
    /// The condition. Never [`IfClause::NotExists`].
    pub condition: IfClause,
}

/// A part of a row that a DELETE names.
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
    /// The parts to delete. Empty if whole rows are deleted.
    pub deletions: Vec<Deletion>,
    /// The USING clause, which can only have a timestamp.
    pub using: UsingClause,
    pub relations: Vec<Relation>,
    /// The condition. Never [`IfClause::NotExists`].
    pub condition: IfClause,
}

/// Kind of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BatchKind {
    Logged,
    Unlogged,
    Counter,
}

/// `BEGIN BATCH ... APPLY BATCH`, which may be empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    pub kind: BatchKind,
    pub using: UsingClause,
    pub statements: Vec<Modification>,
}

/// A statement that a batch may contain.
#[derive(Clone, Debug, PartialEq)]
pub enum Modification {
    Insert(Insert),
    InsertJson(InsertJson),
    Update(Update),
    Delete(Delete),
}

impl Modification {
    /// Returns the name of the modified table.
    pub fn table(&self) -> &QualifiedName {
        match self {
            Modification::Insert(statement) => &statement.table,
            Modification::InsertJson(statement) => &statement.table,
            Modification::Update(statement) => &statement.table,
            Modification::Delete(statement) => &statement.table,
        }
    }
}
