//! An object store in memory that injects faults by rules.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::watch;

/// Outcome of a PUT.
#[derive(Clone)]
pub enum Fault {
    None,
    /// The PUT fails and has no effect.
    Fails,
    /// The PUT fails, although the object is written.
    FailsAfter,
    /// The PUT takes effect once the sender has sent true.
    Waits(watch::Receiver<bool>),
}

type Rule = Box<dyn FnMut(&Path) -> Fault + Send>;

#[derive(Clone)]
pub struct Faulty {
    inner: Arc<InMemory>,
    rule: Arc<Mutex<Rule>>,
}

impl Faulty {
    pub fn new() -> Faulty {
        Faulty {
            inner: Arc::new(InMemory::new()),
            rule: Arc::new(Mutex::new(Box::new(|_| Fault::None))),
        }
    }

    /// Sets the rule for PUTs from now on.
    pub fn rule(&self, rule: impl FnMut(&Path) -> Fault + Send + 'static) {
        *self.rule.lock().unwrap() = Box::new(rule);
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.rule(|_| Fault::None);
    }
}

pub fn is_log(path: &Path) -> bool {
    path.as_ref().contains("/logs/")
}

fn unavailable() -> Error {
    Error::Generic {
        store: "faulty",
        source: "503 Slow Down".into(),
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let fault = (self.rule.lock().unwrap())(location);
        match fault {
            Fault::None => {}
            Fault::Fails => return Err(unavailable()),
            Fault::FailsAfter => {
                self.inner.put_opts(location, payload, opts).await?;
                return Err(unavailable());
            }
            Fault::Waits(mut gate) => {
                let _ = gate.wait_for(|open| *open).await;
            }
        }
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
