//! The store as of a time: the last base before it, plus the writes in the logs from there until that time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use helenus_cql::error::CqlError;
use helenus_cql::value::timestamp;
use helenus_tablet::{HistoryUntil, Op, PinnedTablet, Store, StoreError};

use super::base::Base;
use super::eras::{BaseTimes, NoPlace, Place, locate};
use crate::clock::StoppedClock;
use crate::engine::Engine;
use crate::execution::at_cut;
use crate::failure::store_error;
use crate::schema::{Keyspace, Schema};
use crate::storage::hooks::table_of;

/// Milliseconds after which all nodes have uploaded their commits to the bucket. Before that, one node could see a commit that another does
/// not.
const SETTLED_AFTER_MS: u64 = 1000;

/// The schema as of a time that can be read.
pub(in crate::engine) struct SchemaAsOf {
    until: HistoryUntil,
    base: Arc<Base>,
    /// The schema, without virtual keyspaces.
    pub schema: Schema,
}

/// Tables of the store as of a time.
pub(in crate::engine) struct TablesAsOf {
    /// The opened tablets, which cannot be written to.
    pub store: Arc<Store>,
    base: Arc<Base>,
    /// Writes to the tables since the base.
    ops: Vec<Op>,
}

impl TablesAsOf {
    /// Returns the bytes of the writes from the logs, which are held in memory.
    pub fn bytes(&self) -> u64 {
        Op::bytes_of(&self.ops)
    }
}

impl Engine {
    /// Returns the schema as of a time.
    ///
    /// # Errors
    /// History is not kept, or not for long enough ([`CqlError::Invalid`]). Otherwise the store can't be read.
    pub(in crate::engine) async fn schema_as_of(&self, time_ms: i64) -> Result<SchemaAsOf, CqlError> {
        self.check_time(time_ms)?;
        if self.context.store.is_shared() {
            let ago_ms = self.now_ms().saturating_sub(time_ms).max(0);
            let left_ms = SETTLED_AFTER_MS.saturating_sub(ago_ms.unsigned_abs());
            tokio::time::sleep(Duration::from_millis(left_ms)).await;
        }
        let (base, until) = self.place_of(time_ms).await?;
        let schema = self.schema_at(&base, time_ms, until.set_back).await?;
        Ok(SchemaAsOf { until, base, schema })
    }

    /// Returns the tables of keyspaces as of a time, with their indexes and views.
    ///
    /// # Errors
    /// The store can't be read, or too much was written to the tables between the base and that time ([`CqlError::Invalid`]).
    pub(in crate::engine) async fn tables_as_of(
        &self,
        of: SchemaAsOf,
        keyspaces: &[Keyspace],
    ) -> Result<TablesAsOf, CqlError> {
        let limit = self.context.store.history_bytes_max().map_err(store_error)?;
        let time_ms = of.until.time_ms;
        match self.tables_as_of_within(of, keyspaces, limit).await? {
            Some(earlier) => Ok(earlier),
            None => Err(self.too_much_before(time_ms, limit).await),
        }
    }

    /// Returns the tables of keyspaces as of a time, with their indexes and views. `None` if more than `limit` bytes were written to them
    /// between the base and that time.
    ///
    /// # Errors
    /// The store can't be read.
    pub(in crate::engine) async fn tables_as_of_within(
        &self,
        of: SchemaAsOf,
        keyspaces: &[Keyspace],
        limit: u64,
    ) -> Result<Option<TablesAsOf>, CqlError> {
        let store = &self.context.store;
        let SchemaAsOf { until, base, schema } = of;
        let time_ms = until.time_ms;
        let numbers = numbers_of_tables(keyspaces.iter());
        let tables = keyspaces.iter().flat_map(|keyspace| keyspace.tables.values());
        let origins = tables.flat_map(|table| table.origins()).collect();
        let found = store
            .history_since(&base.positions, &until, &numbers, limit)
            .await;
        let mut ops = match found {
            Err(StoreError::HistoryTooLarge { .. }) => return Ok(None),
            Err(StoreError::HistoryUncertain { from_ms, to_ms }) => {
                return Err(uncertain(time_ms, from_ms, to_ms));
            }
            found => found.map_err(store_error)?,
        };
        let opened = store.open_pinned_with(&base.tablets, origins).await;
        let opened = opened.map_err(store_error)?;
        opened.add_to_pinned(ops.clone()).map_err(store_error)?;
        if store.is_shared() {
            // A batch over several tablets may be in some logs before that time and in others after it.
            let mut whole = Schema::clone(&self.schema());
            whole.keyspaces.extend(schema.keyspaces);
            let under_way = self.complete_batches_as_of(&opened, whole, time_ms).await?;
            let is_of_these = |op: &Op| table_of(&op.key).is_some_and(|number| numbers.contains(&number.0));
            ops.extend(under_way.into_iter().filter(is_of_these));
        }
        Ok(Some(TablesAsOf {
            store: opened,
            base,
            ops,
        }))
    }

