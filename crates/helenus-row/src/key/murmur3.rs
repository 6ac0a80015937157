//! Tokens as computed by `org.apache.cassandra.dht.Murmur3Partitioner`.
//!
//! `org.apache.cassandra.utils.MurmurHash.hash3_x64_128` differs from the published Murmur3: it sign-extends the bytes of the tail. The first
//! of its two words is the token.

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;
const FIRST_ADDEND: u64 = 0x52dc_e729;
const SECOND_ADDEND: u64 = 0x3849_5ab5;
const FIRST_FACTOR: u64 = 0xff51_afd7_ed55_8ccd;
const SECOND_FACTOR: u64 = 0xc4ce_b9fe_1a85_ec53;
const INVERSE_OF_5: u64 = inverse(5);

/// Returns the token of a serialized partition key. The hash `i64::MIN` becomes `i64::MAX`. No partition has the empty key; its token is
/// the ring's minimum.
pub fn murmur3_token(partition_key: &[u8]) -> i64 {
    if partition_key.is_empty() {
        return i64::MIN;
    }
    match hash(partition_key) {
        i64::MIN => i64::MAX,
        token => token,
    }
}

fn hash(key: &[u8]) -> i64 {
    let (mut h1, mut h2) = (0u64, 0u64);
    let (blocks, tail) = key.as_chunks::<16>();
    for block in blocks {
        let word = u128::from_le_bytes(*block);
        let (k1, k2) = (word as u64, (word >> 64) as u64);
        h1 ^= scramble_first(k1);
        h1 = h1
            .rotate_left(27)
            .wrapping_add(h2)
            .wrapping_mul(5)
            .wrapping_add(FIRST_ADDEND);
        h2 ^= scramble_second(k2);
        h2 = h2
            .rotate_left(31)
            .wrapping_add(h1)
            .wrapping_mul(5)
            .wrapping_add(SECOND_ADDEND);
    }
    let (low, high) = tail.split_at(tail.len().min(8));
    if !high.is_empty() {
        h2 ^= scramble_second(tail_word(high));
    }
    if !low.is_empty() {
        h1 ^= scramble_first(tail_word(low));
    }
    h1 ^= key.len() as u64;
    h2 ^= key.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1.wrapping_add(h2) as i64
}

/// Returns a key of 16 bytes with this token, which must not be `i64::MIN`. Each `choice` gives another key. All steps of the hash of one
/// block are reversed.
pub fn key_with_token(token: i64, choice: u64) -> [u8; 16] {
    let h1 = unfinish((token as u64).wrapping_sub(choice));
    let h2 = unfinish(choice).wrapping_sub(h1);
    let h1 = h1.wrapping_sub(h2) ^ 16;
    let h2 = h2 ^ 16;
    let k2 = h2
        .wrapping_sub(SECOND_ADDEND)
        .wrapping_mul(INVERSE_OF_5)
        .wrapping_sub(h1)
        .rotate_right(31);
    let k1 = h1
        .wrapping_sub(FIRST_ADDEND)
        .wrapping_mul(INVERSE_OF_5)
        .rotate_right(27);
    let word = u128::from(unscramble_first(k1)) | u128::from(unscramble_second(k2)) << 64;
    word.to_le_bytes()
}

/// Returns the tail as one word. Its bytes are sign-extended before they are shifted and combined by XOR, as Java does with its signed
/// bytes.
fn tail_word(bytes: &[u8]) -> u64 {
    bytes.iter().enumerate().fold(0, |word, (at, &byte)| {
        word ^ ((byte as i8 as i64 as u64) << (8 * at))
    })
}

fn scramble_first(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn scramble_second(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn unscramble_first(k: u64) -> u64 {
    k.wrapping_mul(inverse(C2))
        .rotate_right(31)
        .wrapping_mul(inverse(C1))
}

fn unscramble_second(k: u64) -> u64 {
    k.wrapping_mul(inverse(C1))
        .rotate_right(33)
        .wrapping_mul(inverse(C2))
}

fn finish(mut h: u64) -> u64 {
    h ^= h >> 33;
    h = h.wrapping_mul(FIRST_FACTOR);
    h ^= h >> 33;
    h = h.wrapping_mul(SECOND_FACTOR);
    h ^ (h >> 33)
}

/// Reverses [`finish`]. A shift by at least half of the bits reverses itself.
fn unfinish(mut h: u64) -> u64 {
    h ^= h >> 33;
    h = h.wrapping_mul(inverse(SECOND_FACTOR));
    h ^= h >> 33;
    h = h.wrapping_mul(inverse(FIRST_FACTOR));
    h ^ (h >> 33)
}

/// Returns the inverse of an odd number modulo 2^64 by Newton's method. Each step doubles the number of correct bits, from three on.
const fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut step = 0;
    while step < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}
