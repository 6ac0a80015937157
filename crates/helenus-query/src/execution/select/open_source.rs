//! Opening the source of a SELECT's rows, which depends on its restrictions and its index.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::murmur3_token;

use crate::analysis::restrictions::Filter;
use crate::analysis::select::paging::{self, PagingState};
use crate::analysis::select::similarity::AnnOrdering;
use crate::analysis::select::value_order::ValueOrdering;
use crate::execution::select::SelectExecution;
use crate::execution::select::source::{KeySource, RangeSource, RowSource};
use crate::failure::ExecutionError;
use crate::index::lookup::{IndexLookup, lookups, ordered_range};
use crate::index::nearest::{NearestSearch, NearestSource};
use crate::index::read::IndexSource;
use crate::index::read::entry_cursor::Bases;
use crate::index::read::in_order::OrderedRead;
use crate::index::read::positions::BaseRange;
use crate::index::read::probe::IndexRead;
use crate::rows::{PartitionKey, RowSelection};
use crate::schema::Index;

/// The rows that a SELECT must read.
pub(crate) struct SelectedRows {
    /// The partitions. `None` if a range of keys is read.
    keys: Option<Vec<PartitionKey>>,
    /// The rows of each partition.
    wanted: RowSelection,
}

impl SelectExecution<'_> {
    /// Returns the rows that the restrictions select. `None` if there can be none. Errors in the partition key are reported first, but an
    /// empty or too long key is reported last.
    pub(crate) fn requested(&self) -> Result<Option<SelectedRows>, CqlError> {
        let restrictions = &self.plan.restrictions;
        let named = match restrictions.is_key_range {
            true => None,
            false => Some(restrictions.partition_values(&self.ctx)?),
        };
        if named.as_ref().is_some_and(Vec::is_empty) {
            return Ok(None);
        }
        let wanted = self.row_selection()?;
        if wanted.is_empty() && !self.plan.table.is_static_compact() {
            return Ok(None);
        }
        let keys = named
            .map(|values| restrictions.keys_of(&values, &self.ctx))
            .transpose()?;
        if keys.as_ref().is_some_and(Vec::is_empty) {
            return Ok(None);
        }
        Ok(Some(SelectedRows { keys, wanted }))
    }

    /// Returns the source of the rows. `None` if no row can match.
    pub(crate) async fn source(&self, filter: &Filter) -> Result<Option<RowSource>, ExecutionError> {
        let Some(SelectedRows { keys, wanted }) = self.requested()? else {
            return Ok(None);
        };
        if let Some(ordering) = &self.plan.by_value {
            let source = self.source_in_order(ordering, keys, wanted, filter)?;
            return Ok(source.map(RowSource::Index));
        }
        let lookups = match self.plan.restrictions.uses_index {
            true => lookups(&self.plan.table, filter.expressions())?,
            false => Vec::new(),
        };
        match keys {
            Some(keys) => self.source_of_keys(keys, wanted, lookups).await.map(Some),
            None => match self.posting_lists() {
                Some((nearest, index)) if self.resume.is_none() => {
                    self.source_of_nearest(nearest, index, wanted, &lookups).await
                }
                _ => self.source_of_range(wanted, &lookups).await,
            },
        }
    }

    async fn source_of_range(
        &self,
        wanted: RowSelection,
        lookups: &[IndexLookup],
    ) -> Result<Option<RowSource>, ExecutionError> {
        let (table, resume) = (&self.plan.table, self.resume.as_ref());
        let Some(bounds) = self.plan.restrictions.token_bounds(&self.ctx)? else {
            return Ok(None);
        };
        if resume.is_some_and(|state| !bounds.contains(murmur3_token(&state.partition_key))) {
            return Err(paging::invalid().into());
        }
        let read = self.index_read(lookups, BaseRange::Tokens(bounds));
        if let Some(source) = IndexSource::open(self.context, table, &read, wanted.clone()).await? {
            return Ok(Some(RowSource::Index(source)));
        }
        Ok(Some(RowSource::Range(RangeSource::new(
            table, bounds, wanted, resume,
        ))))
    }

    /// Returns the ordering by nearness, with the index whose posting lists provide it.
    fn posting_lists(&self) -> Option<(&AnnOrdering, &Arc<Index>)> {
        let nearest = self.plan.nearest.as_ref()?;
        let index = nearest.posting_lists(&self.plan.table)?;
        Some((nearest, index))
    }

    /// Returns a source of the nearest rows from their posting lists. If another index finds few rows, the source returns all of these
    /// instead.
    async fn source_of_nearest(
        &self,
        nearest: &AnnOrdering,
        index: &Arc<Index>,
        wanted: RowSelection,
        lookups: &[IndexLookup],
    ) -> Result<Option<RowSource>, ExecutionError> {
        let Some(bounds) = self.plan.restrictions.token_bounds(&self.ctx)? else {
            return Ok(None);
        };
        let read = self.index_read(lookups, BaseRange::Tokens(bounds));
        let few = IndexSource::open_few(self.context, &self.plan.table, &read, wanted.clone()).await?;
        if let Some(source) = few {
            return Ok(Some(RowSource::Index(source)));
        }
        let search = NearestSearch {
            index: index.clone(),
            vector: nearest.bind(&self.ctx, true)?,
            limit: self.rows_max as usize,
            bounds,
            wanted,
        };
        let source = NearestSource::open(self.context, search).await?;
        Ok(Some(RowSource::Nearest(source)))
    }

    /// Returns a source of rows in the order of an indexed column.
    fn source_in_order(
        &self,
        ordering: &ValueOrdering,
        keys: Option<Vec<PartitionKey>>,
        wanted: RowSelection,
        filter: &Filter,
    ) -> Result<Option<IndexSource>, CqlError> {
        let (table, resume) = (&self.plan.table, self.resume.as_ref());
        let bases = match keys {
            Some(keys) => {
                let keys: HashSet<Bytes> = keys.into_iter().map(|key| key.bytes).collect();
                Bases::Keys(keys)
            }
            None => match self.plan.restrictions.token_bounds(&self.ctx)? {
                Some(bounds) => Bases::Tokens(bounds),
                None => return Ok(None),
            },
        };
        let is_foreign =
            |state: &PagingState| !bases.contains(&PartitionKey::new(state.partition_key.clone()));
        if resume.is_some_and(is_foreign) {
            return Err(paging::invalid());
        }
        let read = OrderedRead {
            index: &ordering.index,
            range: ordered_range(table, &ordering.index, filter.expressions())?,
            is_descending: ordering.is_descending,
            bases,
            now_s: self.now_s,
            resume,
        };
        IndexSource::in_order(table, read, wanted).map(Some)
    }

    fn index_read<'r>(&'r self, lookups: &'r [IndexLookup], range: BaseRange<'r>) -> IndexRead<'r> {
        IndexRead {
            lookups,
            range,
            now_s: self.now_s,
            resume: self.resume.as_ref(),
            limits: self.probe,
        }
    }

    async fn source_of_keys(
        &self,
        keys: Vec<PartitionKey>,
        wanted: RowSelection,
        mut lookups: Vec<IndexLookup>,
    ) -> Result<RowSource, ExecutionError> {
        let (table, resume) = (&self.plan.table, self.resume.as_ref());
        if resume.is_some_and(|state| !keys.iter().any(|key| key.bytes == state.partition_key)) {
            return Err(paging::invalid().into());
        }
        // With paging, Cassandra reads one partition after another.
        if self.consistency.is_serial() && keys.len() > 1 && !self.is_paged {
            return Err(CqlError::invalid(
                "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a time",
            )
            .into());
        }
        if let [key] = keys.as_slice() {
            // A range of values may have any number of entries of other partitions.
            lookups.retain(|lookup| !lookup.is_range());
            let read = self.index_read(&lookups, BaseRange::Partition(key));
            if let Some(source) = IndexSource::open(self.context, table, &read, wanted.clone()).await? {
                return Ok(RowSource::Index(source));
            }
        }
        Ok(RowSource::Keys(KeySource::new(
            keys,
            wanted,
            self.plan.is_reversed,
            resume,
        )))
    }
}
