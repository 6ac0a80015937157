use std::cmp::Ordering;

use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value::compare;
use proptest::prelude::*;

use super::*;

/// Types of fixed length. Any bytes of that length are a valid value.
const FIXED: [CqlType; 10] = [
    CqlType::TINYINT,
    CqlType::SMALLINT,
    CqlType::INT,
    CqlType::BIGINT,
    CqlType::TIMESTAMP,
    CqlType::DATE,
    CqlType::TIME,
    CqlType::FLOAT,
    CqlType::DOUBLE,
    CqlType::UUID,
];

fn placed(ty: &CqlType, value: &[u8]) -> (i64, Bytes) {
    let ordered = ordered_value(ty, value).unwrap();
    (ordered_token(ty, &ordered), ordered)
}

fn check(ty: &CqlType, a: &[u8], b: &[u8]) -> Ordering {
    let expected = compare(ty, a, b);
    let (token_a, bytes_a) = placed(ty, a);
    let (token_b, bytes_b) = placed(ty, b);
    assert_eq!(bytes_a.cmp(&bytes_b), expected, "{ty}: {a:02x?} and {b:02x?}");
    assert!(
        expected.is_eq() || (token_a.cmp(&token_b) != expected.reverse()),
        "{ty}: {a:02x?} at {token_a}, {b:02x?} at {token_b}"
    );
    token_a.cmp(&token_b)
}

fn decimal(scale: i32, unscaled: i128) -> Vec<u8> {
    let mut value = scale.to_be_bytes().to_vec();
    value.extend(unscaled.to_be_bytes());
    value
}

/// Returns random numbers with a random number of bits.
fn number() -> impl Strategy<Value = i128> {
    (any::<i128>(), 0u32..128).prop_map(|(number, shift)| number >> shift)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn fixed_values_lie_in_their_order(at in 0..FIXED.len(), a in number(), b in number(), near in any::<bool>()) {
        let ty = &FIXED[at];
        let CqlType::Native(native) = ty else { unreachable!() };
        let len = native.fixed_len().unwrap_or(16);
        let b = if near { a.wrapping_add(b % 3) } else { b };
        check(ty, &a.to_be_bytes()[16 - len..], &b.to_be_bytes()[16 - len..]);
    }

    #[test]
    fn numbers_of_any_length_lie_in_their_order(
        a in number(), b in number(), scale_a in -400i32..400, scale_b in -400i32..400, pad in 0usize..200, near in any::<bool>()
    ) {
        let b = if near { a.wrapping_add(b % 3) } else { b };
        let padded = |number: i128, pad: usize| [&number.to_be_bytes()[..], &vec![0x5a; pad]].concat();
        check(&CqlType::VARINT, &a.to_be_bytes(), &b.to_be_bytes());
        check(&CqlType::VARINT, &padded(a, pad), &padded(b, pad));
        check(&CqlType::VARINT, &padded(a, pad), &b.to_be_bytes());
        check(&CqlType::DECIMAL, &decimal(scale_a, a), &decimal(scale_b, b));
        check(&CqlType::DECIMAL, &decimal(scale_a, a), &decimal(scale_a, b));
    }

    #[test]
    fn text_lies_in_its_order(a in prop::collection::vec(0u8..4, 0..12), b in prop::collection::vec(0u8..4, 0..12)) {
        check(&CqlType::TEXT, &a, &b);
        check(&CqlType::BLOB, &a, &b);
    }

    #[test]
    fn time_uuids_lie_in_their_order(a in any::<u128>(), b in any::<u128>(), near in any::<bool>()) {
        let version_1 = |value: u128| ((value & !(0xf << 76)) | (1 << 76)).to_be_bytes();
        let b = if near { (a & !0xffff) | (b & 0xffff) } else { b };
        check(&CqlType::TIMEUUID, &version_1(a), &version_1(b));
    }

    #[test]
    fn any_bytes_have_a_token(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
        for native in [NativeType::Int, NativeType::Varint, NativeType::Decimal, NativeType::Timeuuid, NativeType::Text, NativeType::Time] {
            let ty = CqlType::Native(native);
            let behind_tag = [&[3], &bytes[..]].concat();
            assert!(ordered_token(&ty, &bytes) > i64::MIN);
            assert!(ordered_token(&ty, &behind_tag) > i64::MIN);
        }
    }
}

#[test]
fn golden_tokens() {
    let token = |ty: &CqlType, value: &[u8]| placed(ty, value).0;
    let int = |value: i32| token(&CqlType::INT, &value.to_be_bytes());
    assert_eq!(int(0), 0);
    assert_eq!(int(1), 1 << 57);
    assert_eq!(int(2), 2 << 57);
    assert_eq!(int(3), (2 << 57) | (1 << 56));
    assert_eq!(int(-1), -1);
    assert_eq!(int(-2), !(1 << 57));
    assert_eq!(int(100_000), token(&CqlType::BIGINT, &100_000i64.to_be_bytes()));
    assert_eq!(token(&CqlType::VARINT, &[1]), 1 << 53);
    assert_eq!(
        token(&CqlType::DECIMAL, &decimal(1, 15)),
        (257 << 54) | 1_500_000_000_000_000
    );
    assert_eq!(
        token(&CqlType::TEXT, b"abcdefgh-more"),
        0x6162_6364_6566_6768u64 as i64 ^ i64::MIN
    );
    assert_eq!(token(&CqlType::TEXT, b""), i64::MIN + 1);
    assert_eq!(token(&CqlType::DOUBLE, &0f64.to_be_bytes()), 0);
}

#[test]
fn neighbours_have_tokens_of_their_own() {
    for ty in [&CqlType::BIGINT, &CqlType::TIMESTAMP] {
        let now_ms = 1_700_000_000_000i64;
        let order = check(ty, &now_ms.to_be_bytes(), &(now_ms + 1).to_be_bytes());
        assert_eq!(order, Ordering::Less);
    }
    assert_eq!(check(&CqlType::VARINT, &[0, 200], &[0, 201]), Ordering::Less);
    assert_eq!(
        check(&CqlType::DECIMAL, &decimal(2, 1_999), &decimal(2, 2_000)),
        Ordering::Less
    );
}

#[test]
fn values_of_no_bytes_come_first() {
    for ty in [&CqlType::INT, &CqlType::VARINT, &CqlType::TIMEUUID] {
        let (token, bytes) = placed(ty, &[]);
        assert_eq!((token, &bytes[..]), (i64::MIN + 1, &[2][..]));
    }
    assert!(ordered_value(&CqlType::DURATION, &[1, 2, 3]).is_err());
    assert!(!has_value_order(&CqlType::list(CqlType::INT, true)));
}
