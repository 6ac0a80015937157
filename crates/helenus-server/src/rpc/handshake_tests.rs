use proptest::collection::vec;
use proptest::prelude::*;

use super::super::peer_auth::tests::credentials;
use super::*;

const GREETING: [u8; GREETING_LEN] = *b"HELENUS\x01\x07\0\0\0\x08\0\0\0nonce-of-greeter";

fn secret() -> Secret {
    Secret::new("secret")
}

fn hello() -> Hello {
    Hello {
        protocol: 7,
        traffic: Traffic::Requests,
        nonce: *b"nonce-of-caller!",
        claim: credentials().claim().unwrap(),
    }
}

#[test]
fn bytes_of_a_greeting_do_not_change() {
    let greeting = Greeting {
        protocol_min: 7,
        protocol: 8,
        nonce: *b"nonce-of-greeter",
    };
    assert_eq!(greeting.encode(), GREETING);
    assert_eq!(Greeting::decode(&GREETING), Some(greeting));
    let mut other = GREETING;
    other[7] = 2;
    assert_eq!(Greeting::decode(&other), None);
}

#[test]
fn bytes_of_a_hello_do_not_change() {
    let bytes = hello().encode(&secret(), &GREETING);
    let id = |number: u8| {
        let mut id = [0; 16];
        id[15] = number;
        id
    };
    let mut golden = b"HLNODE\x8b\0\x07\0\0\0\x02nonce-of-caller!".to_vec();
    for number in [42, 2, 20, 1, 10] {
        golden.extend(id(number));
    }
    golden.extend(b"\x05node2");
    golden.extend(secret().sign_bytes(Purpose::Rpc, &[&GREETING, &golden]));
    assert_eq!(bytes, golden);
    let head = bytes.first_chunk().unwrap();
    assert_eq!(
        HelloHead::decode(head),
        HelloHead::Hello(bytes.len() - HELLO_HEAD_LEN)
    );
    assert_eq!(Hello::decode(&bytes), Some(hello()));
}

#[test]
fn a_hello_proves_the_secret_for_one_greeting() {
    let bytes = hello().encode(&secret(), &GREETING);
    assert!(Hello::is_authentic(&bytes, &secret(), &GREETING));
    assert!(!Hello::is_authentic(&bytes, &Secret::new("guess"), &GREETING));
    let other = Greeting::random().encode();
    assert!(!Hello::is_authentic(&bytes, &secret(), &other), "it was replayed");
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(!Hello::is_authentic(&changed, &secret(), &GREETING), "{at}");
    }
}

#[test]
fn a_verdict_proves_the_secret_for_one_hello() {
    let bytes = hello().encode(&secret(), &GREETING);
    let verdict = Verdict::accepted(&secret(), &GREETING, &bytes);
    let encoded = verdict.encode();
    let (head, rest) = encoded.split_first_chunk().unwrap();
    assert_eq!(Verdict::rest_len(*head), Some(rest.len()));
    let Some(Verdict::Accepted(mac)) = Verdict::decode(*head, rest) else {
        panic!("{encoded:?}");
    };
    assert!(Verdict::is_authentic(&mac, &secret(), &GREETING, &bytes));
    assert!(!Verdict::is_authentic(
        &mac,
        &Secret::new("guess"),
        &GREETING,
        &bytes
    ));
    let later = Hello {
        nonce: [0; 16],
        ..hello()
    };
    let later = later.encode(&secret(), &GREETING);
    assert!(
        !Verdict::is_authentic(&mac, &secret(), &GREETING, &later),
        "it was replayed"
    );
}

#[test]
fn refusals_are_decoded_as_encoded() {
    for reason in [Reason::Stranger, Reason::NotMember, Reason::Incompatible] {
        let refused = Verdict::Refused(Refusal::new(reason, "why"));
        let encoded = refused.encode();
        let (head, rest) = encoded.split_first_chunk().unwrap();
        assert_eq!(Verdict::rest_len(*head), Some(3));
        assert_eq!(Verdict::decode(*head, rest), Some(refused));
    }
    assert_eq!(Verdict::rest_len([1, 0xff, 0xff]), None);
}

#[test]
fn names_cannot_spoil_a_log() {
    let mut long = hello();
    long.claim.name = format!("a\n.b\u{1b}{}", "c".repeat(1000));
    let bytes = long.encode(&secret(), &GREETING);
    let name = Hello::decode(&bytes).unwrap().claim.name;
    assert!(name.starts_with("a\\n.b\\u{1b}ccc") && name.len() < 120, "{name}");
}

#[test]
fn first_bytes_tell_a_hello_from_http2_and_garbage() {
    for (bytes, head) in [
        (b"PRI * HTTP/2.0\r\n", HelloHead::Http2),
        (b"GET / HTTP/1.1\r\n", HelloHead::Garbage),
        (b"HLNODE\xff\xff        ", HelloHead::Garbage),
        (b"HLNODE\0\0        ", HelloHead::Garbage),
    ] {
        assert_eq!(HelloHead::decode(bytes.first_chunk().unwrap()), head);
    }
}

#[test]
fn the_newest_common_version_is_chosen() {
    let choose = |protocol_min, protocol| {
        let greeting = Greeting {
            protocol_min,
            protocol,
            nonce: [0; 16],
        };
        greeting.choose().map_err(|refusal| refusal.reason)
    };
    assert_eq!(choose(PROTOCOL_MIN, PROTOCOL), Ok(PROTOCOL));
    assert_eq!(choose(PROTOCOL, PROTOCOL + 5), Ok(PROTOCOL));
    assert_eq!(choose(PROTOCOL + 1, PROTOCOL + 5), Err(Reason::Incompatible));
    assert_eq!(choose(0, PROTOCOL_MIN - 1), Err(Reason::Incompatible));
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoders_panic(bytes in vec(any::<u8>(), 0..400)) {
        let _ = Hello::decode(&bytes);
        prop_assert!(!Hello::is_authentic(&bytes, &secret(), &GREETING));
        if let Some((head, rest)) = bytes.split_first_chunk() {
            let _ = Verdict::decode(*head, rest);
        }
    }
}
