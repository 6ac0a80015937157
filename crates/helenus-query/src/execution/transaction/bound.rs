//! A transaction with its values bound: its partitions, without the values that it reads.

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::frame::forwarded::Share;
use helenus_row::TableId;

use crate::analysis::EvalContext;
use crate::analysis::modification::BoundModification;
use crate::analysis::select::SelectPlan;
use crate::analysis::transaction::{Returning, TransactionPlan, check};
use crate::rows::PartitionKey;
use crate::schema::Table;

/// The partitions of a transaction, and its writes. Written values that refer to rows are not bound yet.
pub(crate) struct BoundTransaction<'p> {
    plan: &'p TransactionPlan,
    /// The partition of each LET.
    pub reads: Vec<PartitionKey>,
    /// The partitions of the answer's SELECT.
    returned: Vec<PartitionKey>,
    pub writes: Vec<BoundModification<'p>>,
}

/// The partitions of a transaction with their tables. They may occur repeatedly.
pub(crate) struct Partitions<'b>(Vec<(&'b Table, &'b PartitionKey)>);

impl Partitions<'_> {
    pub fn named(&self) -> &[(&Table, &PartitionKey)] {
        &self.0
    }

    pub fn locks(&self) -> Vec<(TableId, i64)> {
        let lock = |(table, key): &(&Table, &PartitionKey)| (table.number, key.token);
        self.0.iter().map(lock).collect()
    }

    pub fn tokens(&self) -> impl Iterator<Item = i64> {
        self.0.iter().map(|(_, key)| key.token)
    }
}

impl<'p> BoundTransaction<'p> {
    /// Binds the keys of all statements.
    ///
    /// # Errors
    /// Cassandra's, for invalid keys and limits.
    pub fn new(plan: &'p TransactionPlan, eval: EvalContext<'p>) -> Result<BoundTransaction<'p>, CqlError> {
        for read in &plan.reads {
            check::bound_limit(&read.select, &eval, &read.position)?;
        }
        let returned = match &plan.returning {
            Returning::Select { plan, position } => {
                check::bound_limit_of_in(plan, &eval, position)?;
                plan.restrictions.partition_keys(&eval)?
            }
            Returning::Nothing | Returning::References { .. } => Vec::new(),
        };
        let reads = plan.reads.iter().map(|read| one_partition(&read.select, &eval));
        let writes = plan
            .modifications()
            .map(|write| BoundModification::new(write, eval));
        Ok(BoundTransaction {
            plan,
            reads: reads.collect::<Result<_, _>>()?,
            returned,
            writes: writes.collect::<Result<_, _>>()?,
        })
    }

    /// Returns all partitions that are read or may be written.
    pub fn partitions(&self) -> Partitions<'_> {
        let read = self.plan.reads.iter().zip(&self.reads);
        let mut found: Vec<(&Table, &PartitionKey)> = read
            .map(|(read, key)| (read.select.table().as_ref(), key))
            .collect();
        if let Returning::Select { plan, .. } = &self.plan.returning {
            found.extend(self.returned.iter().map(|key| (plan.table().as_ref(), key)));
        }
        for write in &self.writes {
            found.extend(write.partitions.iter().map(|key| (write.table(), key)));
        }
        Partitions(found)
    }

    /// Replaces the written partitions by those that the routing node has found. A computed key would otherwise be another one here.
    pub fn keep_share(&mut self, share: &Share) {
        for (write, keys) in self.writes.iter_mut().zip(share.iter()) {
            write.partitions = keys.iter().cloned().map(PartitionKey::new).collect();
        }
    }
}

/// Returns the written partitions of a transaction, for the node that executes it.
pub(crate) fn share_of(bound: &BoundTransaction<'_>) -> Share {
    let keys = |write: &BoundModification<'_>| -> Vec<Bytes> {
        write.partitions.iter().map(|key| key.bytes.clone()).collect()
    };
    bound.writes.iter().map(keys).collect()
}

fn one_partition(plan: &SelectPlan, eval: &EvalContext<'_>) -> Result<PartitionKey, CqlError> {
    let mut keys = plan.restrictions.partition_keys(eval)?;
    match (keys.pop(), keys.is_empty()) {
        (Some(key), true) => Ok(key),
        _ => Err(CqlError::invalid(format!(
            "A LET reads one partition of {}, but its WHERE clause names another number of them",
            plan.table().full_name()
        ))),
    }
}
