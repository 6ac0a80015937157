use std::time::Duration;

use bytes::Bytes;
use helenus_cql::frame::{Flags, Header, ProtocolVersion};

use super::*;

const MS: Duration = Duration::from_millis(1);

fn request(opcode: Opcode, at: Instant) -> QueuedRequest {
    QueuedRequest {
        envelope: Envelope {
            header: Header {
                version: ProtocolVersion::V4,
                flags: Flags::default(),
                stream: 1,
                opcode,
            },
            body: Bytes::from_static(&[0; 100]),
        },
        first_byte: at,
        last_byte: at,
    }
}

fn overload() -> OverloadConfig {
    OverloadConfig {
        wait_target: Some(50 * MS),
        interval: 250 * MS,
        waiting_min: 10,
    }
}

#[test]
fn waiting_requests_are_refused_only_if_queue_stays_busy() {
    let start = Instant::now();
    let mut queue = AdmissionQueue::default();
    for _ in 0..11 {
        queue.push(request(Opcode::Execute, start));
    }
    let stale =
        |queue: &AdmissionQueue, after: Duration| queue.is_next_stale(&overload(), || 0, start + after);
    assert!(!stale(&queue, 200 * MS), "a burst is worked off");
    assert!(stale(&queue, 251 * MS));
    // Requests that arrived later have not waited for so long.
    while queue.pop().is_some() {}
    for _ in 0..11 {
        queue.push(request(Opcode::Execute, start + 240 * MS));
    }
    assert!(!stale(&queue, 251 * MS));
    assert!(stale(&queue, 291 * MS), "the queue was never seen empty");
    while queue.pop().is_some() {}
    queue.has_all();
    for _ in 0..11 {
        queue.push(request(Opcode::Execute, start + 300 * MS));
    }
    assert!(!stale(&queue, 500 * MS), "it was empty in between");
    assert!(stale(&queue, 551 * MS));
}

#[test]
fn few_requests_and_driver_requests_are_not_refused() {
    let start = Instant::now();
    let late = start + 10_000 * MS;
    let mut queue = AdmissionQueue::default();
    for _ in 0..10 {
        queue.push(request(Opcode::Query, start));
    }
    assert!(!queue.is_next_stale(&overload(), || 10, late));
    assert!(
        queue.is_next_stale(&overload(), || 11, late),
        "others' requests wait too"
    );
    let off = OverloadConfig {
        wait_target: None,
        ..overload()
    };
    assert!(!queue.is_next_stale(&off, || 11, late));
    let mut queue = AdmissionQueue::default();
    queue.push(request(Opcode::Prepare, start));
    assert!(!queue.is_next_stale(&overload(), || 11, late));
}

#[test]
fn only_changes_are_reported_to_node() {
    let mut queue = AdmissionQueue::default();
    assert_eq!(queue.report(0), None);
    queue.push(request(Opcode::Query, Instant::now()));
    let (before, now) = queue.report(0).unwrap();
    assert_eq!((before, now.requests), (QueueSize::default(), 1));
    assert!(now.bytes > 100 && !queue.is_full());
    assert_eq!(queue.report(0), None);
    queue.clear();
    assert_eq!(queue.report(0), Some((now, QueueSize::default())));
    for _ in 0..BYTES_MAX / 100 {
        queue.push(request(Opcode::Query, Instant::now()));
    }
    assert!(queue.is_full());
}
