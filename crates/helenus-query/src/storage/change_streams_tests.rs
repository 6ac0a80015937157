use super::*;

fn range(first: i64, last: i64) -> TokenRange {
    TokenRange { first, last }
}

#[test]
fn stream_lies_in_its_range() {
    let step = 1_i64 << 54;
    let mut seen = BTreeSet::new();
    for at in 0..1024_i64 {
        let first = i64::MIN.wrapping_add(at.wrapping_mul(step));
        let key = stream_key(range(first, first + (step - 1)));
        assert!((first..=first + (step - 1)).contains(&key.token));
        assert_eq!(key.bytes.len(), 16);
        assert_eq!(key.bytes[15] & 0xf, VERSION);
        assert!(seen.insert(key.bytes.clone()), "each range has its own id");
    }
}

#[test]
fn stream_of_narrow_range_lies_in_it() {
    for (first, last) in [
        (7, 7),
        (-1, 0),
        (i64::MIN, i64::MIN + 1),
        (i64::MAX, i64::MAX),
        (i64::MIN, i64::MAX),
    ] {
        let key = stream_key(range(first, last));
        assert!((first..=last).contains(&key.token), "{first} to {last}");
        assert_eq!(key.bytes[15] & 0xf, VERSION);
    }
}

#[test]
fn split_closes_one_stream_and_opens_two() {
    let (low, high) = (range(i64::MIN, -1), range(0, i64::MAX));
    let documents = [
        GenerationDoc {
            since_ms: 10,
            closed: Vec::new(),
            opened: vec![TokenRange::RING],
        },
        GenerationDoc {
            since_ms: 20,
            closed: vec![TokenRange::RING],
            opened: vec![low, high],
        },
    ];
    let generations = replay(&documents);
    let ranges = |streams: &[Stream]| -> Vec<TokenRange> { streams.iter().map(|of| of.range).collect() };
    assert_eq!(ranges(&generations[0].current), [TokenRange::RING]);
    assert_eq!(ranges(&generations[1].closed), [TokenRange::RING]);
    assert_eq!(ranges(&generations[1].current), [low, high]);
    assert_eq!(generations[1].current[0].since_us, 20_000);
}

#[test]
fn time_is_that_of_the_write_if_it_is_near() {
    let streams = ChangeStreams::default();
    let now_us = 1_000_000_000;
    let time_us = |write_us| streams.time(write_us, now_us, 0).time_us;
    assert_eq!(time_us(now_us - 4_000_000), now_us - 4_000_000);
    assert_eq!(time_us(now_us + 4_000_000), now_us + 4_000_000);
    // Older and later writes get new times, each once.
    assert_eq!(time_us(5), now_us);
    assert_eq!(time_us(now_us + 6_000_000), now_us + 1);
}

#[test]
fn changes_before_a_stream_keep_their_order() {
    let since_us = 1_000_000_000;
    let writes = [-6_000_000, -5_999_999, -2, -1, 0, 1, 2].map(|after_us| since_us + after_us);
    let times = writes.map(|write_us| ChangeTime::of_write(write_us, since_us));
    for (before, after) in times.iter().zip(&times[1..]) {
        assert!(before.time_us >= since_us, "no change is older than its stream");
        let place = |time: &ChangeTime| (time.time_us, time.position);
        assert!(place(before) < place(after), "{before:?} {after:?}");
    }
    let positions = times.iter().filter_map(|time| time.position);
    assert!(positions.max() < Some(1 << POSITION_BITS));
}

#[test]
fn change_spares_streams_of_other_tablets() {
    let (a, b, c) = (range(i64::MIN, -1), range(0, 99), range(100, i64::MAX));
    let (low, high) = (range(0, 49), range(50, 99));
    // This node has split `b`. It does not know yet that another node has split `c`.
    let c_split = [range(100, 199), range(200, i64::MAX)];
    let current = [a, b, c_split[0], c_split[1]];
    let tablets = BTreeSet::from([a, low, high, c]);
    let expected = Change {
        closed: BTreeSet::from([b]),
        opened: BTreeSet::from([low, high]),
    };
    assert_eq!(Change::of(&current, &tablets, high), expected);
    // A merge closes both.
    let merged = Change::of(&[a, low, high, c], &BTreeSet::from([a, b, c]), b);
    assert_eq!(merged.closed, BTreeSet::from([low, high]));
    assert_eq!(merged.opened, BTreeSet::from([b]));
}

#[test]
fn forgotten_generations_leave_their_open_streams() {
    let (low, high) = (range(i64::MIN, -1), range(0, i64::MAX));
    let (left, right) = (range(0, i64::MAX / 2), range(i64::MAX / 2 + 1, i64::MAX));
    let document = |since_ms, closed: &[TokenRange], opened: &[TokenRange]| GenerationDoc {
        since_ms,
        closed: closed.to_vec(),
        opened: opened.to_vec(),
    };
    let documents = [
        document(10, &[], &[TokenRange::RING]),
        document(20, &[TokenRange::RING], &[low, high]),
        document(30, &[high], &[left, right]),
    ];
    // The first generation ends when the second begins.
    assert_eq!(since(&documents, 20), documents);
    let kept = [document(20, &[], &[low, high]), documents[2].clone()];
    assert_eq!(since(&documents, 21), kept);
    assert_eq!(since(&documents, 30), kept);
    assert_eq!(since(&documents, 1000), [document(30, &[], &[low, left, right])]);
    assert_eq!(since(&[], 1000), []);
}
