//! Where the rows of a SELECT come from, partition by partition: given keys, a range of tokens, an index.

use helenus_cql::error::CqlError;
use helenus_row::murmur3_token;

use super::filter::Filter;
use super::index_read::{BaseRange, IndexLookup, IndexSource, choose};
use super::paging::{self, PagingState};
use super::run::Run;
use super::token::TokenBounds;
use crate::engine::Engine;
use crate::schema::Table;
use crate::storage::read::{
    PartitionKey, RangeCursor, RowAt, RowCursor, RowsWanted, StoredRow, read_header, read_stored_static,
};
use crate::trace;

/// A stored table's rows, as a SELECT wants them.
#[allow(clippy::large_enum_variant, reason = "one for a whole read")]
pub(super) enum Source {
    Keys(KeySource),
    Range(RangeSource),
    Index(IndexSource),
}

impl Source {
    /// The next partition; what is left of the current one is skipped.
    pub async fn next_partition(
        &mut self,
        engine: &Engine,
        table: &Table,
    ) -> Result<Option<PartitionKey>, CqlError> {
        match self {
            Source::Keys(source) => source.next_partition(engine, table).await,
            Source::Range(source) => source.next_partition(engine, table).await,
            Source::Index(source) => source.next_partition(engine, table).await,
        }
    }

    /// True if the current partition is the last of those that are named.
    pub fn is_at_last_key(&self) -> bool {
        match self {
            Source::Keys(source) => source.keys.len() == 0,
            Source::Range(_) | Source::Index(_) => false,
        }
    }

    /// The static row of the current partition.
    pub async fn static_row(
        &mut self,
        engine: &Engine,
        table: &Table,
    ) -> Result<Option<StoredRow>, CqlError> {
        match self {
            Source::Keys(source) => source.static_row(engine, table).await,
            Source::Range(source) => Ok(source.static_row.clone()),
            Source::Index(source) => source.static_row(engine, table).await,
        }
    }

    /// The next row of the current partition, alive or not.
    pub async fn next_row(&mut self, engine: &Engine, table: &Table) -> Result<Option<RowAt>, CqlError> {
        match self {
            Source::Keys(source) => match &mut source.rows {
                Some(rows) => rows.next(engine).await,
                None => Ok(None),
            },
            Source::Range(source) => source.cursor.next_row(engine).await,
            Source::Index(source) => source.next_row(engine, table).await,
        }
    }
}

/// Partitions of given keys, in the order given.
pub(super) struct KeySource {
    keys: std::vec::IntoIter<PartitionKey>,
    wanted: RowsWanted,
    reversed: bool,
    resume: Option<PagingState>,
    current: Option<PartitionKey>,
    rows: Option<RowCursor>,
}

impl KeySource {
    pub fn new(
        mut keys: Vec<PartitionKey>,
        wanted: RowsWanted,
        reversed: bool,
        resume: Option<&PagingState>,
    ) -> KeySource {
        if let Some(state) = resume {
            let place = keys
                .iter()
                .position(|key| key.bytes == state.partition_key)
                .unwrap_or(keys.len());
            let is_done = usize::from(state.clustering.is_none());
            keys.drain(..(place + is_done).min(keys.len()));
        }
        KeySource {
            keys: keys.into_iter(),
            wanted,
            reversed,
            resume: resume.filter(|state| state.clustering.is_some()).cloned(),
            current: None,
            rows: None,
        }
    }

    async fn next_partition(
        &mut self,
        engine: &Engine,
        table: &Table,
    ) -> Result<Option<PartitionKey>, CqlError> {
        let Some(key) = self.keys.next() else {
            return Ok(None);
        };
        let wanted = match self.resume.take().and_then(|state| state.clustering) {
            Some(clustering) => self.wanted.after(&clustering, self.reversed),
            None => self.wanted.clone(),
        };
        trace::step(|| format!("Executing single-partition query on {}", table.name));
        let header = read_header(engine, table, &key).await?;
        self.rows = Some(RowCursor::new(table, key.clone(), header, wanted, self.reversed));
        self.current = Some(key.clone());
        Ok(Some(key))
    }

    async fn static_row(&mut self, engine: &Engine, table: &Table) -> Result<Option<StoredRow>, CqlError> {
        let (Some(key), Some(rows)) = (&self.current, &self.rows) else {
            return Ok(None);
        };
        read_stored_static(engine, table, key, rows.header()).await
    }
}

/// Partitions of a range of tokens.
pub(super) struct RangeSource {
    cursor: RangeCursor,
    static_row: Option<StoredRow>,
}

