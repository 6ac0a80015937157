//! Comparison of a stored value with the value of a condition.

use helenus_cql::ast::Operator;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value;

use super::invalid;

/// The value that a condition tests.
pub(crate) struct Target<'v> {
    pub ty: &'v CqlType,
    pub value: Option<&'v [u8]>,
    /// True for a multi-cell collection. Without cells it is both null and empty.
    pub is_multicell: bool,
}

impl Target<'_> {
    pub fn equals(&self, bound: Option<&[u8]>) -> Result<bool, CqlError> {
        match bound {
            Some(bound) => self.compare(Operator::Eq, bound),
            None => self.compare_null(Operator::Eq),
        }
    }

    pub fn compare_null(&self, operator: Operator) -> Result<bool, CqlError> {
        match operator {
            Operator::Eq => Ok(self.value.is_none()),
            Operator::Neq => Ok(self.value.is_some()),
            other => invalid(format!(
                "Invalid comparison with null for operator \"{}\"",
                other.symbol()
            )),
        }
    }

    pub fn compare(&self, operator: Operator, bound: &[u8]) -> Result<bool, CqlError> {
        if matches!(operator, Operator::Contains | Operator::ContainsKey) {
            return self.contains(operator, bound);
        }
        const EMPTY: &[u8] = &[0; 4];
        let is_empty = self.is_multicell && bound == EMPTY;
        if is_empty && operator.is_slice() {
            return invalid(format!(
                "Invalid comparison with an empty {} for operator \"{}\"",
                collection_kind(self.ty),
                operator.symbol()
            ));
        }
        let Some(value) = self.value else {
            // A multi-cell collection without cells equals an empty one.
            return Ok(match operator {
                Operator::Eq => is_empty,
                Operator::Neq => !is_empty,
                _ => false,
            });
        };
        Ok(operator.accepts(value::compare(self.ty, value, bound)))
    }

    fn contains(&self, operator: Operator, bound: &[u8]) -> Result<bool, CqlError> {
        let Some(value) = self.value else { return Ok(false) };
        let equal = |ty: &CqlType, part: &[u8]| value::compare(ty, part, bound).is_eq();
        Ok(match self.ty {
            CqlType::Map {
                key, value: mapped, ..
            } => {
                let entries = value::read_map(self.ty, value).map_err(CqlError::Invalid)?;
                entries.iter().any(|(k, v)| {
                    if operator == Operator::ContainsKey {
                        equal(key, k)
                    } else {
                        equal(mapped, v)
                    }
                })
            }
            CqlType::List { element, .. } | CqlType::Set { element, .. } => {
                let elements = value::read_elements(self.ty, value).map_err(CqlError::Invalid)?;
                elements.iter().any(|part| equal(element, part))
            }
            _ => false,
        })
    }
}

fn collection_kind(ty: &CqlType) -> &'static str {
    match ty {
        CqlType::List { .. } => "list",
        CqlType::Set { .. } => "set",
        _ => "map",
    }
}
