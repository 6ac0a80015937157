//! `scan`: reads the whole table page by page, one token range after the other.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use async_trait::async_trait;
use scylla::response::PagingState;
use scylla::statement::prepared::PreparedStatement;

use super::kv::{Table, create_table};
use super::{Class, Field, Info, Operation, OperationOutcome, Parameter, ReadSummary, Setup, Workload};
use crate::data::fields::Generator;
use crate::data::value::{self, ValueFormat, ValueId};
use crate::db::{Db, OpError};
use crate::operation::Slot;

pub const INFO: Info = Info {
    name: "scan",
    aliases: &[],
    about: "A full scan by ranges of tokens with paging, over and over; each row is checked",
    operations: &[Operation {
        name: "range",
        class: Class::Read,
        weight: 1.0,
        about: "all rows of the next range of tokens",
    }],
    parameters: &[Parameter {
        name: "ranges",
        alias: None,
        default: "256",
        about: "into how many ranges the ring is divided",
    }],
    fields: &[Field {
        name: "scanned.value",
        default: "random(100,200)",
    }],
    partitions: 1_000_000,
    pieces: None,
    shared_keys: true,
    pools: None,
    published: &[],
    schema: |_| Ok(vec![create_table("scanned")]),
    prepare: |setup, db| Box::pin(async move { Ok(Box::new(Scan::new(setup, db).await?) as _) }),
};

struct Scan {
    setup: Setup,
    value: Generator,
    ranges: u64,
    next: AtomicU64,
    table: Table,
    select: PreparedStatement,
}

impl Scan {
    async fn new(setup: &Setup, db: &Db) -> Result<Self> {
        Ok(Self {
            setup: setup.clone(),
            value: setup.generator("scanned.value")?,
            ranges: setup.count("ranges")?,
            next: AtomicU64::new(0),
            table: Table::prepare(db, "scanned").await?,
            select: db
                .prepare("SELECT key, value FROM scanned WHERE token(key) > ? AND token(key) <= ?")
                .await?,
        })
    }

    async fn scan(&self, db: &Db, range: u64) -> OperationOutcome {
        let (after, to) = tokens(range, self.ranges);
        let mut found = ReadSummary::default();
        let mut state = PagingState::start();
        loop {
            let (result, next) = db.execute_page(&self.select, (after, to), state).await?;
            let rows = result.into_rows_result().map_err(OpError::unreadable)?;
            for row in rows.rows::<(&str, &str)>().map_err(OpError::unreadable)? {
                let (key, value) = row.map_err(OpError::unreadable)?;
                let id = ValueId {
                    key: key.as_bytes(),
                    part: 0,
                };
                found.corrupt += u32::from(value::check(ValueFormat::Text, id, value.as_bytes()).is_err());
                found.rows += 1;
            }
            match next.into_paging_control_flow() {
                ControlFlow::Break(()) => break,
                ControlFlow::Continue(next) => state = next,
            }
        }
        match (found.corrupt, found.rows) {
            (0, 0) => found.misses = 1,
            (0, _) => found.hits = 1,
            _ => {}
        }
        Ok(found)
    }
}

/// Returns the bounds of a token range, the first of which is exclusive. All ranges together cover the ring.
fn tokens(range: u64, ranges: u64) -> (i64, i64) {
    let at = |number: u64| {
        let offset = (u128::from(u64::MAX) * u128::from(number) / u128::from(ranges)) as u64;
        (offset as i64).wrapping_add(i64::MIN)
    };
    (at(range), at(range + 1))
}

#[async_trait]
impl Workload for Scan {
    async fn perform(&self, db: &Db, _: usize, _: &mut Slot) -> OperationOutcome {
        let range = self.next.fetch_add(1, Ordering::Relaxed) % self.ranges;
        self.scan(db, range).await
    }

    async fn populate(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        self.table.write(db, self.value, slot).await
    }

    async fn verify(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        self.table.read(db, true, slot).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_cover_the_ring() {
        for ranges in [1, 2, 3, 256] {
            let all: Vec<_> = (0..ranges).map(|range| tokens(range, ranges)).collect();
            assert_eq!(all[0].0, i64::MIN);
            assert_eq!(all[all.len() - 1].1, i64::MAX);
            assert!(
                all.windows(2)
                    .all(|pair| pair[0].1 == pair[1].0 && pair[0].0 < pair[0].1)
            );
        }
    }
}
