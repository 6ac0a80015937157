//! `lwt`: lightweight transactions. Inserts a row if it does not exist, and updates it if it has the expected value. tlp-stress's LWT.

use std::sync::atomic::{AtomicI32, Ordering};

use anyhow::Result;
use async_trait::async_trait;
use scylla::response::query_result::QueryResult;
use scylla::statement::prepared::PreparedStatement;

use super::{Class, Info, Operation, OperationOutcome, ReadSummary, Setup, Workload};
use crate::db::{Db, OpError};
use crate::operation::Slot;

/// Maximum number of keys with their own remembered value. With more keys, several share one.
const REMEMBERED: u64 = 50_000_000;

pub const INFO: Info = Info {
    name: "lwt",
    aliases: &["Locking"],
    about: "Compare and set. A write that was not applied because another came first counts as a miss",
    operations: &[
        Operation {
            name: "read",
            class: Class::Read,
            weight: 0.1,
            about: "a random row",
        },
        Operation {
            name: "insert",
            class: Class::Write,
            weight: 0.1,
            about: "a random row IF NOT EXISTS",
        },
        Operation {
            name: "update",
            class: Class::Write,
            weight: 0.8,
            about: "a random row IF it has the value last seen",
        },
    ],
    parameters: &[],
    fields: &[],
    partitions: 100_000,
    pieces: None,
    shared_keys: true,
    pools: None,
    published: &[],
    schema: |_| {
        Ok(vec![
            "CREATE TABLE IF NOT EXISTS lwt (id text PRIMARY KEY, value int)".into(),
        ])
    },
    prepare: |setup, db| Box::pin(async move { Ok(Box::new(Lwt::new(setup, db).await?) as _) }),
};

struct Lwt {
    setup: Setup,
    insert: PreparedStatement,
    update: PreparedStatement,
    select: PreparedStatement,
    /// The last seen value of each key. 0 if there was no row.
    seen: Vec<AtomicI32>,
}

impl Lwt {
    async fn new(setup: &Setup, db: &Db) -> Result<Self> {
        let remembered = setup.keys.total().min(REMEMBERED);
        Ok(Self {
            setup: setup.clone(),
            insert: db
                .prepare("INSERT INTO lwt (id, value) VALUES (?, 1) IF NOT EXISTS")
                .await?,
            update: db
                .prepare("UPDATE lwt SET value = ? WHERE id = ? IF value = ?")
                .await?,
            select: db.prepare("SELECT value FROM lwt WHERE id = ?").await?,
            seen: (0..remembered).map(|_| AtomicI32::new(0)).collect(),
        })
    }

    fn seen(&self, key: u64) -> &AtomicI32 {
        &self.seen[key as usize % self.seen.len()]
    }

    async fn insert(&self, db: &Db, key: u64, slot: &Slot) -> OperationOutcome {
        let result = db.execute(&self.insert, (slot.key(),)).await?;
        let (applied, value) = applied(result)?;
        self.seen(key).store(value.unwrap_or(1), Ordering::Relaxed);
        Ok(of_write(applied))
    }

    async fn update(&self, db: &Db, key: u64, slot: &Slot) -> OperationOutcome {
        let seen = self.seen(key);
        let before = seen.load(Ordering::Relaxed);
        if before == 0 {
            return self.insert(db, key, slot).await;
        }
        let result = db.execute(&self.update, (before + 1, slot.key(), before)).await?;
        let (applied, value) = applied(result)?;
        seen.store(
            if applied { before + 1 } else { value.unwrap_or(0) },
            Ordering::Relaxed,
        );
        Ok(of_write(applied))
    }

    async fn read(&self, db: &Db, expected: bool, slot: &Slot) -> OperationOutcome {
        let result = db.execute(&self.select, (slot.key(),)).await?;
        let rows = result.into_rows_result().map_err(OpError::unreadable)?;
        let row = rows
            .maybe_first_row::<(Option<i32>,)>()
            .map_err(OpError::unreadable)?;
        Ok(match row {
            None => ReadSummary::nothing(expected),
            Some((value,)) => ReadSummary::row(value.is_some_and(|value| value >= 1)),
        })
    }
}

fn of_write(applied: bool) -> ReadSummary {
    ReadSummary {
        rows: u64::from(applied),
        hits: u32::from(applied),
        misses: u32::from(!applied),
        ..ReadSummary::default()
    }
}

/// Returns true if a transaction was applied. If not, also returns the value of the row.
fn applied(result: QueryResult) -> Result<(bool, Option<i32>), OpError> {
    let rows = result.into_rows_result().map_err(OpError::unreadable)?;
    let value_at = rows.column_specs().iter().position(|spec| spec.name() == "value");
    let mut columns = rows
        .first_row::<scylla::value::Row>()
        .map_err(OpError::unreadable)?
        .columns;
    let value = value_at
        .and_then(|at| columns.swap_remove(at))
        .and_then(|value| value.as_int());
    let applied = columns.first().and_then(|first| first.as_ref()?.as_boolean());
    let applied = applied.ok_or_else(|| OpError::unreadable("no [applied] in the answer"))?;
    Ok((applied, value))
}

#[async_trait]
impl Workload for Lwt {
    async fn perform(&self, db: &Db, operation: usize, slot: &mut Slot) -> OperationOutcome {
        let key = slot.pick();
        slot.set_key(&self.setup.keys, key);
        match INFO.operations[operation].name {
            "read" => self.read(db, false, slot).await,
            "insert" => self.insert(db, key, slot).await,
            _ => self.update(db, key, slot).await,
        }
    }

    async fn populate(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        self.insert(db, key, slot).await
    }

    async fn verify(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        self.read(db, true, slot).await
    }
}
