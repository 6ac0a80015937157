//! `surge`: requests that are expensive for the server and cheap to send, so that one loader can overload the server.
//!
//! The requests read slices of a thousand rows, or write single rows once each. Acknowledged rows are remembered. `verify` in the same
//! process, as in `repro overload`, looks for every one of them.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::{Result, bail};
use async_trait::async_trait;
use parking_lot::Mutex;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;

use super::{Class, Field, Info, Operation, OperationOutcome, Parameter, ReadSummary, Setup, Workload};
use crate::data::fields::Generator;
use crate::data::value::ValueFormat;
use crate::db::{Db, OpError};
use crate::operation::Slot;

/// Rows in one batch of `populate`.
const PIECE: u64 = 100;
/// Maximum number of keys, whose acknowledged rows are remembered.
const KEYS_MAX: u64 = 1 << 20;

pub const INFO: Info = Info {
    name: "surge",
    aliases: &[],
    about: "Large slices and single rows, to request more than a server can do; acknowledged rows are remembered",
    operations: &[
        Operation {
            name: "slice",
            class: Class::Read,
            weight: 0.8,
            about: "all rows of a random key",
        },
        Operation {
            name: "write",
            class: Class::Write,
            weight: 0.2,
            about: "a row that never was before",
        },
    ],
    parameters: &[Parameter {
        name: "rows",
        alias: None,
        default: "1000",
        about: "rows of a key",
    }],
    fields: &[Field {
        name: "surge.value",
        default: "random(100)",
    }],
    partitions: 100,
    pieces: None,
    shared_keys: true,
    pools: None,
    published: &[],
    schema: |_| {
        let table = |name| {
            format!(
                "CREATE TABLE IF NOT EXISTS {name} (key text, ck bigint, value text, PRIMARY KEY (key, ck))"
            )
        };
        Ok(vec![table("surge"), table("surge_written")])
    },
    prepare: |setup, db| Box::pin(async move { Ok(Box::new(Surge::new(setup, db).await?) as _) }),
};

struct Surge {
    setup: Setup,
    value: Generator,
    rows: u64,
    next: AtomicI64,
    /// The rows that the server has acknowledged, by key.
    acknowledged: Vec<Mutex<Vec<i64>>>,
    populate: PreparedStatement,
    slice: PreparedStatement,
    insert: PreparedStatement,
    written: PreparedStatement,
}

impl Surge {
    async fn new(setup: &Setup, db: &Db) -> Result<Self> {
        let keys = setup.keys.total();
        if keys > KEYS_MAX {
            bail!("surge takes {KEYS_MAX} keys at most");
        }
        let insert = |table| format!("INSERT INTO {table} (key, ck, value) VALUES (?, ?, ?)");
        let select = |table| format!("SELECT ck, value FROM {table} WHERE key = ?");
        Ok(Self {
            setup: setup.clone(),
            value: setup.generator("surge.value")?,
            rows: setup.count("rows")?,
            next: AtomicI64::new(chrono::Utc::now().timestamp_micros()),
            acknowledged: (0..keys).map(|_| Mutex::default()).collect(),
            populate: db.prepare(&insert("surge")).await?,
            slice: db.prepare(&select("surge")).await?,
            insert: db.prepare(&insert("surge_written")).await?,
            written: db.prepare(&select("surge_written")).await?,
        })
    }

    /// Reads the rows under the slot's key. `expected` is the number of rows, or `None` if it is not known.
    async fn read(&self, db: &Db, expected: Option<u64>, slot: &Slot) -> OperationOutcome {
        let result = db.execute(&self.slice, (slot.key(),)).await?;
        let rows = result.into_rows_result().map_err(OpError::unreadable)?;
        slot.check_parts(&rows, ValueFormat::Text, expected)
    }

    async fn write(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        let row = self.next.fetch_add(1, Ordering::Relaxed);
        slot.fill_part(self.value, ValueFormat::Text, row as u64);
        db.execute(&self.insert, (slot.key(), row, slot.text())).await?;
        if let Some(of_key) = self.acknowledged.get(key as usize) {
            of_key.lock().push(row);
        }
        Ok(ReadSummary::rows(1))
    }

    /// Looks for all acknowledged rows of the slot's key.
    async fn look_for_written(&self, db: &Db, key: u64, slot: &Slot) -> OperationOutcome {
        let acknowledged = self
            .acknowledged
            .get(key as usize)
            .map_or_else(Vec::new, |rows| rows.lock().clone());
        if acknowledged.is_empty() {
            return Ok(ReadSummary::default());
        }
        let result = db.execute(&self.written, (slot.key(),)).await?;
        let rows = result.into_rows_result().map_err(OpError::unreadable)?;
        let mut found = ReadSummary::default();
        let mut sound = HashSet::new();
        for row in rows.rows::<(i64, &str)>().map_err(OpError::unreadable)? {
            let (row, value) = row.map_err(OpError::unreadable)?;
            if slot.is_sound_part(ValueFormat::Text, row as u64, value.as_bytes()) {
                sound.insert(row);
            } else {
                found.corrupt += 1;
            }
        }
        found.rows = sound.len() as u64;
        let (hits, missing): (Vec<i64>, Vec<i64>) = acknowledged.iter().partition(|row| sound.contains(row));
        found.hits = hits.len() as u32;
        found.missing = missing.len() as u32;
        Ok(found)
    }
}

#[async_trait]
impl Workload for Surge {
    async fn perform(&self, db: &Db, operation: usize, slot: &mut Slot) -> OperationOutcome {
        let key = slot.pick();
        slot.set_key(&self.setup.keys, key);
        match INFO.operations[operation].class {
            Class::Read => self.read(db, Some(self.rows), slot).await,
            _ => self.write(db, key, slot).await,
        }
    }

    async fn populate(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        for first in (0..self.rows).step_by(PIECE as usize) {
            let mut batch = Batch::new(BatchType::Unlogged);
            let mut values = Vec::new();
            for row in first..(first + PIECE).min(self.rows) {
                slot.fill_part(self.value, ValueFormat::Text, row);
                batch.append_statement(self.populate.clone());
                values.push((slot.key().to_owned(), row as i64, slot.text().to_owned()));
            }
            db.batch(&batch, values).await?;
        }
        Ok(ReadSummary::rows(self.rows))
    }

    async fn verify(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        let populated = self.read(db, Some(self.rows), slot).await?;
        let written = self.look_for_written(db, key, slot).await?;
        Ok(ReadSummary {
            rows: populated.rows + written.rows,
            hits: populated.hits + written.hits,
            misses: populated.misses + written.misses,
            missing: populated.missing + written.missing,
            corrupt: populated.corrupt + written.corrupt,
        })
    }
}
