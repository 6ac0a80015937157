//! Requests to an object store, with retries.

use std::future::Future;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use bytes::Bytes;
use helenus_tablet::may_pass;
use object_store::path::Path;
use object_store::{Error, ListResult, ObjectStore, ObjectStoreExt};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

/// Requests at a time. More would only wait for the network.
const REQUESTS_MAX: usize = 64;
/// Time for which failed requests are repeated, and the pauses between them.
const RETRY_TIME: Duration = Duration::from_secs(60);
const PAUSE_START: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// An object store and the number of requests that may run.
#[derive(Debug)]
pub struct Requests {
    objects: Arc<dyn ObjectStore>,
    running: Semaphore,
}

impl Requests {
    pub fn new(objects: Arc<dyn ObjectStore>) -> Requests {
        Requests {
            objects,
            running: Semaphore::new(REQUESTS_MAX),
        }
    }

    /// Reads a part of an object.
    pub async fn read(&self, path: &Path, range: Range<u64>) -> io::Result<Bytes> {
        let len = range.end.saturating_sub(range.start);
        let content = self
            .repeat(|| self.objects.get_range(path, range.clone()))
            .await?;
        match content.len() as u64 == len {
            true => Ok(content),
            false => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!(
                    "{} bytes came instead of {len}: was the object replaced?",
                    content.len()
                ),
            )),
        }
    }

    /// Lists the objects and folders directly within a folder.
    pub async fn list(&self, path: &Path) -> io::Result<ListResult> {
        let prefix = (!path.as_ref().is_empty()).then_some(path);
        self.repeat(|| self.objects.list_with_delimiter(prefix)).await
    }

    /// Runs a request, and repeats it while its errors may pass.
    async fn repeat<T, F>(&self, request: impl Fn() -> F) -> io::Result<T>
    where
        F: Future<Output = object_store::Result<T>>,
    {
        let _permit = self.running.acquire().await.map_err(io::Error::other)?;
        let end = Instant::now() + RETRY_TIME;
        let mut pause = PAUSE_START;
        loop {
            match request().await {
                Ok(answer) => return Ok(answer),
                Err(error) if may_pass(&error) && Instant::now() + pause < end => sleep(pause).await,
                Err(error) => return Err(io_error(error)),
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

fn io_error(error: Error) -> io::Error {
    let kind = match error {
        Error::NotFound { .. } => io::ErrorKind::NotFound,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, format!("{:#}", anyhow!(error)))
}
