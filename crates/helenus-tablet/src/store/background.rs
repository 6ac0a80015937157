//! The runtimes of background work.

use tokio::runtime::Handle;

use crate::error::StoreError;
use crate::priority::set_background;
use crate::threads::is_stepped;

/// The runtime of flushes, compactions and garbage collection. Unlike a bare runtime it may be dropped anywhere, because dropping does not
/// wait for its tasks. On a stepped thread this is the current runtime.
pub(crate) struct BackgroundRuntime {
    /// `None` on a stepped thread.
    runtime: Option<tokio::runtime::Runtime>,
    pub handle: Handle,
}

impl Drop for BackgroundRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl BackgroundRuntime {
    pub fn start(threads: usize) -> Result<Self, StoreError> {
        if is_stepped() {
            return Ok(BackgroundRuntime::current());
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .thread_name("helenus-bg")
            .on_thread_start(set_background)
            .enable_all()
            .build()
            .map_err(|error| StoreError::Unavailable(format!("cannot start threads: {error}")))?;
        Ok(BackgroundRuntime::new(runtime))
    }

    /// Starts the runtime that only applies stages, so that no other work delays them.
    pub fn start_writing() -> Result<Self, StoreError> {
        if is_stepped() {
            return Ok(BackgroundRuntime::current());
        }
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads((cores / 4).max(1))
            .thread_name("helenus-drain")
            .on_thread_start(set_background)
            .enable_time()
            .build()
            .map_err(|error| StoreError::Unavailable(format!("cannot start threads: {error}")))?;
        Ok(BackgroundRuntime::new(runtime))
    }

    fn current() -> Self {
        BackgroundRuntime {
            runtime: None,
            handle: Handle::current(),
        }
    }

    fn new(runtime: tokio::runtime::Runtime) -> Self {
        BackgroundRuntime {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        }
    }
}
