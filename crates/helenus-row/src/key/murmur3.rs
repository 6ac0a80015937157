//! Tokens as computed by `org.apache.cassandra.dht.Murmur3Partitioner`.
//!
//! `org.apache.cassandra.utils.MurmurHash.hash3_x64_128` differs from the published Murmur3: it sign-extends the bytes of the tail. The first
//! of its two words is the token.

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

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
            .wrapping_add(0x52dc_e729);
        h2 ^= scramble_second(k2);
        h2 = h2
            .rotate_left(31)
            .wrapping_add(h1)
            .wrapping_mul(5)
            .wrapping_add(0x3849_5ab5);
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

fn finish(mut h: u64) -> u64 {
    h ^= h >> 33;
    h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
    h ^= h >> 33;
    h = h.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ (h >> 33)
}
