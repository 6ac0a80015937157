//! Sources in a bucket: folders are listed once, and files are read ahead in blocks.
//!
//! Readers of SSTables block, and the client of the object store is asynchronous. So requests run on a runtime of their own, and each open
//! file receives its blocks by a channel. While a reader consumes a block, the next one is fetched: latency counts only if a block takes
//! longer than its consumption.
//!
//! - `requests`: requests with retries;
//! - `file`: the blocks of an open file;
//! - `folder`: folders.

mod file;
mod folder;
mod requests;

#[cfg(test)]
mod bucket_tests;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use anyhow::{Context, Result};
use helenus_tablet::plain_client;
use object_store::ObjectStore;
use tokio::runtime::Runtime;
use url::Url;

use self::folder::BucketFolder;
use self::requests::Requests;
use crate::shell::interrupt::Interrupt;

/// Threads for requests. They only wait and copy.
const THREADS: usize = 2;

/// A bucket, or a part of one, that sources are read from.
#[derive(Debug)]
struct Bucket {
    requests: Arc<Requests>,
    runtime: Arc<Runtime>,
    interrupt: Interrupt,
    /// URL for messages, without a slash at its end.
    url: String,
    /// Number of files that are being read.
    open_files: Arc<AtomicUsize>,
}

/// Returns the runtime on which requests run.
pub fn runtime() -> Result<Arc<Runtime>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .thread_name("helenus-bucket")
        .build();
    runtime.map(Arc::new).context("can't start the runtime")
}

/// Returns the folder of a URL. No request is sent yet.
pub fn folder(url: &Url, runtime: &Arc<Runtime>, interrupt: &Interrupt) -> Result<BucketFolder> {
    Ok(folder_of(plain_client("--from", url)?, url, runtime, interrupt))
}

fn folder_of(
    objects: Arc<dyn ObjectStore>,
    url: &Url,
    runtime: &Arc<Runtime>,
    interrupt: &Interrupt,
) -> BucketFolder {
    BucketFolder::root(Arc::new(Bucket {
        requests: Arc::new(Requests::new(objects)),
        runtime: Arc::clone(runtime),
        interrupt: interrupt.clone(),
        url: url.as_str().trim_end_matches('/').to_owned(),
        open_files: Arc::default(),
    }))
}
