//! Counts of the memory allocator.

use tikv_jemalloc_ctl::thread;

/// Returns the bytes that the current thread has allocated minus those that it has freed. 0 if the allocator does not count.
pub fn of_thread() -> i64 {
    let read = || {
        let allocated = thread::allocatedp::read().ok()?.get();
        let freed = thread::deallocatedp::read().ok()?.get();
        Some(allocated.wrapping_sub(freed).cast_signed())
    };
    read().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_counted_until_it_is_freed() {
        let before = of_thread();
        let held = vec![1u8; 100_000];
        let held_bytes = of_thread() - before;
        drop(held);
        assert!((100_000..150_000).contains(&held_bytes), "{held_bytes}");
        assert!(of_thread() - before < 50_000);
    }
}
