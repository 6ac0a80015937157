//! The order in which Java iterates over its hash tables of names, which shows in Cassandra's messages and in what it tests first.

/// `ByteBuffer.hashCode`
pub fn hash_of_bytes(bytes: &[u8]) -> i32 {
    let add = |hash: i32, byte: &u8| hash.wrapping_mul(31).wrapping_add(i32::from(byte.cast_signed()));
    bytes.iter().rev().fold(1, add)
}

/// Returns the place of a hash in a `HashMap` of so many places, a power of two.
pub fn bucket(hash: i32, buckets: usize) -> usize {
    let hash = hash.cast_unsigned();
    (hash ^ (hash >> 16)) as usize & (buckets - 1)
}

/// Names in the order of a `HashSet` of Cassandra's `ColumnIdentifier`s.
pub fn of_names(names: Vec<&str>) -> Vec<&str> {
    by_name(names, |name| name)
}

/// Things in the order of a `HashMap` with such names as keys.
pub fn by_name<T>(things: Vec<T>, name: impl Fn(&T) -> &str) -> Vec<T> {
    by_hash(things, |thing| hash_of_bytes(name(thing).as_bytes()))
}

/// Things in the order of a `HashMap` with such strings as keys.
pub fn by_string<T>(things: Vec<T>, key: impl Fn(&T) -> &str) -> Vec<T> {
    by_hash(things, |thing| hash_of_string(key(thing)))
}

/// `String.hashCode`
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
