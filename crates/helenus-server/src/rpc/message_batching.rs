//! Batches requests or responses into messages to another node, up to a limit of bytes.

/// Maximum number of requests or responses in a message.
pub(super) const GROUP_MAX: usize = 128;
/// Approximate bytes above which nothing more is added to a message.
pub(super) const GROUP_BYTES_MAX: usize = 64 << 10;

/// Returns the parts of the next message: all that `next` returns, up to the limits.
pub(super) fn next_batch<T>(mut next: impl FnMut() -> Option<T>, size: impl Fn(&T) -> usize) -> Vec<T> {
    let mut group = Vec::new();
    let mut bytes = 0;
    while group.len() < GROUP_MAX
        && bytes < GROUP_BYTES_MAX
        && let Some(one) = next()
    {
        bytes += size(&one);
        group.push(one);
    }
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_is_limited_by_count_bytes_and_supply() {
        let group = |count: usize, size: usize| {
            let mut left = 0..count;
            next_batch(|| left.next(), |_| size).len()
        };
        assert_eq!(group(3, 10), 3);
        assert_eq!(group(1000, 10), GROUP_MAX);
        assert_eq!(group(1000, GROUP_BYTES_MAX / 2), 2);
        assert_eq!(group(1000, GROUP_BYTES_MAX + 1), 1);
    }
}
