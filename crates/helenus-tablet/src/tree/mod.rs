//! What lies below the stage: a tablet's LSM tree.
//!
//! SlateDB writes and compacts it. Reads of a local tablet go past SlateDB, which hands rows up through many boxed iterators, one by
//! one: what lies in memtables is kept beside them ([`memory`]), blocks of SSTables are cached as they are read here ([`files`]), and
//! looked into for one row ([`get`]) or merged ([`runs`]). SlateDB reads where it has to tell what it did, after a start until what
//! was replayed is in SSTables, and in an object store.

mod files;
mod get;
mod memory;
mod rows;
mod runs;

use std::sync::Arc;

use bytes::Bytes;
use slatedb::DbSnapshot;

pub(crate) use files::{Files, OpenTable, SsTables};
pub(crate) use memory::MemTable;
pub(crate) use rows::Rows;
pub(crate) use runs::Runs;

use crate::hooks::{HookError, Hooks};
use crate::tablet::Tablet;
use rows::Kind;

/// The tree as readers see it at one moment.
pub(crate) struct Tree {
    pub snapshot: Arc<DbSnapshot>,
    parts: Option<Parts>,
}

/// What reads need to do without SlateDB. Each batch up to the snapshot lies in `memory` or in `files`, or in both.
#[derive(Clone)]
pub(crate) struct Parts {
    tables: Arc<SsTables>,
    /// From new to old.
    memory: Vec<Arc<MemTable>>,
    files: Arc<Files>,
    /// What was written up to there is not in `memory`.
    since: u64,
}

impl Tree {
    /// A tree that SlateDB reads.
    pub fn new(snapshot: Arc<DbSnapshot>) -> Tree {
        Tree {
            snapshot,
            parts: None,
        }
    }

    /// A local tablet's, when it is opened.
    pub fn local(snapshot: Arc<DbSnapshot>, tables: Arc<SsTables>) -> Tree {
        let since = snapshot.seq();
        Tree {
            snapshot,
            parts: Some(Parts {
                tables,
                memory: Vec::new(),
                files: Arc::default(),
                since,
            }),
        }
    }

    /// Its parts, if they are all there is.
    pub fn parts(&self) -> Option<&Parts> {
        self.parts
            .as_ref()
            .filter(|parts| parts.files.is_known() && parts.files.flushed >= parts.since)
    }

    /// The table to keep of a batch that has been written to SlateDB.
    pub fn absorb(&self, table: impl FnOnce() -> MemTable) -> Option<Arc<MemTable>> {
        let parts = self.parts.as_ref()?;
        Some(memory::absorb(table(), &parts.memory, parts.files.flushed))
    }

    /// The tree with a batch more, as `snapshot` has it.
    pub fn with_batch(&self, snapshot: Arc<DbSnapshot>, table: Option<Arc<MemTable>>) -> Tree {
        let mut parts = self.parts.clone();
        if let (Some(parts), Some(table)) = (&mut parts, table) {
            parts.memory.retain(|older| older.last_seq < table.first_seq);
            parts.memory.insert(0, table);
            parts.forget_flushed();
        }
        Tree { snapshot, parts }
    }

    /// The tree with other files.
    pub fn with_files(&self, files: Arc<Files>) -> Tree {
        let mut parts = self.parts.clone();
        if let Some(parts) = &mut parts {
            parts.files = files;
            parts.forget_flushed();
        }
        Tree {
            snapshot: self.snapshot.clone(),
            parts,
        }
    }

    /// Bytes of rows that are kept beside SlateDB's memtables.
    pub fn memory_bytes(&self) -> usize {
        let memory = self.parts.as_ref().map(|parts| parts.memory.as_slice());
        memory
            .unwrap_or_default()
            .iter()
            .map(|table| table.rows.size())
            .sum()
    }
}

impl Parts {
    fn forget_flushed(&mut self) {
        let flushed = self.files.flushed;
        self.memory.retain(|table| table.last_seq > flushed);
    }
}

/// Brings what was replayed into SSTables, then lets reads see a tablet's files as they change, until the tablet is closed.
pub(crate) fn follow(tablet: &Arc<Tablet>) -> impl Future<Output = ()> + use<> {
    let mut status = tablet.db.subscribe();
    let tablet = Arc::downgrade(tablet);
    async move {
        if let Some(tablet) = tablet.upgrade()
            && tablet.stage.tree().parts().is_none()
            && let Err(error) = tablet.flush().await
        {
            tracing::debug!(%error, "what was replayed stays in memory");
        }
        while status.changed().await.is_ok() {
            let Some(tablet) = tablet.upgrade() else {
                return;
            };
            tablet.see_files();
            if status.borrow_and_update().close_reason.is_some() {
                return;
            }
        }
    }
}

/// Versions of one key.
#[derive(Default)]
struct Versions(Vec<(u64, Kind, Bytes)>);

impl Versions {
    fn add(&mut self, rows: &Rows, at: usize) {
        self.0.push((rows.seq(at), rows.kind(at), rows.value(at)));
    }

    /// The row, or that there is none. Leaves nothing.
    fn resolve(&mut self, hooks: &dyn Hooks, key: &[u8]) -> Result<Option<Bytes>, HookError> {
        if let [_] = self.0.as_slice()
            && let Some((_, kind, value)) = self.0.pop()
        {
            return Ok((kind != Kind::Deleted).then_some(value));
        }
        self.0.sort_by_key(|(seq, ..)| std::cmp::Reverse(*seq));
        let mut base = None;
        let mut operands = Vec::with_capacity(self.0.len());
        for (_, kind, value) in self.0.drain(..) {
            match kind {
                Kind::Operand => operands.push(value),
                Kind::Whole => base = Some(value),
                Kind::Deleted => {}
            }
            if kind != Kind::Operand {
                break;
            }
        }
        if operands.is_empty() {
            return Ok(base);
        }
        operands.reverse();
        hooks.merge(key, base.as_ref(), &operands).map(Some)
    }
}
