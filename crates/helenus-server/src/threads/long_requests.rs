//! The thread pool of requests that compute for long. Its threads serve no sockets, and have a lower priority than those that do.
//!
//! A request begins on the thread that serves its connection. It moves to this pool if it is known to take longer than a millisecond, or
//! when it yields after having computed for one. So it does not delay other requests, even if it cannot yield.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use helenus_tablet::threads::is_stepped;
use metrics::{counter, gauge};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

const RUNNING: &str = "helenus_long_requests_running";
const MOVED: &str = "helenus_long_requests_total";

/// The threads for requests that compute for long.
pub(crate) struct LongRequestPool {
    /// `None` once the pool has been dropped, and on a stepped thread: then requests stay on their thread.
    runtime: Option<Runtime>,
    busy: AtomicUsize,
}

impl LongRequestPool {
    /// Starts one thread per core, and at least two: a request that cannot yield must not block all others.
    ///
    /// # Errors
    /// The threads cannot be started.
    pub fn start() -> std::io::Result<LongRequestPool> {
        gauge!(RUNNING).increment(0.0);
        counter!(MOVED).increment(0);
        if is_stepped() {
            return Ok(LongRequestPool {
                runtime: None,
                busy: AtomicUsize::new(0),
            });
        }
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

    /// Runs a request in the pool.
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

    /// Returns the number of the node's requests that are computing at present. Only requests with a task of their own are counted.
    pub fn busy_count(&self) -> usize {
        self.busy.load(Ordering::Relaxed)
    }
}

impl Drop for LongRequestPool {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting for the threads is not allowed on a thread that serves sockets. No client waits for the requests that still run.
            runtime.shutdown_background();
        }
    }
}

/// Counts a long request in the metrics until it is dropped.
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

/// A request's part of [`LongRequestPool::busy_count`].
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
