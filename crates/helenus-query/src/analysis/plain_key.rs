//! Partition keys whose values stand in the request or in the statement as they are. Their token is known before anything is bound, so a
//! request can be routed by it.

use helenus_cql::types::CqlType;
use helenus_row::murmur3_token;
use smallvec::SmallVec;

use super::modification::ModificationPlan;
use super::restrictions::StatementRestrictions;
use super::select::SelectPlan;
use super::select::point_key::{Terms, terms};
use super::terms::Term;
use crate::request::BoundValue;
use crate::schema::{Table, TableKind};

/// Maximum length in bytes of a value that the fast path hashes. Longer keys take the general path, which knows the limits.
const VALUE_LEN_MAX: usize = 1024;

/// The terms of a partition key, all of them constants or markers, given by `=`.
#[derive(Debug)]
pub(crate) struct PlainKey(Terms);

impl PlainKey {
    /// Returns the key of the only partition that a statement reads. `None` if there may be several, or a value is computed.
    pub fn of_select(plan: &SelectPlan) -> Option<PlainKey> {
        // Reads by an index begin at one of its entries, and ranges have many partitions.
        match plan.by_value.is_some() || plan.restrictions.is_key_range {
            true => None,
            false => PlainKey::new(&plan.table, &plan.restrictions),
        }
    }

    /// Returns the key of the only partition that a statement modifies. `None` if there may be several, or a value is computed.
    pub fn of_modification(plan: &ModificationPlan) -> Option<PlainKey> {
        match plan.json {
            Some(_) => None,
            None => PlainKey::new(&plan.table, &plan.restrictions),
        }
    }

    fn new(table: &Table, restrictions: &StatementRestrictions) -> Option<PlainKey> {
        // Each node has its own virtual tables.
        if table.kind == TableKind::Virtual || restrictions.partition.token.is_some() {
            return None;
        }
        let terms = terms(&restrictions.partition.set, table.partition_key_count)?;
        (!terms.is_empty() && terms.iter().all(is_plain)).then_some(PlainKey(terms))
    }

    /// Returns the token of the key with these values. `None` if a value is null, unset, empty or long: the general path finds the error.
    pub fn token(&self, values: &[BoundValue]) -> Option<i64> {
        if let [only] = self.0.as_slice() {
            return value(only, values).map(murmur3_token);
        }
        let mut key: SmallVec<[u8; 128]> = SmallVec::new();
        for term in &self.0 {
            let value = value(term, values)?;
            let len = u16::try_from(value.len()).ok()?;
            key.extend_from_slice(&len.to_be_bytes());
            key.extend_from_slice(value);
            key.push(0);
        }
        Some(murmur3_token(&key))
    }
}

/// Returns true if the bytes of the value are those of the key. Bound collections may be reordered.
fn is_plain(term: &Term) -> bool {
    matches!(
        term,
        Term::Constant(Some(_))
            | Term::Marker {
                ty: CqlType::Native(_),
                ..
            }
    )
}

fn value<'v>(term: &'v Term, values: &'v [BoundValue]) -> Option<&'v [u8]> {
    let bytes: &'v [u8] = match term {
        Term::Constant(Some(bytes)) => bytes,
        Term::Marker { index, .. } => match values.get(*index)? {
            BoundValue::Set(bytes) => bytes,
            BoundValue::Null | BoundValue::Unset => return None,
        },
        _ => return None,
    };
    (1..=VALUE_LEN_MAX).contains(&bytes.len()).then_some(bytes)
}

#[cfg(test)]
#[path = "plain_key_tests.rs"]
mod tests;
