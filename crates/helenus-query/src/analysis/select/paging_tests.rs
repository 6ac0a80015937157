use bytes::Bytes;
use helenus_cql::error::CqlError;

use super::PagingState;

fn state(clustering: Option<&'static [u8]>) -> PagingState {
    PagingState {
        table: 5,
        partition_key: Bytes::from_static(b"key"),
        clustering: clustering.map(Bytes::from_static),
        remaining: 7,
        remaining_in_partition: u32::MAX,
    }
}

#[test]
fn what_is_encoded_is_decoded() {
    for clustering in [None, Some(&b""[..]), Some(b"\x80\0\0\x01")] {
        let state = state(clustering);
        assert_eq!(PagingState::decode(&state.encode()), Ok(state));
    }
}

#[test]
fn anything_else_is_refused() {
    let good = state(Some(b"abc")).encode();
    let refused = |bytes: &[u8]| match PagingState::decode(&Bytes::copy_from_slice(bytes)) {
        Err(CqlError::Protocol(message)) => message == "Invalid value for the paging state",
        _ => false,
    };
    assert!(refused(b""));
    assert!(refused(b"garbage that a client made up"));
    for len in 0..good.len() {
        assert!(refused(good.get(..len).unwrap_or_default()));
    }
    for place in 0..good.len() {
        let mut bytes = good.to_vec();
        if let Some(byte) = bytes.get_mut(place) {
            *byte ^= 0x40;
        }
        assert!(refused(&bytes));
    }
}
