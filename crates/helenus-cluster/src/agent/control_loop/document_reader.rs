//! Reads the cluster document, and takes over the versions that other nodes announce.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::ControlLoop;
use crate::document::{self, ClusterDocument};
use crate::ids::Version;

/// Minimum time between two reads of the document, however many refreshes are requested.
const REFRESH_INTERVAL_MIN: Duration = Duration::from_millis(10);

impl ControlLoop {
    pub(super) fn read_immediately(&mut self) {
        self.next_read = Some(self.context.now());
    }

    /// Reads the document, unless another node announces a newer version meanwhile.
    pub(super) async fn read(&mut self) {
        let stamp = self.failure_detector.document_stamp.clone();
        self.last_read = self.context.now();
        let context = self.context.clone();
        let get = context.documents.get(document::NAME);
        let mut get = pin!(context.within(context.config.lease, get));
        let mut is_requested_again = false;
        let found = loop {
            tokio::select! {
                biased;
                found = &mut get => break found,
                () = context.shared.refresh.notified() => {
                    if self.take_announcement() {
                        return;
                    }
                    is_requested_again = true;
                }
            }
        };
        if is_requested_again {
            context.shared.refresh.notify_one();
        }
        match found {
            Ok(Some(found)) => {
                self.read_stamp = stamp;
                self.next_read = None;
                // Most reads find nothing new.
                if self
                    .known
                    .as_ref()
                    .is_some_and(|(version, _)| *version >= found.version)
                {
                    return;
                }
                let document = ClusterDocument::decode(&found.content);
                match document
                    .and_then(|document| document.check_store(self.context.config.store).map(|()| document))
                {
                    Ok(document) => self.observe_document(found.version, document),
                    // This node continues with the former version. No other node takes its tablets while its lease lasts.
                    Err(error) => {
                        tracing::error!(%error, "the cluster document is invalid; continuing with the former version")
                    }
                }
            }
            Ok(None) => {
                if self.known.is_some() {
                    tracing::error!("the cluster document is gone");
                }
                self.next_read = None;
            }
            Err(error) => {
                tracing::info!(%error, "the cluster document could not be read");
                self.next_read = Some(self.context.now() + self.context.config.retry_interval());
            }
        }
    }

    /// Returns true if an announced document can be this cluster's.
    fn is_ours(&self, document: &ClusterDocument) -> bool {
        let config = &self.context.config;
        document.cluster_name == config.cluster_name && document.store == config.store
    }

    /// Takes over a version of the document that was read, written or announced. A later version must never be replaced by an earlier one.
    pub(super) fn observe_document(&mut self, version: Version, document: ClusterDocument) {
        self.joined |= document.has(self.me.member());
        self.context.shared.remember(&document);
        self.local_tablets.observe_document(&document);
        self.stability.reset_reshaped(&document);
        self.known = Some((version, Arc::new(document)));
    }

    /// Handles an announcement of a new document, or a request for a refresh. Returns true if a new version was taken over.
    pub(super) fn take_refresh_request(&mut self, now: Duration) -> bool {
        if self.take_announcement() {
            return true;
        }
        let soonest = now.max(self.last_read + REFRESH_INTERVAL_MIN);
        self.next_read = Some(self.next_read.map_or(soonest, |time| time.min(soonest)));
        false
    }

    /// Takes over a document that another node has announced, as if it had been read. Returns true if it is newer than the known version.
    pub(super) fn take_announcement(&mut self) -> bool {
        let Some(written) = self.context.shared.take_announced() else {
            return false;
        };
        let known = self.known.as_ref().map_or(0, |(version, _)| *version);
        if written.version <= known {
            return false;
        }
        match ClusterDocument::decode(&written.content) {
            Ok(document) if self.is_ours(&document) => {
                self.observe_document(written.version, document);
                self.last_read = self.context.now();
                self.next_read = None;
                true
            }
            _ => {
                self.read_immediately();
                false
            }
        }
    }
}
