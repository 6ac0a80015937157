//! Read-only stores, beside the process that writes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use helenus_tablet::{MetaExpect, Scan, Store, StoreConfig, StoreError, TokenRange};
use object_store::ObjectStore;
use object_store::path::Path;

use crate::bucket::{config, faulty, names, open};
use crate::faulty::Faulty;
use crate::support::{APPEND, dump, read, token, try_write, write};

const RING: TokenRange = TokenRange {
    first: i64::MIN,
    last: i64::MAX,
};

async fn open_read_only(config: StoreConfig) -> Result<Arc<Store>, StoreError> {
    let config = StoreConfig {
        read_only: true,
        ..config
    };
    let store = Store::open(config, Arc::new(APPEND)).await?;
    store.follow_tablets(&store.initial_tablets()).await?;
    Ok(store)
}

/// Checks that the reader wrote nothing to the bucket.
fn check_untouched(reader: &Store) {
    let requests = reader.stats().bucket.unwrap();
    assert_eq!((requests.puts, requests.deletes), (0, 0), "{requests:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn flushed_rows_are_read_and_nothing_is_written() {
    let _bucket = faulty("reader");
    let error = open_read_only(config("reader")).await.err().unwrap();
    assert!(error.to_string().contains("there is no store"), "{error}");
    let writer = open("reader").await;
    let reader = open_read_only(config("reader")).await.unwrap();
    assert!(reader.is_read_only() && !writer.is_read_only());
    let names = names(20);
    for operand in ["a", "b"] {
        for name in &names {
            write(&writer, name, operand).await;
        }
        let before = dump(&reader).await;
        reader.refresh_tablets().await.unwrap();
        assert_eq!(dump(&reader).await, before, "it was not flushed");
        writer.flush().await.unwrap();
        reader.refresh_tablets().await.unwrap();
        assert_eq!(dump(&reader).await, dump(&writer).await);
        // Rows from the row cache are refreshed, too.
        for name in &names {
            assert_eq!(read(&reader, name).await, read(&writer, name).await);
        }
    }
    let refused = [
        try_write(&reader, &names[0], "x").await,
        reader.meta_put("x", b"x", MetaExpect::Any).await.map(drop),
        reader.open_tablet(1, RING).await.map(drop),
        reader.flush().await,
    ];
    for refused in refused {
        assert!(matches!(refused, Err(StoreError::ReadOnly)), "{refused:?}");
    }
    check_untouched(&reader);
    write(&writer, &names[0], "c").await;
    assert_eq!(read(&writer, &names[0]).await.as_deref(), Some("abc"));
    reader.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_read_again_when_they_have_changed() {
    let _bucket = faulty("reader-documents");
    let writer = open("reader-documents").await;
    let reader = open_read_only(config("reader-documents")).await.unwrap();
    writer.meta_put("doc", b"1", MetaExpect::Absent).await.unwrap();
    assert!(reader.meta_may_differ("doc").await.unwrap());
    let found = reader.meta_get("doc").await.unwrap().unwrap();
    assert!(!reader.meta_may_differ("doc").await.unwrap());
    let expect = MetaExpect::Version(found.version);
    writer.meta_put("doc", b"2", expect).await.unwrap();
    assert!(reader.meta_may_differ("doc").await.unwrap());
    assert_eq!(&reader.meta_get("doc").await.unwrap().unwrap().content[..], b"2");
    check_untouched(&reader);
}

async fn files(bucket: &Faulty) -> BTreeSet<Path> {
    let folder = Path::from("prefix/tablets/1/compacted");
    let found: Vec<_> = bucket.list(Some(&folder)).try_collect().await.unwrap();
    found.into_iter().map(|object| object.location).collect()
}

/// Returns the keys that begin with "row": those read before, and the rest of the scan.
async fn rest(scan: &mut Scan, mut keys: Vec<String>) -> Vec<String> {
    while let Some((key, row)) = scan.next().await.unwrap() {
        assert!(!row.is_empty());
        keys.push(String::from_utf8(key.to_vec()).unwrap());
    }
    keys.retain(|key| key.starts_with("row"));
    keys
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_go_on_when_their_files_are_deleted() {
    let bucket = faulty("reader-files");
    let config = StoreConfig {
        tablet_count: 1,
        garbage_age: Duration::from_secs(1),
        ..config("reader-files")
    };
    let writer = Store::open(config.clone(), Arc::new(APPEND)).await.unwrap();
    // The rows fill several blocks.
    let text = "x".repeat(2000);
    let expected: Vec<String> = (0..300).map(|n| format!("row{n:03}")).collect();
    for part in expected.chunks(100) {
        for name in part {
            write(&writer, name, &text).await;
        }
        writer.flush().await.unwrap();
    }
    let reader = open_read_only(config).await.unwrap();
    let tablet = reader.tablet(0).unwrap();
    let mut scans = [
        tablet.scan(.., false).await.unwrap(),
        tablet.scan(.., true).await.unwrap(),
    ];
    let mut keys = [Vec::new(), Vec::new()];
    for (scan, keys) in scans.iter_mut().zip(&mut keys) {
        for _ in 0..10 {
            let (key, _) = scan.next().await.unwrap().unwrap();
            keys.push(String::from_utf8(key.to_vec()).unwrap());
        }
    }
    let before = files(&bucket).await;
    let until = Instant::now() + Duration::from_secs(60);
    for n in 0.. {
        if files(&bucket).await.is_disjoint(&before) {
            break;
        }
        assert!(Instant::now() < until, "the first files stay");
        write(&writer, format!("filler{n}"), "y").await;
        writer.flush().await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // The reader has not looked for newer manifests.
    assert_eq!(read(&reader, "row150").await.as_deref(), Some(text.as_str()));
    let [forward, backward] = &mut scans;
    let [first, last] = keys;
    assert_eq!(rest(forward, first).await, expected);
    let mut found = rest(backward, last).await;
    found.reverse();
    assert_eq!(found, expected);
    check_untouched(&reader);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_heirs_of_a_tablet_are_read_when_it_is_gone() {
    let _bucket = faulty("reader-heirs");
    let writer = open("reader-heirs").await;
    let names = names(20);
    for name in &names {
        write(&writer, name, "a").await;
    }
    writer.flush().await.unwrap();
    let reader = open_read_only(config("reader-heirs")).await.unwrap();
    let parents: Vec<u32> = writer.tablets().iter().map(|tablet| tablet.id()).collect();
    writer.merge_tablets(&parents, (13, RING)).await.unwrap();
    writer.open_tablet(13, RING).await.unwrap();
    for parent in &parents {
        assert!(writer.remove_tablet(*parent).await.unwrap());
    }
    let key = crate::support::key(&names[0]);
    let error = reader.tablet(token(&key)).unwrap().get(&key).await.unwrap_err();
    assert!(matches!(error, StoreError::NotOwned(_)), "{error}");

    // A read that waits triggers a refresh.
    let rounds = {
        let reader = reader.clone();
        tokio::spawn(async move {
            reader.refresh_requested().await;
            let round = reader.begin_refresh().unwrap();
            reader.follow_tablets(&[(13, RING)]).await.unwrap();
            reader.end_refresh(&round, None);
        })
    };
    let began = Instant::now();
    assert!(reader.refreshed().await, "the round did not end the wait");
    rounds.await.unwrap();
    let age = reader.refresh_age().unwrap();
    assert!(
        age <= began.elapsed(),
        "refreshed {age:?} ago, which is before it was wanted"
    );
    for name in &names {
        assert_eq!(read(&reader, name).await.as_deref(), Some("a"));
    }
    check_untouched(&reader);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_flushed_when_they_are_old() {
    let _bucket = faulty("flush-interval");
    let config = StoreConfig {
        flush_interval: Some(Duration::from_secs(2)),
        ..config("flush-interval")
    };
    let writer = Store::open(config.clone(), Arc::new(APPEND)).await.unwrap();
    let reader = open_read_only(config).await.unwrap();
    for n in 0..2 {
        let written = Instant::now();
        write(&writer, "row", "a").await;
        let row = "a".repeat(n + 1);
        while read(&reader, "row").await.as_deref() != Some(row.as_str()) {
            assert!(written.elapsed() < Duration::from_secs(30), "it is not flushed");
            tokio::time::sleep(Duration::from_millis(100)).await;
            reader.refresh_tablets().await.unwrap();
        }
        assert!(
            written.elapsed() > Duration::from_secs(1),
            "it is flushed at once"
        );
    }
}
