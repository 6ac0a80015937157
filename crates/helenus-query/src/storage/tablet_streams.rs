//! The choice of a tablet's stream of changes, and the record of new streams.

use std::collections::BTreeSet;
use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_row::TokenRange;

use super::ExecutionContext;
use super::change_streams::{Change, Generation, Generations, Stream};
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
        let found = self.change_streams.generations.value().find(range);
        match found {
            Some(stream) => Ok(stream),
            None => Box::pin(self.open_stream(range)).await,
        }
    }

    async fn open_stream(&self, range: TokenRange) -> Result<Arc<Stream>, CqlError> {
        let with_stream = |known: &Generations| {
            if known.find(range).is_some() {
                return None;
            }
            let change = match known.is_empty() {
                true => Change::first(tablet_ranges(self), range),
                false => Change::of(&known.current_ranges(), &tablet_ranges(self), range),
            };
            Some(self.with_generation(known, change))
        };
        self.load_generations().await?;
        let generations = &self.change_streams.generations;
        let after = generations.change(&self.store, with_stream).await?;
        let missing = || CqlError::Server(format!("the tablet of {range:?} has no stream of changes"));
        after.find(range).ok_or_else(missing)
    }

    /// Records the first generation if there is none. Readers of a table that captures changes then know its streams before the first write.
    pub(crate) async fn begin_generations(&self) -> Result<(), CqlError> {
        let generations = &self.change_streams.generations;
        if !generations.value().is_empty() {
            return Ok(());
        }
        let first = |known: &Generations| {
            let change = || Change {
                closed: BTreeSet::new(),
                opened: tablet_ranges(self),
            };
            known.is_empty().then(|| self.with_generation(known, change()))
        };
        self.load_generations().await?;
        generations.change(&self.store, first).await?;
        Ok(())
    }

    fn with_generation(&self, known: &Generations, change: Change) -> Generations {
        let now_ms = self.clock.now_us().div_euclid(1000);
        let kept_s = self.schema.load().cdc_ttl_max_s();
        known.with(change, now_ms, kept_s.map(|kept_s| now_ms - kept_s * 1000))
    }

    /// Reads the generations again if they may have changed.
    pub(crate) async fn load_generations(&self) -> Result<(), CqlError> {
        self.change_streams.generations.load_changed(&self.store).await
    }

    /// Returns the known generations, oldest first.
    pub(crate) fn known_generations(&self) -> Vec<Generation> {
        self.change_streams.generations.value().all()
    }
}
