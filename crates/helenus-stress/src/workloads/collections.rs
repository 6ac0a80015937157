//! `collections`: changes a map, a set and a list element by element, and reads them whole. tlp-stress's Maps and Sets.

use std::collections::HashMap;

use anyhow::Result;
use async_trait::async_trait;
use rand::Rng;
use scylla::statement::prepared::PreparedStatement;

use super::{Class, Field, Info, Operation, OperationOutcome, Parameter, ReadSummary, Setup, Workload};
use crate::data::fields::Generator;
use crate::data::value::ValueFormat;
use crate::db::{Db, OpError};
use crate::operation::Slot;

pub const INFO: Info = Info {
    name: "collections",
    aliases: &["Maps", "Sets"],
    about: "A map, a set and a list in a row: change an element, read them whole",
    operations: &[
        Operation {
            name: "read",
            class: Class::Read,
            weight: 0.5,
            about: "the whole row",
        },
        Operation {
            name: "map_put",
            class: Class::Write,
            weight: 0.2,
            about: "a value under a random key of the map",
        },
        Operation {
            name: "set_add",
            class: Class::Write,
            weight: 0.2,
            about: "a random element to the set",
        },
        Operation {
            name: "list_set",
            class: Class::Write,
            weight: 0.1,
            about: "a whole new list",
        },
        Operation {
            name: "map_remove",
            class: Class::Delete,
            weight: 0.0,
            about: "a random key of the map",
        },
    ],
    parameters: &[Parameter {
        name: "elements",
        alias: None,
        default: "10",
        about: "elements in a full map, set or list",
    }],
    fields: &[Field {
        name: "collections.map",
        default: "random(50,100)",
    }],
    partitions: 100_000,
    pieces: None,
    shared_keys: false,
    pools: None,
    published: &[],
    schema: |_| {
        Ok(vec![
            "CREATE TABLE IF NOT EXISTS collections (key text PRIMARY KEY, m map<int, text>, s set<int>, l list<int>)".into(),
        ])
    },
    prepare: |setup, db| Box::pin(async move { Ok(Box::new(Collections::new(setup, db).await?) as _) }),
};

struct Collections {
    setup: Setup,
    value: Generator,
    elements: i32,
    insert: PreparedStatement,
    put: PreparedStatement,
    add: PreparedStatement,
    list: PreparedStatement,
    remove: PreparedStatement,
    select: PreparedStatement,
}

type Row = (Option<HashMap<i32, String>>, Option<Vec<i32>>, Option<Vec<i32>>);

impl Collections {
    async fn new(setup: &Setup, db: &Db) -> Result<Self> {
        Ok(Self {
            setup: setup.clone(),
            value: setup.generator("collections.map")?,
            elements: i32::try_from(setup.count("elements")?)?,
            insert: db
                .prepare("INSERT INTO collections (key, m, s, l) VALUES (?, ?, ?, ?)")
                .await?,
            put: db
                .prepare("UPDATE collections SET m[?] = ? WHERE key = ?")
                .await?,
            add: db
                .prepare("UPDATE collections SET s = s + ? WHERE key = ?")
                .await?,
            list: db.prepare("UPDATE collections SET l = ? WHERE key = ?").await?,
            remove: db.prepare("DELETE m[?] FROM collections WHERE key = ?").await?,
            select: db
                .prepare("SELECT m, s, l FROM collections WHERE key = ?")
                .await?,
        })
    }

    async fn read(&self, db: &Db, full: bool, slot: &Slot) -> OperationOutcome {
        let result = db.execute(&self.select, (slot.key(),)).await?;
        let rows = result.into_rows_result().map_err(OpError::unreadable)?;
        let Some((map, set, list)) = rows.maybe_first_row::<Row>().map_err(OpError::unreadable)? else {
            return Ok(ReadSummary::nothing(full));
        };
        let (map, set, list) = (
            map.unwrap_or_default(),
            set.unwrap_or_default(),
            list.unwrap_or_default(),
        );
        let elements = self.elements as usize;
        if full
            && [map.len(), set.len(), list.len()]
                .iter()
                .any(|&len| len < elements)
        {
            return Ok(ReadSummary {
                rows: 1,
                ..ReadSummary::nothing(true)
            });
        }
        let sound = |(key, value): (&i32, &String)| {
            slot.is_sound_part(ValueFormat::Text, *key as u64, value.as_bytes())
        };
        Ok(ReadSummary::row(map.iter().all(sound)))
    }
}

#[async_trait]
impl Workload for Collections {
    async fn perform(&self, db: &Db, operation: usize, slot: &mut Slot) -> OperationOutcome {
        let key = slot.pick();
        slot.set_key(&self.setup.keys, key);
        let element = slot.rng.random_range(0..self.elements);
        match INFO.operations[operation].name {
            "read" => return self.read(db, false, slot).await,
            "map_put" => {
                slot.fill_part(self.value, ValueFormat::Text, element as u64);
                db.execute(&self.put, (element, slot.text(), slot.key())).await?;
            }
            "set_add" => {
                db.execute(&self.add, ([element].as_slice(), slot.key())).await?;
            }
            "list_set" => {
                let list: Vec<i32> = (element..element + self.elements).collect();
                db.execute(&self.list, (list, slot.key())).await?;
            }
            _ => {
                db.execute(&self.remove, (element, slot.key())).await?;
            }
        }
        Ok(ReadSummary::rows(1))
    }

    async fn populate(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        let mut map = HashMap::new();
        for element in 0..self.elements {
            slot.fill_part(self.value, ValueFormat::Text, element as u64);
            map.insert(element, slot.text().to_owned());
        }
        let all: Vec<i32> = (0..self.elements).collect();
        db.execute(&self.insert, (slot.key(), map, &all, &all)).await?;
        Ok(ReadSummary::rows(1))
    }

    async fn verify(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        self.read(db, true, slot).await
    }
}
