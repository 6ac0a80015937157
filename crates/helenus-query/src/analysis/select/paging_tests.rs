use bytes::Bytes;
use helenus_cql::error::CqlError;

use super::{EntryPosition, PagingState};

fn state(clustering: Option<&'static [u8]>) -> PagingState {
    PagingState {
        table: 5,
        partition_key: Bytes::from_static(b"key"),
        clustering: clustering.map(Bytes::from_static),
        entry: None,
        remaining: 7,
        remaining_in_partition: u32::MAX,
    }
}

#[test]
fn what_is_encoded_is_decoded() {
    for clustering in [None, Some(&b""[..]), Some(b"\x80\0\0\x01")] {
        let state = state(clustering);
        let by_entry = PagingState {
            entry: Some(EntryPosition {
                index: 3,
                value: Bytes::from_static(b"\x03\x80"),
            }),
            ..state.clone()
        };
        assert_eq!(PagingState::decode(&state.encode()), Ok(state));
        assert_eq!(PagingState::decode(&by_entry.encode()), Ok(by_entry));
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
    let mut long_value = good.to_vec();
    if let Some(flags) = long_value.get_mut(1) {
        *flags |= 2;
    }
    assert!(refused(&long_value));
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
