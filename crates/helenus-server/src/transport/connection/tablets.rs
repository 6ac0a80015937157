//! ScyllaDB's extension `TABLETS_ROUTING_V1`: the response to a prepared statement that was sent to the wrong node names the tablet's
//! owner.

use bytes::Bytes;
use helenus_cql::frame::CustomPayload;
use helenus_cql::value::{pack_list, pack_tuple};
use helenus_query::response::PassedOn;

const KEY: &str = "tablets-routing-v1";
/// Number of the only shard. A node's cores share its tablets.
const SHARD: i32 = 0;

/// Returns a payload of type `tuple<bigint, bigint, list<tuple<uuid, int>>>`: the token before the tablet's first, the tablet's last token,
/// and the replicas with their shards.
pub(super) fn payload(passed_on: &PassedOn) -> CustomPayload {
    let replica = pack_tuple([
        Some(Bytes::copy_from_slice(passed_on.node.as_bytes())),
        Some(Bytes::copy_from_slice(&SHARD.to_be_bytes())),
    ]);
    let token = |token: i64| Some(Bytes::copy_from_slice(&token.to_be_bytes()));
    // Saturating is safe for the least token, because no key has it as its hash.
    let before = passed_on.tokens.first.saturating_sub(1);
    let tablet = pack_tuple([
        token(before),
        token(passed_on.tokens.last),
        Some(pack_list([replica])),
    ]);
    vec![(KEY.to_owned(), Some(tablet))]
}

#[cfg(test)]
mod tests {
    use helenus_tablet::TokenRange;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn tablet_routing_is_reported_as_by_scylladb() {
        let node = Uuid::from_u128(7);
        let tokens = TokenRange { first: -1, last: 5 };
        let reported = payload(&PassedOn { tokens, node });
        let mut expected = vec![0, 0, 0, 8];
        expected.extend((-2i64).to_be_bytes());
        expected.extend([0, 0, 0, 8]);
        expected.extend(5i64.to_be_bytes());
        // The list has 36 bytes: one element of 28, a uuid and an int.
        expected.extend([0, 0, 0, 36, 0, 0, 0, 1, 0, 0, 0, 28, 0, 0, 0, 16]);
        expected.extend(node.as_bytes());
        expected.extend([0, 0, 0, 4, 0, 0, 0, 0]);
        let [(key, Some(value))] = &reported[..] else {
            panic!("{reported:?}");
        };
        assert_eq!((key.as_str(), &value[..]), ("tablets-routing-v1", &expected[..]));
    }

    #[test]
    fn the_first_tablet_begins_behind_the_least_token() {
        let tokens = TokenRange {
            first: i64::MIN,
            last: 0,
        };
        let node = Uuid::nil();
        let [(_, Some(value))] = &payload(&PassedOn { tokens, node })[..] else {
            panic!();
        };
        assert_eq!(value[4..12], i64::MIN.to_be_bytes());
    }
}
