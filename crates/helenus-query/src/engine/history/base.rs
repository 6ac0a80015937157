//! Bases: consistent cuts that are pinned from time to time, from which times in history are read. They are the documents
//! `history/bases/<milliseconds>`.

use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_tablet::{HistoryPosition, PinnedTablet};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::clock_watch::Run;
use super::eras::BaseTimes;

use crate::cluster::PinnedCut;
use crate::engine::Engine;
use crate::failure::store_error;
use crate::schema::documents::PinnedDoc;

const FOLDER: &str = "bases";
/// Version of the format. Raised if an older binary could not understand a document.
const FORMAT: u32 = 1;

/// A consistent cut of all tablets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Base {
    /// Number of the base, greater than those of all bases before. 0 if an older binary has taken the base.
    pub number: u64,
    /// Time before the cut. `None` if an older binary has taken the base.
    pub began_ms: Option<i64>,
    /// Time after the cut, which is part of the base's name.
    pub taken_ms: i64,
    /// Runs of the clocks since the previous base. Empty if an older binary has taken the base.
    pub shown: Vec<Run>,
    /// Version of the schema when the base was begun, which is written down whole. `None` if an older binary has taken the base.
    pub schema: Option<Uuid>,
    pub tablets: Vec<PinnedTablet>,
    /// Positions of the logs. The cut contains the writes before them.
    pub positions: Vec<HistoryPosition>,
}

#[derive(Serialize, Deserialize)]
struct BaseDoc {
    format: u32,
    taken_ms: i64,
    tablets: Vec<PinnedDoc>,
    positions: Vec<HistoryPosition>,
    #[serde(default)]
    number: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    began_ms: Option<i64>,
    #[serde(default)]
    shown: Vec<Run>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schema: Option<Uuid>,
}

impl Base {
    fn name(taken_ms: i64) -> String {
        format!("{:013}", taken_ms.max(0))
    }

    fn encode(&self) -> Result<Vec<u8>, CqlError> {
        let document = BaseDoc {
            format: FORMAT,
            taken_ms: self.taken_ms,
            tablets: self.tablets.iter().map(PinnedDoc::from).collect(),
            positions: self.positions.clone(),
            number: self.number,
            began_ms: self.began_ms,
            shown: self.shown.clone(),
            schema: self.schema,
        };
        serde_json::to_vec(&document).map_err(|error| CqlError::Server(error.to_string()))
    }

    /// Returns the times that the base covers, by which a time is found among the bases.
    pub(super) fn times(&self) -> BaseTimes {
        BaseTimes {
            began_ms: self.began_ms,
            taken_ms: self.taken_ms,
            shown: self.shown.clone(),
        }
    }

    fn decode(bytes: &[u8]) -> Result<Base, String> {
        let document: BaseDoc = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        match document.format <= FORMAT {
            true => Ok(Base {
                taken_ms: document.taken_ms,
                tablets: document.tablets.into_iter().map(PinnedTablet::from).collect(),
                positions: document.positions,
                number: document.number,
                began_ms: document.began_ms,
                shown: document.shown,
                schema: document.schema,
            }),
            false => Err(format!(
                "it is of format {}, and this binary understands up to {FORMAT}: use a newer helenus",
                document.format
            )),
        }
    }
}

impl Engine {
    /// Returns all bases, in the order of their numbers. Known bases are not read again.
    ///
    /// # Errors
    /// The store can't be read, or a base is damaged.
    pub(crate) async fn bases(&self) -> Result<Vec<Arc<Base>>, CqlError> {
        let store = &self.context.store;
        let mut bases = self.cuts.history.bases.lock().await;
        let names = store.list_history(FOLDER).await.map_err(store_error)?;
        let mut there = Vec::new();
        for name in names {
            let Ok(taken_ms) = name.parse::<i64>() else {
                continue;
            };
            if let Some(known) = bases.iter().find(|known| known.taken_ms == taken_ms) {
                there.push(known.clone());
                continue;
            }
            if let Some(bytes) = store.get_history(FOLDER, &name).await.map_err(store_error)? {
                let base = Base::decode(&bytes).map_err(|why| {
                    CqlError::Server(format!("history/{FOLDER}/{name} can't be understood: {why}"))
                })?;
                there.push(Arc::new(base));
            }
        }
        there.sort_by_key(|base| (base.number, base.taken_ms));
        bases.clone_from(&there);
        Ok(there)
    }

