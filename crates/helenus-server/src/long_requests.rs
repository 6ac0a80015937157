//! The thread pool of requests that compute for long: its threads serve no socket, and give way to those that do.
//!
//! A request begins where its connection is served. When it gives way having computed for a millisecond, or when it is known to take longer, it goes
//! on here, so that nothing that it does keeps other requests waiting, be it cut into slices or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use metrics::{counter, gauge};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

const RUNNING: &str = "helenus_long_requests_running";
const MOVED: &str = "helenus_long_requests_total";

/// Threads for requests that compute for long.
pub(crate) struct LongRequestPool {
    /// None once it has ended.
    runtime: Option<Runtime>,
    busy: AtomicUsize,
}

impl LongRequestPool {
    /// Starts one thread a core, two at least: one request that can't give way must not keep all others waiting.
    ///
    /// # Errors
    /// If the threads can't be started.
    pub fn start() -> std::io::Result<LongRequestPool> {
        gauge!(RUNNING).increment(0.0);
        counter!(MOVED).increment(0);
        let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get());
        let runtime = Builder::new_multi_thread()
            .worker_threads(cores.max(2))
            .thread_name("helenus-aside")
            .on_thread_start(helenus_tablet::set_long_running)
            .enable_all()
            .build()?;
        Ok(LongRequestPool {
            runtime: Some(runtime),
            busy: AtomicUsize::new(0),
        })
    }

    /// Runs a request there.
    pub fn spawn<F>(&self, run: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let shown = ShownLongRequest::new();
        let run = async move {
            let _shown = shown;
            run.await
        };
        match &self.runtime {
            Some(runtime) => runtime.spawn(run),
            None => tokio::spawn(run),
        }
    }

    /// How many requests of the node have more to compute at this moment, of those with tasks of their own.
    pub fn busy_count(&self) -> usize {
        self.busy.load(Ordering::Relaxed)
    }
}

impl Drop for LongRequestPool {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting for it is not allowed where sockets are served, and what it runs has nobody to answer to.
            runtime.shutdown_background();
        }
    }
}

/// A long request in the metrics, until it is dropped.
struct ShownLongRequest;

impl ShownLongRequest {
    fn new() -> ShownLongRequest {
        gauge!(RUNNING).increment(1.0);
        counter!(MOVED).increment(1);
        ShownLongRequest
    }
}

impl Drop for ShownLongRequest {
    fn drop(&mut self) {
        gauge!(RUNNING).decrement(1.0);
    }
}

/// Whether one request has more to compute.
pub(crate) struct RunningLongRequest {
    long_requests: Arc<LongRequestPool>,
    is_busy: bool,
}

impl RunningLongRequest {
    pub fn new(long_requests: Arc<LongRequestPool>) -> RunningLongRequest {
        RunningLongRequest {
            long_requests,
            is_busy: false,
        }
    }

    pub fn set(&mut self, is_busy: bool) {
        match (self.is_busy, is_busy) {
            (false, true) => self.long_requests.busy.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.long_requests.busy.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
        self.is_busy = is_busy;
    }
}

impl Drop for RunningLongRequest {
    fn drop(&mut self) {
        self.set(false);
    }
}
