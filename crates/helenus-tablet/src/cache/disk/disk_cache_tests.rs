use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path as FilePath;

use ::object_store::memory::InMemory;
use ::object_store::path::Path;
use ::object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};

use super::object_store::{ReadPolicy, cached, refreshed};
use super::part::PART_BYTES;
use super::*;
use crate::bucket::metered_object_store::{MeteredObjectStore, Requests};

const MIB: u64 = 1 << 20;

/// Returns a folder on a file system with free space. The cache leaves a share of its disk free, and the disk of the other tests may be
/// full.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// A bucket and a node's disk cache of it.
struct Rig {
    folder: tempfile::TempDir,
    bucket: Arc<dyn ObjectStore>,
    requests: Arc<Requests>,
    identity: Uuid,
}

impl Rig {
    fn new() -> Rig {
        let (inner, requests) = (Arc::new(InMemory::new()), Arc::<Requests>::default());
        let bucket = MeteredObjectStore::new(inner.clone(), inner, requests.clone(), Arc::default());
        Rig {
            folder: folder(),
            bucket: Arc::new(bucket),
            requests,
            identity: Uuid::new_v4(),
        }
    }

    async fn start_in(&self, folder: &FilePath, bytes: u64) -> Option<Arc<DiskCache>> {
        let config = DiskCacheConfig {
            folder: folder.to_owned(),
            bytes: Some(bytes),
        };
        let cache = DiskCache::start(&config, self.identity).await?;
        // Periodic checks are stopped, because the tests run their own checks.
        if let Some(checks) = cache.checks.lock().as_ref() {
            checks.abort();
        }
        Some(cache)
    }

    async fn start(&self, mib: u64) -> Arc<DiskCache> {
        self.start_in(self.folder.path(), mib * MIB).await.unwrap()
    }

    fn behind(&self, cache: &Arc<DiskCache>) -> Arc<dyn ObjectStore> {
        cached(self.bucket.clone(), Some(cache), ReadPolicy::Insert)
    }

    fn gets(&self) -> u64 {
        self.requests.read().gets
    }
}

fn sstable(number: u32) -> Path {
    Path::from(format!("tablets/1/compacted/{number:026}.sst"))
}

fn random_bytes(seed: u64, len: u64) -> Bytes {
    let mut bytes = vec![0; len as usize];
    StdRng::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes.into()
}

async fn check_range(store: &dyn ObjectStore, path: &Path, content: &Bytes, range: Range<u64>) {
    let there = range.start as usize..range.end.min(content.len() as u64) as usize;
    let read = store.get_range(path, range.clone()).await.unwrap();
    assert!(read == content.slice(there), "{path} {range:?}");
}

/// Reads an SSTable in pieces of 4 KiB and checks the content.
async fn check_all(store: &dyn ObjectStore, path: &Path, content: &Bytes) {
    let len = content.len() as u64;
    for start in (0..len).step_by(4096) {
        check_range(store, path, content, start..(start + 4096).min(len)).await;
    }
}

