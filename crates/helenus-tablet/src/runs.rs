//! Rows of a range straight from the blocks of SSTables, for scans of many rows.
//!
//! SlateDB hands a scan's rows up one by one through half a dozen boxed iterators, which costs several times what is done with a row
//! here. So blocks are decoded whole, and the sorted runs and the files of level 0 merged in one place; only what lies in memtables
//! comes by way of SlateDB. Memtables and SSTables are those of one moment: the database's manifest is the same before and after its
//! memtables are captured. Where that cannot be had, SlateDB scans by itself.

use std::collections::VecDeque;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use bytes::Bytes;
use object_store::ObjectStore;
use slatedb::config::ScanOptions;
use slatedb::db_cache::foyer::FoyerCache;
use slatedb::manifest::{SsTableHandle, VersionedManifest};
use slatedb::{Db, DbIterator, DbSnapshot, RowEntry, SstFile, SstReader, ValueDeletable};

use crate::counted_cache::{Counted, Lookups};
use crate::database::tablet_path;
use crate::error::{StoreError, from_slatedb};
use crate::filters::memory_only;
use crate::hooks::{HookError, Hooks};
use crate::work;

/// How often memtables and SSTables are taken anew when they changed in between.
const TRIES: usize = 3;

type Bounds = (Bound<Bytes>, Bound<Bytes>);

/// A tablet's SSTables, read past SlateDB's iterators.
pub(crate) struct SsTables {
    db: Db,
    reader: SstReader,
    /// What was looked for in the cache.
    pub lookups: Arc<Lookups>,
    hooks: Arc<dyn Hooks>,
}

impl SsTables {
    /// Those of a tablet whose database caches blocks in `cache` under the id 0.
    pub fn new(
        db: Db,
        tablet: u32,
        store: Arc<dyn ObjectStore>,
        cache: Arc<FoyerCache>,
        hooks: Arc<dyn Hooks>,
    ) -> SsTables {
        let lookups = Arc::<Lookups>::default();
        let cache = Arc::new(Counted {
            cache,
            lookups: lookups.clone(),
        });
        SsTables {
            db,
            reader: SstReader::new(tablet_path(tablet), store, Some(cache), None),
            lookups,
            hooks,
        }
    }

    /// The rows of a range, ascending, as `tree` shows them; `None` if SlateDB has to scan by itself.
    pub async fn scan(
        self: &Arc<Self>,
        tree: &DbSnapshot,
        bounds: Bounds,
    ) -> Result<Option<Runs>, StoreError> {
        let options = ScanOptions {
            filter_context: Some(memory_only()),
            ..ScanOptions::default()
        };
        for _ in 0..TRIES {
            let before = self.db.manifest();
            if !before.external_dbs().is_empty() {
                return Ok(None);
            }
            let memory = tree.scan_with_options(bounds.clone(), &options);
            let memory = work::read_wait(memory)
                .await
                .map_err(|error| from_slatedb(&error))?;
            let manifest = self.db.manifest();
            if is_same(&before, &manifest) {
                return Ok(Some(Runs::new(
                    self.clone(),
                    tree.seq(),
                    &manifest,
                    memory,
                    bounds,
                )));
            }
        }
        Ok(None)
    }
}

fn is_same(a: &VersionedManifest, b: &VersionedManifest) -> bool {
    let tables = |manifest: &VersionedManifest| (manifest.l0().len(), manifest.compacted().len());
    a.id() == b.id() && a.last_l0_seq() == b.last_l0_seq() && tables(a) == tables(b)
}

/// Where entries come from, in order of their keys.
enum Rest {
    Memory(Box<DbIterator>),
    /// A sorted run, or one file of level 0.
    Files {
        files: VecDeque<SsTableHandle>,
        open: Option<Box<OpenFile>>,
        rows: std::vec::IntoIter<RowEntry>,
    },
    Nothing,
}

struct OpenFile {
    file: SstFile,
    next_block: usize,
    end_block: usize,
}

struct Source {
    head: Option<RowEntry>,
    rest: Rest,
}

