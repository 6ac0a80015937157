use std::time::Duration;

use tokio::sync::oneshot::Receiver;

use super::*;

fn within(milliseconds: u64) -> Instant {
    Instant::now() + Duration::from_millis(milliseconds)
}

fn begin(pending: &mut PendingRequests, deadline: Instant) -> (u32, Receiver<Outcome>) {
    let (sender, receiver) = oneshot::channel();
    let id = pending.begin(NewRequest {
        kind: Kind::Get,
        body: BytesMut::from(&b"body"[..]),
        sink: Sink::Answer(sender),
        deadline,
        is_left: Arc::default(),
    });
    (id, receiver)
}

fn begin_scan(pending: &mut PendingRequests, capacity: usize) -> (u32, mpsc::Receiver<ChunkOutcome>) {
    let (sender, receiver) = mpsc::channel(capacity);
    let id = pending.begin(NewRequest {
        kind: Kind::Scan,
        body: BytesMut::new(),
        sink: Sink::Chunks(sender),
        deadline: within(10),
        is_left: Arc::default(),
    });
    (id, receiver)
}

/// Returns the kinds and ids of the frames that are to be sent.
fn sent(pending: &mut PendingRequests) -> Vec<(Kind, u32)> {
    let mut output = Output::default();
    pending.take(&mut output);
    output
        .frames()
        .iter()
        .map(|frame| (frame.header.kind, frame.header.id))
        .collect()
}

fn answer(id: u32, flags: u8, body: &'static [u8]) -> Frame {
    Frame {
        header: Header {
            flags,
            ..Header::new(Kind::Answer, id)
        },
        body: Bytes::from_static(body),
    }
}

#[test]
fn a_request_given_up_before_it_was_sent_is_not_sent() {
    let mut pending = PendingRequests::new(Arc::default());
    pending.is_running = true;
    let ids: Vec<u32> = (0..3).map(|_| begin(&mut pending, within(1000)).0).collect();
    assert_eq!(pending.unsent().messages, 3);
    pending.give_up(ids[1]);
    assert_eq!((pending.unsent().messages, pending.unsent().bytes), (2, 8));
    assert_eq!(sent(&mut pending), [(Kind::Get, ids[0]), (Kind::Get, ids[2])]);
    pending.give_up(ids[2]);
    assert_eq!(sent(&mut pending), [(Kind::GiveUp, ids[2])]);
    assert!(pending.has_nothing_to_do());
}

#[test]
fn only_requests_that_were_sent_may_have_been_executed() {
    let mut pending = PendingRequests::new(Arc::default());
    pending.is_running = true;
    let (_, mut first) = begin(&mut pending, within(1000));
    sent(&mut pending);
    let (_, mut second) = begin(&mut pending, within(1000));
    let (no_answer, unreachable) = (
        CallError::NoAnswer("over".to_owned()),
        CallError::Unreachable("over".to_owned()),
    );
    pending.fail(&no_answer, &unreachable);
    assert_eq!(first.try_recv().unwrap(), Err(no_answer));
    assert_eq!(second.try_recv().unwrap(), Err(unreachable));
    assert!(pending.is_empty() && !pending.is_running);
    assert_eq!(pending.traffic.failed.messages(), 2);
}

#[test]
fn expired_requests_fail_and_are_given_up() {
    let mut pending = PendingRequests::new(Arc::default());
    pending.is_running = true;
    let (id, mut first) = begin(&mut pending, within(10));
    sent(&mut pending);
    let (_, mut second) = begin(&mut pending, within(10));
    let (_, mut third) = begin(&mut pending, within(10_000));
    pending.sweep(within(100));
    assert!(matches!(first.try_recv().unwrap(), Err(CallError::NoAnswer(_))));
    assert!(matches!(
        second.try_recv().unwrap(),
        Err(CallError::Unreachable(_))
    ));
    assert!(third.try_recv().is_err(), "it still waits");
    assert_eq!(sent(&mut pending).pop(), Some((Kind::GiveUp, id)));
    assert_eq!(pending.traffic.expired.messages(), 2);
}

