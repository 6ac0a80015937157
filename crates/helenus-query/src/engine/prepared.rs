//! Statements that clients have prepared: remembered while there is room, and planned again when the schema has changed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use helenus_cql::error::CqlError;
use helenus_cql::parser;
use quick_cache::OptionsBuilder;
use quick_cache::sync::{Cache, DefaultLifecycle};

use super::identity::{prepared_id, table_names, use_warning};
use super::{Engine, past, writes};
use crate::analysis::prepared::TableNames;
use crate::analysis::{Planned, Prepared};
use crate::request::ClientState;
use crate::trace;

/// Returns the bytes that the current thread has allocated less those that it has freed, since it began.
pub type AllocationMeter = fn() -> i64;

/// What the statements that are remembered take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreparedFigures {
    pub statements: usize,
    /// With their plans.
    pub bytes: u64,
}

/// The statements that are remembered.
pub(super) struct PreparedStatements {
    cache: Cache<[u8; 16], Remembered, Weight>,
    /// Most that one statement may take.
    statement_bytes_max: usize,
    /// `None` where the allocator does not count: then a plan counts as [`OVERHEAD_BYTES`].
    meter: OnceLock<AllocationMeter>,
    /// Statements that were put into it, less those that the schema made void.
    made: AtomicU64,
}

/// A statement with its weight. A plan that is replaced has another weight, and the cache must subtract what it has added.
#[derive(Clone)]
struct Remembered {
    prepared: Arc<Prepared>,
    bytes: u64,
}

impl PreparedStatements {
    /// With room for so many bytes.
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
            // Each part refuses what takes more than 97 % of it.
            statement_bytes_max: usize::try_from(cache.shard_capacity() / 10 * 9).unwrap_or(usize::MAX),
            cache,
            meter: OnceLock::new(),
            made: AtomicU64::new(0),
        }
    }

    fn get(&self, id: &[u8; 16]) -> Option<Arc<Prepared>> {
        self.cache.get(id).map(|remembered| remembered.prepared)
    }

    /// Remembers a statement whose plan takes so many bytes.
    ///
    /// # Errors
    /// Cassandra's, if the statement is larger than any that can be remembered.
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

    /// Weighs a statement again whose plan has been replaced.
    fn reweigh(&self, id: &[u8; 16], plan_bytes: usize) {
        let Some(Remembered { prepared, .. }) = self.cache.peek(id) else {
            return;
        };
        let bytes = weight(&prepared, plan_bytes) as u64;
        // Fails if the statement has been evicted meanwhile.
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

    /// Makes a plan; with the bytes that it takes.
    fn measure<T>(&self, plan: impl FnOnce() -> Result<T, CqlError>) -> Result<(T, usize), CqlError> {
        let meter = self.meter.get();
        let before = meter.map_or(0, |meter| meter());
        let planned = plan()?;
        let after = meter.map_or(0, |meter| meter());
        Ok((planned, usize::try_from(after - before).unwrap_or(0)))
    }
}

/// The protocol counts a statement's markers, and the values for them, in 16 bits.
const MARKERS_MAX: usize = u16::MAX as usize;
/// Bytes of a statement beside its text and what its plan points to: the plan itself, and its place in the cache.
const OVERHEAD_BYTES: usize = 2048;
/// Parts of the cache, each with a lock and with its share of the memory. A statement must fit into one.
const SHARDS: usize = 16;

/// Returns the bytes that a statement takes.
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
    /// Has the memory that prepared statements take measured. Done once, before it serves.
    pub fn measure_plans(&self, meter: AllocationMeter) {
        if self.prepared.meter.set(meter).is_err() {
            tracing::error!("the memory of plans is measured already");
        }
    }

    /// Prepares a statement and remembers it; the same text in the same keyspace gives the same id, and in every keyspace if it names its
    /// own. A statement that was not known before may come with warnings, and one outside of all keyspaces each time.
    ///
    /// # Errors
    /// Cassandra's, for statements that are too long, make no sense, or read a time that can't be read.
    pub async fn prepare(
        &self,
        client: &ClientState,
        keyspace: Option<&str>,
        text: &str,
    ) -> Result<(Arc<Prepared>, Vec<String>), CqlError> {
        self.check_length(text)?;
        if let Some(known) = self.known(keyspace, text) {
            let is_told = keyspace.is_none() && !known.names.are_qualified();
            let warning = is_told.then(|| use_warning(None, None, &known.id));
            return Ok((known, warning.into_iter().collect()));
        }
        let parsed = trace::parsing(|| self.parse(text))?;
        // Held until the plan is made.
        let _open = self.see_past(keyspace, &parsed).await?;
        let plan = || trace::parsing(|| self.plan_checked(client, keyspace, &parsed));
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

    /// Returns the statement with that text, if it is remembered and its plan can still be made.
    fn known(&self, keyspace: Option<&str>, text: &str) -> Option<Arc<Prepared>> {
        let ids = [prepared_id(None, text), prepared_id(keyspace, text)];
        let mut known = ids.iter().filter_map(|id| self.prepared.get(id));
        known.find(|prepared| self.current_plan(prepared).is_ok())
    }

    /// Returns the statement of that id, if it is still remembered and still makes sense in today's schema.
    pub fn prepared(&self, id: &[u8]) -> Result<Arc<Prepared>, CqlError> {
        let unknown = || CqlError::Unprepared(id.to_vec());
        let key: [u8; 16] = id.try_into().map_err(|_| unknown())?;
        self.prepared.get(&key).ok_or_else(unknown)
    }

    /// What a client is told that runs a statement from another keyspace than the one that it was prepared in. Of batches Cassandra
    /// can't say.
    pub fn use_warning(&self, client: &ClientState, prepared: &Prepared) -> Option<String> {
        let keyspace = match prepared.names {
            TableNames::Qualified | TableNames::Unqualified { is_batch: true } => return None,
            TableNames::Unqualified { is_batch: false } => prepared.keyspace.as_deref(),
            // What names no table belongs to no keyspace.
            TableNames::None => None,
        };
        let used = client.keyspace.as_deref();
        (used != keyspace).then(|| use_warning(used, keyspace, &prepared.id))
    }

    /// Returns every statement that is remembered.
    pub(crate) fn prepared_statements(&self) -> Vec<Arc<Prepared>> {
        self.prepared.all()
    }

    /// Statements that were forgotten for want of room.
    pub(crate) fn prepared_evicted(&self) -> u64 {
        self.prepared.evicted()
    }

    /// Returns the number and bytes of the statements that are remembered.
    pub fn prepared_figures(&self) -> PreparedFigures {
        PreparedFigures {
            statements: self.prepared.cache.len(),
            bytes: self.prepared.cache.weight(),
        }
    }

    /// Returns the statement's plan, made anew if the schema has changed since. A statement whose table is gone, or whose
    /// columns are no longer what clients were told, is forgotten and reported as unprepared, as in Cassandra: the
    /// driver prepares it again, and learns the reason or the new columns.
    pub fn current_plan(&self, prepared: &Prepared) -> Result<Arc<Planned>, CqlError> {
        let planned = prepared.planned.load_full();
        let schema = self.context.schema.load();
        if planned.generation == schema.generation {
            return Ok(planned);
        }
        let replan = || {
            let parsed = parser::parse_statement(&prepared.query)?;
            let plan = || past::plan(&schema, &self.pasts, prepared.keyspace.as_deref(), &parsed);
            self.prepared.measure(plan)
        };
        match trace::parsing(replan) {
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
