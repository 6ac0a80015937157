//! Constraints of columns (CHECK): the conditions that written values must meet. They are checked when a statement writes.

use std::fmt;

use bytes::Bytes;
use helenus_cql::ast::Operator;
use helenus_cql::error::CqlError;
use helenus_cql::identifier::{quote_identifier, quote_text};
use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value;
use regex::Regex;

/// The kind of a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstraintKind {
    NotNull,
    /// A comparison of the value itself.
    Compare,
    Length,
    OctetLength,
    Json,
    Regexp,
}

impl ConstraintKind {
    const ALL: [ConstraintKind; 6] = [
        ConstraintKind::NotNull,
        ConstraintKind::Compare,
        ConstraintKind::Length,
        ConstraintKind::OctetLength,
        ConstraintKind::Json,
        ConstraintKind::Regexp,
    ];

    /// Returns the name of the kind's function, also in stored schemas.
    pub fn name(self) -> &'static str {
        match self {
            ConstraintKind::NotNull => "NOT_NULL",
            ConstraintKind::Compare => "COMPARE",
            ConstraintKind::Length => "LENGTH",
            ConstraintKind::OctetLength => "OCTET_LENGTH",
            ConstraintKind::Json => "JSON",
            ConstraintKind::Regexp => "REGEXP",
        }
    }

    /// Returns the kind of that name. `None` if there is no such kind.
    pub fn named(name: &str) -> Option<ConstraintKind> {
        ConstraintKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The value that a constraint compares with.
#[derive(Clone, Debug)]
enum Bound {
    None,
    /// A value of the column's type.
    Value(Bytes),
    Length(i32),
    Pattern(Regex),
}

/// A condition on the values of a column.
#[derive(Clone, Debug)]
pub struct Constraint {
    pub kind: ConstraintKind,
    /// The comparison, and its right side as written. `None` for constraints without one.
    pub comparison: Option<(Operator, String)>,
    bound: Bound,
}

impl PartialEq for Constraint {
    fn eq(&self, other: &Constraint) -> bool {
        self.kind == other.kind && self.comparison == other.comparison
    }
}

impl Constraint {
    /// Returns a constraint on a column of that name and type.
    ///
    /// # Errors
    /// The right side of the comparison is no number, or no regular expression.
    pub fn new(
        column: &str,
        ty: &CqlType,
        kind: ConstraintKind,
        comparison: Option<(Operator, String)>,
    ) -> Result<Constraint, CqlError> {
        let numbers = |term: &str| CqlError::invalid(format!("{column} and {term} need to be numbers."));
        let bound = match (kind, &comparison) {
            (ConstraintKind::Compare, Some((_, term))) => {
                Bound::Value(value::from_string(ty, term).map_err(|_| numbers(term))?)
            }
            (ConstraintKind::Length | ConstraintKind::OctetLength, Some((_, term))) => {
                Bound::Length(term.parse().map_err(|_| numbers(term))?)
            }
            (ConstraintKind::Regexp, Some((_, term))) => Bound::Pattern(whole_pattern(term)?),
            _ => Bound::None,
        };
        Ok(Constraint {
            kind,
            comparison,
            bound,
        })
    }

    /// Checks a value of the column of that name and type. `None` is null.
    ///
    /// # Errors
    /// The value does not meet the condition.
    pub fn check(&self, column: &str, ty: &CqlType, value: Option<&[u8]>) -> Result<(), CqlError> {
        let Some(value) = value else {
            return match self.kind {
                ConstraintKind::NotNull => Err(null(column)),
                _ => Ok(()),
            };
        };
        if value.is_empty() && value::is_empty_meaningless(ty) {
            return Err(CqlError::invalid(format!(
                "Column value does not satisfy value constraint for column '{}' as it is null.",
                quote_identifier(column)
            )));
        }
        let (operator, term) = match &self.comparison {
            Some((operator, term)) => (*operator, term.as_str()),
            None => (Operator::Eq, ""),
        };
        let met = match &self.bound {
            Bound::None => self.kind != ConstraintKind::Json || is_json(value),
            Bound::Value(bound) => operator.accepts(value::compare(ty, value, bound)),
            Bound::Length(bound) => operator.accepts(self.length(ty, value).cmp(&i64::from(*bound))),
            Bound::Pattern(pattern) => {
                let is_match = std::str::from_utf8(value).is_ok_and(|text| pattern.is_match(text));
                is_match == (operator == Operator::Eq)
            }
        };
        if met {
            return Ok(());
        }
        let (name, symbol) = (quote_identifier(column), operator.symbol());
        Err(CqlError::invalid(match self.kind {
            ConstraintKind::Json => {
                format!("Value for column '{name}' violated JSON constraint as it is not a valid JSON.")
            }
            ConstraintKind::Regexp if operator == Operator::Eq => {
                format!("Value does not match regular expression {}", quote_text(term))
            }
            ConstraintKind::Regexp => {
                format!("Value does match regular expression {}", quote_text(term))
            }
            ConstraintKind::Length | ConstraintKind::OctetLength => format!(
                "Column value does not satisfy value constraint for column '{name}'. \
                 It has a length of {} and it should be {symbol} {term}",
                self.length(ty, value)
            ),
            ConstraintKind::Compare | ConstraintKind::NotNull => format!(
                "Column value does not satisfy value constraint for column '{name}'. \
                 It should be {name} {symbol} {term}"
            ),
        }))
    }

    /// Returns the length of a value: text in UTF-16 code units for LENGTH, and bytes otherwise.
    fn length(&self, ty: &CqlType, value: &[u8]) -> i64 {
        let is_text = matches!(ty, CqlType::Native(NativeType::Text | NativeType::Ascii));
        let length = match self.kind == ConstraintKind::Length && is_text {
            true => String::from_utf8_lossy(value).encode_utf16().count(),
            false => value.len(),
        };
        i64::try_from(length).unwrap_or(i64::MAX)
    }

    /// Returns the condition in CQL.
    pub fn to_cql(&self, column: &str) -> String {
        let left = match self.kind {
            ConstraintKind::NotNull => return "NOT NULL".to_owned(),
            ConstraintKind::Compare => quote_identifier(column),
            kind => format!("{}()", kind.name()),
        };
        match &self.comparison {
            Some((operator, term)) if self.kind == ConstraintKind::Regexp => {
                format!("{left} {} {}", operator.symbol(), quote_text(term))
            }
            Some((operator, term)) => format!("{left} {} {term}", operator.symbol()),
            None => left,
        }
    }
}

impl fmt::Display for ConstraintKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns the error for a null in a column with NOT NULL.
pub(crate) fn null(column: &str) -> CqlError {
    CqlError::invalid(format!("Column '{column}' can not be set to null."))
}

/// Returns the error for a statement without a value for a column with NOT NULL.
pub(crate) fn missing(column: &str) -> CqlError {
    CqlError::invalid(format!(
        "Column '{column}' has to be specified as part of this query."
    ))
}

/// Returns a pattern that matches whole texts only.
fn whole_pattern(text: &str) -> Result<Regex, CqlError> {
    Regex::new(&format!("^(?:{text})$"))
        .map_err(|_| CqlError::invalid(format!("String '{text}' is not a valid regular expression")))
}

fn is_json(value: &[u8]) -> bool {
    std::str::from_utf8(value).is_ok_and(|text| value::parse_json(text).is_ok())
}
