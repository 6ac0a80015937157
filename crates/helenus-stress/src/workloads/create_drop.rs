//! `create-drop`: creates tables, writes to them, and drops them.

use anyhow::Result;
use async_trait::async_trait;

use super::{Class, Info, Operation, OperationOutcome, ReadSummary, Setup, Workload};
use crate::db::Db;
use crate::operation::Slot;

const CREATE: usize = 0;
const WRITE: usize = 1;

pub const INFO: Info = Info {
    name: "create-drop",
    aliases: &[],
    about: "Tables made, written to and dropped, in turn. Schema changes: use few threads with one in flight (-t 1 -c 1)",
    operations: &[
        Operation {
            name: "create",
            class: Class::Write,
            weight: 1.0,
            about: "makes a table",
        },
        Operation {
            name: "write",
            class: Class::Write,
            weight: 1.0,
            about: "writes a row to it",
        },
        Operation {
            name: "drop",
            class: Class::Delete,
            weight: 1.0,
            about: "drops it",
        },
    ],
    parameters: &[],
    fields: &[],
    partitions: 1,
    pieces: None,
    shared_keys: true,
    pools: None,
    published: &[],
    schema: |_| Ok(vec![statement(CREATE, "created_and_dropped")]),
    prepare: |setup, db| Box::pin(async move { prepare(setup, db).await }),
};

async fn prepare(_: &Setup, _: &Db) -> Result<Box<dyn Workload>> {
    Ok(Box::new(CreateDrop))
}

fn statement(operation: usize, table: &str) -> String {
    match operation {
        CREATE => format!("CREATE TABLE IF NOT EXISTS {table} (key text PRIMARY KEY, value text)"),
        WRITE => format!("INSERT INTO {table} (key, value) VALUES ('a', 'b')"),
        _ => format!("DROP TABLE {table}"),
    }
}

struct CreateDrop;

#[async_trait]
impl Workload for CreateDrop {
    fn choose(&self, _: usize, slot: &mut Slot) -> usize {
        let operation = slot.stage % 3;
        if operation == CREATE as u64 {
            let (id, stage) = (slot.id(), slot.stage / 3);
            *slot.key_mut() = format!("made_{id}_{stage}");
        }
        slot.stage += 1;
        operation as usize
    }

    async fn perform(&self, db: &Db, operation: usize, slot: &mut Slot) -> OperationOutcome {
        db.query(&statement(operation, slot.key())).await?;
        Ok(ReadSummary::rows(u64::from(operation == WRITE)))
    }

    async fn populate(&self, _: &Db, _: u64, _: &mut Slot) -> OperationOutcome {
        Ok(ReadSummary::default())
    }

    async fn verify(&self, _: &Db, _: u64, _: &mut Slot) -> OperationOutcome {
        Ok(ReadSummary::default())
    }
}
