//! Checks by Bloom filters whether the runs older than a compaction's output may hold a key.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;
use object_store::ObjectStore;
use object_store::path::Path;
use slatedb::manifest::{SortedRun, SsTableId, SsTableView};
use slatedb::{Filter, FilterPolicy, FilterQuery};

use crate::tree::sst_filter;

/// Location of a tablet's SSTables, and the policy for reading their filters.
pub(crate) struct Tables {
    pub store: Arc<dyn ObjectStore>,
    pub root: Path,
    pub policy: Arc<dyn FilterPolicy>,
}

/// Looks keys up in the filters of older runs. Keys must be given in ascending order. At most two filters of each run are kept in memory.
pub(crate) struct OlderRuns {
    tables: Arc<Tables>,
    runs: Arc<[SortedRun]>,
    filters: HashMap<SsTableId, Option<Arc<dyn Filter>>>,
    /// Bytes of filters that may still be read. The limit keeps a small compaction from reading all filters of a large run.
    budget_bytes: u64,
}

impl OlderRuns {
    pub fn new(tables: Arc<Tables>, runs: Arc<[SortedRun]>, budget_bytes: u64) -> OlderRuns {
        OlderRuns {
            tables,
            runs,
            filters: HashMap::new(),
            budget_bytes,
        }
    }

    /// Returns false if no older run has the key. True if one may have it.
    pub async fn may_have_key(&mut self, key: &Bytes) -> bool {
        let query = FilterQuery::point(key.clone());
        self.may_match((Bound::Included(key), Bound::Included(key)), &query)
            .await
    }

    /// Returns false if no older run has a key with the prefix. `end` is the smallest key behind the prefix. `None` if there is no such
    /// key.
    pub async fn may_have_prefix(&mut self, prefix: &Bytes, end: Option<&Bytes>) -> bool {
        let query = FilterQuery::prefix(prefix.clone());
        let end = end.map_or(Bound::Unbounded, Bound::Excluded);
        self.may_match((Bound::Included(prefix), end), &query).await
    }

    async fn may_match(&mut self, range: (Bound<&Bytes>, Bound<&Bytes>), query: &FilterQuery) -> bool {
        let runs = self.runs.clone();
        for run in runs.iter() {
            let range = (range.0.cloned(), range.1.cloned());
            for view in run.tables_covering_range(range) {
                match self.filter(view).await {
                    Some(filter) if !filter.might_match(query) => {}
                    _ => return true,
                }
            }
        }
        false
    }

    async fn filter(&mut self, view: &SsTableView) -> Option<Arc<dyn Filter>> {
        let id = view.sst.id;
        if let Some(known) = self.filters.get(&id) {
            return known.clone();
        }
        // Keys ascend, so filters of earlier tables are no longer needed.
        if self.filters.len() > 2 * self.runs.len() {
            self.filters.clear();
        }
        let len = view.sst.info.filter_len;
        let filter = match self.budget_bytes.checked_sub(len) {
            None => None,
            Some(left) => {
                self.budget_bytes = left;
                let Tables { store, root, policy } = self.tables.as_ref();
                sst_filter::read(store.as_ref(), root, &view.sst, policy.as_ref()).await
            }
        };
        self.filters.insert(id, filter.clone());
        filter
    }
}
