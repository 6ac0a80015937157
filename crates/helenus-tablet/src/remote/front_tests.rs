use std::sync::Arc;

use object_store::memory::InMemory;
use object_store::{ObjectStoreExt, PutPayload};

use super::super::counted::{Counted, Requests};
use super::*;

struct Log {
    store: Counted,
    requests: Arc<Requests>,
    front: Front,
}

fn path(number: LogNumber) -> Path {
    Path::from(format!("tablets/7/wal/{number:020}.sst"))
}

impl Log {
    /// A log whose objects have these contents, from number 5 on.
    async fn of(contents: &[&'static str]) -> Log {
        let requests = Arc::<Requests>::default();
        let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let store = Counted::new(memory.clone(), memory, requests.clone(), Arc::default());
        for (number, content) in (5..).zip(contents) {
            store
                .put(&path(number), PutPayload::from(*content))
                .await
                .unwrap();
        }
        Log {
            store,
            requests,
            front: Front::default(),
        }
    }

    async fn head(&self, number: LogNumber) -> Option<u64> {
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        match self.front.get(&self.store, &path(number), options).await {
            Ok(found) => Some(found.meta.size),
            Err(Error::NotFound { .. }) => None,
            Err(error) => panic!("{error}"),
        }
    }

    async fn read(&self, number: LogNumber, range: std::ops::Range<u64>) -> Bytes {
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            ..GetOptions::default()
        };
        let found = self.front.get(&self.store, &path(number), options).await;
        found.unwrap().bytes().await.unwrap()
    }

    /// GETs, HEADs among them, and listings.
    fn asked(&self) -> (u64, u64) {
        let stats = self.requests.read();
        (stats.gets, stats.lists)
    }
}

#[tokio::test]
async fn one_listing_answers_all_looks_for_the_end() {
    let log = Log::of(&["one", "two", "", "four"]).await;
    let probes = [6, 7, 9, 13, 21];
    let heads = futures::future::join_all(probes.map(|number| log.head(number))).await;
    assert_eq!(heads, [Some(3), Some(0), None, None, None]);
    assert_eq!(log.head(8).await, Some(4));
    assert_eq!(log.asked(), (0, 1));
    assert_eq!(
        log.head(5).await,
        Some(3),
        "what lies before the listing is asked for"
    );
    assert_eq!(log.asked(), (1, 1));
}

#[tokio::test]
async fn a_number_that_was_free_is_asked_for_once_the_fence_was_put() {
    let log = Log::of(&["one"]).await;
    assert_eq!((log.head(5).await, log.head(6).await), (Some(3), None));
    log.store.put(&path(6), "two".into()).await.unwrap();
    assert_eq!(log.head(6).await, None, "it was free when the log was listed");
    log.front.put(&path(6), None);
    assert_eq!((log.head(5).await, log.head(6).await), (Some(3), Some(3)));
    assert_eq!(log.asked(), (1, 1));
    log.front.put(&path(7), Some(0));
    assert_eq!((log.head(7).await, log.head(6).await), (Some(0), Some(3)));
    assert_eq!(log.asked(), (2, 1), "its own fence it knows");
}

#[tokio::test]
async fn the_newest_object_is_read_once_until_the_tablet_is_open() {
    let log = Log::of(&["one", "four"]).await;
    assert_eq!(&log.read(6, 0..4).await[..], b"four");
    assert_eq!(&log.read(5, 0..3).await[..], b"one");
    assert_eq!(log.front.newest(), Some(6));
    assert_eq!(&log.read(6, 1..3).await[..], b"ou");
    assert_eq!(log.asked(), (2, 0));
    log.front.end();
    assert_eq!(&log.read(6, 1..3).await[..], b"ou");
    assert_eq!((log.asked(), log.front.newest()), ((3, 0), None));
    log.store.put(&path(7), "".into()).await.unwrap();
    assert_eq!(log.head(7).await, Some(0));
    assert_eq!(log.asked(), (4, 0));
}
