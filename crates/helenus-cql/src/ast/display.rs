//! Terms and selectors as Cassandra shows them: in messages, and as names of result columns.

use std::fmt::{self, Display, Formatter};

use super::map_order::hash_map_order;
use super::{FunctionName, Literal, LiteralKind, ReferencePart, RowReference, Selector, Term};
use crate::identifier::{quote_identifier, quote_qualified, quote_text};
use crate::types::NativeType;

impl Display for Literal {
    /// Writes the constant. Strings are in single quotes, but without escapes (Cassandra's `Constants.Literal.getText`). `{:#}` writes
    /// escapes, so that the text can be parsed.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.kind {
            LiteralKind::String if f.alternate() => f.write_str(&quote_text(&self.text)),
            LiteralKind::String => write!(f, "'{}'", self.text),
            _ => f.write_str(&self.text),
        }
    }
}

impl Display for Term {
    /// Writes the term as Cassandra's `Term.Raw.getText`.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Term::Null => f.write_str("NULL"),
            Term::Literal(literal) => literal.fmt(f),
            Term::Marker(_) => f.write_str("?"),
            Term::List(elements) => list(f, "[", elements, "]"),
            Term::Set(elements) => list(f, "{", elements, "}"),
            Term::Tuple(elements) => list(f, "(", elements, ")"),
            Term::Map(entries) => pairs(f, entries.iter().map(|(key, value)| (key, value))),
            Term::UserType(fields) => {
                let ordered = hash_map_order(fields);
                pairs(f, ordered.into_iter().map(|(field, value)| (field, value)))
            }
            Term::Function { name, args } => {
                f.write_str(&name.to_cql())?;
                list(f, "(", args, ")")
            }
            Term::TypeHint { ty, term } => {
                write!(f, "({ty})")?;
                term.fmt(f)
            }
            Term::Cast { term, ty } => {
                write!(f, "system.{}", cast_function(*ty))?;
                list(f, "(", &[term], ")")
            }
            Term::Operation {
                operator,
                left,
                right,
            } => {
                write!(f, "system.\"{}\"", operator.function_name())?;
                list(f, "(", &[left, right], ")")
            }
            Term::Negation(term) => {
                f.write_str("system.\"_negate\"")?;
                list(f, "(", &[term], ")")
            }
            Term::Reference(reference) => reference.fmt(f),
        }
    }
}

impl Display for RowReference {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.row.fmt(f)?;
        if let Some(column) = &self.column {
            write!(f, ".{column}")?;
        }
        match &self.part {
            ReferencePart::Whole => Ok(()),
            ReferencePart::Element(element) => {
                f.write_str("[")?;
                element.fmt(f)?;
                f.write_str("]")
            }
            ReferencePart::Field(field) => write!(f, ".{field}"),
        }
    }
}

/// Returns the name of the native function of a CAST (Cassandra's `CastFcts`).
pub fn cast_function(ty: NativeType) -> String {
    format!("cast_as_{}", ty.name())
}

impl FunctionName {
    /// Returns the name as CQL text, quoted where necessary.
    pub fn to_cql(&self) -> String {
        let is_native = self.keyspace.as_ref().is_none_or(|keyspace| keyspace == "system");
        if is_native && self.name.0 == "token" {
            return "token".to_owned();
        }
        match &self.keyspace {
            Some(keyspace) => quote_qualified(&keyspace.0, &self.name.0),
            None => quote_identifier(&self.name.0),
        }
    }

    /// Returns the name as result columns show it. A name without a keyspace is taken for that of a native function.
    fn in_column_name(&self) -> String {
        match &self.keyspace {
            Some(_) => self.to_string(),
            None => format!("system.{self}"),
        }
    }
}

impl Selector {
    /// Returns the name of the result column for a selector without an alias (Cassandra's `Selector.Factory.getColumnName`). Functions
    /// without a keyspace are taken for native ones.
    pub fn column_name(&self) -> String {
        match self {
            Selector::Column(column) => column.0.clone(),
            _ => ColumnName(self).to_string(),
        }
    }
}

struct ColumnName<'a>(&'a Selector);

impl Display for ColumnName<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Selector::Column(column) => f.write_str(&column.0),
            Selector::Term(term) => term.fmt(f),
            Selector::CountRows => f.write_str("count"),
            Selector::CellAttribute {
                attribute, selected, ..
            } => write!(f, "{}({})", attribute.name(), ColumnName(selected)),
            Selector::Function { name, args } => {
                f.write_str(&name.in_column_name())?;
                names(f, "(", args, ")")
            }
            Selector::Cast { selector, ty } => write!(f, "cast({} as {})", ColumnName(selector), ty.name()),
            Selector::Field { receiver, field } => write!(f, "{}.{field}", ColumnName(receiver)),
            Selector::Element { receiver, element } => write!(f, "{}[{element}]", ColumnName(receiver)),
            Selector::Slice { receiver, from, to } => {
                write!(f, "{}[", ColumnName(receiver))?;
                if let Some(from) = from {
                    write!(f, "{from}")?;
                }
                f.write_str("..")?;
                if let Some(to) = to {
                    write!(f, "{to}")?;
                }
                f.write_str("]")
            }
            Selector::TypeHint { ty, selector } => write!(f, "({ty}){}", ColumnName(selector)),
            Selector::ParenthesesOrTuple(selectors) => names(f, "(", selectors, ")"),
            Selector::List(selectors) => names(f, "[", selectors, "]"),
            Selector::Set(selectors) => names(f, "{", selectors, "}"),
            Selector::MapOrUserType(entries) => pairs(
                f,
                entries
                    .iter()
                    .map(|(key, value)| (ColumnName(key), ColumnName(value))),
            ),
            Selector::Operation {
                operator,
                left,
                right,
            } => write!(
                f,
                "{} {} {}",
                ColumnName(left),
                operator.symbol(),
                ColumnName(right)
            ),
            Selector::Negation(selector) => write!(f, "-{}", ColumnName(selector)),
        }
    }
}

fn names(f: &mut Formatter<'_>, open: &str, selectors: &[Selector], close: &str) -> fmt::Result {
    f.write_str(open)?;
    for (position, selector) in selectors.iter().enumerate() {
        if position > 0 {
            f.write_str(", ")?;
        }
        ColumnName(selector).fmt(f)?;
    }
    f.write_str(close)
}

fn list<T: Display>(f: &mut Formatter<'_>, open: &str, elements: &[T], close: &str) -> fmt::Result {
    f.write_str(open)?;
    for (position, element) in elements.iter().enumerate() {
        if position > 0 {
            f.write_str(", ")?;
        }
        element.fmt(f)?;
    }
    f.write_str(close)
}

fn pairs<K: Display, V: Display>(
    f: &mut Formatter<'_>,
    entries: impl Iterator<Item = (K, V)>,
) -> fmt::Result {
    f.write_str("{")?;
    for (position, (key, value)) in entries.enumerate() {
        if position > 0 {
            f.write_str(", ")?;
        }
        key.fmt(f)?;
        f.write_str(": ")?;
        value.fmt(f)?;
    }
    f.write_str("}")
}
