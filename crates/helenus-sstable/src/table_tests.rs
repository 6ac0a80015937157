use proptest::prelude::*;

use super::*;
use crate::folder::{LocalFolder, MemoryFolder};
use crate::listing::{Listed, list};
use crate::storage::Compressor;
use crate::test_writer::{Compression, Random, TestTable, random_table};
use crate::version::Version;

fn read(table: &TestTable, folder: MemoryFolder) -> Result<Vec<Event>, SstableError> {
    table.open(folder)?.events(Limits::default())?.collect()
}

/// Reads a damaged SSTable. The result doesn't matter as long as there is no panic.
fn read_damaged(table: &TestTable, folder: MemoryFolder) -> Result<Vec<Event>, SstableError> {
    let opened = table.open(folder)?;
    drop(opened.statistics().summary());
    drop(opened.verify_digest());
    opened.events(Limits::default())?.collect()
}

fn versions() -> impl Strategy<Value = Version> {
    prop::sample::select(Version::ALL.to_vec())
}

proptest! {
    #[test]
    fn random_sstables_survive_a_round_trip(version in versions(), seed in any::<u64>()) {
        let (table, events) = random_table(version, seed);
        let folder = table.folder(&events);
        let opened = table.open(folder.clone()).unwrap();
        prop_assert!(opened.verify_digest().unwrap());
        prop_assert_eq!(read(&table, folder).unwrap(), events);
    }

    #[test]
    fn random_damage_is_refused(version in versions(), seed in any::<u64>(), damage in any::<u64>()) {
        let (table, events) = random_table(version, seed);
        let folder = table.folder(&events);
        let mut random = Random(damage);
        for component in [DATA, STATISTICS, COMPRESSION_INFO, CRC] {
            let name = table.descriptor().file_name(component);
            let Some(content) = folder.get(&name) else { continue };
            for is_cut in [false, true] {
                let place = random.below(content.len() as u64) as usize;
                let mut damaged = content.to_vec();
                if is_cut {
                    damaged.truncate(place);
                } else {
                    damaged[place] ^= 1 << random.below(8);
                }
                let mut folder = folder.clone();
                folder.insert(name.clone(), damaged);
                let result = read_damaged(&table, folder);
                // Only Statistics.db before na and the options in CompressionInfo.db have no checksum.
                let is_covered = match component {
                    STATISTICS => version.has_metadata_checksum() || is_cut,
                    COMPRESSION_INFO => is_cut,
                    // Another chunk length can have the same number of chunks. The checksum of nothing may be absent.
                    CRC if is_cut => !table.has_empty_chunk || place + 4 != content.len(),
                    CRC => place >= 4,
                    _ => true,
                };
                prop_assert!(!is_covered || result.is_err(), "{component} {is_cut} {place}");
            }
        }
    }

    #[test]
    fn random_bytes_do_not_panic(version in versions(), seed in any::<u64>(), damage in any::<u64>()) {
        let (mut table, events) = random_table(version, seed);
        table.compression = None;
        let mut data = table.data_bytes(&events);
        let mut random = Random(damage);
        for _ in 0..8 {
            let place = random.below(data.len() as u64) as usize;
            data[place] = random.below(256) as u8;
        }
        let mut folder = table.folder(&events);
        folder.remove(&table.descriptor().file_name(CRC));
        folder.insert(table.descriptor().file_name(DATA), data);
        drop(read_damaged(&table, folder));
    }
}

fn sample() -> (TestTable, Vec<Event>) {
    let (mut table, events) = (0..)
        .map(|seed| random_table(Version::Nb, seed))
        .find(|(_, events)| events.len() > 20)
        .unwrap();
    table.compression = Some(Compression {
        compressor: Compressor::Lz4,
        chunk_len: 64,
        max_compressed_len: 60,
    });
    (table, events)
}

#[test]
fn every_flipped_byte_of_data_is_refused() {
    let (mut table, events) = sample();
    for compression in [table.compression, None] {
        table.compression = compression;
        let folder = table.folder(&events);
        let name = table.descriptor().file_name(DATA);
        let content = folder.get(&name).unwrap().clone();
        for position in 0..content.len() {
            let mut flipped = content.to_vec();
            flipped[position] ^= 4;
            let mut folder = folder.clone();
            folder.insert(name.clone(), flipped);
            let error = read(&table, folder).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Checksum, "{position}");
        }
    }
}

#[test]
fn missing_components_are_named() {
    let (table, events) = sample();
    for component in [DATA, STATISTICS] {
        let mut folder = table.folder(&events);
        folder.remove(&table.descriptor().file_name(component));
        let error = table.open(folder).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Missing);
        assert!(error.file.ends_with(component), "{error}");
    }
}

#[test]
fn wrong_digest_is_refused_and_a_missing_one_reported() {
    let (table, events) = sample();
    let mut folder = table.folder(&events);
    let name = table.descriptor().file_name(DIGEST);
    folder.insert(name.clone(), "12345");
    let error = table.open(folder.clone()).unwrap().verify_digest().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Checksum);
    folder.insert(name.clone(), "x");
    let error = table.open(folder.clone()).unwrap().verify_digest().unwrap_err();
    assert_eq!((error.kind, error.file), (ErrorKind::Corrupt, name.clone()));
    folder.remove(&name);
    assert!(!table.open(folder).unwrap().verify_digest().unwrap());
}

#[test]
fn sstable_is_read_from_a_folder() {
    let (table, events) = sample();
    let place = tempfile::tempdir().unwrap();
    let memory = table.folder(&events);
    for name in memory.names().unwrap() {
        std::fs::write(place.path().join(&name), memory.get(&name).unwrap()).unwrap();
    }
    let folder = Arc::new(LocalFolder::new(place.path()));
    let [listed]: [Listed; 1] = list(&*folder).unwrap().sstables.try_into().unwrap();
    listed.check_complete().unwrap();
    let opened = SsTable::open(folder, &listed.descriptor).unwrap();
    let mut found = opened.events(Limits::default()).unwrap();
    let read: Result<Vec<Event>, SstableError> = found.by_ref().collect();
    assert_eq!(read.unwrap(), events);
    assert_eq!(found.offset(), opened.data_len());
}

#[test]
fn errors_name_the_file() {
    let (table, events) = sample();
    let mut folder = table.folder(&events);
    let name = table.descriptor().file_name(DATA);
    let cut = folder.get(&name).unwrap().slice(..100);
    folder.insert(name.clone(), cut);
    let error = read(&table, folder).unwrap_err();
    assert_eq!((error.kind, &error.file), (ErrorKind::Truncated, &name));
}
