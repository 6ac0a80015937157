//! SELECT and its clauses.

use std::time::Duration;

use super::{ArithmeticOperator, FunctionName, Ident, InValues, Operator, QualifiedName, Term, TypeName};
use crate::types::NativeType;

/// What of the past a statement is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsOf {
    /// The name of a snapshot.
    Snapshot(String),
    /// A time, as a literal of type timestamp has it.
    Time(String),
}

/// `SELECT ... FROM table ...`
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    pub table: QualifiedName,
    /// The past that is read (`AS OF`, which Cassandra does not have).
    pub as_of: Option<AsOf>,
    pub json: bool,
    pub distinct: bool,
    /// Empty for `*`.
    pub items: Vec<SelectItem>,
    pub relations: Vec<Relation>,
    pub group_by: Vec<Selector>,
    pub order_by: Vec<Ordering>,
    /// An integer literal or a marker.
    pub per_partition_limit: Option<Term>,
    /// An integer literal or a marker.
    pub limit: Option<Term>,
    pub allow_filtering: bool,
    /// After which it is given up (`USING TIMEOUT`, which Cassandra does not have).
    pub timeout: Option<Duration>,
}

/// One selector of the select clause, and its alias.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectItem {
    pub selector: Selector,
    pub alias: Option<Ident>,
}

/// Which of a cell's attributes is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CellAttribute {
    WriteTime,
    MaxWriteTime,
    Ttl,
}

impl CellAttribute {
    /// Returns the function's name, as in the names of result columns.
    pub fn name(self) -> &'static str {
        match self {
            CellAttribute::WriteTime => "writetime",
            CellAttribute::MaxWriteTime => "maxwritetime",
            CellAttribute::Ttl => "ttl",
        }
    }
}

/// What a SELECT may select (Cassandra's `Selectable.Raw`).
#[derive(Clone, Debug, PartialEq)]
pub enum Selector {
    Column(Ident),
    /// A constant, NULL or a bind marker.
    Term(Term),
    /// `count(*)`, or `count` of a constant.
    CountRows,
    /// `writetime(v)`, `ttl(m['k'])`, `maxwritetime(m['a'..'b'])`, `writetime(u.field)`
    CellAttribute {
        attribute: CellAttribute,
        column: Ident,
        /// The column, or what is taken of it: fields, elements, slices.
        selected: Box<Selector>,
    },
    Function {
        name: FunctionName,
        args: Vec<Selector>,
    },
    /// `CAST(v AS text)`
    Cast {
        selector: Box<Selector>,
        ty: NativeType,
    },
    /// `u.field`
    Field {
        receiver: Box<Selector>,
        field: Ident,
    },
    /// `m['k']`
    Element {
        receiver: Box<Selector>,
        element: Term,
    },
    /// `m['a'..'b']`, either end open but not both.
    Slice {
        receiver: Box<Selector>,
        from: Option<Term>,
        to: Option<Term>,
    },
    /// `(int) v`
    TypeHint {
        ty: TypeName,
        selector: Box<Selector>,
    },
    /// `(a, b)`, a tuple; `(a)` may be a selector in parentheses or a tuple of one, as the types will tell.
    ParenthesesOrTuple(Vec<Selector>),
    /// `[a, b]`: a list or a vector.
    List(Vec<Selector>),
    /// `{a, b}`; empty for `{}`, which may also stand for an empty map.
    Set(Vec<Selector>),
    /// `{k: v}`: a map or a user type.
    MapOrUserType(Vec<(Selector, Selector)>),
    Operation {
        operator: ArithmeticOperator,
        left: Box<Selector>,
        right: Box<Selector>,
    },
    Negation(Box<Selector>),
}

/// One relation of a WHERE clause.
#[derive(Clone, Debug, PartialEq)]
pub enum Relation {
    /// `column = term`, also with `<`, `<=`, `>`, `>=`, `!=`, LIKE, CONTAINS, CONTAINS KEY.
    Column {
        column: Ident,
        operator: Operator,
        term: Term,
    },
    ColumnIn {
        column: Ident,
        values: InValues,
    },
    /// `column IS NOT NULL`
    IsNotNull {
        column: Ident,
    },
    /// `m['k'] = term`
    Element {
        column: Ident,
        key: Term,
        operator: Operator,
        term: Term,
    },
    /// `token(a, b) > term`
    Token {
        columns: Vec<Ident>,
        operator: Operator,
        term: Term,
    },
    /// `(a, b) > (1, 2)`; the term is a tuple literal or a marker.
    Tuple {
        columns: Vec<Ident>,
        operator: Operator,
        term: Term,
    },
    TupleIn {
        columns: Vec<Ident>,
        values: InValues,
    },
    /// `expr(index, term)`
    CustomIndex {
        index: QualifiedName,
        term: Term,
    },
}

/// One element of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordering {
    pub column: Ident,
    /// `ORDER BY column ANN OF term`
    pub ann_of: Option<Term>,
    pub descending: bool,
}
