//! Moments that are pinned from time to time, from which times of the past are reached: documents `history/bases/<milliseconds>`.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_tablet::{HistoryPosition, PinnedTablet};
use serde::{Deserialize, Serialize};

use crate::cluster::Moment;
use crate::engine::Engine;
use crate::failure::store_error;
use crate::schema::documents::PinnedDoc;

const FOLDER: &str = "bases";
/// Raised when an older binary could not understand it.
const FORMAT: u32 = 1;

/// A moment of all tablets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Base {
    pub taken_ms: i64,
    pub tablets: Vec<PinnedTablet>,
    /// How far the logs are whose writes are in it.
    pub positions: Vec<HistoryPosition>,
}

#[derive(Serialize, Deserialize)]
struct BaseDoc {
    format: u32,
    taken_ms: i64,
    tablets: Vec<PinnedDoc>,
    positions: Vec<HistoryPosition>,
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
        };
        serde_json::to_vec(&document).map_err(|error| CqlError::Server(error.to_string()))
    }

    fn decode(bytes: &[u8]) -> Result<Base, String> {
        let document: BaseDoc = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        match document.format <= FORMAT {
            true => Ok(Base {
                taken_ms: document.taken_ms,
                tablets: document.tablets.into_iter().map(PinnedTablet::from).collect(),
                positions: document.positions,
            }),
            false => Err(format!(
                "it is of format {}, and this binary understands up to {FORMAT}: use a newer helenus",
                document.format
            )),
        }
    }
}

impl Engine {
    /// The bases that there are, by the time of their moment. Those that are known already are not read again.
    ///
    /// # Errors
    /// The store can't be read, or one of them is damaged.
    pub(crate) async fn bases(&self) -> Result<BTreeMap<i64, Arc<Base>>, CqlError> {
        let store = &self.context.store;
        let mut bases = self.history.bases.lock().await;
        let names = store.list_history(FOLDER).await.map_err(store_error)?;
        let mut there = BTreeMap::new();
        for name in names {
            let Ok(taken_ms) = name.parse::<i64>() else {
                continue;
            };
            if let Some(known) = bases.get(&taken_ms) {
                there.insert(taken_ms, known.clone());
                continue;
            }
            if let Some(bytes) = store.get_history(FOLDER, &name).await.map_err(store_error)? {
                let base = Base::decode(&bytes).map_err(|why| {
                    CqlError::Server(format!("history/{FOLDER}/{name} can't be understood: {why}"))
                })?;
                there.insert(taken_ms, Arc::new(base));
            }
        }
        bases.clone_from(&there);
        Ok(there)
    }

    /// Pins a moment and writes it down.
    ///
    /// # Errors
    /// There was no moment of all nodes, or it can't be written down: then nothing stays pinned.
    pub(in crate::engine) async fn take_base(&self) -> Result<(), CqlError> {
        // Nothing that is not written down yet may be let go meanwhile.
        let _pinning = self.pinning.lock().await;
        let Moment { tablets, positions } = self.pin_for_history().await?;
        let base = Base {
            // What was committed before it is in it.
            taken_ms: self.now_ms(),
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
        tracing::debug!(
            taken_ms = base.taken_ms,
            "a moment was kept for times of the past"
        );
        self.history
            .bases
            .lock()
            .await
            .insert(base.taken_ms, Arc::new(base));
        Ok(())
    }

    /// Removes a base and lets its tablets go.
    ///
    /// # Errors
    /// The store can't be written to.
    pub(super) async fn remove_base(&self, base: &Base) -> Result<(), CqlError> {
        let store = &self.context.store;
        store
            .delete_history(FOLDER, &Base::name(base.taken_ms))
            .await
            .map_err(store_error)?;
        self.history.bases.lock().await.remove(&base.taken_ms);
        store.unpin(&base.tablets).await.map_err(store_error)
    }
}

#[cfg(test)]
mod tests {
    use helenus_tablet::TokenRange;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_base_reads_back_as_it_was_written_and_a_newer_one_is_refused() {
        let base = Base {
            taken_ms: 1_764_000_000_000,
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
