//! The order in which Cassandra shows the fields of a literal of a user type, which is that of a `java.util.HashMap`.

use super::Ident;

/// Buckets of a new map. Their number doubles when the map is filled to more than three quarters.
const BUCKETS: usize = 16;

/// Returns `entries` in the order of a Java `HashMap`.
pub fn hash_map_order<T>(entries: &[(Ident, T)]) -> Vec<&(Ident, T)> {
    let mut buckets = BUCKETS;
    while entries.len() * 4 > buckets * 3 {
        buckets *= 2;
    }
    let mut ordered: Vec<&(Ident, T)> = entries.iter().collect();
    ordered.sort_by_key(|(name, _)| bucket(name.as_str(), buckets));
    ordered
}

fn bucket(name: &str, buckets: usize) -> usize {
    let hash = buffer_hash(name.as_bytes());
    (hash ^ (hash >> 16)) as usize & (buckets - 1)
}

/// Implements `ByteBuffer.hashCode`: from the last byte to the first, as signed bytes.
fn buffer_hash(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(1, |hash: u32, byte| {
        hash.wrapping_mul(31)
            .wrapping_add(i32::from(byte.cast_signed()).cast_unsigned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the order against that of Cassandra 5.0.5.
    #[test]
    fn fields_are_ordered_as_in_java() {
        let names = |text: &str| -> Vec<(Ident, ())> {
            text.split(' ').map(|name| (Ident(name.to_owned()), ())).collect()
        };
        for (given, shown) in [
            ("i d", "d i"),
            ("x d Ab", "Ab d x"),
            ("foo bar baz qux", "bar qux foo baz"),
            ("street city zip phones", "city zip street phones"),
            ("f1 f2 f3", "f3 f2 f1"),
            ("a b c d e f g h i j k l m n", "a b c d e f g h i j k l m n"),
        ] {
            assert_eq!(
                hash_map_order(&names(given)),
                names(shown).iter().collect::<Vec<_>>(),
                "{given}"
            );
        }
    }
}
