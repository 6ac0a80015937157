//! `kv`: one value per key. tlp-stress's KeyValue.

use anyhow::Result;
use async_trait::async_trait;
use scylla::statement::prepared::PreparedStatement;

use super::{Class, Field, Info, Operation, OperationOutcome, ReadSummary, Setup, Workload};
use crate::data::fields::Generator;
use crate::data::value::ValueFormat;
use crate::db::{Db, OpError};
use crate::operation::Slot;

/// The operations of a key-value table. By default half are reads and half are writes.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        name: "read",
        class: Class::Read,
        weight: 0.5,
        about: "a random key's value",
    },
    Operation {
        name: "write",
        class: Class::Write,
        weight: 0.5,
        about: "a new value under a random key",
    },
    Operation {
        name: "delete",
        class: Class::Delete,
        weight: 0.0,
        about: "a random key",
    },
];

pub const INFO: Info = Info {
    name: "kv",
    aliases: &["KeyValue", "key-value"],
    about: "A value under a key: write it, read it",
    operations: OPERATIONS,
    parameters: &[],
    fields: &[Field {
        name: "keyvalue.value",
        default: "random(100,200)",
    }],
    partitions: 1_000_000,
    pieces: None,
    shared_keys: false,
    pools: None,
    published: &[],
    schema: |_| Ok(vec![create_table("keyvalue")]),
    prepare: |setup, db| {
        Box::pin(async move { Ok(Box::new(Kv::new(setup, db, "keyvalue", &INFO).await?) as _) })
    },
};

/// Workload of one key-value table.
pub(super) struct Kv {
    setup: Setup,
    operations: &'static [Operation],
    value: Generator,
    table: Table,
}

impl Kv {
    /// Prepares the workload of a table. `info` describes the workload that uses it.
    pub async fn new(setup: &Setup, db: &Db, table: &str, info: &'static Info) -> Result<Self> {
        Ok(Self {
            setup: setup.clone(),
            operations: info.operations,
            value: setup.generator(&format!("{table}.value"))?,
            table: Table::prepare(db, table).await?,
        })
    }
}

#[async_trait]
impl Workload for Kv {
    async fn perform(&self, db: &Db, operation: usize, slot: &mut Slot) -> OperationOutcome {
        let key = slot.pick();
        slot.set_key(&self.setup.keys, key);
        match self.operations[operation].class {
            Class::Read => self.table.read(db, false, slot).await,
            Class::Write => self.table.write(db, self.value, slot).await,
            Class::Delete => self.table.delete(db, slot).await,
        }
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

/// Returns the statement that creates a table with text keys and text values.
pub(super) fn create_table(name: &str) -> String {
    format!("CREATE TABLE IF NOT EXISTS {name} (key text PRIMARY KEY, value text)")
}

/// Statements that write, read and delete the rows of a key-value table.
pub(super) struct Table {
    insert: PreparedStatement,
    select: PreparedStatement,
    delete: PreparedStatement,
}

impl Table {
    pub async fn prepare(db: &Db, name: &str) -> Result<Self> {
        Ok(Self {
            insert: db
                .prepare(&format!("INSERT INTO {name} (key, value) VALUES (?, ?)"))
                .await?,
            select: db
                .prepare(&format!("SELECT value FROM {name} WHERE key = ?"))
                .await?,
            delete: db.prepare(&format!("DELETE FROM {name} WHERE key = ?")).await?,
        })
    }

    /// Writes a new value under the slot's key.
    pub async fn write(&self, db: &Db, value: Generator, slot: &mut Slot) -> OperationOutcome {
        slot.fill(value, ValueFormat::Text);
        db.execute(&self.insert, (slot.key(), slot.text())).await?;
        Ok(ReadSummary::rows(1))
    }

    /// Reads the value under the slot's key. If `expected` is true, it must exist.
    pub async fn read(&self, db: &Db, expected: bool, slot: &Slot) -> OperationOutcome {
        let result = db.execute(&self.select, (slot.key(),)).await?;
        let rows = result.into_rows_result().map_err(OpError::unreadable)?;
        let row = rows
            .maybe_first_row::<(Option<&str>,)>()
            .map_err(OpError::unreadable)?;
        Ok(match row {
            None => ReadSummary::nothing(expected),
            Some((value,)) => {
                ReadSummary::row(slot.is_sound(ValueFormat::Text, value.unwrap_or_default().as_bytes()))
            }
        })
    }

    /// Deletes the slot's key.
    pub async fn delete(&self, db: &Db, slot: &Slot) -> OperationOutcome {
        db.execute(&self.delete, (slot.key(),)).await?;
        Ok(ReadSummary::rows(1))
    }
}
