//! The first copy of a table, by ranges of tokens. It reads the rows as they are: changes since then are in the log, and writes keep their times,
//! so the order in which rows and changes arrive does not matter.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use bytes::Bytes;
use helenus_row::ColumnId;
use helenus_row::key::{compose_partition_key, murmur3_token};
use helenus_row::row::Row;
use helenus_row::transfer::TransferItem;

use super::changes::Change;
use super::plan::TablePlan;
use super::shared::Phase;
use super::state::bigint;
use super::target::Batch;
use super::worker::{Next, Worker};
use crate::table_reading::RangeScan;

/// Ranges of a table's copy.
pub const RANGES: i32 = 64;
/// Time after which a copy lets other work go first.
const TURN: Duration = Duration::from_secs(2);

/// A range of tokens that is copied.
pub struct CopyJob {
    /// Position of the table among those of the replication.
    pub table: usize,
    pub range: i32,
    /// Token after which the copy goes on.
    after: i64,
    last: i64,
}

impl CopyJob {
    /// Returns one of `count` equal ranges of the ring.
    pub fn new(table: usize, range: i32, count: i32) -> CopyJob {
        let token = |place: i32| {
            let offset = (i128::from(place) << 64) / i128::from(count.max(1));
            i64::try_from(i128::from(i64::MIN) + offset).unwrap_or(i64::MAX)
        };
        CopyJob {
            table,
            range,
            after: token(range),
            last: token(range + 1),
        }
    }

    /// Copies rows for one turn.
    pub fn run(&mut self, worker: &mut Worker<'_>) -> Result<Next> {
        let shared = worker.shared;
        let Some(table) = shared.tables.get(self.table) else {
            return Ok(Next::Done);
        };
        let plan = match table.phase() {
            Phase::Running(plan) | Phase::Ending { plan, .. } => plan,
            Phase::Stopped(_) => return Ok(Next::Done),
        };
        let started = Instant::now();
        let mut scan = RangeScan::of(
            &mut worker.source,
            &plan.copy,
            vec![bigint(self.after), bigint(self.last)],
        );
        let mut batch = Batch::new(&plan, shared.kind);
        let mut partition = Bytes::new();
        let (mut token, mut rows) = (self.after, 0);
        while let Some((row, _)) = scan.next_row()? {
            let row = CopiedRow::decode(&plan, row)?;
            let is_new = row.partition != partition;
            if is_new && started.elapsed() > TURN && !partition.is_empty() {
                batch.send(&mut worker.target)?;
                table.count_copied(rows);
                self.after = token;
                return Ok(Next::After(Duration::ZERO));
            }
            if is_new {
                partition = row.partition.clone();
                token = murmur3_token(&partition);
            }
            let now_s = shared.now_us().div_euclid(1_000_000);
            for item in row.items(&plan, is_new)? {
                let change = Change {
                    partition: partition.clone(),
                    item,
                };
                batch.add(&change, now_s)?;
            }
            rows += 1;
            if batch.is_full() {
                batch.send(&mut worker.target)?;
            }
        }
        batch.send(&mut worker.target)?;
        table.count_copied(rows);
        shared
            .state
            .finish_range(&mut worker.source, &table.name, self.range)?;
        table.finish_range(self.range);
        Ok(Next::Done)
    }
}

/// A row of the plan's statement.
struct CopiedRow {
    partition: Bytes,
    /// The clustering values. `None` for a partition that has only static columns.
    clustering: Option<Vec<Bytes>>,
    packed: Option<Bytes>,
    statics: Option<Bytes>,
}

impl CopiedRow {
    fn decode(plan: &TablePlan, row: Vec<Option<Bytes>>) -> Result<CopiedRow> {
        let unexpected = || anyhow!("{}: a row of the answer has unexpected cells", plan.name);
        let mut cells = row.into_iter();
        let partition: Vec<Bytes> = cells.by_ref().take(plan.partition_key.len()).flatten().collect();
        let clustering: Vec<Bytes> = cells.by_ref().take(plan.clustering.len()).flatten().collect();
        Ok(CopiedRow {
            partition: compose_partition_key(&partition).map_err(|_| unexpected())?,
            clustering: (clustering.len() == plan.clustering.len()).then_some(clustering),
            packed: cells.next().ok_or_else(unexpected)?,
            statics: cells.next().flatten(),
        })
    }

    /// Returns the row, after the static row if the partition is new.
    fn items(self, plan: &TablePlan, is_new: bool) -> Result<Vec<TransferItem>> {
        let mut items = Vec::new();
        if let (true, Some(statics)) = (is_new, self.statics) {
            let mut row = Row::decode(&statics)?;
            // The row has its columns by their positions among the static ones.
            for (id, _) in &mut row.columns {
                *id = ColumnId(id.0 + u32::try_from(plan.regulars)?);
            }
            items.push(TransferItem::StaticRow(row.encode()));
        }
        if let (Some(clustering), Some(row)) = (self.clustering, self.packed) {
            items.push(TransferItem::Row { clustering, row });
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_the_ring() {
        let jobs: Vec<CopyJob> = (0..RANGES).map(|range| CopyJob::new(0, range, RANGES)).collect();
        assert_eq!(jobs.first().map(|job| job.after), Some(i64::MIN));
        assert_eq!(jobs.last().map(|job| job.last), Some(i64::MAX));
        assert!(jobs.windows(2).all(|pair| pair[0].last == pair[1].after));
    }
}
