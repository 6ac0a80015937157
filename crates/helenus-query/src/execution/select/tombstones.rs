//! Counting the tombstones of a read (Cassandra's tombstone_warn_threshold and tombstone_failure_threshold).

use helenus_cql::error::{Consistency, CqlError, Failure};

use crate::analysis::select::SelectPlan;
use crate::limits::Limits;
use crate::measurement;
use crate::rows::{PartitionKey, RowCounts};
use crate::trace;

/// The code of `RequestFailureReason.READ_TOO_MANY_TOMBSTONES`.
const READ_TOO_MANY_TOMBSTONES: u16 = 1;

/// Dead and live rows of one read.
pub(crate) struct TombstoneCount {
    met: RowCounts,
    /// The part of `met` that was skipped without being decoded.
    skipped: RowCounts,
    warn_threshold: usize,
    failure_threshold: usize,
}

impl TombstoneCount {
    pub fn new(limits: &Limits) -> TombstoneCount {
        TombstoneCount {
            met: RowCounts::default(),
            skipped: RowCounts::default(),
            warn_threshold: limits.tombstone_warn_threshold,
            failure_threshold: limits.tombstone_failure_threshold,
        }
    }

    /// Returns the live and the dead rows so far.
    pub fn counts(&self) -> (usize, usize) {
        (self.met.live, self.met.dead)
    }

    /// Returns the counts so far.
    pub fn met(&self) -> RowCounts {
        self.met
    }

    /// Returns the counts of the rows that were read one by one.
    pub fn decoded(&self) -> RowCounts {
        RowCounts {
            live: self.met.live - self.skipped.live,
            dead: self.met.dead - self.skipped.dead,
            tombstones: self.met.tombstones - self.skipped.tombstones,
            last_token: self.met.last_token,
        }
    }

    /// Adds the counts of rows that were skipped without being decoded.
    ///
    /// # Errors
    /// As [`TombstoneCount::add`].
    pub fn skip(&mut self, plan: &SelectPlan, skipped: RowCounts) -> Result<(), CqlError> {
        self.skipped.live += skipped.live;
        self.skipped.dead += skipped.dead;
        self.skipped.tombstones += skipped.tombstones;
        self.add(plan, skipped)
    }

    /// Adds the counts of the next part of the read.
    ///
    /// # Errors
    /// A read failure if there are too many tombstones.
    pub fn add(&mut self, plan: &SelectPlan, met: RowCounts) -> Result<(), CqlError> {
        self.met.live += met.live;
        self.met.dead += met.dead;
        self.met.tombstones += met.tombstones;
        self.met.last_token = met.last_token.or(self.met.last_token);
        self.check_at(plan, self.met.last_token.unwrap_or_default())
    }

    /// Counts a dead row, with its number of tombstones.
    pub fn dead(
        &mut self,
        plan: &SelectPlan,
        partition: &PartitionKey,
        tombstones: usize,
    ) -> Result<(), CqlError> {
        self.met.dead += 1;
        self.met.tombstones += tombstones;
        self.check(plan, partition)
    }

    /// Counts a live row, with its number of dead cells.
    pub fn live(
        &mut self,
        plan: &SelectPlan,
        partition: &PartitionKey,
        dead_cells: usize,
    ) -> Result<(), CqlError> {
        self.met.live += 1;
        self.met.tombstones += dead_cells;
        self.check(plan, partition)
    }

    /// Checks the number of tombstones so far.
    ///
    /// # Errors
    /// A read failure if there are too many.
    pub fn check(&mut self, plan: &SelectPlan, partition: &PartitionKey) -> Result<(), CqlError> {
        self.met.last_token = Some(partition.token);
        self.check_at(plan, partition.token)
    }

    fn check_at(&self, plan: &SelectPlan, token: i64) -> Result<(), CqlError> {
        if self.met.tombstones <= self.failure_threshold {
            return Ok(());
        }
        let address = std::net::IpAddr::from([127, 0, 0, 1]);
        tracing::warn!(
            table = plan.table.full_name(),
            tombstones = self.met.tombstones,
            token,
            "a read was ended: it met too many tombstones"
        );
        trace::step(|| {
            format!(
                "Scanned over {} tombstones; query aborted (see tombstone_failure_threshold)",
                self.failure_threshold
            )
        });
        Err(CqlError::ReadFailure {
            message: format!(
                "Operation failed - received 0 responses and 1 failures: READ_TOO_MANY_TOMBSTONES from /{address}"
            ),
            consistency: Consistency::One,
            received: 0,
            block_for: 1,
            failures: vec![Failure {
                endpoint: address,
                code: READ_TOO_MANY_TOMBSTONES,
            }],
            data_present: false,
        })
    }

    /// Ends the count. Returns a warning for the client if there were many tombstones.
    pub fn finish(&self, plan: &SelectPlan) -> Option<String> {
        measurement::read(self.met.live, self.met.tombstones);
        (self.met.tombstones > self.warn_threshold).then(|| {
            format!(
                "Read {} live rows and {} tombstone cells for query SELECT * FROM {}; token {} (see tombstone_warn_threshold)",
                self.met.live,
                self.met.tombstones,
                plan.table.full_name(),
                self.met.last_token.unwrap_or_default()
            )
        })
    }
}
