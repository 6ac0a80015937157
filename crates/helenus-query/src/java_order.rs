//! The order in which Java iterates over hash tables of names. Cassandra's messages show it, and so does the order of its checks.

/// Returns the hash of Java's `ByteBuffer.hashCode`.
pub fn hash_of_bytes(bytes: &[u8]) -> i32 {
    let add = |hash: i32, byte: &u8| hash.wrapping_mul(31).wrapping_add(i32::from(byte.cast_signed()));
    bytes.iter().rev().fold(1, add)
}

/// Returns the bucket of a hash in a `HashMap`. The number of buckets is a power of two.
pub fn bucket(hash: i32, buckets: usize) -> usize {
    let hash = hash.cast_unsigned();
    (hash ^ (hash >> 16)) as usize & (buckets - 1)
}

/// Sorts names as a `HashSet` of Cassandra's `ColumnIdentifier`s iterates over them.
pub fn of_names(names: Vec<&str>) -> Vec<&str> {
    by_name(names, |name| name)
}

/// Sorts things as a `HashMap` iterates over them whose keys are `ColumnIdentifier`s.
pub fn by_name<T>(things: Vec<T>, name: impl Fn(&T) -> &str) -> Vec<T> {
    by_hash(things, |thing| hash_of_bytes(name(thing).as_bytes()))
}

/// Sorts things as a `HashMap` iterates over them whose keys are Java strings.
pub fn by_string<T>(things: Vec<T>, key: impl Fn(&T) -> &str) -> Vec<T> {
    by_hash(things, |thing| hash_of_string(key(thing)))
}

/// Returns the hash of Java's `String.hashCode`.
fn hash_of_string(text: &str) -> i32 {
    let add = |hash: i32, unit: u16| hash.wrapping_mul(31).wrapping_add(i32::from(unit));
    text.encode_utf16().fold(0, add)
}

fn by_hash<T>(mut things: Vec<T>, hash: impl Fn(&T) -> i32) -> Vec<T> {
    let mut buckets = 16usize;
    while things.len() * 4 > buckets * 3 {
        buckets *= 2;
    }
    things.sort_by_key(|thing| bucket(hash(thing), buckets));
    things
}

#[cfg(test)]
mod tests {
    use super::of_names;

    #[test]
    fn names_are_shown_in_the_order_of_a_java_set() {
        assert_eq!(of_names(vec!["p", "v", "c"]), ["c", "v", "p"]);
        assert_eq!(of_names(vec!["w", "v"]), ["v", "w"]);
    }
}
