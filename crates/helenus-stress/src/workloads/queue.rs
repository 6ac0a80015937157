//! `queue`: appends rows at one end of a partition and deletes them at the other. Users of Cassandra are advised against this.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use async_trait::async_trait;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;

use super::{Class, Field, Info, Operation, OperationOutcome, Parameter, ReadSummary, Setup, Workload};
use crate::data::fields::Generator;
use crate::data::value::ValueFormat;
use crate::db::{Db, OpError};
use crate::operation::Slot;

/// Rows or deletions in one batch of `populate`.
const PIECE: u64 = 100;

pub const INFO: Info = Info {
    name: "queue",
    aliases: &[],
    about: "Queues of 2,000 rows of which the first 1,900 were deleted: read the first hundred, append, take away. Populate first",
    operations: &[
        Operation {
            name: "read",
            class: Class::Read,
            weight: 0.5,
            about: "the first rows of a random queue",
        },
        Operation {
            name: "append",
            class: Class::Write,
            weight: 0.25,
            about: "a row at a random queue's end",
        },
        Operation {
            name: "remove",
            class: Class::Delete,
            weight: 0.25,
            about: "the first row of a random queue",
        },
    ],
    parameters: &[
        Parameter {
            name: "rows",
            alias: None,
            default: "2000",
            about: "rows that a queue is populated with",
        },
        Parameter {
            name: "deleted",
            alias: None,
            default: "1900",
            about: "rows that are deleted from its front again",
        },
        Parameter {
            name: "limit",
            alias: None,
            default: "100",
            about: "rows that a read takes",
        },
    ],
    fields: &[Field {
        name: "queue.data",
        default: "random(100)",
    }],
    partitions: 100,
    pieces: None,
    shared_keys: true,
    pools: None,
    published: &[],
    schema: |_| {
        Ok(vec![
            "CREATE TABLE IF NOT EXISTS queue (name text, pos bigint, data text, PRIMARY KEY (name, pos))"
                .into(),
        ])
    },
    prepare: |setup, db| Box::pin(async move { Ok(Box::new(Queue::new(setup, db).await?) as _) }),
};

struct Queue {
    setup: Setup,
    data: Generator,
    rows: u64,
    deleted: u64,
    limit: i32,
    insert: PreparedStatement,
    delete: PreparedStatement,
    select: PreparedStatement,
    /// The first position of each queue, and the one after its last.
    ends: Vec<(AtomicU64, AtomicU64)>,
}

impl Queue {
    async fn new(setup: &Setup, db: &Db) -> Result<Self> {
        let rows = setup.count("rows")?;
        let deleted = setup.number("deleted")?.min(rows);
        let ends = || (AtomicU64::new(deleted), AtomicU64::new(rows));
        Ok(Self {
            setup: setup.clone(),
            data: setup.generator("queue.data")?,
            rows,
            deleted,
            limit: i32::try_from(setup.count("limit")?)?,
            insert: db
                .prepare("INSERT INTO queue (name, pos, data) VALUES (?, ?, ?)")
                .await?,
            delete: db.prepare("DELETE FROM queue WHERE name = ? AND pos = ?").await?,
            select: db
                .prepare("SELECT pos, data FROM queue WHERE name = ? LIMIT ?")
                .await?,
            ends: (0..setup.keys.total()).map(|_| ends()).collect(),
        })
    }

    async fn append(&self, db: &Db, position: u64, slot: &mut Slot) -> OperationOutcome {
        slot.fill_part(self.data, ValueFormat::Text, position);
        db.execute(&self.insert, (slot.key(), position as i64, slot.text()))
            .await?;
        Ok(ReadSummary::rows(1))
    }

    async fn read(&self, db: &Db, limit: i32, expected: Option<u64>, slot: &Slot) -> OperationOutcome {
        let result = db.execute(&self.select, (slot.key(), limit)).await?;
        let rows = result.into_rows_result().map_err(OpError::unreadable)?;
        slot.check_parts(&rows, ValueFormat::Text, expected)
    }

    async fn fill(&self, db: &Db, slot: &mut Slot) -> OperationOutcome {
        for first in (0..self.rows).step_by(PIECE as usize) {
            let mut values = Vec::new();
            for position in first..(first + PIECE).min(self.rows) {
                slot.fill_part(self.data, ValueFormat::Text, position);
                values.push((slot.key().to_owned(), position as i64, slot.text().to_owned()));
            }
            db.batch(&same(&self.insert, values.len()), values).await?;
        }
        for first in (0..self.deleted).step_by(PIECE as usize) {
            let positions = first..(first + PIECE).min(self.deleted);
            let values: Vec<(&str, i64)> = positions.map(|position| (slot.key(), position as i64)).collect();
            db.batch(&same(&self.delete, values.len()), values).await?;
        }
        Ok(ReadSummary::rows(self.rows + self.deleted))
    }
}

/// Returns an unlogged batch that repeats one statement.
fn same(statement: &PreparedStatement, count: usize) -> Batch {
    let mut batch = Batch::new(BatchType::Unlogged);
    (0..count).for_each(|_| batch.append_statement(statement.clone()));
    batch
}

#[async_trait]
impl Workload for Queue {
    async fn perform(&self, db: &Db, operation: usize, slot: &mut Slot) -> OperationOutcome {
        let key = slot.pick();
        slot.set_key(&self.setup.keys, key);
        let (first, end) = &self.ends[key as usize];
        match INFO.operations[operation].class {
            Class::Read => self.read(db, self.limit, None, slot).await,
            Class::Write => {
                let position = end.fetch_add(1, Ordering::Relaxed);
                self.append(db, position, slot).await
            }
            Class::Delete => {
                // In an empty queue the deletion comes before the row is appended. That row is then never deleted.
                let position = first.fetch_add(1, Ordering::Relaxed) as i64;
                db.execute(&self.delete, (slot.key(), position)).await?;
                Ok(ReadSummary::rows(1))
            }
        }
    }

    async fn populate(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        self.fill(db, slot).await
    }

    async fn verify(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        self.read(db, i32::MAX, Some(self.rows - self.deleted), slot)
            .await
    }
}
