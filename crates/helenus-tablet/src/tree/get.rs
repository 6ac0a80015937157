//! Point look-up: memtables first, then files from new to old, until a version hides the older ones.

use std::ops::Bound;

use bytes::Bytes;
use slatedb::FilterQuery;

use super::rows::{EntryKind, SortedBlock};
use super::{Tree, Versions};
use crate::data_model::{DataModelError, RowMerge};
use crate::error::StoreError;
use crate::trace;
use crate::tree::limits::ReadLimits;
use crate::tree::sstable::{Table, covering};

struct PointLookup<'a> {
    tree: &'a Tree,
    key: &'a [u8],
    /// The query for filters, created when it is first needed.
    query: Option<FilterQuery>,
    versions: Versions,
}

impl Tree {
    /// Returns the merged row at `key`, whose hash is `hash`.
    pub async fn get(
        &self,
        model: &dyn RowMerge,
        key: &[u8],
        hash: u64,
        limits: &ReadLimits,
    ) -> Result<Option<Bytes>, StoreError> {
        // Reads from memory never wait, so they yield explicitly.
        tokio::task::coop::consume_budget().await;
        let mut search = PointLookup {
            tree: self,
            key,
            query: None,
            versions: Versions::default(),
        };
        if !search.look_into_memory(hash) {
            limits.wait(search.look_into_files()).await?;
        }
        Ok(search.versions.resolve(model, key)?)
    }

    /// Returns the row at `key` as far as the memtables contain it. `hash` is the key's hash.
    pub fn get_in_memory(
        &self,
        model: &dyn RowMerge,
        key: &[u8],
        hash: u64,
    ) -> Result<Option<Bytes>, DataModelError> {
        let mut search = PointLookup {
            tree: self,
            key,
            query: None,
            versions: Versions::default(),
        };
        search.look_into_memory(hash);
        match search.versions.is_empty() {
            true => Ok(None),
            false => search.versions.resolve(model, key),
        }
    }
}

impl PointLookup<'_> {
    /// Adds the versions in the memtables. Returns true if they hide older ones.
    fn look_into_memory(&mut self, hash: u64) -> bool {
        let mut tables = self.tree.memory.iter().filter(|table| table.may_have(hash));
        let is_whole = tables.any(|table| take(&mut self.versions, &table.rows, self.key));
        if !self.versions.is_empty() {
            trace::step(|| "Found in the memtable");
        }
        is_whole
    }

    async fn look_into_files(&mut self) -> Result<(), slatedb::Error> {
        let files = &self.tree.files;
        let level0 = files.level0.iter().filter(|table| table.may_have(self.key));
        for table in level0.chain(files.runs.iter().flat_map(|run| covering(run, self.key))) {
            if self.look_into(table).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn look_into(&mut self, table: &Table) -> Result<bool, slatedb::Error> {
        let tables = &self.tree.tables;
        let open = tables.table(table).await?;
        let query = self
            .query
            .get_or_insert_with(|| FilterQuery::point(Bytes::copy_from_slice(self.key)));
        if !open.might_match(table, query) {
            return Ok(false);
        }
        let (first, behind) = open.blocks(Bound::Included(self.key), Bound::Included(self.key));
        for block in first..behind {
            let rows = tables.block(table, &open, block).await?;
            if take(&mut self.versions, &rows, self.key) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Adds the versions from new to old. Returns true if they hide older ones.
fn take(versions: &mut Versions, rows: &SortedBlock, key: &[u8]) -> bool {
    let from = rows.lower_bound(key);
    for at in (from..rows.len()).take_while(|at| rows.key(*at) == key) {
        versions.add(rows, at);
        if rows.kind(at) != EntryKind::Operand {
            return true;
        }
    }
    false
}
