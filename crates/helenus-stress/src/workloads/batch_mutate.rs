//! `batch-mutate`: writes rows in batches of ten thousand.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, bail};
use async_trait::async_trait;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;

use super::{Class, Field, Info, Operation, OperationOutcome, Parameter, ReadSummary, Setup, Workload};
use crate::data::fields::Generator;
use crate::data::value::ValueFormat;
use crate::db::{Db, OpError};
use crate::operation::Slot;

/// Maximum number of rows in a batch that the protocol can encode.
const MAX_BATCH: u64 = 65_535;

pub const INFO: Info = Info {
    name: "batch-mutate",
    aliases: &[],
    about: "Rows of three columns of 50 B, ten thousand in one unlogged batch",
    operations: &[
        Operation {
            name: "batch",
            class: Class::Write,
            weight: 1.0,
            about: "an unlogged batch of the next rows, round and round",
        },
        Operation {
            name: "read",
            class: Class::Read,
            weight: 0.0,
            about: "a random row",
        },
    ],
    parameters: &[Parameter {
        name: "rows",
        alias: None,
        default: "10000",
        about: "rows in a batch, 65535 at most",
    }],
    fields: &[
        Field {
            name: "rows.c1",
            default: "random(50)",
        },
        Field {
            name: "rows.c2",
            default: "random(50)",
        },
        Field {
            name: "rows.c3",
            default: "random(50)",
        },
    ],
    partitions: 150_000,
    pieces: None,
    shared_keys: true,
    pools: None,
    published: &[
        "Cassandra seen by a tracer, on a notebook: 150K rows × 3 columns, 10K rows (2 MB) a call, ten times over, one client",
        "most calls took 75 ms, the tail went to 1.5 s; about 10 s for 150K rows, of which the client computed 30 ms",
        "Cassandra refuses such batches until batch_size_fail_threshold is raised",
    ],
    schema: |_| {
        Ok(vec![
            "CREATE TABLE IF NOT EXISTS rows (key text PRIMARY KEY, c1 text, c2 text, c3 text)".into(),
        ])
    },
    prepare: |setup, db| Box::pin(async move { Ok(Box::new(BatchMutate::new(setup, db).await?) as _) }),
};

struct BatchMutate {
    setup: Setup,
    columns: [Generator; 3],
    insert: PreparedStatement,
    select: PreparedStatement,
    batch: Batch,
    /// The number of the next batch.
    next: AtomicU64,
}

type Row = (String, String, String, String);

impl BatchMutate {
    async fn new(setup: &Setup, db: &Db) -> Result<Self> {
        let rows = setup.count("rows")?;
        if rows > MAX_BATCH {
            bail!("a batch holds {MAX_BATCH} rows at most, not {rows}");
        }
        let insert = db
            .prepare("INSERT INTO rows (key, c1, c2, c3) VALUES (?, ?, ?, ?)")
            .await?;
        let mut batch = Batch::new(BatchType::Unlogged);
        (0..rows).for_each(|_| batch.append_statement(insert.clone()));
        Ok(Self {
            setup: setup.clone(),
            columns: [
                setup.generator("rows.c1")?,
                setup.generator("rows.c2")?,
                setup.generator("rows.c3")?,
            ],
            select: db.prepare("SELECT c1, c2, c3 FROM rows WHERE key = ?").await?,
            insert,
            batch,
            next: AtomicU64::new(0),
        })
    }

    fn row(&self, key: u64, slot: &mut Slot) -> Row {
        slot.set_key(&self.setup.keys, key);
        let [c1, c2, c3] = std::array::from_fn(|column| {
            slot.fill_part(self.columns[column], ValueFormat::Text, column as u64);
            slot.text().to_owned()
        });
        (slot.key().to_owned(), c1, c2, c3)
    }

    async fn write_batch(&self, db: &Db, slot: &mut Slot) -> OperationOutcome {
        let rows = self.batch.statements.len() as u64;
        let first = self.next.fetch_add(1, Ordering::Relaxed) * rows;
        let total = self.setup.keys.total();
        let values: Vec<Row> = (first..first + rows)
            .map(|row| self.row(row % total, slot))
            .collect();
        slot.mark_sent();
        db.batch(&self.batch, values).await?;
        Ok(ReadSummary::rows(rows))
    }

    async fn read(&self, db: &Db, expected: bool, slot: &Slot) -> OperationOutcome {
        let result = db.execute(&self.select, (slot.key(),)).await?;
        let rows = result.into_rows_result().map_err(OpError::unreadable)?;
        let row = rows
            .maybe_first_row::<(&str, &str, &str)>()
            .map_err(OpError::unreadable)?;
        Ok(match row {
            None => ReadSummary::nothing(expected),
            Some((c1, c2, c3)) => {
                let sound = |(part, value): (u64, &str)| {
                    slot.is_sound_part(ValueFormat::Text, part, value.as_bytes())
                };
                ReadSummary::row([(0, c1), (1, c2), (2, c3)].into_iter().all(sound))
            }
        })
    }
}

#[async_trait]
impl Workload for BatchMutate {
    async fn perform(&self, db: &Db, operation: usize, slot: &mut Slot) -> OperationOutcome {
        if INFO.operations[operation].class == Class::Write {
            return self.write_batch(db, slot).await;
        }
        let key = slot.pick();
        slot.set_key(&self.setup.keys, key);
        self.read(db, false, slot).await
    }

    async fn populate(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        let row = self.row(key, slot);
        db.execute(&self.insert, row).await?;
        Ok(ReadSummary::rows(1))
    }

    async fn verify(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        self.read(db, true, slot).await
    }
}
