//! `many-tables`: many copies of a small key-value table. tlp-stress's MultiTableKeyValue.

use anyhow::Result;
use async_trait::async_trait;

use super::kv::{Table, create_table};
use super::{Class, Field, Info, Operation, OperationOutcome, Parameter, Setup, Workload};
use crate::data::fields::Generator;
use crate::db::Db;
use crate::operation::Slot;

pub const INFO: Info = Info {
    name: "many-tables",
    aliases: &["MultiTableKeyValue"],
    about: "The kv table many times over, each taken in turn",
    operations: &[
        Operation {
            name: "read",
            class: Class::Read,
            weight: 0.5,
            about: "a random key's value in the next table",
        },
        Operation {
            name: "write",
            class: Class::Write,
            weight: 0.5,
            about: "a new value under a random key in it",
        },
        Operation {
            name: "delete",
            class: Class::Delete,
            weight: 0.0,
            about: "a random key in it",
        },
    ],
    parameters: &[
        Parameter {
            name: "tables",
            alias: Some("nbTables"),
            default: "10",
            about: "how many tables",
        },
        Parameter {
            name: "populated",
            alias: None,
            default: "false",
            about: "true: a key belongs to one table, where `populate` has written it, so that reads find it; \
                    false: as published, any key in the table whose turn it is, so that most reads find nothing",
        },
    ],
    fields: &[Field {
        name: "keyvalue.value",
        default: "random(100,200)",
    }],
    partitions: 1_000_000,
    pieces: None,
    shared_keys: false,
    pools: None,
    published: &[
        "The Last Pickle, 2020: Cassandra 3.11.9 on i3.2xlarge, 31 GB heap, RF 3, LOCAL_ONE; 80% writes, 8 threads × 50, 10M keys, 30 min",
        "68M writes with 10 tables, 48M with 1,000 (29% fewer), less steady the more tables; no metrics from 500 tables on",
    ],
    schema: |setup| {
        Ok((0..setup.count("tables")?)
            .map(|table| create_table(&name(table)))
            .collect())
    },
    prepare: |setup, db| Box::pin(async move { Ok(Box::new(ManyTables::new(setup, db).await?) as _) }),
};

fn name(table: u64) -> String {
    format!("keyvalue{table}")
}

struct ManyTables {
    setup: Setup,
    value: Generator,
    tables: Vec<Table>,
    populated: bool,
}

impl ManyTables {
    async fn new(setup: &Setup, db: &Db) -> Result<Self> {
        let mut tables = Vec::new();
        for table in 0..setup.count("tables")? {
            tables.push(Table::prepare(db, &name(table)).await?);
        }
        let value = setup.generator("keyvalue.value")?;
        let populated = setup.flag("populated")?;
        Ok(Self {
            setup: setup.clone(),
            value,
            tables,
            populated,
        })
    }

    fn own_table(&self, key: u64) -> &Table {
        &self.tables[(key % self.tables.len() as u64) as usize]
    }
}

#[async_trait]
impl Workload for ManyTables {
    async fn perform(&self, db: &Db, operation: usize, slot: &mut Slot) -> OperationOutcome {
        let key = slot.pick();
        slot.set_key(&self.setup.keys, key);
        let turn = if self.populated { key } else { slot.next_count() };
        let table = self.own_table(turn);
        match INFO.operations[operation].class {
            Class::Read => table.read(db, false, slot).await,
            Class::Write => table.write(db, self.value, slot).await,
            Class::Delete => table.delete(db, slot).await,
        }
    }

    async fn populate(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        self.own_table(key).write(db, self.value, slot).await
    }

    async fn verify(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        self.own_table(key).read(db, true, slot).await
    }
}
