//! The object store that all nodes share: it delays requests, fails them with and without effect, loses answers, and can be out of reach.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::runtime::Handle;

use crate::defect::{self, Defect};
use crate::dice::Dice;
use crate::machine;

/// Time after which a request without an answer fails at its sender.
const LOST_AFTER: Duration = Duration::from_secs(15);

/// The current behaviour of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    Healthy,
    /// Requests take up to a second.
    Slow,
    /// A part of the requests fails, with or without effect, or gets no answer.
    Flaky,
    /// All requests fail, and some take effect all the same.
    Failing,
}

struct State {
    health: Health,
    /// Nodes that do not reach the store.
    cut_off: BTreeSet<usize>,
}

/// A store in memory. Requests run outside of the nodes, so that those of a killed node can still take effect.
#[derive(Clone)]
pub struct Bucket {
    inner: Arc<InMemory>,
    state: Arc<Mutex<State>>,
    dice: Dice,
    outside: Handle,
}

/// The course of one request.
#[derive(Clone, Copy, Debug)]
struct Course {
    /// Time until the request arrives, and until its answer does.
    there: Duration,
    back: Duration,
    has_effect: bool,
    has_answer: bool,
    is_refused: bool,
}

impl Bucket {
    /// Returns an empty store, whose requests run on `outside`.
    pub fn new(dice: Dice, outside: Handle) -> Bucket {
        Bucket {
            inner: Arc::new(InMemory::new()),
            state: Arc::new(Mutex::new(State {
                health: Health::Healthy,
                cut_off: BTreeSet::new(),
            })),
            dice,
            outside,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn set_health(&self, health: Health) {
        self.state().health = health;
    }

    /// Cuts a node off from the store.
    pub fn cut_off(&self, node: usize) {
        self.state().cut_off.insert(node);
    }

    /// Connects all nodes to a healthy store.
    pub fn heal(&self) {
        let mut state = self.state();
        state.health = Health::Healthy;
        state.cut_off.clear();
    }

    /// Chooses the course of the next request of the node whose code runs.
    fn course(&self) -> Course {
        let state = self.state();
        let (health, is_cut_off) = (state.health, state.cut_off.contains(&machine::node()));
        drop(state);
        let longest_ms = match health {
            Health::Slow => 1000,
            _ => 8,
        };
        let mut course = Course {
            there: self.dice.millis(1..longest_ms),
            back: self.dice.millis(1..longest_ms),
            has_effect: true,
            has_answer: true,
            is_refused: false,
        };
        if is_cut_off {
            course.has_effect = false;
            course.has_answer = false;
        } else if health == Health::Failing || (health == Health::Flaky && self.dice.chance(30)) {
            course.has_effect = self.dice.chance(40);
            course.has_answer = self.dice.chance(70);
            course.is_refused = true;
        }
        course
    }

    /// Runs a request outside of its node.
    async fn request<T: Send + 'static>(
        &self,
        name: &'static str,
        path: &Path,
        run: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let course = self.course();
        let path = path.clone();
        let running = self.outside.spawn(async move {
            tokio::time::sleep(course.there).await;
            let result = match course.has_effect {
                true => Some(run.await),
                false => None,
            };
            tracing::trace!(name, %path, is_done = result.is_some(), "a request of the store");
            tokio::time::sleep(course.back).await;
            if !course.has_answer {
                tokio::time::sleep(LOST_AFTER).await;
                return Err(failed("no answer"));
            }
            match (course.is_refused, result) {
                (false, Some(result)) => result,
                _ => Err(failed("503 Slow Down")),
            }
        });
        running
            .await
            .unwrap_or_else(|_| Err(failed("the simulation has ended")))
    }
}

fn failed(why: &'static str) -> Error {
    Error::Generic {
        store: "simulated",
        source: why.into(),
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bucket")
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bucket")
    }
}

#[async_trait]
impl ObjectStore for Bucket {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let (inner, path) = (self.inner.clone(), location.clone());
        let mut opts = opts;
        let is_log = location.parts().any(|part| part.as_ref() == "logs");
        if defect::is_active(Defect::NoPutIfAbsent) && is_log && opts.mode == PutMode::Create {
            opts.mode = PutMode::Overwrite;
        }
        let is_lost = defect::is_active(Defect::LostPut) && is_log && self.dice.chance(2);
        let run = async move {
            match is_lost {
                true => {
                    inner
                        .put_opts(&Path::from("lost"), payload, PutOptions::default())
                        .await
                }
                false => inner.put_opts(&path, payload, opts).await,
            }
        };
        self.request("put", location, run).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let (inner, path) = (self.inner.clone(), location.clone());
        let run = async move { inner.put_multipart_opts(&path, opts).await };
        self.request("upload", location, run).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let (inner, path) = (self.inner.clone(), location.clone());
        let run = async move { inner.get_opts(&path, options).await };
        self.request("get", location, run).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let (inner, path, ranges) = (self.inner.clone(), location.clone(), ranges.to_vec());
        let run = async move { inner.get_ranges(&path, &ranges).await };
        self.request("get ranges", location, run).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let bucket = self.clone();
        let delete = move |path: Result<Path>| {
            let bucket = bucket.clone();
            async move {
                let path = path?;
                let (inner, location) = (bucket.inner.clone(), path.clone());
                let run = async move { inner.delete(&location).await };
                bucket.request("delete", &path, run).await?;
                Ok(path)
            }
        };
        locations.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (bucket, prefix) = (self.clone(), prefix.cloned());
        let listing = async move {
            let (inner, path) = (bucket.inner.clone(), prefix.clone());
            let run = async move { inner.list(path.as_ref()).try_collect::<Vec<_>>().await };
            let found = bucket.request("list", &prefix.unwrap_or_default(), run).await?;
            Ok::<_, Error>(stream::iter(found.into_iter().map(Ok)))
        };
        stream::once(listing).try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let (inner, path) = (self.inner.clone(), prefix.cloned());
        let run = async move { inner.list_with_delimiter(path.as_ref()).await };
        let prefix = prefix.cloned().unwrap_or_default();
        self.request("list", &prefix, run).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let (inner, source, target) = (self.inner.clone(), from.clone(), to.clone());
        let run = async move { inner.copy_opts(&source, &target, options).await };
        self.request("copy", from, run).await
    }
}