    /// Returns the refusal of a time, which names times around it that can be read.
    pub(in crate::engine) async fn too_much_before(&self, time_ms: i64, limit: u64) -> CqlError {
        let bases = self.bases().await.unwrap_or_default();
        let times = bases.iter().map(|base| base.taken_ms);
        let before = times.clone().filter(|taken_ms| *taken_ms <= time_ms).max();
        let later = times.filter(|taken_ms| *taken_ms > time_ms).min();
        let near = [before, later];
        let near = near.into_iter().flatten().map(timestamp::to_cql_text);
        CqlError::invalid(format!(
            "AS OF '{}': more than {} MiB were written to these tables between the last kept cut and that time, which is more than may be \
             held in memory (as much as memtable_bytes, or 256 MiB); use one of these times: {}",
            timestamp::to_cql_text(time_ms),
            limit >> 20,
            near.collect::<Vec<_>>().join(", ")
        ))
    }

    /// Completes the batches that were in progress at that time. Their writes are added to the opened tablets, and returned.
    ///
    /// # Errors
    /// The tablets can't be read.
    pub(in crate::engine) async fn complete_batches_as_of(
        &self,
        opened: &Arc<Store>,
        schema: Schema,
        time_ms: i64,
    ) -> Result<Vec<Op>, CqlError> {
        let clock = Arc::new(StoppedClock::at_ms(time_ms));
        let context = self.context.as_of(opened.clone(), schema, clock);
        Box::pin(at_cut::under_way(&context)).await
    }

    /// Pins tables as of a time. The caller holds `pinning` until the schema names the pinned tablets.
    ///
    /// # Errors
    /// See [`Engine::tables_as_of`].
    pub(in crate::engine) async fn pin_as_of(
        &self,
        earlier: &TablesAsOf,
    ) -> Result<Arc<[PinnedTablet]>, CqlError> {
        let store = &self.context.store;
        let pinned = match store.pin_again(&earlier.base.tablets).await {
            Ok(pinned) => pinned,
            Err(error) => {
                self.unpin().await;
                return Err(store_error(error));
            }
        };
        // The batch log and the intents are left out, because they have no meaning in a pinned copy.
        let is_hidden = |op: &Op| table_of(&op.key).is_some_and(|table| at_cut::HIDDEN.contains(&table));
        let of_tables = earlier.ops.iter().filter(|op| !is_hidden(op));
        let ops: Vec<Op> = of_tables.cloned().collect();
        if !ops.is_empty()
            && let Err(error) = store.complete_cut(&pinned, ops).await
        {
            self.unpin().await;
            return Err(store_error(error));
        }
        Ok(pinned.into())
    }

    /// Refuses a time in the future, and any time if no history is kept.
    fn check_time(&self, time_ms: i64) -> Result<(), CqlError> {
        let now_ms = self.now_ms();
        if time_ms > now_ms {
            let [time, now] = [time_ms, now_ms].map(timestamp::to_cql_text);
            return Err(CqlError::invalid(format!(
                "AS OF '{time}': the time is in the future; the newest time that can be read is {now}"
            )));
        }
        if !self.cuts.history.is_on() {
            return Err(CqlError::invalid(
                "AS OF a time needs the setting point_in_time_window, which is off; AS OF SNAPSHOT reads a snapshot",
            ));
        }
        Ok(())
    }

    /// Returns the last base before a time, and the place where the logs are cut after it.
    async fn place_of(&self, time_ms: i64) -> Result<(Arc<Base>, HistoryUntil), CqlError> {
        let time = timestamp::to_cql_text(time_ms);
        let bases = self.bases().await?;
        let Some(last) = bases.last() else {
            return Err(CqlError::invalid(format!(
                "AS OF '{time}': no history is kept yet; try again in a few seconds"
            )));
        };
        let times: Vec<BaseTimes> = bases.iter().map(|base| base.times()).collect();
        match locate(&times, &self.clock_runs(Some(last.taken_ms)), time_ms) {
            Ok(Place {
                base,
                set_back,
                before,
            }) => {
                let base = bases.get(base).unwrap_or(last).clone();
                let before = before.and_then(|at| bases.get(at));
                let until = HistoryUntil {
                    time_ms,
                    set_back,
                    before: before.map(|base| base.positions.clone()),
                };
                Ok((base, until))
            }
            Err(NoPlace::Uncertain(of)) => Err(uncertain(time_ms, of.first_ms, of.last_ms)),
            Err(NoPlace::TooOld) => Err(CqlError::invalid(format!(
                "AS OF '{time}': the time is too old; the oldest time that can be read is {}",
                timestamp::to_cql_text(bases.first().unwrap_or(last).taken_ms)
            ))),
        }
    }
}

/// Returns the refusal of a time that a clock has shown twice.
pub(in crate::engine) fn uncertain(time_ms: i64, from_ms: i64, to_ms: i64) -> CqlError {
    let [time, from, to] = [time_ms, from_ms, to_ms].map(timestamp::to_cql_text);
    CqlError::invalid(format!(
        "AS OF '{time}': a clock was set back, so that the times from {from} to {to} are uncertain; use a time before or after them, or a snapshot"
    ))
}

/// Returns the numbers of the tables of keyspaces, of their indexes, and of the tables that complete a cut.
pub(in crate::engine) fn numbers_of_tables<'k>(
    keyspaces: impl Iterator<Item = &'k Keyspace>,
) -> BTreeSet<u32> {
    let mut numbers = BTreeSet::from(at_cut::HIDDEN.map(|table| table.0));
    for table in keyspaces.flat_map(|keyspace| keyspace.tables.values()) {
        numbers.insert(table.number.0);
        numbers.extend(table.indexes.iter().map(|index| index.table.number.0));
    }
    numbers
}
