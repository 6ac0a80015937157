//! `counters`: counters in wide partitions. tlp-stress's CountersWide.

use anyhow::Result;
use async_trait::async_trait;
use rand::Rng;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::Counter;

use super::{Class, Info, Operation, OperationOutcome, Parameter, ReadSummary, Setup, Workload};
use crate::db::{Db, OpError};
use crate::operation::Slot;

pub const INFO: Info = Info {
    name: "counters",
    aliases: &["CountersWide"],
    about: "Counters, some to a partition: add one, read the partition",
    operations: &[
        Operation {
            name: "read",
            class: Class::Read,
            weight: 0.1,
            about: "all counters of a random partition",
        },
        Operation {
            name: "add",
            class: Class::Write,
            weight: 0.9,
            about: "one to a random counter",
        },
    ],
    parameters: &[Parameter {
        name: "rows",
        alias: Some("rowsPerPartition"),
        default: "10",
        about: "counters in a partition",
    }],
    fields: &[],
    partitions: 100_000,
    pieces: None,
    shared_keys: false,
    pools: None,
    published: &[],
    schema: |_| {
        Ok(vec![
            "CREATE TABLE IF NOT EXISTS counter_wide (key text, cluster bigint, value counter, PRIMARY KEY (key, cluster))".into(),
        ])
    },
    prepare: |setup, db| Box::pin(async move { Ok(Box::new(Counters::new(setup, db).await?) as _) }),
};

struct Counters {
    setup: Setup,
    rows: i64,
    add: PreparedStatement,
    select: PreparedStatement,
}

impl Counters {
    async fn new(setup: &Setup, db: &Db) -> Result<Self> {
        Ok(Self {
            setup: setup.clone(),
            rows: i64::try_from(setup.count("rows")?)?,
            add: db
                .prepare("UPDATE counter_wide SET value = value + ? WHERE key = ? AND cluster = ?")
                .await?,
            select: db.prepare("SELECT value FROM counter_wide WHERE key = ?").await?,
        })
    }

    async fn add(&self, db: &Db, row: i64, slot: &Slot) -> OperationOutcome {
        db.execute(&self.add, (Counter(1), slot.key(), row)).await?;
        Ok(ReadSummary::rows(1))
    }

    /// Reads a partition. Counters only increase, so one below 1 is corrupt. If `all` is true, no counter may be missing.
    async fn read(&self, db: &Db, all: bool, slot: &Slot) -> OperationOutcome {
        let result = db.execute(&self.select, (slot.key(),)).await?;
        let rows = result.into_rows_result().map_err(OpError::unreadable)?;
        let mut found = ReadSummary {
            rows: rows.rows_num() as u64,
            ..ReadSummary::default()
        };
        for row in rows.rows::<(Counter,)>().map_err(OpError::unreadable)? {
            let (Counter(value),) = row.map_err(OpError::unreadable)?;
            found.corrupt |= u32::from(value < 1);
        }
        match found {
            ReadSummary { corrupt: 1, .. } => {}
            ReadSummary { rows, .. } if all && (rows as i64) < self.rows => found.missing = 1,
            ReadSummary { rows: 0, .. } => found.misses = 1,
            _ => found.hits = 1,
        }
        Ok(found)
    }
}

#[async_trait]
impl Workload for Counters {
    async fn perform(&self, db: &Db, operation: usize, slot: &mut Slot) -> OperationOutcome {
        let key = slot.pick();
        slot.set_key(&self.setup.keys, key);
        match INFO.operations[operation].class {
            Class::Read => self.read(db, false, slot).await,
            Class::Write | Class::Delete => {
                let row = slot.rng.random_range(0..self.rows);
                self.add(db, row, slot).await
            }
        }
    }

    async fn populate(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        for row in 0..self.rows {
            self.add(db, row, slot).await?;
        }
        Ok(ReadSummary::rows(self.rows as u64))
    }

    async fn verify(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        self.read(db, true, slot).await
    }
}
