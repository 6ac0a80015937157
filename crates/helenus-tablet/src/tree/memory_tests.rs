use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::tree::staged_key::StagedKey;

fn hash(key: &[u8]) -> u64 {
    key.iter().fold(7, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

fn batch(seq: u64, rows: impl IntoIterator<Item = (String, Change)>) -> MemTable {
    let table = ChangeTable {
        rows: rows
            .into_iter()
            .map(|(key, change)| (StagedKey::new(Bytes::from(key)), change))
            .collect(),
        last_lsn: seq,
        ..ChangeTable::default()
    };
    MemTable::new(&table, hash)
}

/// A merge that concatenates all written values.
struct Append;

impl RowMerge for Append {
    fn merge(
        &self,
        _key: &[u8],
        existing: Option<&Bytes>,
        operands: &[Bytes],
    ) -> Result<Bytes, DataModelError> {
        let parts: Vec<&[u8]> = existing.into_iter().chain(operands).map(Bytes::as_ref).collect();
        Ok(parts.concat().into())
    }

    fn may_copy(&self, _key: &[u8]) -> bool {
        true
    }

    fn may_be_alive(&self, _key: &[u8], _operand: &Bytes) -> bool {
        true
    }
}

/// Returns all versions of a key folded into one, and its kind.
fn fold(tables: &[Arc<MemTable>], key: &[u8]) -> Option<(EntryKind, Bytes)> {
    let mut versions = Versions::default();
    'tables: for table in tables.iter().filter(|table| table.may_have(hash(key))) {
        let rows = &table.rows;
        for at in (rows.lower_bound(key)..rows.len()).take_while(|at| rows.key(*at) == key) {
            versions.add(rows, at);
            if rows.kind(at) == EntryKind::Whole {
                break 'tables;
            }
        }
    }
    (!versions.is_empty()).then(|| versions.fold(&Append, key).unwrap())
}

fn versions_of(tables: &[Arc<MemTable>]) -> usize {
    tables.iter().map(|table| table.rows.len()).sum()
}

#[test]
fn joining_memtables_keeps_rows_with_fewer_versions() {
    let mut random = SmallRng::seed_from_u64(5);
    let mut model: BTreeMap<String, (EntryKind, Bytes)> = BTreeMap::new();
    let mut tables: Vec<Arc<MemTable>> = Vec::new();
    let mut written = 0;
    for seq in 1..400 {
        let mut rows = BTreeMap::new();
        for _ in 0..random.random_range(1..200) {
            let key = format!("k{:03}", random.random_range(0..300));
            let value = Bytes::from(format!("{seq},").repeat(random.random_range(1..10)));
            rows.insert(key, (random.random_range(0..4) == 0, value));
        }
        written += rows.len();
        for (key, (is_whole, value)) in &rows {
            let known = model
                .entry(key.clone())
                .or_insert((EntryKind::Operand, Bytes::new()));
            *known = match is_whole {
                true => (EntryKind::Whole, value.clone()),
                false => (known.0, [known.1.as_ref(), value].concat().into()),
            };
        }
        let rows = rows.into_iter().map(|(key, (is_whole, value))| match is_whole {
            true => (key, Change::Whole(value)),
            false => (key, Change::Operand(value)),
        });
        let mut all = vec![Arc::new(batch(seq, rows))];
        all.extend(tables.iter().cloned());
        let joined = match seq % 150 {
            0 => join_all(&all, &Append),
            _ => join_due(all, &Append),
        };
        let joined = joined.unwrap().unwrap();
        tables.retain(|table| table.last_seq < joined.first_seq);
        tables.insert(0, joined);
        assert!(tables.len() <= 16, "{} tables", tables.len());
        if seq % 150 == 0 {
            assert_eq!((tables.len(), versions_of(&tables)), (1, model.len()));
        }
    }
    assert!(versions_of(&tables) < written / 4);
    for (key, known) in &model {
        assert_eq!(fold(&tables, key.as_bytes()).as_ref(), Some(known), "{key}");
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

#[test]
fn keys_with_a_prefix_are_found() {
    let put = |key: &str| (key.to_owned(), Change::Operand(Bytes::from_static(b"x")));
    let table = batch(1, [put("b1"), put("b2"), put("d")]);
    let found = ["", "a", "b", "b1", "b11", "c", "d", "e"].map(|prefix| table.has_prefix(prefix.as_bytes()));
    assert_eq!(found, [true, false, true, true, false, false, true, false]);
    assert!(!batch(2, []).has_prefix(b""));
}

/// Returns a key of few different bytes, among them the least and the greatest. Many such keys have equal leading bytes.
fn random_key(len_max: usize, random: &mut SmallRng) -> Bytes {
    let len = random.random_range(1..=len_max);
    let byte = |_| [0, 0, 1, 255][random.random_range(0..4usize)];
    (0..len).map(byte).collect()
}

#[test]
fn searches_of_large_tables_find_every_place() {
    let mut random = SmallRng::seed_from_u64(11);
    for (count, len_max) in [(100, 20), (300, 30), (3000, 6), (3000, 40)] {
        let mut key = || random_key(len_max, &mut random);
        let written = (0..count).map(|_| (StagedKey::new(key()), Change::Whole(Bytes::new())));
        let table = ChangeTable {
            rows: written.collect(),
            ..ChangeTable::default()
        };
        let sorted: Vec<Bytes> = table.rows.keys().map(|key| key.bytes().clone()).collect();
        let rows = MemTable::new(&table, hash).rows;
        let others: Vec<Bytes> = (0..200).map(|_| key()).collect();
        for key in sorted.iter().chain(&others) {
            let lower = sorted.partition_point(|row| row < key);
            let upper = sorted.partition_point(|row| row <= key);
            let found = (rows.lower_bound(key), rows.upper_bound(key));
            assert_eq!(found, (lower, upper), "{key:?}");
            assert_eq!(table.get(key).is_some(), sorted.get(lower) == Some(key));
            let after = table.range(Bound::Excluded(key), Bound::Unbounded);
            assert_eq!(after.count(), sorted.len() - upper, "{key:?}");
        }
    }
}
