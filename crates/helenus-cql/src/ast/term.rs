//! Terms: values as statements write them (Cassandra's `Term.Raw`).

use std::cmp::Ordering;

use super::{FunctionName, Ident, RowReference, TypeName};
use crate::types::NativeType;

/// The form of a constant (Cassandra's `Constants.Type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LiteralKind {
    String,
    Integer,
    Uuid,
    /// A float. `NaN`, `Infinity` and `-Infinity` are also floats, and their text is normalised to these spellings.
    Float,
    Boolean,
    /// A blob, whose text begins with `0x` or `0X`.
    Hex,
    Duration,
}

/// A constant. The text is as written, except for a string, whose text has no quotes and no escapes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Literal {
    pub kind: LiteralKind,
    pub text: String,
}

/// An operator between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArithmeticOperator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl ArithmeticOperator {
    pub fn symbol(self) -> char {
        match self {
            ArithmeticOperator::Add => '+',
            ArithmeticOperator::Subtract => '-',
            ArithmeticOperator::Multiply => '*',
            ArithmeticOperator::Divide => '/',
            ArithmeticOperator::Modulo => '%',
        }
    }

    /// Returns the native function that the operator stands for (Cassandra's `OperationFcts`).
    pub fn function_name(self) -> &'static str {
        match self {
            ArithmeticOperator::Add => "_add",
            ArithmeticOperator::Subtract => "_substract",
            ArithmeticOperator::Multiply => "_multiply",
            ArithmeticOperator::Divide => "_divide",
            ArithmeticOperator::Modulo => "_modulo",
        }
    }
}

/// A value, or an expression that computes one from constants and bound values.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    Null,
    Literal(Literal),
    /// A bind marker, by its index in [`super::ParsedStatement::bind_markers`].
    Marker(usize),
    /// `[1, 2]`: a list or a vector.
    List(Vec<Term>),
    /// `{1, 2}`. Empty for `{}`, which may also be an empty map.
    Set(Vec<Term>),
    Map(Vec<(Term, Term)>),
    /// `{a: 1, b: 2}`, in the order written. Each field occurs once. If a field was written twice, the last value is kept.
    UserType(Vec<(Ident, Term)>),
    /// `(1, 2)`. `(1)` is a tuple of one element.
    Tuple(Vec<Term>),
    Function {
        name: FunctionName,
        args: Vec<Term>,
    },
    /// `(int) 1`
    TypeHint {
        ty: TypeName,
        term: Box<Term>,
    },
    /// `CAST(1 AS text)`
    Cast {
        term: Box<Term>,
        ty: NativeType,
    },
    Operation {
        operator: ArithmeticOperator,
        left: Box<Term>,
        right: Box<Term>,
    },
    Negation(Box<Term>),
    /// `a.x`: a value that a transaction has read. Only written values of a transaction have this form.
    Reference(Box<RowReference>),
}

/// Operators of relations and conditions (Cassandra's `Operator`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    Eq,
    Lt,
    Lte,
    Gt,
    Gte,
    Neq,
    In,
    Contains,
    ContainsKey,
    Like,
    IsNot,
    Between,
    NotIn,
    NotContains,
    NotContainsKey,
}

impl Operator {
    /// Returns true if values in that order pass the comparison. False for operators that are no comparisons.
    pub fn accepts(self, order: Ordering) -> bool {
        match self {
            Operator::Eq => order.is_eq(),
            Operator::Neq => order.is_ne(),
            Operator::Lt => order.is_lt(),
            Operator::Lte => order.is_le(),
            Operator::Gt => order.is_gt(),
            Operator::Gte => order.is_ge(),
            Operator::In
            | Operator::NotIn
            | Operator::Between
            | Operator::Contains
            | Operator::ContainsKey
            | Operator::NotContains
            | Operator::NotContainsKey
            | Operator::Like
            | Operator::IsNot => false,
        }
    }

    /// Returns the operator as Cassandra's messages show it.
    pub fn symbol(self) -> &'static str {
        match self {
            Operator::Eq => "=",
            Operator::Lt => "<",
            Operator::Lte => "<=",
            Operator::Gt => ">",
            Operator::Gte => ">=",
            Operator::Neq => "!=",
            Operator::In => "IN",
            Operator::Contains => "CONTAINS",
            Operator::ContainsKey => "CONTAINS KEY",
            Operator::Like => "LIKE",
            Operator::IsNot => "IS NOT",
            Operator::Between => "BETWEEN",
            Operator::NotIn => "NOT IN",
            Operator::NotContains => "NOT CONTAINS",
            Operator::NotContainsKey => "NOT CONTAINS KEY",
        }
    }

    /// Returns the comparison with that symbol. `None` if the text is no comparison.
    pub fn comparison(symbol: &str) -> Option<Operator> {
        use Operator::{Eq, Gt, Gte, Lt, Lte, Neq};
        [Eq, Neq, Lt, Lte, Gt, Gte]
            .into_iter()
            .find(|operator| operator.symbol() == symbol)
    }

    /// Returns true for `<`, `<=`, `>` and `>=`.
    pub fn is_slice(self) -> bool {
        matches!(self, Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte)
    }
}

/// The right side of IN.
#[derive(Clone, Debug, PartialEq)]
pub enum InValues {
    /// `IN ?`: the index of the marker, whose type is a list.
    Marker(usize),
    /// `IN (1, ?, 3)`. For several columns, each value is a tuple or a marker for one.
    Values(Vec<Term>),
}