/// The merged rows of a range, ascending.
pub(crate) struct Runs {
    tables: Arc<SsTables>,
    bounds: Bounds,
    /// Later entries are not seen.
    last_seq: u64,
    sources: Vec<Source>,
    /// True if the head of a source that may have more is not known.
    lacks_head: bool,
    /// The versions of the key that is being gathered.
    versions: Vec<RowEntry>,
}

impl Runs {
    fn new(
        tables: Arc<SsTables>,
        last_seq: u64,
        manifest: &VersionedManifest,
        memory: DbIterator,
        bounds: Bounds,
    ) -> Runs {
        let files = |files: VecDeque<SsTableHandle>| Source {
            head: None,
            rest: Rest::Files {
                files,
                open: None,
                rows: Vec::new().into_iter(),
            },
        };
        let level0 = manifest.l0().iter().map(|view| &view.sst);
        let level0 = level0.filter(|table| may_overlap(table, &bounds));
        let level0 = level0.map(|table| VecDeque::from([table.clone()]));
        let runs = manifest.compacted().iter().map(|run| {
            let covering = run.tables_covering_range(bounds.clone());
            covering.into_iter().map(|view| view.sst.clone()).collect()
        });
        let mut sources: Vec<Source> = level0
            .chain(runs.filter(|files: &VecDeque<_>| !files.is_empty()))
            .map(files)
            .collect();
        sources.push(Source {
            head: None,
            rest: Rest::Memory(Box::new(memory)),
        });
        Runs {
            tables,
            bounds,
            last_seq,
            sources,
            lacks_head: true,
            versions: Vec::new(),
        }
    }

    /// The next key and merged row.
    pub async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, StoreError> {
        loop {
            if self.lacks_head {
                let found = work::read_wait(Box::pin(self.find_heads())).await;
                found.map_err(|error| from_slatedb(&error))?;
            }
            let least = least(&self.sources);
            let gathered = self.versions.first().map(|version| &version.key);
            match least {
                Some((at, key)) if gathered.is_none_or(|gathered| gathered == key) => self.take(at),
                _ if gathered.is_none() => return Ok(None),
                _ => {
                    if let Some(row) = resolve(self.tables.hooks.as_ref(), &mut self.versions)? {
                        return Ok(Some(row));
                    }
                }
            }
        }
    }

    /// Moves the head of a source to the versions of its key.
    fn take(&mut self, at: usize) {
        let Some(source) = self.sources.get_mut(at) else {
            return;
        };
        self.versions.extend(source.head.take());
        if let Rest::Files { rows, .. } = &mut source.rest {
            source.head = rows.find(|row| row.seq <= self.last_seq);
        }
        self.lacks_head |= source.head.is_none();
    }

    async fn find_heads(&mut self) -> Result<(), slatedb::Error> {
        for source in &mut self.sources {
            while source.head.is_none() && !matches!(source.rest, Rest::Nothing) {
                source
                    .read(&self.tables.reader, &self.bounds, self.last_seq)
                    .await?;
                // What lies in the cache is never waited for.
                tokio::task::coop::consume_budget().await;
            }
        }
        self.sources.retain(|source| source.head.is_some());
        self.lacks_head = false;
        Ok(())
    }
}

/// The source that comes first, and its key.
fn least(sources: &[Source]) -> Option<(usize, &Bytes)> {
    let heads = sources
        .iter()
        .enumerate()
        .filter_map(|(at, source)| Some((at, &source.head.as_ref()?.key)));
    heads.reduce(|least, other| if other.1 < least.1 { other } else { least })
}

