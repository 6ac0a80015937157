//! The stop of the server for other nodes, as its connections see it.

use futures::future::BoxFuture;
use tokio::sync::watch;

/// Progress of the server's stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stopping {
    No,
    /// Connections close when their running requests have been answered.
    WhenIdle,
    /// Connections close.
    Now,
}

impl Stopping {
    /// Waits until the server has stopped this far, or was dropped.
    pub fn reached(self, mut stopping: watch::Receiver<Stopping>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            // An error means that the server was dropped.
            let _ = stopping.wait_for(|now| *now >= self).await;
        })
    }
}
