//! Prepared statements. They are cached within limited memory, and planned again when the schema has changed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use helenus_cql::error::CqlError;
use helenus_cql::parser;
use quick_cache::OptionsBuilder;
use quick_cache::sync::{Cache, DefaultLifecycle};

use super::identity::{prepared_id, table_names, use_warning};
use super::{Engine, as_of, writes};
use crate::analysis::prepared::TableNames;
use crate::analysis::{Planned, Prepared};
use crate::measurement;
use crate::request::ClientState;

/// Function that returns the bytes that the current thread has allocated since it began, less those that it has freed.
pub type AllocationMeter = fn() -> i64;

/// Size of the cache of prepared statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreparedMetrics {
    pub statements: usize,
    /// Bytes of the statements and their plans.
    pub bytes: u64,
}

/// The cache of prepared statements.
pub(super) struct PreparedStatements {
    cache: Cache<[u8; 16], Remembered, Weight>,
    /// Maximum number of bytes of one statement.
    statement_bytes_max: usize,
    /// Meter of a plan's memory. If it is not set, the weight of a plan is only [`OVERHEAD_BYTES`].
    meter: OnceLock<AllocationMeter>,
    /// Number of statements added, less those removed because of a change of the schema.
    made: AtomicU64,
}

/// A statement with its weight. The cache must subtract the weight that it has added, even if the plan has been replaced since.
#[derive(Clone)]
struct Remembered {
    prepared: Arc<Prepared>,
    bytes: u64,
}

impl PreparedStatements {
    /// Creates a cache of at most `bytes` bytes.
    pub fn new(bytes: usize) -> PreparedStatements {
        let statements_max = bytes / OVERHEAD_BYTES;
        let options = OptionsBuilder::new()
            .shards(SHARDS)
            .estimated_items_capacity(statements_max)
            .weight_capacity(bytes as u64)
            .build();
        let (hasher, lifecycle) = (Default::default(), DefaultLifecycle::default());
        let cache = match options {
            Ok(options) => Cache::with_options(options, Weight, hasher, lifecycle),
            Err(_) => Cache::with(statements_max, bytes as u64, Weight, hasher, lifecycle),
        };
        PreparedStatements {
            // A shard refuses entries of more than 97 % of its capacity.
            statement_bytes_max: usize::try_from(cache.shard_capacity() / 10 * 9).unwrap_or(usize::MAX),
            cache,
            meter: OnceLock::new(),
            made: AtomicU64::new(0),
        }
    }

    fn get(&self, id: &[u8; 16]) -> Option<Arc<Prepared>> {
        self.cache.get(id).map(|remembered| remembered.prepared)
    }

