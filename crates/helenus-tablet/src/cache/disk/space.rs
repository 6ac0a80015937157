//! Computes the size of the cache from the space of its disk.

use std::io;
use std::path::Path;

/// Minimum size of a cache in bytes.
pub(super) const BYTES_MIN: u64 = 16 << 20;
/// Maximum size in bytes if none is configured.
const BYTES_DEFAULT_MAX: u64 = 100 << 30;
/// Maximum size as a multiple of the machine's memory, if none is configured. The index in memory takes about a 600th of the cache's size.
const MEMORY_FACTOR: u64 = 8;
/// Free space that the cache leaves to others: a 20th of the disk, or [`RESERVE_BYTES`] if that is more, but at most a 10th of the disk.
const RESERVE_SHARE: u64 = 20;
const RESERVE_BYTES: u64 = 2 << 30;
const RESERVE_SHARE_MAX: u64 = 10;
/// Limits of the size of a block. Blocks are reused as a whole, and each is an open file.
const BLOCK_BYTES_MIN: u64 = 1 << 20;
const BLOCK_BYTES_MAX: u64 = 1 << 30;
const BLOCKS: u64 = 512;
/// Minimum number of blocks. A cache with fewer blocks cannot be written to.
const BLOCKS_MIN: u64 = 8;

/// Returns the size of a block in a new cache of `wanted` bytes.
pub(super) fn block_bytes(wanted: u64) -> u64 {
    (wanted / BLOCKS)
        .clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX)
        .next_power_of_two()
}

/// Decides whether existing blocks of `found` bytes can be kept in a cache of `wanted` bytes. Otherwise the whole cache is emptied.
pub(super) fn is_of_use(wanted: u64, found: u64) -> bool {
    let blocks = wanted.checked_div(found).unwrap_or(0);
    found == block_bytes(wanted) || (2 * BLOCKS_MIN..=4 * BLOCKS).contains(&blocks)
}

/// The free and the total space of a file system, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct DiskSpace {
    pub free: u64,
    pub total: u64,
}

impl DiskSpace {
    pub fn of(path: &Path) -> io::Result<DiskSpace> {
        let found = rustix::fs::statvfs(path)?;
        Ok(DiskSpace {
            free: found.f_bavail * found.f_frsize,
            total: found.f_blocks * found.f_frsize,
        })
    }

    /// Returns the number of bytes that shall stay free.
    fn reserve(&self) -> u64 {
        (self.total / RESERVE_SHARE)
            .max(RESERVE_BYTES)
            .min(self.total / RESERVE_SHARE_MAX)
    }

    /// Returns the default size of a cache that takes `used` bytes already: half of the space that it could take.
    pub fn cache_bytes_default(&self, used: u64, memory: u64) -> u64 {
        ((self.free + used) / 2)
            .min(BYTES_DEFAULT_MAX)
            .min(memory.saturating_mul(MEMORY_FACTOR))
    }

    /// Returns the size that the cache should change to. `None` if the size can stay; 0 if there is no space for a cache.
    pub fn fitting(&self, now: u64, used: u64, wanted: u64, block_bytes: u64, may_grow: bool) -> Option<u64> {
        let reserve = self.reserve();
        let whole = |bytes: u64| match bytes - bytes % block_bytes {
            few if few < BLOCKS_MIN * block_bytes => 0,
            bytes => bytes,
        };
        if self.free < reserve {
            // Slightly more space is released than needed, so that the cache need not shrink again soon.
            let give = reserve - self.free + reserve / 8;
            let fitting = whole(used.saturating_sub(give));
            return (fitting < now).then_some(fitting);
        }
        let room = (self.free - reserve) / 2;
        let fitting = whole(wanted.min(used + room));
        (may_grow && fitting > now + now / 4).then_some(fitting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const BLOCK: u64 = GIB / 4;

    fn disk(free: u64) -> DiskSpace {
        DiskSpace {
            free,
            total: 100 * GIB,
        }
    }

    #[test]
    fn a_cache_gives_way_when_the_disk_fills_up_and_comes_back() {
        let wanted = 40 * GIB;
        let fit = |free, now, used, may_grow| disk(free).fitting(now, used, wanted, BLOCK, may_grow);
        assert_eq!(fit(5 * GIB, wanted, 30 * GIB, true), None);
        let less = fit(4 * GIB, wanted, 30 * GIB, false).unwrap();
        assert!((28 * GIB..29 * GIB).contains(&less), "{less}");
        assert_eq!(fit(5 * GIB + less / 16, less, less, true), None);
        assert_eq!(fit(0, less, 3 * GIB, false), Some(0));
        assert_eq!(fit(0, wanted, 0, false), Some(0));
        assert_eq!(fit(0, 0, 0, true), None);
        assert_eq!(fit(60 * GIB, 0, 0, false), None);
        assert_eq!(fit(60 * GIB, 0, 0, true), Some(27 * GIB + GIB / 2));
        assert_eq!(fit(90 * GIB, 0, 0, true), Some(wanted));
        assert_eq!(fit(90 * GIB, wanted, 0, true), None);
    }

    #[test]
    fn the_default_leaves_half_of_the_disk_and_fits_the_memory() {
        assert_eq!(disk(50 * GIB).cache_bytes_default(10 * GIB, 64 * GIB), 30 * GIB);
        assert_eq!(disk(50 * GIB).cache_bytes_default(0, GIB), 8 * GIB);
        assert_eq!(disk(5000 * GIB).cache_bytes_default(0, 64 * GIB), 100 * GIB);
    }

    #[test]
    fn a_small_disk_keeps_a_tenth_free_and_blocks_are_few() {
        let small = DiskSpace {
            free: GIB,
            total: 10 * GIB,
        };
        assert_eq!(small.reserve(), GIB);
        assert_eq!(disk(0).reserve(), 5 * GIB);
        assert_eq!(block_bytes(BYTES_MIN), BLOCK_BYTES_MIN);
        assert_eq!(block_bytes(100 * GIB), BLOCK);
        assert_eq!(block_bytes(u64::MAX / 2), BLOCK_BYTES_MAX);
        assert!((24..60).all(|bits| is_of_use(1 << bits, block_bytes(1 << bits))));
        assert!(is_of_use(60 * GIB, BLOCK) && is_of_use(200 * GIB, BLOCK));
        assert!(!is_of_use(GIB, BLOCK) && !is_of_use(GIB, 0) && !is_of_use(5000 * GIB, BLOCK));
    }
}
