//! `tombstones`: small partitions whose rows are inserted and deleted. Three in four mutations are deletions.

use anyhow::Result;
use async_trait::async_trait;
use rand::Rng;
use scylla::statement::prepared::PreparedStatement;

use super::{Class, Field, Info, Operation, OperationOutcome, ReadSummary, Setup, Workload};
use crate::data::fields::Generator;
use crate::data::value::ValueFormat;
use crate::db::{Db, OpError};
use crate::operation::Slot;

/// Maximum number of rows per product.
const LOCATIONS: i32 = 13;

pub const INFO: Info = Info {
    name: "tombstones",
    aliases: &[],
    about: "A stock of products at 13 locations: rows come and go, reads take a product's whole slice",
    operations: &[
        Operation {
            name: "read",
            class: Class::Read,
            weight: 0.5,
            about: "all locations of a random product",
        },
        Operation {
            name: "upsert",
            class: Class::Write,
            weight: 0.125,
            about: "a random location of a random product",
        },
        Operation {
            name: "delete",
            class: Class::Delete,
            weight: 0.375,
            about: "a random location of a random product",
        },
    ],
    parameters: &[],
    fields: &[Field {
        name: "inventory.data",
        default: "random(100,200)",
    }],
    partitions: 100_000,
    pieces: None,
    shared_keys: true,
    pools: None,
    published: &[
        "Target, 12 nodes × 24 cores, 200 GB a node, always deleted and upserted. Before: 10 SSTables a read and more, nearly 3 \
         tombstones a live cell, about 10 a slice, reads of 15 ms, pauses of 10 s",
        "After leveled compaction, gc_grace of a day and throttled compaction: 95 GB, reads of 4 ms, about 0 tombstones a slice",
    ],
    schema: |_| {
        Ok(vec![
            "CREATE TABLE IF NOT EXISTS inventory (product text, location int, qty int, data text, \
             PRIMARY KEY (product, location))"
                .into(),
        ])
    },
    prepare: |setup, db| Box::pin(async move { Ok(Box::new(Tombstones::new(setup, db).await?) as _) }),
};

struct Tombstones {
    setup: Setup,
    data: Generator,
    insert: PreparedStatement,
    select: PreparedStatement,
    delete: PreparedStatement,
}

impl Tombstones {
    async fn new(setup: &Setup, db: &Db) -> Result<Self> {
        Ok(Self {
            setup: setup.clone(),
            data: setup.generator("inventory.data")?,
            insert: db
                .prepare("INSERT INTO inventory (product, location, qty, data) VALUES (?, ?, ?, ?)")
                .await?,
            select: db
                .prepare("SELECT location, qty, data FROM inventory WHERE product = ?")
                .await?,
            delete: db
                .prepare("DELETE FROM inventory WHERE product = ? AND location = ?")
                .await?,
        })
    }

    async fn upsert(&self, db: &Db, location: i32, slot: &mut Slot) -> OperationOutcome {
        slot.fill_part(self.data, ValueFormat::Text, location as u64);
        let quantity = slot.rng.random_range(0..1000);
        db.execute(&self.insert, (slot.key(), location, quantity, slot.text()))
            .await?;
        Ok(ReadSummary::rows(1))
    }

    async fn remove(&self, db: &Db, location: i32, slot: &Slot) -> OperationOutcome {
        db.execute(&self.delete, (slot.key(), location)).await?;
        Ok(ReadSummary::rows(1))
    }

    /// Reads a product's slice. `expected` is the number of rows, or `None` if it is not known.
    async fn read(&self, db: &Db, expected: Option<usize>, slot: &Slot) -> OperationOutcome {
        let result = db.execute(&self.select, (slot.key(),)).await?;
        let rows = result.into_rows_result().map_err(OpError::unreadable)?;
        let mut found = ReadSummary {
            rows: rows.rows_num() as u64,
            ..ReadSummary::default()
        };
        for row in rows.rows::<(i32, i32, &str)>().map_err(OpError::unreadable)? {
            let (location, _, data) = row.map_err(OpError::unreadable)?;
            found.corrupt |=
                u32::from(!slot.is_sound_part(ValueFormat::Text, location as u64, data.as_bytes()));
        }
        let all = expected.is_none_or(|expected| found.rows as usize >= expected);
        match (found.corrupt, found.rows) {
            (1, _) => {}
            _ if !all => found.missing = 1,
            (_, 0) => found.misses = 1,
            _ => found.hits = 1,
        }
        Ok(found)
    }
}

#[async_trait]
impl Workload for Tombstones {
    async fn perform(&self, db: &Db, operation: usize, slot: &mut Slot) -> OperationOutcome {
        let key = slot.pick();
        slot.set_key(&self.setup.keys, key);
        let location = slot.rng.random_range(0..LOCATIONS);
        match INFO.operations[operation].class {
            Class::Read => self.read(db, None, slot).await,
            Class::Write => self.upsert(db, location, slot).await,
            Class::Delete => self.remove(db, location, slot).await,
        }
    }

    async fn populate(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        for location in 0..LOCATIONS {
            self.upsert(db, location, slot).await?;
        }
        Ok(ReadSummary::rows(LOCATIONS as u64))
    }

    async fn verify(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        self.read(db, Some(LOCATIONS as usize), slot).await
    }
}
