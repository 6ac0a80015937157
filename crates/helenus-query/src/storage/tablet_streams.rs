//! The choice of a tablet's stream of changes, and the record of new streams.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use helenus_cql::error::CqlError;
use helenus_row::TokenRange;
use helenus_tablet::{MetaExpect, StoreError};

use super::ExecutionContext;
use super::change_streams::{AHEAD_MS, Change, DOCUMENT, Generation, GenerationDoc, Stream, replay};
use crate::failure::store_error;

/// Returns the ranges of all tablets.
fn tablet_ranges(context: &ExecutionContext) -> BTreeSet<TokenRange> {
    match context.cluster() {
        Some(cluster) => cluster.tablets().iter().map(|tablet| tablet.tokens).collect(),
        None => {
            let tablets = context.store.tablets();
            tablets.iter().map(|tablet| tablet.token_range()).collect()
        }
    }
}

/// Returns the range of the tablet in which a token lies.
fn tablet_range(context: &ExecutionContext, token: i64) -> Result<TokenRange, CqlError> {
    match context.cluster() {
        Some(cluster) => Ok(cluster.tablet(token)),
        None => Ok(context.store.tablet(token).map_err(store_error)?.token_range()),
    }
}

impl ExecutionContext {
    /// Returns the stream for changes of a partition with this token. If its tablet is new, a generation is recorded first.
    pub(crate) async fn change_stream(&self, token: i64) -> Result<Arc<Stream>, CqlError> {
        let range = tablet_range(self, token)?;
        match self.change_streams.find(range) {
            Some(stream) => Ok(stream),
            None => Box::pin(self.open_stream(range)).await,
        }
    }

    async fn open_stream(&self, range: TokenRange) -> Result<Arc<Stream>, CqlError> {
        let streams = &self.change_streams;
        let _changing = streams.changing.lock().await;
        loop {
            streams.read(&self.store).await?;
            if let Some(stream) = streams.find(range) {
                return Ok(stream);
            }
            let documents = &streams.known.load().generations.clone();
            let change = match documents.is_empty() {
                true => Change::first(tablet_ranges(self), range),
                false => Change::of(&streams.current_ranges(), &tablet_ranges(self), range),
            };
            self.record_generation(change).await?;
        }
    }

    /// Reads the generations again, and records the first one if there is none. Returns all of them, oldest first.
    pub(crate) async fn change_generations(&self) -> Result<Vec<Generation>, CqlError> {
        let streams = &self.change_streams;
        let _changing = streams.changing.lock().await;
        streams.read(&self.store).await?;
        while streams.known.load().generations.is_empty() {
            let opened = tablet_ranges(self);
            self.record_generation(Change {
                closed: BTreeSet::new(),
                opened,
            })
            .await?;
        }
        Ok(replay(&streams.known.load().generations))
    }

    /// Reads the generations again: always, or only if they may have changed.
    pub(crate) async fn load_generations(&self, always: bool) -> Result<(), CqlError> {
        let _changing = self.change_streams.changing.lock().await;
        match always || self.store.meta_may_differ(DOCUMENT).await.map_err(store_error)? {
            true => self.change_streams.read(&self.store).await,
            false => Ok(()),
        }
    }

    /// Returns the known generations, oldest first.
    pub(crate) fn known_generations(&self) -> Vec<Generation> {
        replay(&self.change_streams.known.load().generations)
    }

    /// Records a generation. The caller holds the lock of changes, and has read the document.
    async fn record_generation(&self, change: Change) -> Result<(), CqlError> {
        let streams = &self.change_streams;
        let mut generations = streams.known.load().generations.clone();
        let now_ms = self.clock.now_us().div_euclid(1000);
        let since_ms = match generations.last() {
            Some(last) => (now_ms + AHEAD_MS).max(last.since_ms + 1),
            None => now_ms,
        };
        generations.push(GenerationDoc {
            since_ms,
            closed: change.closed.into_iter().collect(),
            opened: change.opened.into_iter().collect(),
        });
        let bytes = serde_json::to_vec(&generations).map_err(|error| CqlError::Server(error.to_string()))?;
        let expect = match streams.version.load(Ordering::Acquire) {
            0 => MetaExpect::Absent,
            version => MetaExpect::Version(version),
        };
        match self.store.meta_put(DOCUMENT, &bytes, expect).await {
            Ok(version) => {
                streams.install(generations, version);
                Ok(())
            }
            // Another node recorded a generation concurrently.
            Err(StoreError::MetaConflict(_)) => streams.read(&self.store).await,
            Err(error) => Err(store_error(error)),
        }
    }
}
