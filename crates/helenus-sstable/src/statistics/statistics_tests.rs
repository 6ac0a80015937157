use super::*;
use crate::test_writer::TestTable;

fn table(version: Version) -> TestTable {
    let mut table = TestTable::new(version);
    table.static_columns = vec![("s".to_owned(), "org.apache.cassandra.db.marshal.UTF8Type")];
    table
        .regular_columns
        .push(("w".to_owned(), "ListType(Int32Type)"));
    table
}

/// Derived by hand from `SerializationHeader.Serializer` and `EncodingStats.Serializer`.
#[test]
fn header_has_cassandras_bytes() {
    let mut bytes = vec![0x05, 0x80, 0x80, 0x07];
    bytes.extend(b"\x08UTF8Type\x01\x17ReversedType(Int32Type)");
    bytes.extend(b"\0\x01\x01v\x08LongType");
    let header = SerializationHeader::decode(Version::Nb, &bytes.into()).unwrap();
    assert_eq!(header.encoding.min_timestamp_us, 1_442_880_000_000_005);
    assert_eq!(header.encoding.min_local_deletion_s, 1_442_880_128);
    assert_eq!(header.encoding.min_ttl_s, 7);
    assert_eq!(header.key_type.ty.to_string(), "text");
    assert!(header.clustering_types[0].is_reversed);
    assert!(header.static_columns.is_empty());
    assert_eq!(header.regular_columns[0].name, "v");
    assert_eq!(header.regular_columns[0].column_type.ty.to_string(), "bigint");
}

#[test]
fn minimum_before_the_epoch_wraps_around() {
    for version in Version::ALL {
        let mut table = TestTable::new(version);
        table.min_timestamp_us = -5;
        table.min_local_deletion_s = 10;
        let encoding = table.header().encoding;
        assert_eq!(
            (encoding.min_timestamp_us, encoding.min_local_deletion_s),
            (-5, 10),
            "{version}"
        );
    }
}

#[test]
fn statistics_are_decoded_in_each_version() {
    for version in Version::ALL {
        let statistics = Statistics::decode(version, &table(version).statistics_bytes()).unwrap();
        assert_eq!(
            statistics.partitioner,
            "org.apache.cassandra.dht.Murmur3Partitioner"
        );
        let header = &statistics.header;
        assert_eq!(header.static_columns[0].kind, ColumnKind::Static);
        assert!(!header.regular_columns[0].is_complex && header.regular_columns[1].is_complex);
        let summary = statistics.summary().unwrap().unwrap();
        assert_eq!(
            (summary.min_timestamp_us, summary.max_timestamp_us),
            (1_000, 2_000)
        );
        assert_eq!(summary.min_local_deletion_s, 3_000);
        assert_eq!(summary.max_local_deletion_s, NO_DELETION_TIME_S);
        assert_eq!((summary.min_ttl_s, summary.max_ttl_s, summary.level), (5, 6, 3));
        assert_eq!((summary.repaired_at_ms, summary.cells, summary.rows), (7, 8, 9));
        assert!(summary.has_legacy_counter_shards);
        assert_eq!(
            summary.pending_repair.is_some(),
            version >= Version::Na,
            "{version}"
        );
        assert_eq!(summary.is_transient, version >= Version::Na);
        let has_host = !matches!(version, Version::Md | Version::Na);
        assert_eq!(summary.originating_host_id.is_some(), has_host, "{version}");
        let is_5 = version >= Version::Oa;
        assert_eq!(summary.token_space_coverage, is_5.then_some(0.25));
        assert_eq!(summary.key_range.is_some(), is_5);
        assert_eq!(matches!(summary.covered, CoveredClusterings::Slice { .. }), is_5);
    }
}

#[test]
fn flipped_bytes_are_refused_since_na() {
    let bytes = table(Version::Nb).statistics_bytes();
    for position in 0..bytes.len() {
        let mut flipped = bytes.to_vec();
        flipped[position] ^= 0x10;
        assert!(
            Statistics::decode(Version::Nb, &flipped.into()).is_err(),
            "{position}"
        );
    }
}

#[test]
fn cut_or_flipped_bytes_of_old_files_do_not_panic() {
    let bytes = table(Version::Md).statistics_bytes();
    let header_start = bytes.len() - table(Version::Md).header_bytes().len();
    for position in 0..bytes.len() {
        let cut = Statistics::decode(Version::Md, &bytes.slice(..position));
        assert!(cut.is_err(), "{position} of {header_start}");
        for bit in 0..8 {
            let mut flipped = bytes.to_vec();
            flipped[position] ^= 1 << bit;
            if let Ok(statistics) = Statistics::decode(Version::Md, &flipped.into()) {
                drop(statistics.summary());
            }
        }
    }
}

#[test]
fn unknown_type_is_refused_by_name() {
    let mut table = TestTable::new(Version::Nb);
    table.regular_columns[0].1 = "com.example.OurType";
    let error = Statistics::decode(Version::Nb, &table.statistics_bytes()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.to_string().contains("com.example.OurType"), "{error}");
}

#[test]
fn user_type_becomes_frozen_by_the_schema() {
    let mut table = TestTable::new(Version::Me);
    table.regular_columns[0].1 = "UserType(ks,61,62:Int32Type)";
    let mut header = table.header();
    assert!(header.regular_columns[0].is_complex);
    header.freeze_columns(|column| column.name == "v");
    assert!(!header.regular_columns[0].is_complex);
}
