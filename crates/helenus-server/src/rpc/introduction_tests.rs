use tokio::io::{DuplexStream, duplex};

use super::super::peer_auth::tests::{STORE, credentials, credentials_of, guard, own};
use super::super::secret::Secret;
use super::*;

/// Carries out a handshake. Returns the outcomes of the caller and of the accepting node.
async fn meet(credentials: &PeerCredentials, guard: &PeerGuard) -> (Result<u32, CallError>, Option<Hello>) {
    let (mut ours, mut theirs) = duplex(4096);
    let (introduced, admitted) = tokio::join!(
        introduce(&mut ours, credentials, Traffic::Bulk),
        admit(&mut theirs, guard)
    );
    (introduced, admitted.unwrap())
}

fn refused(outcome: Result<u32, CallError>) -> Refusal {
    match outcome {
        Err(CallError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn members_with_the_secret_meet() {
    let credentials = credentials();
    let (introduced, admitted) = meet(&credentials, &guard()).await;
    assert_eq!(introduced, Ok(PROTOCOL));
    let hello = admitted.unwrap();
    assert_eq!(Some(hello.claim), credentials.claim());
    assert_eq!((hello.protocol, hello.traffic), (PROTOCOL, Traffic::Bulk));
}

#[tokio::test]
async fn strangers_learn_nothing() {
    let theirs = own(2, STORE, &[(1, 10), (2, 20)]);
    let stranger = credentials_of("guess", theirs, (1, 10));
    let (introduced, admitted) = meet(&stranger, &guard()).await;
    assert_eq!(admitted, None);
    let refusal = refused(introduced);
    assert_eq!(refusal.reason, Reason::Stranger);
    assert_eq!(refusal.text, "this port is for the nodes of a cluster");
}

#[tokio::test]
async fn a_caller_learns_why_it_is_refused() {
    let copy = own(2, Uuid::from_u128(43), &[(1, 10), (2, 20)]);
    let other = own(3, STORE, &[(3, 30)]);
    let member = own(2, STORE, &[(1, 10), (2, 20)]);
    for (from, to, words) in [
        (copy, (1, 10), "is of store"),
        (other, (1, 10), "not in the cluster document"),
        (member, (1, 11), "the called node"),
    ] {
        let (introduced, admitted) = meet(&credentials_of("secret", from, to), &guard()).await;
        assert_eq!(admitted, None);
        let refusal = refused(introduced);
        assert_eq!(refusal.reason, Reason::NotMember);
        assert!(refusal.text.contains(words), "{}", refusal.text);
    }
}

#[tokio::test]
async fn a_node_that_has_not_joined_calls_no_other() {
    let unborn = credentials_of("secret", own(2, STORE, &[(1, 10)]), (1, 10));
    let (mut ours, _theirs) = duplex(4096);
    let outcome = introduce(&mut ours, &unborn, Traffic::Control).await;
    assert!(matches!(outcome, Err(CallError::Unreachable(_))), "{outcome:?}");
}

/// Records the bytes that a caller sends, for a greeting of this test.
async fn recorded_hello() -> Vec<u8> {
    let (mut ours, mut theirs) = duplex(4096);
    let credentials = credentials();
    let calling = introduce(&mut ours, &credentials, Traffic::Requests);
    let recording = async {
        theirs.write_all(&Greeting::random().encode()).await.unwrap();
        let mut head = [0; HELLO_HEAD_LEN];
        theirs.read_exact(&mut head).await.unwrap();
        let HelloHead::Hello(len) = HelloHead::decode(&head) else {
            panic!("{head:?}");
        };
        let mut rest = vec![0; len];
        theirs.read_exact(&mut rest).await.unwrap();
        // The accepting node cannot prove that it knows the secret.
        theirs
            .write_all(&Verdict::Accepted([0; 32]).encode())
            .await
            .unwrap();
        [head.as_slice(), &rest].concat()
    };
    let (called, recorded) = tokio::join!(calling, recording);
    assert_eq!(refused(called).reason, Reason::Stranger);
    recorded
}

/// Sends bytes to an accepting node. Returns what it answers after its greeting, and the hello if it accepts.
async fn send(bytes: &[u8]) -> (Vec<u8>, io::Result<Option<Hello>>) {
    let (mut ours, mut theirs): (DuplexStream, DuplexStream) = duplex(4096);
    let guard = guard();
    let admitting = async {
        let admitted = admit(&mut theirs, &guard).await;
        drop(theirs);
        admitted
    };
    let sending = async {
        let mut greeting = [0; GREETING_LEN];
        ours.read_exact(&mut greeting).await.unwrap();
        let _ = ours.write_all(bytes).await;
        let _ = ours.shutdown().await;
        let mut answer = Vec::new();
        let _ = ours.read_to_end(&mut answer).await;
        answer
    };
    let (admitted, answer) = tokio::join!(admitting, sending);
    (answer, admitted)
}

#[tokio::test]
async fn a_recorded_handshake_is_not_accepted_again() {
    let (answer, admitted) = send(&recorded_hello().await).await;
    assert_eq!(admitted.unwrap(), None);
    let (head, rest) = answer.split_first_chunk().unwrap();
    let verdict = Verdict::decode(*head, rest);
    let Some(Verdict::Refused(refusal)) = verdict else {
        panic!("{verdict:?}");
    };
    assert_eq!(refusal.reason, Reason::Stranger);
}

#[tokio::test]
async fn garbage_and_older_versions_get_no_answer() {
    for stranger in [
        &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..],
        b"GET / HTTP/1.1\r\n\r\n",
        &[0; 4000],
        b"HLNODE\xff\xff",
    ] {
        let (answer, admitted) = send(stranger).await;
        assert_eq!(admitted.unwrap(), None, "{stranger:?}");
        assert_eq!(answer, b"", "{stranger:?}");
    }
    let half = &recorded_hello().await[..100];
    let (answer, admitted) = send(half).await;
    assert!(admitted.is_err(), "{admitted:?}");
    assert_eq!(answer, b"");
}

#[tokio::test]
async fn a_caller_of_a_future_version_is_refused() {
    let greeting = Greeting::random().encode();
    let hello = Hello {
        protocol: PROTOCOL + 1,
        traffic: Traffic::Control,
        nonce: [0; 16],
        claim: credentials().claim().unwrap(),
    };
    let refusal = judge(
        &guard(),
        &greeting,
        &hello.encode(&Secret::new("secret"), &greeting),
    )
    .unwrap_err();
    assert_eq!(refusal.reason, Reason::Incompatible);
}