#[test]
fn a_request_whose_client_has_left_is_given_up_once() {
    let mut pending = PendingRequests::new(Arc::default());
    pending.is_running = true;
    let (id, mut receiver) = begin(&mut pending, within(1000));
    sent(&mut pending);
    pending.open[&id].is_left.store(true, Ordering::Relaxed);
    pending.sweep(Instant::now());
    pending.sweep(Instant::now());
    assert_eq!(sent(&mut pending), [(Kind::GiveUp, id)]);
    pending
        .settle(answer(id, 0, b"late"))
        .unwrap()
        .unwrap()
        .send_quietly();
    assert_eq!(receiver.try_recv().unwrap(), Ok(Bytes::from_static(b"late")));
}

#[test]
fn ids_in_use_are_skipped() {
    let mut pending = PendingRequests::new(Arc::default());
    pending.next_id = u32::MAX;
    let (last, _) = begin(&mut pending, within(1000));
    let (first, _) = begin(&mut pending, within(1000));
    assert_eq!((last, first), (u32::MAX, 0));
    pending.next_id = u32::MAX;
    assert_eq!(begin(&mut pending, within(1000)).0, 1);
}

#[test]
fn chunks_are_received_as_requested() {
    let mut pending = PendingRequests::new(Arc::default());
    pending.is_running = true;
    let (id, mut chunks) = begin_scan(&mut pending, 2);
    sent(&mut pending);
    assert!(pending.settle(answer(id, flags::MORE, b"one")).unwrap().is_none());
    pending.sweep(within(1000));
    pending
        .settle(answer(id, 0, b"two"))
        .unwrap()
        .unwrap()
        .send_quietly();
    assert_eq!(
        chunks.try_recv().unwrap(),
        Ok((Bytes::from_static(b"one"), false))
    );
    assert_eq!(chunks.try_recv().unwrap(), Ok((Bytes::from_static(b"two"), true)));
    let (id, _chunks) = begin_scan(&mut pending, 1);
    pending.grant(id);
    assert_eq!(sent(&mut pending), [(Kind::Scan, id), (Kind::Next, id)]);
    assert!(pending.settle(answer(id, flags::MORE, b"one")).unwrap().is_none());
    assert!(pending.settle(answer(id, flags::MORE, b"too many")).is_err());
}

#[test]
fn frames_against_the_protocol_are_errors() {
    let mut pending = PendingRequests::new(Arc::default());
    let (id, _receiver) = begin(&mut pending, within(1000));
    assert!(
        pending.settle(answer(id + 1, 0, b"")).unwrap().is_none(),
        "it was given up"
    );
    assert!(pending.settle(answer(id, 0, b"")).is_err(), "it was not sent");
    let (id, _receiver) = begin(&mut pending, within(1000));
    sent(&mut pending);
    assert!(
        pending.settle(answer(id, flags::MORE, b"")).is_err(),
        "it is no scan"
    );
    let mut request = answer(id, 0, b"");
    request.header.kind = Kind::Get;
    assert!(pending.settle(request).is_err(), "a request");
}

#[test]
fn an_older_node_gets_no_request_that_it_does_not_know() {
    let mut pending = PendingRequests::new(Arc::default());
    pending.is_running = true;
    pending.protocol = 7;
    let (sender, mut receiver) = oneshot::channel();
    pending.begin(NewRequest {
        kind: Kind::Transact,
        body: BytesMut::new(),
        sink: Sink::Answer(sender),
        deadline: within(1000),
        is_left: Arc::default(),
    });
    let (known, _answer) = begin(&mut pending, within(1000));
    assert_eq!(sent(&mut pending), [(Kind::Get, known)]);
    let refused = receiver.try_recv().unwrap();
    assert!(matches!(refused, Err(CallError::Refused(_))), "{refused:?}");
}