impl RangeSource {
    pub fn new(
        table: &Table,
        bounds: TokenBounds,
        wanted: RowsWanted,
        resume: Option<&PagingState>,
    ) -> RangeSource {
        trace::step(|| format!("Executing seq scan on {}", table.name));
        let mut cursor = RangeCursor::new(table, bounds.start, bounds.end, wanted);
        if let Some(state) = resume {
            let key = PartitionKey::new(state.partition_key.clone());
            match &state.clustering {
                Some(clustering) => cursor.resume_in(key, clustering.clone()),
                None => cursor.skip_past(&key),
            }
        }
        RangeSource {
            cursor,
            static_row: None,
        }
    }

    async fn next_partition(
        &mut self,
        engine: &Engine,
        table: &Table,
    ) -> Result<Option<PartitionKey>, CqlError> {
        let found = self.cursor.next_partition(engine, table).await?;
        Ok(found.map(|found| {
            self.static_row = found.static_row;
            found.key
        }))
    }
}

/// What a SELECT is about.
pub(super) struct Asked {
    /// None of a range of keys.
    keys: Option<Vec<PartitionKey>>,
    /// The rows of each partition.
    wanted: RowsWanted,
}

impl Run<'_> {
    /// What the restrictions leave to be read; none if that is nothing. What is wrong with the partition key is told of first, but
    /// that it is empty or too long last.
    pub(super) fn asked(&self) -> Result<Option<Asked>, CqlError> {
        let restrictions = &self.plan.restrictions;
        let named = match restrictions.is_key_range {
            true => None,
            false => Some(restrictions.partition_values(&self.ctx)?),
        };
        if named.as_ref().is_some_and(Vec::is_empty) {
            return Ok(None);
        }
        let wanted = self.rows_wanted()?;
        if wanted.is_empty() && !self.plan.table.is_static_compact() {
            return Ok(None);
        }
        let keys = named
            .map(|values| restrictions.keys_of(&values, &self.ctx))
            .transpose()?;
        if keys.as_ref().is_some_and(Vec::is_empty) {
            return Ok(None);
        }
        Ok(Some(Asked { keys, wanted }))
    }

    /// Where the rows come from; none if nothing can match.
    pub(super) fn source(&self, filter: &Filter) -> Result<Option<Source>, CqlError> {
        let Some(Asked { keys, wanted }) = self.asked()? else {
            return Ok(None);
        };
        let lookup = match self.plan.restrictions.uses_index {
            true => choose(&self.plan.table, filter)?,
            false => None,
        };
        match keys {
            Some(keys) => self.source_of_keys(keys, wanted, lookup).map(Some),
            None => self.source_of_range(wanted, lookup),
        }
    }

    fn source_of_range(
        &self,
        wanted: RowsWanted,
        lookup: Option<IndexLookup>,
    ) -> Result<Option<Source>, CqlError> {
        let (table, resume) = (&self.plan.table, self.resume.as_ref());
        let Some(bounds) = self.plan.restrictions.token_bounds(&self.ctx)? else {
            return Ok(None);
        };
        if resume.is_some_and(|state| !bounds.contains(murmur3_token(&state.partition_key))) {
            return Err(paging::invalid());
        }
        Ok(Some(match lookup {
            Some(lookup) => {
                let range = BaseRange::Tokens(bounds);
                Source::Index(IndexSource::new(
                    table, &lookup, range, wanted, self.now_s, resume,
                )?)
            }
            None => Source::Range(RangeSource::new(table, bounds, wanted, resume)),
        }))
    }

    fn source_of_keys(
        &self,
        keys: Vec<PartitionKey>,
        wanted: RowsWanted,
        lookup: Option<IndexLookup>,
    ) -> Result<Source, CqlError> {
        let (table, resume) = (&self.plan.table, self.resume.as_ref());
        if resume.is_some_and(|state| !keys.iter().any(|key| key.bytes == state.partition_key)) {
            return Err(paging::invalid());
        }
        // Cassandra's pager reads one partition after another.
        if self.consistency.is_serial() && keys.len() > 1 && !self.is_paged {
            return Err(CqlError::invalid(
                "SERIAL/LOCAL_SERIAL consistency may only be requested for one partition at a time",
            ));
        }
        if let (Some(lookup), [key]) = (&lookup, keys.as_slice()) {
            let range = BaseRange::Partition(key);
            return Ok(Source::Index(IndexSource::new(
                table, lookup, range, wanted, self.now_s, resume,
            )?));
        }
        Ok(Source::Keys(KeySource::new(
            keys,
            wanted,
            self.plan.is_reversed,
            resume,
        )))
    }
}
