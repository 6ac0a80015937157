use helenus_cql::frame::{ProtocolVersion, QueryParameters};
use helenus_cql::query_log::{SEGMENT_HEADER, Statements, encode_record};

use super::super::ordered::OrderedEntries;
use super::*;

pub(in super::super) fn entry(start_ms: i64, text: &str) -> Entry {
    Entry {
        start_ms,
        protocol_version: ProtocolVersion::V5,
        generated_timestamp_us: None,
        generated_now_s: 0,
        keyspace: None,
        parameters: QueryParameters::default(),
        statements: Statements::Single(text.into()),
    }
}

fn segment(entries: &[(i64, &str)]) -> Vec<u8> {
    let mut segment = SEGMENT_HEADER.to_vec();
    for (start_ms, text) in entries {
        segment.extend_from_slice(&encode_record(&entry(*start_ms, text)).unwrap());
    }
    segment
}

fn text(entry: Entry) -> String {
    match entry.statements {
        Statements::Single(text) => text.to_string(),
        Statements::Batch(..) => panic!("a batch"),
    }
}

fn texts(reader: &mut LogReader) -> Vec<String> {
    std::iter::from_fn(|| reader.next().unwrap())
        .map(|(entry, _)| text(entry))
        .collect()
}

#[test]
fn segments_are_read_in_order_up_to_any_damage() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let torn = segment(&[(1, "a"), (2, "b")]);
    write("0000000000001.fql", &torn[..torn.len() - 1]);
    write("0000000000002.fql", b"no segment");
    let mut damaged = segment(&[(3, "c"), (4, "d"), (5, "e")]);
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    write("0000000000003.fql", &damaged);
    write("0000000000004.fql", &segment(&[(6, "f")]));
    write("notes.txt", b"g");
    let mut reader = LogReader::open(folder.path()).unwrap();
    assert_eq!(texts(&mut reader), ["a", "c", "f"]);
    assert_eq!(
        texts(&mut LogReader::open(&folder.path().join("0000000000004.fql")).unwrap()),
        ["f"]
    );
    assert!(LogReader::open(&folder.path().join("missing")).is_err());
}

#[test]
fn a_log_that_is_written_meanwhile_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("0000000000001.fql");
    let whole = segment(&[(1, "a"), (2, "b")]);
    let mut reader = LogReader::open(folder.path()).unwrap();
    assert!(texts(&mut reader).is_empty());
    std::fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    assert_eq!(texts(&mut reader), ["a"]);
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(texts(&mut reader), ["b"]);
    std::fs::write(folder.path().join("0000000000002.fql"), segment(&[(3, "c")])).unwrap();
    assert_eq!(texts(&mut reader), ["c"]);
}

#[test]
fn logs_are_merged_in_the_order_in_which_requests_began() {
    let folder = tempfile::tempdir().unwrap();
    let logs: Vec<PathBuf> = [
        &[
            (5, "late"),
            (1, "first"),
            (7, "last"),
            (3, "third"),
            (3, "fourth"),
        ][..],
        &[(2, "second"), (6, "later")],
    ]
    .iter()
    .enumerate()
    .map(|(number, entries)| {
        let path = folder.path().join(format!("{number}.fql"));
        std::fs::write(&path, segment(entries)).unwrap();
        path
    })
    .collect();
    let mut ordered = OrderedEntries::open(&logs).unwrap();
    let texts: Vec<String> = std::iter::from_fn(|| ordered.next().unwrap()).map(text).collect();
    assert_eq!(
        texts,
        ["first", "second", "third", "fourth", "late", "later", "last"]
    );
}