impl Source {
    /// Reads on, until there is a head, a block without one, or nothing more.
    async fn read(
        &mut self,
        reader: &SstReader,
        bounds: &Bounds,
        last_seq: u64,
    ) -> Result<(), slatedb::Error> {
        match &mut self.rest {
            Rest::Nothing => {}
            Rest::Memory(memory) => match memory.next().await? {
                // Whether it is whole is not told. As an operand it comes to the same, since what it would hide lies in it.
                Some(row) => {
                    self.head = Some(RowEntry {
                        key: row.key,
                        value: ValueDeletable::Merge(row.value),
                        seq: row.seq,
                        create_ts: None,
                        expire_ts: None,
                    });
                }
                None => self.rest = Rest::Nothing,
            },
            Rest::Files { files, open, rows } => match open {
                Some(file) if file.next_block < file.end_block => {
                    let block = file.file.read_block(file.next_block).await?;
                    file.next_block += 1;
                    *rows = within(block, bounds).into_iter();
                    self.head = rows.find(|row| row.seq <= last_seq);
                }
                _ => match files.pop_front() {
                    Some(table) => *open = Some(Box::new(OpenFile::open(reader, table, bounds).await?)),
                    None => self.rest = Rest::Nothing,
                },
            },
        }
        Ok(())
    }
}

impl OpenFile {
    async fn open(
        reader: &SstReader,
        table: SsTableHandle,
        bounds: &Bounds,
    ) -> Result<OpenFile, slatedb::Error> {
        let file = reader.open_with_handle(table)?;
        let index = file.index().await?;
        // A block's key in the index is at most its first, and above the keys of the blocks before it, or the last of them.
        let next_block = match &bounds.0 {
            Bound::Unbounded => 0,
            Bound::Included(start) | Bound::Excluded(start) => {
                index.partition_point(|key| key < start).saturating_sub(1)
            }
        };
        let end_block = match &bounds.1 {
            Bound::Unbounded => index.len(),
            Bound::Included(end) => index.partition_point(|key| key <= end),
            Bound::Excluded(end) => index.partition_point(|key| key < end),
        };
        Ok(OpenFile {
            file,
            next_block,
            end_block,
        })
    }
}

/// False if no key of the table lies within the bounds.
fn may_overlap(table: &SsTableHandle, bounds: &Bounds) -> bool {
    let is_before = |last: &Bytes| match &bounds.0 {
        Bound::Unbounded => false,
        Bound::Included(start) => last < start,
        Bound::Excluded(start) => last <= start,
    };
    let is_behind = |first: &Bytes| match &bounds.1 {
        Bound::Unbounded => false,
        Bound::Included(end) => first > end,
        Bound::Excluded(end) => first >= end,
    };
    let info = &table.info;
    !info.last_entry.as_ref().is_some_and(is_before) && !info.first_entry.as_ref().is_some_and(is_behind)
}

/// The rows of a block that lie within the bounds.
fn within(mut rows: Vec<RowEntry>, bounds: &Bounds) -> Vec<RowEntry> {
    let is_in = |row: Option<&RowEntry>| row.is_none_or(|row| bounds.contains(&row.key));
    if !is_in(rows.first()) || !is_in(rows.last()) {
        rows.retain(|row| bounds.contains(&row.key));
    }
    rows
}

/// Merges the versions of one key, and leaves none; nothing if it is deleted.
fn resolve(hooks: &dyn Hooks, versions: &mut Vec<RowEntry>) -> Result<Option<(Bytes, Bytes)>, HookError> {
    if let [_] = versions.as_slice()
        && let Some(RowEntry { key, value, .. }) = versions.pop()
    {
        return Ok(match value {
            ValueDeletable::Value(row) | ValueDeletable::Merge(row) => Some((key, row)),
            ValueDeletable::Tombstone => None,
        });
    }
    versions.sort_by_key(|version| std::cmp::Reverse(version.seq));
    let Some(key) = versions.first().map(|newest| newest.key.clone()) else {
        return Ok(None);
    };
    let mut base = None;
    let mut operands = Vec::new();
    for version in versions.drain(..) {
        match version.value {
            ValueDeletable::Merge(operand) => operands.push(operand),
            ValueDeletable::Value(value) => {
                base = Some(value);
                break;
            }
            ValueDeletable::Tombstone => break,
        }
    }
    operands.reverse();
    if operands.is_empty() {
        return Ok(base.map(|row| (key, row)));
    }
    let row = hooks.merge(&key, base.as_ref(), &operands)?;
    Ok(Some((key, row)))
}
