use std::time::{Duration, Instant};

use rand::Rng;

use super::*;
use crate::log::Record;
use crate::operation::Op;

/// A chunk written by an earlier binary, in hexadecimal digits.
const GOLDEN: &str = "484c4e534849533194b4585b28b52ffd0048050300740306000700090007004000e8030083000000010001000000fbff03000000640000006b657978\
    07001000dc0500830000000200094000780312001f2401f1028c90311699640116d006101864188094002e600ab8030c0c0606038381078005";

fn segments() -> Segments {
    let frame = |time_ms: i64, lsn: u64| Frame {
        time_ms,
        records: vec![Record {
            lsn,
            ops: vec![Op {
                token: -5,
                key: Bytes::from_static(b"key"),
                operand: Bytes::from(vec![b'x'; 100]),
            }],
        }],
    };
    let at = |segment, offset| LogPosition { segment, offset };
    Segments {
        previous: 6,
        first: 7,
        last: 9,
        frames: [
            (at(7, 64), frame(1000, 1)),
            (at(7, 4096), frame(1500, 2)),
            (at(9, 64), frame(1400, 3)),
        ]
        .into(),
    }
}

#[test]
fn a_chunk_reads_back_as_it_was_written_and_damage_is_seen() {
    let segments = segments();
    let bytes = encode(&segments).unwrap();
    assert_eq!(decode(&bytes), Some(segments));
    for at in 0..bytes.len() {
        let mut damaged = bytes.to_vec();
        damaged[at] ^= 1;
        assert_eq!(decode(&damaged), None, "byte {at}");
        assert_eq!(decode(&bytes[..at]), None, "{at} bytes");
    }
}

#[test]
fn bytes_on_disk_stay_as_they_are() {
    let digits = (0..GOLDEN.len()).step_by(2).map(|at| &GOLDEN[at..at + 2]);
    let bytes = digits.map(|digits| u8::from_str_radix(digits, 16).unwrap());
    assert_eq!(decode(&bytes.collect::<Vec<u8>>()), Some(segments()));
}

#[test]
fn the_name_of_a_chunk_says_what_is_in_it() {
    let log = Uuid::from_u128(7);
    let name = ChunkName::of(&segments(), 9);
    assert_eq!((name.earliest_ms, name.latest_ms), (1000, 1500));
    let path = name.path(log);
    assert_eq!(
        path.as_ref(),
        "history/log/00000000-0000-0000-0000-000000000007/\
         00000000000000000007-00000000000000000009-0000000001000-0000000001500"
    );
    assert_eq!(ChunkName::parse(&path), Some(name));
    let empty = Segments {
        frames: Default::default(),
        ..segments()
    };
    let name = ChunkName::of(&empty, 9);
    assert_eq!((name.earliest_ms, name.latest_ms), (9, 9));
    for other in ["1-2-3", "a-2-3-4", "1-2-3-4-5", "1-2-3--4"] {
        assert_eq!(ChunkName::parse(&log_folder(None).join(other)), None, "{other}");
    }
}

/// Shows that damaged content is refused or decoded, without a panic. The checksum of a chunk would detect the damage, so the content is
/// decoded without it.
#[test]
fn damaged_content_is_refused_or_read_but_does_not_panic() {
    let seconds = std::env::var("HELENUS_FUZZ_SECONDS").ok();
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let whole = encode(&segments()).unwrap();
    let content = zstd::decode_all(&whole[HEAD_LEN..]).unwrap();
    let mut random = rand::rng();
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < end {
        let mut damaged = content.clone();
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..damaged.len());
            match random.random_range(0..4) {
                0 => damaged[at] = random.random(),
                1 => damaged[at] = [0, 0x7f, 0x80, 0xff][random.random_range(0..4)],
                2 => damaged.insert(at, random.random()),
                _ => damaged.truncate(at.max(1)),
            }
        }
        if let Some(read) = decode_content(damaged.clone().into()) {
            assert_eq!(decode(&encode(&read).unwrap()), Some(read), "{damaged:?}");
        }
    }
}
