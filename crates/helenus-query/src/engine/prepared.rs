//! Statements that clients have prepared: remembered while there is room, and planned anew when the schema has changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use helenus_cql::ast;
use helenus_cql::error::CqlError;

use super::identity::{is_qualified, names_tables, prepared_id, use_warning};
use super::{Engine, past, writes};
use crate::analysis::{Planned, Prepared};
use crate::request::ClientState;
use crate::trace;

/// Those that are remembered.
pub(super) struct PreparedStatements {
    cache: quick_cache::sync::Cache<[u8; 16], Arc<Prepared>, Weight>,
    /// Statements that were put into it, less those that the schema made void.
    made: AtomicU64,
}

impl PreparedStatements {
    /// With room for so many bytes.
    pub fn new(bytes: usize) -> PreparedStatements {
        PreparedStatements {
            cache: quick_cache::sync::Cache::with_weighter(bytes / WEIGHT_BYTES, bytes as u64, Weight),
            made: AtomicU64::new(0),
        }
    }

    fn get(&self, id: &[u8; 16]) -> Option<Arc<Prepared>> {
        self.cache.get(id)
    }

    fn insert(&self, prepared: Arc<Prepared>) {
        self.cache.insert(prepared.id, prepared);
        self.made.fetch_add(1, Ordering::Relaxed);
    }

    fn forget(&self, id: &[u8; 16]) {
        if self.cache.remove(id).is_some() {
            self.made.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn all(&self) -> Vec<Arc<Prepared>> {
        self.cache.iter().map(|(_, prepared)| prepared).collect()
    }

    fn evicted(&self) -> u64 {
        let made = self.made.load(Ordering::Relaxed);
        made.saturating_sub(self.cache.len() as u64)
    }
}

/// The protocol counts a statement's markers, and the values for them, in 16 bits.
const MARKERS_MAX: usize = u16::MAX as usize;
/// What a statement's plan is taken to need.
const WEIGHT_BYTES: usize = 2048;

/// Counts a prepared statement as its text and a fixed cost for its plan.
#[derive(Clone)]
struct Weight;

impl quick_cache::Weighter<[u8; 16], Arc<Prepared>> for Weight {
    fn weight(&self, _id: &[u8; 16], prepared: &Arc<Prepared>) -> u64 {
        (prepared.query.len() * 4 + WEIGHT_BYTES) as u64
    }
}

impl Engine {
    /// Prepares a statement and remembers it; the same text in the same keyspace gives the same id, and in every keyspace if it names its
    /// own. A statement that was not known before may come with warnings, and one outside of all keyspaces each time.
    pub fn prepare(
        &self,
        client: &ClientState,
        keyspace: Option<&str>,
        text: &str,
    ) -> Result<(Arc<Prepared>, Vec<String>), CqlError> {
        for id in [prepared_id(None, text), prepared_id(keyspace, text)] {
            if let Some(prepared) = self.prepared.get(&id)
                && self.current_plan(&prepared).is_ok()
            {
                let is_told = keyspace.is_none() && !is_qualified(&prepared.parsed.statement);
                let warning = is_told.then(|| use_warning(None, None, &id));
                return Ok((prepared, warning.into_iter().collect()));
            }
        }
        let (parsed, planned) = self.parse_and_plan(client, keyspace, text)?;
        let markers = planned.markers.len();
        if markers > MARKERS_MAX {
            return Err(CqlError::invalid(format!(
                "Too many markers(?). {markers} markers exceed the allowed maximum of {MARKERS_MAX}"
            )));
        }
        let is_qualified = is_qualified(&parsed.statement);
        let id = prepared_id(keyspace.filter(|_| !is_qualified), text);
        let warning = (!is_qualified).then(|| use_warning(keyspace, keyspace, &id));
        let prepared = Arc::new(Prepared {
            id,
            query: text.into(),
            keyspace: keyspace.map(str::to_owned),
            first_result: planned.result.clone().unwrap_or_default(),
            is_write: writes(&parsed.statement),
            parsed,
            planned: ArcSwap::from_pointee(planned),
        });
        self.prepared.insert(prepared.clone());
        Ok((prepared, warning.into_iter().collect()))
    }

    /// The statement of that id, if it is still remembered and still makes sense in today's schema.
    pub fn prepared(&self, id: &[u8]) -> Result<Arc<Prepared>, CqlError> {
        let unknown = || CqlError::Unprepared(id.to_vec());
        let key: [u8; 16] = id.try_into().map_err(|_| unknown())?;
        self.prepared.get(&key).ok_or_else(unknown)
    }

    /// What a client is told that runs a statement from another keyspace than the one that it was prepared in. Of batches Cassandra
    /// can't say.
    pub fn use_warning(&self, client: &ClientState, prepared: &Prepared) -> Option<String> {
        let statement = &prepared.parsed.statement;
        // What names no table belongs to no keyspace.
        let keyspace = prepared.keyspace.as_deref().filter(|_| names_tables(statement));
        let used = client.keyspace.as_deref();
        let is_told =
            used != keyspace && !is_qualified(statement) && !matches!(statement, ast::Statement::Batch(_));
        is_told.then(|| use_warning(used, keyspace, &prepared.id))
    }

    /// Every statement that is remembered.
    pub(crate) fn prepared_statements(&self) -> Vec<Arc<Prepared>> {
        self.prepared.all()
    }

    /// Statements that were forgotten for want of room.
    pub(crate) fn prepared_evicted(&self) -> u64 {
        self.prepared.evicted()
    }

    /// The statement's plan, made anew if the schema has changed since. A statement whose table is gone, or whose
    /// columns are no longer what clients were told, is forgotten and reported as unprepared, as in Cassandra: the
    /// driver prepares it again, and learns the reason or the new columns.
    pub fn current_plan(&self, prepared: &Prepared) -> Result<Arc<Planned>, CqlError> {
        let planned = prepared.planned.load_full();
        let schema = self.context.schema.load();
        if planned.generation == schema.generation {
            return Ok(planned);
        }
        let replan = || {
            past::plan(
                &schema,
                &self.pasts,
                prepared.keyspace.as_deref(),
                &prepared.parsed,
            )
        };
        match trace::parsing(replan) {
            Ok(new) if new.result == planned.result && new.markers.specs() == planned.markers.specs() => {
                let planned = Arc::new(new);
                prepared.planned.store(planned.clone());
                Ok(planned)
            }
            Ok(_) | Err(_) => {
                self.prepared.forget(&prepared.id);
                Err(CqlError::Unprepared(prepared.id.to_vec()))
            }
        }
    }
}
