//! Released origins: a table had them within the window, and no table has them any more. They are the documents
//! `history/released/<milliseconds>-<id>`.
//!
//! A read of a time uses the origins that tables had at that time, and so does a restore of that time from backups. A change of the schema
//! that removes the last use of an origin therefore writes a document. The origin's tablets stay pinned until the window has passed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_tablet::{PinnedTablet, TableOrigin};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::engine::Engine;
use crate::engine::snapshots::pinned_by;
use crate::failure::store_error;
use crate::schema::Schema;
use crate::schema::documents::PinnedDoc;

const FOLDER: &str = "released";

/// All tablets as of one consistent cut.
type CutTablets = Arc<[PinnedTablet]>;

#[derive(Serialize, Deserialize)]
struct ReleasedDoc {
    #[serde(rename = "moments")]
    cuts: Vec<Vec<PinnedDoc>>,
}

/// The content of a document.
pub(in crate::engine) struct Released {
    name: String,
    time_ms: i64,
    pub cuts: Vec<CutTablets>,
}

impl Released {
    fn pinned(&self) -> impl Iterator<Item = &PinnedTablet> {
        self.cuts.iter().flat_map(|cut| cut.iter())
    }
}

/// Returns the cuts that are origins of a schema's tables, including tables of snapshots. The key of a cut is its id.
pub(in crate::engine) fn origin_cuts(schema: &Schema) -> BTreeMap<Uuid, CutTablets> {
    let origins = schema.branches().filter_map(|table| table.origin.as_deref());
    by_id(origins.flat_map(TableOrigin::cuts).cloned()).collect()
}

/// Returns each cut with its id.
fn by_id(cuts: impl IntoIterator<Item = CutTablets>) -> impl Iterator<Item = (Uuid, CutTablets)> {
    cuts.into_iter().filter_map(|cut| {
        let id = PinnedTablet::cut_id(&cut)?;
        Some((id, cut))
    })
}

impl Engine {
    /// Writes down the origins that no table has any more after a change of the schema.
    ///
    /// # Errors
    /// The store can't be written to.
    pub(super) async fn note_released(&self, before: &Schema, after: &Schema) -> Result<(), CqlError> {
        let mut gone = origin_cuts(before);
        if gone.is_empty() {
            return Ok(());
        }
        let there = origin_cuts(after);
        gone.retain(|id, _| !there.contains_key(id));
        match gone.is_empty() {
            true => Ok(()),
            false => self.keep_released(gone.into_values().collect()).await.map(|_| ()),
        }
    }

    /// Keeps pinned tablets for the length of the window. Returns the name of the document that does so.
    ///
    /// # Errors
    /// The store can't be written to.
    pub(in crate::engine) async fn keep_released(&self, cuts: Vec<CutTablets>) -> Result<String, CqlError> {
        let document = ReleasedDoc {
            cuts: cuts
                .iter()
                .map(|cut| cut.iter().map(PinnedDoc::from).collect())
                .collect(),
        };
        let name = format!("{:013}-{}", self.now_ms().max(0), Uuid::new_v4().simple());
        let content = serde_json::to_vec(&document).map_err(|error| CqlError::Server(error.to_string()))?;
        let put = self.context.store.put_history(FOLDER, &name, content).await;
        put.map_err(store_error)?;
        Ok(name)
    }

    /// Returns the origins that tables may have had within the window, without those in `origins`. Some are released, and some are only
    /// those of tables in snapshots, such as the snapshot that DROP leaves.
    ///
    /// # Errors
    /// The store can't be read, or a document is damaged.
    pub(in crate::engine) async fn former_origins(
        &self,
        origins: &BTreeMap<Uuid, CutTablets>,
    ) -> Result<Vec<CutTablets>, CqlError> {
        // The schema is read first: an origin that is released meanwhile is in it.
        let mut former = origin_cuts(&self.schema());
        for released in self.released().await? {
            former.extend(by_id(released.cuts));
        }
        former.retain(|id, _| !origins.contains_key(id));
        Ok(former.into_values().collect())
    }

    /// Returns the origins that are kept although no table has them any more.
    ///
    /// # Errors
    /// The store can't be read, or a document is damaged.
    pub(in crate::engine) async fn released(&self) -> Result<Vec<Released>, CqlError> {
        let store = &self.context.store;
        let mut released = Vec::new();
        for name in store.list_history(FOLDER).await.map_err(store_error)? {
            let time = name.split_once('-').map(|(time, _)| time.parse());
            let (Some(Ok(time_ms)), Some(content)) =
                (time, store.get_history(FOLDER, &name).await.map_err(store_error)?)
            else {
                continue;
            };
            let document: ReleasedDoc = serde_json::from_slice(&content).map_err(|why| {
                CqlError::Server(format!("history/{FOLDER}/{name} can't be understood: {why}"))
            })?;
            let cut = |cut: Vec<PinnedDoc>| cut.into_iter().map(PinnedTablet::from).collect();
            released.push(Released {
                name,
                time_ms,
                cuts: document.cuts.into_iter().map(cut).collect(),
            });
        }
        Ok(released)
    }

    /// Returns the tablets that stay pinned for origins that no table has any more.
    ///
    /// # Errors
    /// See [`Engine::released`].
    pub(in crate::engine) async fn pinned_by_released(&self) -> Result<Vec<PinnedTablet>, CqlError> {
        let released = self.released().await?;
        Ok(released.iter().flat_map(Released::pinned).cloned().collect())
    }

    /// Unpins the tablets of documents from before `before_ms`, and of the document `name`.
    ///
    /// # Errors
    /// The store can't be read or written to.
    pub(in crate::engine) async fn trim_released(
        &self,
        before_ms: i64,
        name: Option<&str>,
    ) -> Result<(), CqlError> {
        let released = self.released().await?;
        let is_old = |of: &Released| of.time_ms < before_ms || Some(of.name.as_str()) == name;
        let (old, needed): (Vec<Released>, Vec<Released>) = released.into_iter().partition(is_old);
        if old.is_empty() {
            return Ok(());
        }
        // The lock prevents the removal of tablets that others have pinned and not written down yet.
        let _pinning = self.cuts.pinning.lock().await;
        let store = &self.context.store;
        for document in &old {
            let deleted = store.delete_history(FOLDER, &document.name).await;
            deleted.map_err(store_error)?;
        }
        let schema = self.schema();
        let of_others = needed.iter().flat_map(Released::pinned);
        let kept = pinned_by(&schema).chain(of_others);
        let kept: BTreeSet<Uuid> = kept.map(|of| of.checkpoint).collect();
        let gone = old.iter().flat_map(Released::pinned);
        let gone: BTreeMap<Uuid, &PinnedTablet> = gone
            .filter(|of| !kept.contains(&of.checkpoint))
            .map(|of| (of.checkpoint, of))
            .collect();
        let gone: Vec<PinnedTablet> = gone.into_values().cloned().collect();
        store.unpin(&gone).await.map_err(store_error)
    }
}
