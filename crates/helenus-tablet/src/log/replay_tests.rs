use super::*;
use crate::log::frame::encode_record;
use crate::operation::Op;

fn frame(segment: u64, durable: u64, lsns: &[u64]) -> Vec<u8> {
    let mut bytes = vec![0; FRAME_HEADER_LEN];
    for &lsn in lsns {
        let op = Op {
            token: lsn as i64,
            key: Bytes::from(format!("key{lsn}")),
            operand: Bytes::from(vec![b'v'; 50]),
        };
        encode_record(lsn, &[op], &mut bytes);
    }
    FrameHeader::finish(&mut bytes, segment, 1000, durable);
    bytes
}

struct Segment {
    number: u64,
    bytes: Vec<u8>,
    offsets: Vec<usize>,
}

impl Segment {
    fn new(number: u64, previous_number: u64, previous_end: u64) -> Self {
        let header = SegmentHeader {
            number,
            previous_number,
            previous_end,
            file_len: 0,
        };
        Segment {
            number,
            bytes: header.encode().to_vec(),
            offsets: Vec::new(),
        }
    }

    fn push(&mut self, lsns: &[u64]) {
        let at = self.bytes.len();
        self.offsets.push(at);
        self.bytes.extend(frame(self.number, at as u64, lsns));
    }

    fn save(&self, folder: &Path, tail: usize) {
        let mut bytes = self.bytes.clone();
        bytes.resize(bytes.len() + tail, 0);
        std::fs::write(segment_path(folder, self.number), bytes).unwrap();
    }
}

/// Returns two segments of three frames each: records 1-6, then 7-12.
fn two() -> (Segment, Segment) {
    let mut first = Segment::new(1, 0, 0);
    for lsn in [1, 3, 5] {
        first.push(&[lsn, lsn + 1]);
    }
    let mut second = Segment::new(2, 1, first.bytes.len() as u64);
    for lsn in [7, 9, 11] {
        second.push(&[lsn, lsn + 1]);
    }
    (first, second)
}

fn read(folder: &Path) -> Result<(Vec<u64>, Replayed), StoreError> {
    read_promised(folder, ExpectedLog::default())
}

fn read_promised(folder: &Path, expected: ExpectedLog) -> Result<(Vec<u64>, Replayed), StoreError> {
    let mut lsns = Vec::new();
    let replayed = replay(
        folder,
        expected,
        &|token| Some((token % 2) as u32),
        &mut |_, record| {
            lsns.push(record.lsn);
            Ok(())
        },
    )?;
    Ok((lsns, replayed))
}

fn corrupt_text(folder: &Path) -> String {
    corrupt_text_promised(folder, ExpectedLog::default())
}

fn corrupt_text_promised(folder: &Path, expected: ExpectedLog) -> String {
    match read_promised(folder, expected) {
        Err(error @ StoreError::Corrupt { .. }) => error.to_string(),
        other => panic!("expected corruption, found {other:?}"),
    }
}

#[test]
fn an_empty_folder_is_an_empty_log() {
    let folder = tempfile::tempdir().unwrap();
    let (lsns, replayed) = read(folder.path()).unwrap();
    assert!(lsns.is_empty());
    assert_eq!(replayed.newest, (0, 0));
}

#[test]
fn reads_all_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = two();
    first.save(folder.path(), 5000);
    second.save(folder.path(), 5000);
    let (lsns, replayed) = read(folder.path()).unwrap();
    assert_eq!(lsns, (1..=12).collect::<Vec<_>>());
    assert_eq!(replayed.newest, (2, second.bytes.len() as u64));
    assert_eq!(replayed.segments[0].last_lsn, vec![(1, 5), (0, 6)]);
    assert_eq!(replayed.segments[1].last_lsn, vec![(1, 11), (0, 12)]);
}

#[test]
fn frames_of_a_former_life_end_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let (first, mut second) = two();
    first.save(folder.path(), 0);
    let end = second.bytes.len();
    second.bytes.extend(frame(1, end as u64, &[13]));
    second.save(folder.path(), 100);
    let (lsns, replayed) = read(folder.path()).unwrap();
    assert_eq!(lsns.len(), 12);
    assert_eq!(replayed.newest, (2, end as u64));
}

#[test]
fn frames_of_a_former_life_with_the_same_number_end_the_log() {
    // The old frames lie after a gap, as at the end of a block, or directly after the newest frame.
    for gap in [50, 0] {
        let folder = tempfile::tempdir().unwrap();
        let (first, mut second) = two();
        first.save(folder.path(), 0);
        let end = second.bytes.len();
        second.bytes.resize(end + gap, 0);
        for lsn in [3, 4] {
            let at = second.bytes.len() as u64;
            second.bytes.extend(frame(2, at, &[lsn]));
        }
        second.save(folder.path(), 100);
        let (lsns, replayed) = read(folder.path()).unwrap();
        assert_eq!(lsns.len(), 12);
        assert_eq!(replayed.newest, (2, end as u64));
    }
}

#[test]
fn numbers_go_on_from_files_that_wait() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("0000000000000011.spare"), []).unwrap();
    std::fs::write(folder.path().join("0000000000000009.spare"), []).unwrap();
    let (lsns, replayed) = read(folder.path()).unwrap();
    assert!(lsns.is_empty());
    assert_eq!(replayed.newest, (0x11, 0));
}

