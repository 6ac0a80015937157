//! SELECT and its clauses.

use std::time::Duration;

use super::{ArithmeticOperator, FunctionName, Ident, InValues, Operator, QualifiedName, Term, TypeName};
use crate::types::NativeType;

/// The state in history that a statement reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsOf {
    /// The name of a snapshot.
    Snapshot(String),
    /// A time, written as a literal of type timestamp.
    Time(String),
}

/// `SELECT ... FROM table ...`
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    pub table: QualifiedName,
    /// The state in history that is read (`AS OF`, which Cassandra does not have). `None` for the current state.
    pub as_of: Option<AsOf>,
    pub json: bool,
    pub distinct: bool,
    /// The selected items. Empty for `*`.
    pub items: Vec<SelectItem>,
    pub relations: Vec<Relation>,
    pub group_by: Vec<Selector>,
    pub order_by: Vec<Ordering>,
    /// An integer literal or a marker.
    pub per_partition_limit: Option<Term>,
    /// An integer literal or a marker.
    pub limit: Option<Term>,
    pub allow_filtering: bool,
    /// The time after which the statement fails (`USING TIMEOUT`, which Cassandra does not have).
    pub timeout: Option<Duration>,
}

/// One selector of the select clause, with its alias.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectItem {
    pub selector: Selector,
    pub alias: Option<Ident>,
}

/// The attribute of a cell that is selected.
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

/// An expression of a select clause (Cassandra's `Selectable.Raw`).
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
        /// The column or a part of it: fields, elements, slices.
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
    /// `m['a'..'b']`. One of the ends may be open.
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
    /// `(a, b)`, a tuple. `(a)` is a selector in parentheses or a tuple of one, depending on the types.
    ParenthesesOrTuple(Vec<Selector>),
    /// `[a, b]`: a list or a vector.
    List(Vec<Selector>),
    /// `{a, b}`. Empty for `{}`, which may also be an empty map.
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
    /// `column = term`. Other operators are `<`, `<=`, `>`, `>=`, `!=`, LIKE, `[NOT] CONTAINS` and `[NOT] CONTAINS KEY`.
    Column {
        column: Ident,
        operator: Operator,
        term: Term,
    },
    /// `column [NOT] IN (...)`
    ColumnIn {
        column: Ident,
        is_negated: bool,
        values: InValues,
    },
    /// `column IS NOT NULL`
    IsNotNull { column: Ident },
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
    /// `(a, b) > (1, 2)`. The term is a tuple literal or a marker.
    Tuple {
        columns: Vec<Ident>,
        operator: Operator,
        term: Term,
    },
    /// `(a, b) [NOT] IN (...)`
    TupleIn {
        columns: Vec<Ident>,
        is_negated: bool,
        values: InValues,
    },
    /// `compared BETWEEN first AND second`. The bounds are inclusive, and may be in any order.
    Between {
        compared: Compared,
        first: Term,
        second: Term,
    },
    /// `expr(index, term)`
    CustomIndex { index: QualifiedName, term: Term },
}

/// The left side of BETWEEN.
#[derive(Clone, Debug, PartialEq)]
pub enum Compared {
    Column(Ident),
    /// Clustering columns that are compared as a tuple. The bounds are tuple literals or markers.
    Tuple(Vec<Ident>),
    /// `token(a, b)`
    Token(Vec<Ident>),
}

/// One element of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordering {
    pub column: Ident,
    /// `ORDER BY column ANN OF term`
    pub ann_of: Option<Term>,
    pub descending: bool,
}
