//! `dense-kv`: far more data than memory, with random reads and a few writes. Readers and writers are separate threads.

use std::fmt::Write;

use anyhow::{Result, bail};
use async_trait::async_trait;
use scylla::statement::prepared::PreparedStatement;

use super::{
    Class, Field, Info, Operation, OperationOutcome, Parameter, PoolOf, ReadSummary, Setup, Workload,
};
use crate::data::fields::Generator;
use crate::data::value::ValueFormat;
use crate::db::{Db, OpError};
use crate::operation::Slot;

/// Length of a key in bytes.
const KEY_LEN: usize = 50;

pub const INFO: Info = Info {
    name: "dense-kv",
    aliases: &[],
    about: "Keys of 50 B, values of 256 B that don't compress; separate synchronous readers and writers",
    operations: &[
        Operation {
            name: "read",
            class: Class::Read,
            weight: 0.5,
            about: "a random key",
        },
        Operation {
            name: "write",
            class: Class::Write,
            weight: 0.5,
            about: "a new value under a random key",
        },
    ],
    parameters: &[
        Parameter {
            name: "readers",
            alias: None,
            default: "32",
            about: "threads that read, one request in flight each",
        },
        Parameter {
            name: "writers",
            alias: None,
            default: "2",
            about: "threads that write, one request in flight each",
        },
    ],
    fields: &[Field {
        name: "dense.v",
        default: "random(256,257)",
    }],
    partitions: 1_000_000,
    pieces: None,
    shared_keys: true,
    pools: Some(pools),
    published: &[
        "YugabyteDB on 4 × c4.4xlarge with gp2: 20 billion rows at QUORUM, loaded in 6 days (38.6K/s)",
        "32 readers and 2 writers: 19K reads/s at 1.3 ms, CPU under 7%, one block of the disk a read; data 150 times memory",
        "64 writers: 20 to 25K writes/s at 3 to 4 ms",
    ],
    schema: |_| {
        Ok(vec![
            "CREATE TABLE IF NOT EXISTS dense (k varchar PRIMARY KEY, v blob)".into(),
        ])
    },
    prepare: |setup, db| Box::pin(async move { Ok(Box::new(DenseKv::new(setup, db).await?) as _) }),
};

fn pools(setup: &Setup) -> Result<Vec<PoolOf>> {
    let mut pools = Vec::new();
    for (name, class) in [("readers", Class::Read), ("writers", Class::Write)] {
        let threads = u32::try_from(setup.number(name)?)?;
        if threads > 0 {
            pools.push(PoolOf {
                class,
                threads,
                in_flight: 1,
            });
        }
    }
    if pools.is_empty() {
        bail!("no readers and no writers: give a number above 0 for one of them");
    }
    Ok(pools)
}

struct DenseKv {
    setup: Setup,
    value: Generator,
    insert: PreparedStatement,
    select: PreparedStatement,
}

impl DenseKv {
    async fn new(setup: &Setup, db: &Db) -> Result<Self> {
        Ok(Self {
            setup: setup.clone(),
            value: setup.generator("dense.v")?,
            insert: db.prepare("INSERT INTO dense (k, v) VALUES (?, ?)").await?,
            select: db.prepare("SELECT v FROM dense WHERE k = ?").await?,
        })
    }

    fn set_key(&self, key: u64, slot: &mut Slot) {
        slot.set_key(&self.setup.keys, key);
        lengthen(slot.key_mut(), key);
    }

    async fn write(&self, db: &Db, slot: &mut Slot) -> OperationOutcome {
        slot.fill(self.value, ValueFormat::Blob);
        db.execute(&self.insert, (slot.key(), slot.blob())).await?;
        Ok(ReadSummary::rows(1))
    }

    async fn read(&self, db: &Db, expected: bool, slot: &Slot) -> OperationOutcome {
        let result = db.execute(&self.select, (slot.key(),)).await?;
        let rows = result.into_rows_result().map_err(OpError::unreadable)?;
        let row = rows
            .maybe_first_row::<(Option<&[u8]>,)>()
            .map_err(OpError::unreadable)?;
        Ok(match row {
            None => ReadSummary::nothing(expected),
            Some((value,)) => ReadSummary::row(slot.is_sound(ValueFormat::Blob, value.unwrap_or_default())),
        })
    }
}

#[async_trait]
impl Workload for DenseKv {
    async fn perform(&self, db: &Db, operation: usize, slot: &mut Slot) -> OperationOutcome {
        let key = slot.pick();
        self.set_key(key, slot);
        match INFO.operations[operation].class {
            Class::Read => self.read(db, false, slot).await,
            Class::Write | Class::Delete => self.write(db, slot).await,
        }
    }

    async fn populate(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        self.set_key(key, slot);
        self.write(db, slot).await
    }

    async fn verify(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        self.set_key(key, slot);
        self.read(db, true, slot).await
    }
}

/// Extends a key's text to its length with digits that hardly compress. The same key always gets the same digits.
fn lengthen(text: &mut String, key: u64) {
    text.push('.');
    let mut state = key;
    while text.len() < KEY_LEN {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        // Writing to a string cannot fail.
        let _ = write!(text, "{:016x}", mixed ^ (mixed >> 32));
    }
    text.truncate(KEY_LEN);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_fifty_bytes_and_all_different() {
        let mut keys: Vec<String> = (0..1000)
            .map(|key| {
                let mut text = format!("001.0.{key}");
                lengthen(&mut text, key);
                text
            })
            .collect();
        assert!(keys.iter().all(|key| key.len() == KEY_LEN));
        assert!(keys[12].starts_with("001.0.12."));
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 1000);
    }
}