#[test]
fn a_torn_tail_is_left_out() {
    let (first, second) = two();
    let last = second.offsets[2];
    for cut in last..second.bytes.len() {
        let folder = tempfile::tempdir().unwrap();
        first.save(folder.path(), 0);
        let torn = Segment {
            number: 2,
            bytes: second.bytes[..cut].to_vec(),
            offsets: Vec::new(),
        };
        torn.save(folder.path(), 4096);
        let (lsns, replayed) = read(folder.path()).unwrap();
        assert_eq!(lsns, (1..=10).collect::<Vec<_>>());
        assert_eq!(replayed.newest, (2, last as u64));
    }
}

#[test]
fn damage_before_acknowledged_frames_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (first, mut second) = two();
    first.save(folder.path(), 100);
    let at = second.offsets[1];
    second.bytes[at + 60] ^= 1;
    second.save(folder.path(), 100);
    let text = corrupt_text(folder.path());
    assert!(text.contains("0000000000000002.log"), "{text}");
    assert!(text.contains(&format!("at offset {at}:")), "{text}");
}

#[test]
fn any_damage_in_an_older_segment_is_named() {
    let (first, second) = two();
    for at in (0..first.bytes.len()).step_by(7) {
        let folder = tempfile::tempdir().unwrap();
        let mut damaged = Segment {
            number: 1,
            bytes: first.bytes.clone(),
            offsets: Vec::new(),
        };
        damaged.bytes[at] ^= 0x10;
        damaged.save(folder.path(), 0);
        second.save(folder.path(), 0);
        let text = corrupt_text(folder.path());
        assert!(text.contains("0000000000000001.log"), "{at}: {text}");
    }
}

#[test]
fn a_missing_segment_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = two();
    first.save(folder.path(), 0);
    let mut fourth = Segment::new(4, 3, 64);
    fourth.push(&[20]);
    second.save(folder.path(), 0);
    fourth.save(folder.path(), 0);
    let text = corrupt_text(folder.path());
    assert!(text.contains("segment 3 before it is missing"), "{text}");
}

/// Returns the expected log of [`two`] segments.
fn expected(first: u64, segment: u64, offset: usize) -> ExpectedLog {
    let offset = offset as u64;
    ExpectedLog {
        first,
        reached: LogPosition { segment, offset },
    }
}

#[test]
fn segments_that_are_promised_must_be_there() {
    let (first, second) = two();
    let end = second.bytes.len();
    for (kept, lost) in [(&first, 2), (&second, 1)] {
        let folder = tempfile::tempdir().unwrap();
        kept.save(folder.path(), 0);
        let text = corrupt_text_promised(folder.path(), expected(1, 2, end));
        assert!(
            text.contains(&format!("000{lost}.log: the file is missing")),
            "{text}"
        );
    }
    // A segment that was retired may be missing.
    let folder = tempfile::tempdir().unwrap();
    second.save(folder.path(), 0);
    let (lsns, _) = read_promised(folder.path(), expected(2, 2, end)).unwrap();
    assert_eq!(lsns.len(), 6);
    let empty = tempfile::tempdir().unwrap();
    let (_, replayed) = read_promised(empty.path(), expected(3, 2, end)).unwrap();
    assert_eq!(replayed.newest, (2, 0), "no number is given twice");
}

#[test]
fn prepared_spare_takes_no_number() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("0000000000000004.spare"), b"").unwrap();
    let (_, replayed) = read_promised(folder.path(), expected(4, 3, 900)).unwrap();
    assert_eq!(
        replayed.newest,
        (3, 0),
        "segment 4 comes next, and must exist from then on"
    );
}

#[test]
fn number_that_was_left_out_need_not_exist() {
    let folder = tempfile::tempdir().unwrap();
    let mut fifth = Segment::new(5, 4, 0);
    fifth.push(&[31, 32]);
    fifth.save(folder.path(), 0);
    let end = fifth.bytes.len();
    let (lsns, replayed) = read_promised(folder.path(), expected(4, 5, end)).unwrap();
    assert_eq!((lsns.len(), replayed.newest.0), (2, 5));
}

#[test]
fn what_is_left_of_retired_segments_is_not_read() {
    let (first, second) = two();
    let folder = tempfile::tempdir().unwrap();
    first.save(folder.path(), 0);
    second.save(folder.path(), 0);
    let (lsns, replayed) = read_promised(folder.path(), expected(2, 2, second.bytes.len())).unwrap();
    assert_eq!((lsns.len(), replayed.segments.len()), (6, 1));
}

#[test]
fn a_frame_that_was_on_disk_is_no_torn_one() {
    let (first, second) = two();
    for (at, promised_end, is_fine) in [
        (second.offsets[2], second.offsets[2], true),
        (second.offsets[2], second.bytes.len(), false),
        (second.offsets[1], second.offsets[2], false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        first.save(folder.path(), 0);
        let cut = Segment {
            number: 2,
            bytes: second.bytes[..at].to_vec(),
            offsets: Vec::new(),
        };
        cut.save(folder.path(), 8192);
        let read = read_promised(folder.path(), expected(1, 2, promised_end));
        assert_eq!(
            read.is_ok(),
            is_fine,
            "cut at {at}, promised {promised_end}: {read:?}"
        );
    }
}

#[test]
fn a_file_that_is_shorter_than_it_was_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (mut only, _) = two();
    let header = SegmentHeader {
        number: 1,
        previous_number: 0,
        previous_end: 0,
        file_len: 8192,
    };
    only.bytes[..SEGMENT_HEADER_LEN].copy_from_slice(&header.encode());
    let zeros = 8192 - only.bytes.len();
    only.save(folder.path(), zeros);
    assert_eq!(read(folder.path()).unwrap().0.len(), 6);
    only.save(folder.path(), zeros - 1);
    let text = corrupt_text(folder.path());
    assert!(text.contains("the file is cut off, it had 8192 bytes"), "{text}");
}
