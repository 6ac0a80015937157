//! `wide-rows`: a few partitions of very many rows, of which slices of a hundred are read anywhere in either direction.

use anyhow::Result;
use async_trait::async_trait;
use rand::Rng;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;

use super::{Class, Field, Info, Operation, OperationOutcome, Parameter, ReadSummary, Setup, Workload};
use crate::data::fields::Generator;
use crate::data::value::ValueFormat;
use crate::db::{Db, OpError};
use crate::operation::Slot;

/// Rows in one batch of `populate`.
const PIECE: u64 = 100;

pub const INFO: Info = Info {
    name: "wide-rows",
    aliases: &[],
    about: "Partitions of a million rows: slices anywhere in them, forwards and backwards",
    operations: &[
        Operation {
            name: "slice",
            class: Class::Read,
            weight: 0.4,
            about: "some rows from a random one on",
        },
        Operation {
            name: "slice_reversed",
            class: Class::Read,
            weight: 0.4,
            about: "some rows from a random one backwards",
        },
        Operation {
            name: "write",
            class: Class::Write,
            weight: 0.2,
            about: "a random row",
        },
    ],
    parameters: &[
        Parameter {
            name: "rows",
            alias: None,
            default: "1M",
            about: "rows in a partition",
        },
        Parameter {
            name: "slice",
            alias: None,
            default: "100",
            about: "rows in a slice",
        },
    ],
    fields: &[Field {
        name: "wide.value",
        default: "random(100)",
    }],
    partitions: 1,
    pieces: Some(|setup| Ok(setup.count("rows")?.div_ceil(PIECE))),
    shared_keys: true,
    pools: None,
    published: &[],
    schema: |_| {
        Ok(vec![
            "CREATE TABLE IF NOT EXISTS wide (key text, ck bigint, value text, PRIMARY KEY (key, ck))".into(),
        ])
    },
    prepare: |setup, db| Box::pin(async move { Ok(Box::new(WideRows::new(setup, db).await?) as _) }),
};

struct WideRows {
    setup: Setup,
    value: Generator,
    rows: u64,
    slice: u64,
    pieces: u64,
    insert: PreparedStatement,
    forwards: PreparedStatement,
    backwards: PreparedStatement,
}

impl WideRows {
    async fn new(setup: &Setup, db: &Db) -> Result<Self> {
        let rows = setup.count("rows")?;
        let select = "SELECT ck, value FROM wide WHERE key = ? AND ck";
        Ok(Self {
            setup: setup.clone(),
            value: setup.generator("wide.value")?,
            rows,
            slice: setup.count("slice")?,
            pieces: rows.div_ceil(PIECE),
            insert: db
                .prepare("INSERT INTO wide (key, ck, value) VALUES (?, ?, ?)")
                .await?,
            forwards: db.prepare(&format!("{select} >= ? LIMIT ?")).await?,
            backwards: db
                .prepare(&format!("{select} <= ? ORDER BY ck DESC LIMIT ?"))
                .await?,
        })
    }

    async fn write(&self, db: &Db, row: u64, slot: &mut Slot) -> OperationOutcome {
        slot.fill_part(self.value, ValueFormat::Text, row);
        db.execute(&self.insert, (slot.key(), row as i64, slot.text()))
            .await?;
        Ok(ReadSummary::rows(1))
    }

    /// Reads a slice. `expected` is the number of rows, or `None` if it is not known.
    async fn read(
        &self,
        db: &Db,
        statement: &PreparedStatement,
        from: u64,
        count: u64,
        expected: Option<u64>,
        slot: &Slot,
    ) -> OperationOutcome {
        let result = db
            .execute(statement, (slot.key(), from as i64, count as i32))
            .await?;
        let rows = result.into_rows_result().map_err(OpError::unreadable)?;
        slot.check_parts(&rows, ValueFormat::Text, expected)
    }
}

#[async_trait]
impl Workload for WideRows {
    async fn perform(&self, db: &Db, operation: usize, slot: &mut Slot) -> OperationOutcome {
        let key = slot.pick();
        slot.set_key(&self.setup.keys, key);
        let row = slot.rng.random_range(0..self.rows);
        match INFO.operations[operation].name {
            "slice" => self.read(db, &self.forwards, row, self.slice, None, slot).await,
            "slice_reversed" => self.read(db, &self.backwards, row, self.slice, None, slot).await,
            _ => self.write(db, row, slot).await,
        }
    }

    async fn populate(&self, db: &Db, piece: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, piece / self.pieces);
        let first = piece % self.pieces * PIECE;
        let rows = first..(first + PIECE).min(self.rows);
        let mut batch = Batch::new(BatchType::Unlogged);
        let mut values = Vec::new();
        for row in rows {
            slot.fill_part(self.value, ValueFormat::Text, row);
            batch.append_statement(self.insert.clone());
            values.push((slot.key().to_owned(), row as i64, slot.text().to_owned()));
        }
        let count = values.len() as u64;
        db.batch(&batch, values).await?;
        Ok(ReadSummary::rows(count))
    }

    async fn verify(&self, db: &Db, piece: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, piece / self.pieces);
        let first = piece % self.pieces * PIECE;
        let count = PIECE.min(self.rows - first);
        self.read(db, &self.forwards, first, count, Some(count), slot)
            .await
    }
}