/// Flips a bit in each page of all blocks.
fn damage(folder: &FilePath, bit: u8) {
    for entry in std::fs::read_dir(folder.join("blocks")).unwrap() {
        let path = entry.unwrap().path();
        let file = std::fs::File::options()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        let len = file.metadata().unwrap().len();
        for at in (0..len).step_by(4096).map(|page| page + page / 4096 % 4096) {
            let mut byte = [0];
            if file.read_exact_at(&mut byte, at).is_ok() {
                file.write_all_at(&[byte[0] ^ bit], at).unwrap();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_range_reads_as_from_the_bucket() {
    let rig = Rig::new();
    let cache = rig.start(64).await;
    let store = rig.behind(&cache);
    let compactions = cached(rig.bucket.clone(), Some(&cache), ReadPolicy::LookUp);
    let mut random = StdRng::seed_from_u64(7);
    for (number, len) in [
        1,
        PART_BYTES - 1,
        PART_BYTES,
        PART_BYTES + 1,
        40 * PART_BYTES + 77,
    ]
    .into_iter()
    .enumerate()
    {
        let (path, content) = (sstable(number as u32), random_bytes(len, len));
        rig.bucket.put(&path, content.clone().into()).await.unwrap();
        for _ in 0..60 {
            let start = random.random_range(0..len);
            let end = random.random_range(start + 1..=len);
            let near = end.min(start + random.random_range(1..9000));
            let end = if random.random_bool(0.5) { near } else { end };
            let reader = if random.random_bool(0.2) {
                &compactions
            } else {
                &store
            };
            check_range(reader.as_ref(), &path, &content, start..end).await;
        }
        // A range may extend beyond the end of the object, as in the bucket.
        let tail = len.saturating_sub(3)..len + 2 * PART_BYTES;
        if len % PART_BYTES != 0 {
            check_range(store.as_ref(), &path, &content, tail).await;
        }
    }
    assert!(cache.stats().hits > 100, "{:?}", cache.stats());
    assert_eq!(cache.stats().errors, 0);
    cache.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_uploaded_needs_no_get_even_after_a_restart() {
    let rig = Rig::new();
    let cache = rig.start(64).await;
    let store = rig.behind(&cache);
    let (small, large) = (random_bytes(1, MIB + 5), random_bytes(2, 9 * MIB + 5));
    store.put(&sstable(1), small.clone().into()).await.unwrap();
    let mut upload = store.put_multipart(&sstable(2)).await.unwrap();
    for chunk in large.chunks(5 << 20) {
        upload.put_part(PutPayload::from(chunk.to_vec())).await.unwrap();
    }
    upload.complete().await.unwrap();
    check_all(store.as_ref(), &sstable(1), &small).await;
    check_all(store.as_ref(), &sstable(2), &large).await;
    assert_eq!(rig.gets(), 0, "{:?}", cache.stats());
    cache.close().await;
    drop((store, cache));
    for round in 0..2 {
        wait_until_free(&rig).await;
        let cache = rig.start(64).await;
        let store = rig.behind(&cache);
        check_all(store.as_ref(), &sstable(1), &small).await;
        check_all(store.as_ref(), &sstable(2), &large).await;
        assert_eq!(rig.gets(), 0, "round {round}: {:?}", cache.stats());
        cache.close().await;
    }
}

/// Waits until no process holds the lock of the cache folder.
async fn wait_until_free(rig: &Rig) {
    for _ in 0..100 {
        if CacheFolder::lock(rig.folder.path()).is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("someone has the cache still");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_is_fetched_once_and_compactions_insert_nothing() {
    let rig = Rig::new();
    let cache = rig.start(32).await;
    let (path, content) = (sstable(1), random_bytes(3, 20 * PART_BYTES));
    rig.bucket.put(&path, content.clone().into()).await.unwrap();
    let compactions = cached(rig.bucket.clone(), Some(&cache), ReadPolicy::LookUp);
    let store = rig.behind(&cache);
    let read_bytes = || rig.requests.read().read_bytes;
    check_range(compactions.as_ref(), &path, &content, 5..500_000).await;
    assert_eq!((rig.gets(), read_bytes()), (1, 500_000 - 5));
    assert_eq!(cache.stats().inserted, 0);
    check_range(store.as_ref(), &path, &content, 40_000..41_000).await;
    assert_eq!((rig.gets(), read_bytes()), (2, 500_000 - 5 + PART_BYTES));
    check_range(store.as_ref(), &path, &content, 33_000..34_000).await;
    assert_eq!(rig.gets(), 2);
    // Fetches the parts on both sides of the cached one.
    check_range(store.as_ref(), &path, &content, 0..4 * PART_BYTES).await;
    assert_eq!(rig.gets(), 4);
    check_range(store.as_ref(), &path, &content, 0..4 * PART_BYTES).await;
    check_range(compactions.as_ref(), &path, &content, 1..3 * PART_BYTES).await;
    assert_eq!(rig.gets(), 4);
    let missing = store.get_range(&sstable(9), 0..10).await.unwrap_err();
    assert!(
        matches!(missing, ::object_store::Error::NotFound { .. }),
        "{missing}"
    );
    let manifest = Path::from("tablets/1/manifest/1.manifest");
    rig.bucket.put(&manifest, "a document".into()).await.unwrap();
    let before = rig.gets();
    store.get(&manifest).await.unwrap();
    store.get(&manifest).await.unwrap();
    assert_eq!(rig.gets(), before + 2);
    cache.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_parts_are_fetched_again() {
    let rig = Rig::new();
    let (path, content) = (sstable(1), random_bytes(4, 6 * MIB));
    let cache = rig.start(32).await;
    let store = rig.behind(&cache);
    store.put(&path, content.clone().into()).await.unwrap();
    damage(rig.folder.path(), 4);
    check_all(store.as_ref(), &path, &content).await;
    let while_running = rig.gets();
    assert!(while_running > 100, "{while_running}");
    cache.close().await;
    drop((store, cache));
    wait_until_free(&rig).await;

    damage(rig.folder.path(), 8);
    let cache = rig.start(32).await;
    let store = rig.behind(&cache);
    check_all(store.as_ref(), &path, &content).await;
    assert!(rig.gets() > while_running + 100, "{} {while_running}", rig.gets());
    // Parts that arrive faster than the disk can write are dropped, so a part may be fetched more than once.
    for _ in 0..5 {
        let before = rig.gets();
        check_all(store.as_ref(), &path, &content).await;
        if rig.gets() == before {
            return cache.close().await;
        }
    }
    panic!("it does not heal: {:?}", cache.stats());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_damaged_from_the_bucket_can_be_replaced() {
    let rig = Rig::new();
    let cache = rig.start(32).await;
    let store = rig.behind(&cache);
    let [damaged, sound] = [8, 9].map(|seed| random_bytes(seed, 3 * PART_BYTES));
    store.put(&sstable(1), damaged.clone().into()).await.unwrap();
    rig.bucket.put(&sstable(1), sound.clone().into()).await.unwrap();
    check_all(store.as_ref(), &sstable(1), &damaged).await;
    refreshed(check_range(
        store.as_ref(),
        &sstable(1),
        &sound,
        5..2 * PART_BYTES,
    ))
    .await;
    check_range(store.as_ref(), &sstable(1), &sound, 0..2 * PART_BYTES).await;
    let before = rig.gets();
    check_range(
        store.as_ref(),
        &sstable(1),
        &damaged,
        2 * PART_BYTES..3 * PART_BYTES,
    )
    .await;
    assert_eq!(rig.gets(), before);
    cache.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cache_stays_within_its_size_and_keeps_what_is_read() {
    let rig = Rig::new();
    let cache = rig.start(16).await;
    let store = rig.behind(&cache);
    let hot = random_bytes(0, MIB);
    store.put(&sstable(0), hot.clone().into()).await.unwrap();
    for number in 1..=60 {
        let content = random_bytes(number.into(), MIB);
        store.put(&sstable(number), content.into()).await.unwrap();
        check_all(store.as_ref(), &sstable(0), &hot).await;
    }
    assert!(
        cache.folder.used_bytes() <= 16 * MIB,
        "{}",
        cache.folder.used_bytes()
    );
    // The hot SSTable was fetched again only occasionally.
    assert!(rig.gets() < 200, "{}", rig.gets());
    let before = rig.gets();
    check_all(store.as_ref(), &sstable(58), &random_bytes(58, MIB)).await;
    assert_eq!(rig.gets(), before);
    cache.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_belongs_to_one_process_and_one_store() {
    let rig = Rig::new();
    let (path, content) = (sstable(1), random_bytes(5, MIB));
    let cache = rig.start(32).await;
    rig.behind(&cache)
        .put(&path, content.clone().into())
        .await
        .unwrap();
    assert!(rig.start_in(rig.folder.path(), 32 * MIB).await.is_none());
    assert!(rig.start_in(&rig.folder.path().join("off"), 0).await.is_none());
    cache.close().await;
    drop(cache);
    wait_until_free(&rig).await;
    let other = Rig {
        identity: Uuid::new_v4(),
        ..rig
    };
    let cache = other.start(32).await;
    check_all(other.behind(&cache).as_ref(), &path, &content).await;
    assert!(other.gets() > 0);
    cache.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cache_gives_way_to_others_on_its_disk_and_comes_back() {
    let rig = Rig::new();
    let cache = rig.start(64).await;
    let store = rig.behind(&cache);
    let contents: Vec<_> = (0..30).map(|number| random_bytes(number, MIB)).collect();
    for (number, content) in (0..).zip(&contents) {
        store.put(&sstable(number), content.clone().into()).await.unwrap();
    }
    let used = cache.folder.used_bytes();
    assert!(used >= 29 * MIB, "{used}");
    let space = |free| DiskSpace {
        free: free * MIB,
        total: 100 * MIB,
    };
    let fit = async |free| {
        let mut state = cache.state.lock().await;
        let used = cache.folder.used_bytes();
        cache.fit(&mut state, space(free), used).await;
        state.changed -= GROW_AFTER;
        drop(state);
        (
            cache.stats().capacity_bytes / MIB,
            cache.folder.used_bytes() / MIB,
        )
    };
    let (capacity, used) = fit(0).await;
    assert!(
        (15..=21).contains(&capacity) && used <= capacity,
        "{capacity} {used}"
    );
    let before = rig.gets();
    for (number, content) in (0..).zip(&contents) {
        check_range(store.as_ref(), &sstable(number), content, 0..MIB).await;
    }
    // The parts that remain in the smaller cache are still readable.
    assert!(
        (1..=30).contains(&(rig.gets() - before)),
        "{}",
        rig.gets() - before
    );
    fit(0).await;
    assert_eq!(fit(0).await, (0, 0));
    let before = rig.requests.read().read_bytes;
    check_all(store.as_ref(), &sstable(3), &contents[3]).await;
    assert_eq!(
        rig.requests.read().read_bytes - before,
        MIB,
        "no more than is asked for"
    );
    assert_eq!(fit(90).await.0, 40);
    check_all(store.as_ref(), &sstable(3), &contents[3]).await;
    let before = rig.gets();
    check_all(store.as_ref(), &sstable(3), &contents[3]).await;
    assert_eq!(rig.gets(), before);
    cache.close().await;
}

/// A small, separate file system.
struct Mount(tempfile::TempDir);

impl Mount {
    fn new(mib: u64) -> Option<Mount> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"])
            .arg(folder.path())
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then_some(Mount(folder))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(self.0.path())
            .status();
    }
}

/// Runs the checks of half a minute at once, until the cache's capacity in bytes is as expected.
async fn check_until(cache: &DiskCache, is_expected: impl Fn(u64) -> bool) {
    for _ in 0..6 {
        cache.check().await;
        if is_expected(cache.stats().capacity_bytes) {
            return;
        }
    }
    panic!("the checks led to {:?}", cache.stats());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_fails_no_read() {
    let Some(mount) = Mount::new(24) else {
        eprintln!("skipped: a file system cannot be mounted here");
        return;
    };
    let rig = Rig::new();
    let cache = rig
        .start_in(&mount.0.path().join("cache"), 64 * MIB)
        .await
        .unwrap();
    let store = rig.behind(&cache);
    let contents: Vec<_> = (0..40).map(|number| random_bytes(number, MIB)).collect();
    for (number, content) in (0..).zip(&contents) {
        store.put(&sstable(number), content.clone().into()).await.unwrap();
    }
    assert!(cache.folder.space().unwrap().free < MIB);
    for (number, content) in (0..).zip(&contents) {
        check_range(store.as_ref(), &sstable(number), content, 0..MIB).await;
    }
    // The cache fails and is closed. A minute later it is opened again and fitted to the disk.
    check_until(&cache, |capacity| capacity == 0).await;
    cache.state.lock().await.failed = Some(Instant::now() - RETRY_AFTER);
    check_until(&cache, |capacity| (10 * MIB..22 * MIB).contains(&capacity)).await;
    assert!(cache.folder.space().unwrap().free >= 2 * MIB);
    for (number, content) in (0..).zip(&contents) {
        check_range(store.as_ref(), &sstable(number), content, 0..MIB).await;
    }
    cache.close().await;
}