    /// Takes a base: pins a consistent cut and writes it down.
    ///
    /// # Errors
    /// No consistent cut was possible, or the base can't be written. Nothing stays pinned then.
    pub(in crate::engine) async fn take_base(&self) -> Result<(), CqlError> {
        let schema = self.note_whole_schema(true).await?;
        // The lock prevents others from unpinning the tablets before the base names them.
        let _pinning = self.cuts.pinning.lock().await;
        let began_ms = self.now_ms();
        let PinnedCut { tablets, positions } = self.pin_for_history().await?;
        let bases = self.bases().await?;
        let last = bases.last();
        // The time is read after the pin, so that all commits in the base are before it.
        let now_ms = self.now_ms();
        let is_named = |taken_ms: &i64| bases.iter().any(|base| base.taken_ms == *taken_ms);
        let base = Base {
            number: last.map_or(1, |last| last.number + 1),
            began_ms: Some(began_ms),
            taken_ms: (now_ms..).find(|taken_ms| !is_named(taken_ms)).unwrap_or(now_ms),
            shown: self.clock_runs(last.map(|last| last.taken_ms)),
            schema: Some(schema),
            tablets,
            positions,
        };
        let written = match base.encode() {
            Ok(bytes) => {
                let name = Base::name(base.taken_ms);
                let put = self.context.store.put_history(FOLDER, &name, bytes).await;
                put.map_err(store_error)
            }
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            self.unpin().await;
            return Err(error);
        }
        tracing::debug!(taken_ms = base.taken_ms, "a consistent cut was kept for history");
        self.cuts.history.clock.lock().restart(base.taken_ms);
        self.cuts.history.bases.lock().await.push(Arc::new(base));
        Ok(())
    }

    /// Removes a base and unpins its tablets.
    ///
    /// # Errors
    /// The store can't be written to.
    pub(super) async fn remove_base(&self, base: &Base) -> Result<(), CqlError> {
        let store = &self.context.store;
        store
            .delete_history(FOLDER, &Base::name(base.taken_ms))
            .await
            .map_err(store_error)?;
        let mut bases = self.cuts.history.bases.lock().await;
        bases.retain(|other| other.taken_ms != base.taken_ms);
        drop(bases);
        store.unpin(&base.tablets).await.map_err(store_error)
    }
}

#[cfg(test)]
mod tests {
    use helenus_tablet::TokenRange;

    use super::*;

    #[test]
    fn a_base_of_an_older_binary_can_be_read() {
        let base = Base::decode(br#"{"format":1,"taken_ms":5,"tablets":[],"positions":[]}"#).unwrap();
        assert_eq!((base.number, base.taken_ms, base.schema), (0, 5, None));
        assert!(base.shown.is_empty() && base.began_ms.is_none());
    }

    #[test]
    fn base_round_trips_and_newer_format_is_refused() {
        let base = Base {
            number: 4,
            began_ms: Some(1_763_999_999_990),
            taken_ms: 1_764_000_000_000,
            shown: vec![Run::new(1_763_999_000_000, 1_764_000_000_000)],
            schema: Some(Uuid::from_u128(8)),
            tablets: vec![PinnedTablet {
                id: 3,
                tokens: TokenRange {
                    first: i64::MIN,
                    last: i64::MAX,
                },
                manifest: 12,
                checkpoint: Uuid::from_u128(5),
            }],
            positions: vec![HistoryPosition {
                log: Uuid::from_u128(6),
                segment: 7,
                offset: u64::MAX,
            }],
        };
        let bytes = base.encode().unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let times = r#""number":4,"began_ms":1763999999990,"shown":[{"first_ms":1763999000000,"last_ms":1764000000000}]"#;
        assert!(text.contains(times), "{text}");
        assert_eq!(Base::decode(&bytes), Ok(base));
        let newer = String::from_utf8(bytes)
            .unwrap()
            .replace(r#""format":1"#, r#""format":2"#);
        assert!(
            Base::decode(newer.as_bytes())
                .unwrap_err()
                .contains("newer helenus")
        );
    }
}
