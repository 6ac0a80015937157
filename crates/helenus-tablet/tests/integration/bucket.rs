//! Stores in a bucket in memory, which can inject faults.

use std::sync::Arc;
use std::time::Duration;

use helenus_tablet::{Store, StoreConfig, StoreUrl, set_memory_store};
use object_store::ObjectStore;

use crate::faulty::Faulty;
use crate::support::{APPEND, token};

pub fn config(name: &str) -> StoreConfig {
    StoreConfig {
        url: StoreUrl::parse(&format!("memory://{name}/prefix")).unwrap(),
        write_timeout: Duration::from_millis(700),
        read_timeout: Duration::from_secs(2),
        ..StoreConfig::small(std::path::Path::new("/nowhere"))
    }
}

pub async fn open(name: &str) -> Arc<Store> {
    Store::open(config(name), Arc::new(APPEND)).await.unwrap()
}

/// Returns a bucket of this name that injects faults by rules.
pub fn faulty(name: &str) -> Faulty {
    let faulty = Faulty::new();
    set_memory_store(name, Arc::new(faulty.clone()));
    faulty
}

/// Returns names of rows, alternately of the one and of the other tablet.
pub fn names(count: usize) -> Vec<String> {
    let side = |positive: bool| {
        (0..)
            .map(|n| format!("row{n}"))
            .filter(move |name| (token(name.as_bytes()) >= 0) == positive)
            .take(count.div_ceil(2))
    };
    side(false)
        .zip(side(true))
        .flat_map(|(left, right)| [left, right])
        .take(count)
        .collect()
}

pub async fn count(bucket: &Faulty, prefix: &str) -> usize {
    use futures::StreamExt;
    let prefix = object_store::path::Path::from(prefix);
    bucket.list(Some(&prefix)).count().await
}

pub async fn puts_of_log(bucket: &Faulty) -> usize {
    count(bucket, "prefix/logs").await
}