    /// Adds a statement whose plan has `plan_bytes` bytes.
    ///
    /// # Errors
    /// Cassandra's error, if the statement is too large for the cache.
    fn insert(&self, prepared: Arc<Prepared>, plan_bytes: usize) -> Result<(), CqlError> {
        let bytes = weight(&prepared, plan_bytes);
        if bytes > self.statement_bytes_max {
            let most = self.statement_bytes_max;
            let shown: String = prepared.query.chars().take(200).collect();
            return Err(CqlError::invalid(format!(
                "Prepared statement of size {bytes} bytes is larger than allowed maximum of {most} bytes (a part of \
                 prepared_cache_bytes): {shown}..."
            )));
        }
        let bytes = bytes as u64;
        self.cache.insert(prepared.id, Remembered { prepared, bytes });
        self.made.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Updates the weight of a statement whose plan has been replaced.
    fn reweigh(&self, id: &[u8; 16], plan_bytes: usize) {
        let Some(Remembered { prepared, .. }) = self.cache.peek(id) else {
            return;
        };
        let bytes = weight(&prepared, plan_bytes) as u64;
        // The replacement fails if the statement has been evicted in the meantime.
        let _ = self.cache.replace(*id, Remembered { prepared, bytes }, false);
    }

    fn forget(&self, id: &[u8; 16]) {
        if self.cache.remove(id).is_some() {
            self.made.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn all(&self) -> Vec<Arc<Prepared>> {
        self.cache
            .iter()
            .map(|(_, remembered)| remembered.prepared)
            .collect()
    }

    fn evicted(&self) -> u64 {
        let made = self.made.load(Ordering::Relaxed);
        made.saturating_sub(self.cache.len() as u64)
    }

    /// Calls `plan`, and returns the plan with its size in bytes.
    fn measure<T>(&self, plan: impl FnOnce() -> Result<T, CqlError>) -> Result<(T, usize), CqlError> {
        let meter = self.meter.get();
        let before = meter.map_or(0, |meter| meter());
        let planned = plan()?;
        let after = meter.map_or(0, |meter| meter());
        Ok((planned, usize::try_from(after - before).unwrap_or(0)))
    }
}

/// Maximum number of markers of a statement, because the protocol counts markers and values in 16 bits.
const MARKERS_MAX: usize = u16::MAX as usize;
/// Bytes of a statement besides its text and the memory that its plan points to: the plan itself, and the entry in the cache.
const OVERHEAD_BYTES: usize = 2048;
/// Number of shards of the cache. Each has its own lock and an equal share of the memory. A statement must fit into one shard.
const SHARDS: usize = 16;

/// Returns the weight of a statement in bytes.
fn weight(prepared: &Prepared, plan_bytes: usize) -> usize {
    prepared.query.len() + plan_bytes + OVERHEAD_BYTES
}

#[derive(Clone)]
struct Weight;

impl quick_cache::Weighter<[u8; 16], Remembered> for Weight {
    fn weight(&self, _id: &[u8; 16], remembered: &Remembered) -> u64 {
        remembered.bytes
    }
}

impl Engine {
    /// Sets the meter of the memory of plans. Called once, before the engine serves clients.
    pub fn measure_plans(&self, meter: AllocationMeter) {
        if self.prepared.meter.set(meter).is_err() {
            tracing::error!("the memory of plans is measured already");
        }
    }

    /// Prepares and caches a statement. The same text in the same keyspace has the same id. If the statement names its keyspaces, its id
    /// does not depend on the keyspace in use. Otherwise a new statement comes with a warning, and without a keyspace in use also a known
    /// one.
    ///
    /// # Errors
    /// Cassandra's errors for statements that are too long or invalid, or that read a time that can't be read.
    pub async fn prepare(
        &self,
        client: &ClientState,
        keyspace: Option<&str>,
        text: &str,
    ) -> Result<(Arc<Prepared>, Vec<String>), CqlError> {
        self.check_length(text)?;
        if let Some(known) = self.known(keyspace, text) {
            let is_reported = keyspace.is_none() && !known.names.are_qualified();
            let warning = is_reported.then(|| use_warning(None, None, &known.id));
            return Ok((known, warning.into_iter().collect()));
        }
        let parsed = measurement::parsing(|| self.parse(text))?;
        // The time stays open until the plan is made.
        let _open = self.open_as_of(keyspace, &parsed).await?;
        let plan = || measurement::parsing(|| self.plan_checked(client, keyspace, &parsed));
        let (planned, plan_bytes) = self.prepared.measure(plan)?;
        let markers = planned.markers.len();
        if markers > MARKERS_MAX {
            return Err(CqlError::invalid(format!(
                "Too many markers(?). {markers} markers exceed the allowed maximum of {MARKERS_MAX}"
            )));
        }
        let names = table_names(&parsed.statement);
        let is_qualified = names.are_qualified();
        let id = prepared_id(keyspace.filter(|_| !is_qualified), text);
        let warning = (!is_qualified).then(|| use_warning(keyspace, keyspace, &id));
        let prepared = Arc::new(Prepared {
            id,
            query: text.into(),
            keyspace: keyspace.map(str::to_owned),
            first_result: planned.result.clone().unwrap_or_default(),
            is_write: writes(&parsed.statement),
            names,
            planned: ArcSwap::from_pointee(planned),
        });
        self.prepared.insert(prepared.clone(), plan_bytes)?;
        Ok((prepared, warning.into_iter().collect()))
    }

    /// Returns the cached statement with that text, if it can still be planned.
    fn known(&self, keyspace: Option<&str>, text: &str) -> Option<Arc<Prepared>> {
        let ids = [prepared_id(None, text), prepared_id(keyspace, text)];
        let mut known = ids.iter().filter_map(|id| self.prepared.get(id));
        known.find(|prepared| self.current_plan(prepared).is_ok())
    }

    /// Returns the cached statement with that id. [`CqlError::Unprepared`] if there is none.
    pub fn prepared(&self, id: &[u8]) -> Result<Arc<Prepared>, CqlError> {
        let unknown = || CqlError::Unprepared(id.to_vec());
        let key: [u8; 16] = id.try_into().map_err(|_| unknown())?;
        self.prepared.get(&key).ok_or_else(unknown)
    }

    /// Returns a warning if the client uses another keyspace than the one in which the statement was prepared. Batches have no such
    /// warning, as in Cassandra.
    pub fn use_warning(&self, client: &ClientState, prepared: &Prepared) -> Option<String> {
        let keyspace = match prepared.names {
            TableNames::Qualified | TableNames::Unqualified { is_batch: true } => return None,
            TableNames::Unqualified { is_batch: false } => prepared.keyspace.as_deref(),
            // A statement that names no table belongs to no keyspace.
            TableNames::None => None,
        };
        let used = client.keyspace.as_deref();
        (used != keyspace).then(|| use_warning(used, keyspace, &prepared.id))
    }

    /// Returns all cached statements.
    pub(crate) fn prepared_statements(&self) -> Vec<Arc<Prepared>> {
        self.prepared.all()
    }

    /// Returns the number of statements that were evicted because the cache was full.
    pub(crate) fn prepared_evicted(&self) -> u64 {
        self.prepared.evicted()
    }

    /// Returns the number and bytes of the cached statements.
    pub fn prepared_metrics(&self) -> PreparedMetrics {
        PreparedMetrics {
            statements: self.prepared.cache.len(),
            bytes: self.prepared.cache.weight(),
        }
    }

    /// Returns the statement's plan, which is made again if the schema has changed. If the table is gone, or its columns are not those that
    /// clients know, the statement is removed and reported as unprepared, as in Cassandra. The driver then prepares it again, and gets the
    /// error or the new columns.
    pub fn current_plan(&self, prepared: &Prepared) -> Result<Arc<Planned>, CqlError> {
        let planned = prepared.planned.load_full();
        let schema = self.context.schema.load();
        if planned.generation == schema.generation {
            return Ok(planned);
        }
        let replan = || {
            let parsed = parser::parse_statement(&prepared.query)?;
            let plan = || {
                as_of::plan(
                    &schema,
                    &self.cuts.open_history,
                    prepared.keyspace.as_deref(),
                    &parsed,
                )
            };
            self.prepared.measure(plan)
        };
        match measurement::parsing(replan) {
            Ok((new, bytes))
                if new.result == planned.result && new.markers.iter().eq(planned.markers.iter()) =>
            {
                let planned = Arc::new(new);
                prepared.planned.store(planned.clone());
                self.prepared.reweigh(&prepared.id, bytes);
                Ok(planned)
            }
            Ok(_) | Err(_) => {
                self.prepared.forget(&prepared.id);
                Err(CqlError::Unprepared(prepared.id.to_vec()))
            }
        }
    }
}

#[cfg(test)]
#[path = "prepared_tests.rs"]
mod tests;
