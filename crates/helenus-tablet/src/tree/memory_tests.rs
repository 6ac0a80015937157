use std::collections::BTreeMap;

use bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;

fn hash(key: &[u8]) -> u64 {
    key.iter().fold(7, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

fn batch(seq: u64, rows: impl IntoIterator<Item = (String, Change)>) -> MemTable {
    let table = Table {
        rows: rows
            .into_iter()
            .map(|(key, change)| (Bytes::from(key), change))
            .collect(),
        last_lsn: seq,
        ..Table::default()
    };
    MemTable::new(&table, hash)
}

/// All versions of a key that are above `flushed`, from new to old, down to a whole row.
fn versions(tables: &[Arc<MemTable>], key: &[u8], flushed: u64) -> Vec<(u64, Bytes)> {
    let mut versions = Vec::new();
    for table in tables.iter().filter(|table| table.may_have(hash(key))) {
        let rows = &table.rows;
        for at in (rows.lower_bound(key)..rows.len()).take_while(|at| rows.key(*at) == key) {
            if rows.seq(at) > flushed {
                versions.push((rows.seq(at), rows.value(at)));
            }
            if rows.kind(at) == Kind::Whole {
                return versions;
            }
        }
    }
    versions
}

#[test]
fn joined_tables_have_the_same_versions_in_fewer_tables() {
    let mut random = SmallRng::seed_from_u64(5);
    let mut model: BTreeMap<String, Vec<(u64, Bytes)>> = BTreeMap::new();
    let mut tables: Vec<Arc<MemTable>> = Vec::new();
    let mut flushed = 0;
    for seq in 1..400 {
        let mut rows = BTreeMap::new();
        for _ in 0..random.random_range(1..200) {
            let key = format!("k{:03}", random.random_range(0..300));
            let value = Bytes::from(vec![0; random.random_range(0..50)]);
            rows.insert(key, (random.random_range(0..4) == 0, value));
        }
        for (key, (is_whole, value)) in &rows {
            let known = model.entry(key.clone()).or_default();
            if *is_whole {
                known.clear();
            }
            known.insert(0, (seq, value.clone()));
        }
        let rows = rows.into_iter().map(|(key, (is_whole, value))| match is_whole {
            true => (key, Change::Whole(value)),
            false => (key, Change::Operand(value)),
        });
        let joined = absorb(batch(seq, rows), &tables, flushed);
        tables.retain(|table| table.last_seq < joined.first_seq);
        tables.insert(0, joined);
        if seq % 50 == 0 {
            flushed = seq - 20;
            tables.retain(|table| table.last_seq > flushed);
        }
        assert!(tables.len() <= 16, "{} tables", tables.len());
    }
    assert!(tables.len() < 20);
    for (key, known) in &model {
        let expected: Vec<_> = known.iter().filter(|(seq, _)| *seq > flushed).cloned().collect();
        assert_eq!(versions(&tables, key.as_bytes(), flushed), expected, "{key}");
    }
}

#[test]
fn the_filter_knows_each_key_and_few_others() {
    let name = |number: u64| format!("key {number}");
    let table = batch(
        1,
        (0..10_000).map(|number| (name(number), Change::Operand(Bytes::new()))),
    );
    assert!((0..10_000).all(|number| table.may_have(hash(name(number).as_bytes()))));
    let others = (10_000..20_000).filter(|number| table.may_have(hash(name(*number).as_bytes())));
    let wrong = others.count();
    assert!(wrong < 600, "{wrong} of 10,000");
}
