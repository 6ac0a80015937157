//! Origins: pinned rows of another table, read below a table's own rows.
//!
//! A table with an origin (a *branch*) begins with the rows that another table has at one cut, and shares the files that contain them. The
//! branch's own rows lie under its own table number, as those of any table. A read merges them over the rows of the origin, whose table
//! number is replaced in the keys.
//!
//! **The invariant**: own rows are always merged with the origin's, whatever the kind of the own version. A whole row of the tablet may
//! lack data that the origin has. So no compaction or purge may drop a tombstone of such a table. The data model ensures that.
//!
//! An origin may have an origin itself, as in a branch of a branch. The pinned tablets are opened when they are first read, once for all
//! tables of a cut.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures::future::BoxFuture;
use helenus_row::key::{table_range, token_range};
use helenus_row::{ByteRange, TableId, TokenRange};
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::data_model::{DataModel, DataModelError, KeyLayout, RowMerge};
use crate::error::StoreError;
use crate::stage::dead_ranges::Bounds;
use crate::stage::is_empty;
use crate::tablet::pin::PinnedTablet;
use crate::tablet::{OpenTablets, Tablet, find};

/// Bytes of a table's number, with which keys begin.
const NUMBER_LEN: usize = 4;

/// The origin of a table: the pinned rows with which it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOrigin {
    /// All tablets, pinned at one cut.
    pub pinned: Arc<[PinnedTablet]>,
    /// The table number of the rows in the pinned tablets.
    pub table: u32,
    /// The origin of that table. `None` if it had none.
    pub below: Option<Arc<TableOrigin>>,
}

impl TableOrigin {
    /// Returns the pinned tablets of all levels.
    pub fn all_pinned(&self) -> impl Iterator<Item = &PinnedTablet> {
        self.cuts().flat_map(|pinned| pinned.iter())
    }

    /// Returns the pinned tablets of each level, a cut each.
    pub fn cuts(&self) -> impl Iterator<Item = &Arc<[PinnedTablet]>> {
        self.levels().map(|origin| &origin.pinned)
    }

    /// Returns this origin and those below it.
    pub fn levels(&self) -> impl Iterator<Item = &TableOrigin> {
        std::iter::successors(Some(self), |origin| origin.below.as_deref())
    }
}

/// Opens pinned tablets, whose tables have the given origins.
pub(crate) type OpenPinned = Arc<
    dyn Fn(Arc<[PinnedTablet]>, Arc<Origins>) -> BoxFuture<'static, Result<OpenTablets, StoreError>>
        + Send
        + Sync,
>;

/// The tables of a store that have an origin.
#[derive(Default)]
pub(crate) struct Origins {
    has_any: AtomicBool,
    /// Origins by the number of the table.
    known: ArcSwap<HashMap<u32, Origin>>,
}

/// The origin of a table.
#[derive(Clone)]
pub(crate) struct Origin {
    cut: Arc<OriginCut>,
    /// The table numbers with which keys begin: the table's own and the origin's.
    own: [u8; NUMBER_LEN],
    there: [u8; NUMBER_LEN],
}

/// Tablets pinned at one cut. They are opened when they are first read.
struct OriginCut {
    pinned: Arc<[PinnedTablet]>,
    origins: Arc<Origins>,
    open: OpenPinned,
    tablets: OnceCell<OpenTablets>,
}

/// The numbers of tables, each with its origin.
type Defined = Vec<(u32, Arc<TableOrigin>)>;

impl Origins {
    /// Replaces the set of tables that have an origin. Tablets that are already open stay open.
    pub fn set(&self, defined: Defined, open: &OpenPinned) {
        let before = self.known.load_full();
        let known: BTreeMap<Option<Uuid>, &Arc<OriginCut>> = before
            .values()
            .map(|origin| (cut_id(&origin.cut.pinned), &origin.cut))
            .collect();
        let mut by_cut = BTreeMap::<Option<Uuid>, Defined>::new();
        for (table, origin) in defined {
            by_cut
                .entry(cut_id(&origin.pinned))
                .or_default()
                .push((table, origin));
        }
        let mut origins = HashMap::new();
        for (id, tables) in by_cut {
            let Some((_, first)) = tables.first() else {
                continue;
            };
            let cut = match known.get(&id) {
                Some(cut) => Arc::clone(cut),
                None => Arc::new(OriginCut {
                    pinned: first.pinned.clone(),
                    origins: Arc::default(),
                    open: open.clone(),
                    tablets: OnceCell::new(),
                }),
            };
            let below = tables
                .iter()
                .filter_map(|(_, origin)| Some((origin.table, origin.below.clone()?)));
            cut.origins.set(below.collect(), open);
            origins.extend(tables.iter().map(|(table, origin)| {
                let origin = Origin {
                    cut: cut.clone(),
                    own: table.to_be_bytes(),
                    there: origin.table.to_be_bytes(),
                };
                (*table, origin)
            }));
        }
        let has_any = !origins.is_empty();
        self.known.store(Arc::new(origins));
        self.has_any.store(has_any, Ordering::Release);
    }

    /// Returns the origin of the table that a key belongs to. The beginning of a key is enough. `None` if the table has no origin.
    pub fn of(&self, key: &[u8]) -> Option<Origin> {
        if !self.has_any.load(Ordering::Acquire) {
            return None;
        }
        let number = key.first_chunk::<NUMBER_LEN>()?;
        self.known.load().get(&u32::from_be_bytes(*number)).cloned()
    }

    /// Returns the origin of the table in which a range of keys lies. `None` if the range spans several tables, or if the table has no
    /// origin.
    pub fn of_range(&self, (start, end): &Bounds) -> Option<Origin> {
        let (Bound::Included(from) | Bound::Excluded(from)) = start else {
            return None;
        };
        let origin = self.of(from)?;
        let is_within = match end {
            Bound::Unbounded => false,
            Bound::Included(to) => to.starts_with(&origin.own),
            Bound::Excluded(to) => {
                to.starts_with(&origin.own) || Some(to) == range_of(origin.own).end.as_ref()
            }
        };
        is_within.then_some(origin)
    }
}

/// Returns an id of a cut. Each cut has checkpoints of its own.
fn cut_id(pinned: &[PinnedTablet]) -> Option<Uuid> {
    pinned.first().map(|tablet| tablet.checkpoint)
}

fn range_of(number: [u8; NUMBER_LEN]) -> ByteRange {
    table_range(TableId(u32::from_be_bytes(number)))
}

fn renumbered(key: &[u8], number: [u8; NUMBER_LEN]) -> Bytes {
    let mut renumbered = Vec::with_capacity(key.len());
    renumbered.extend_from_slice(&number);
    renumbered.extend_from_slice(key.get(NUMBER_LEN..).unwrap_or_default());
    renumbered.into()
}

impl Origin {
    /// Returns the origin's key of a row of the table.
    pub fn key_there(&self, key: &[u8]) -> Bytes {
        renumbered(key, self.there)
    }

    /// Returns the table's key of a row of the origin.
    pub fn own_key(&self, key: &[u8]) -> Bytes {
        renumbered(key, self.own)
    }

    /// Returns the origin's tablets, by token range.
    ///
    /// # Errors
    /// The tablets have been released, or one of their files is damaged.
    pub async fn tablets(&self) -> Result<OpenTablets, StoreError> {
        let OriginCut {
            pinned,
            origins,
            open,
            tablets,
        } = self.cut.as_ref();
        let opening = || open(pinned.clone(), origins.clone());
        tablets.get_or_try_init(opening).await.cloned()
    }

    /// Returns the origin's tablet that has the row at `key` of the table. `None` if no tablet had its token.
    pub async fn tablet_of(
        &self,
        model: &dyn KeyLayout,
        key: &[u8],
    ) -> Result<Option<Arc<Tablet>>, StoreError> {
        let token = model
            .token_of(key)
            .ok_or_else(|| DataModelError("a key of a table with an origin has no token".to_owned()))?;
        Ok(find(&self.tablets().await?, token).cloned())
    }

    /// Returns the merged row at `key` of the table. `own` is the row as far as the table's own tablet has it.
    pub async fn under(
        &self,
        model: &dyn DataModel,
        key: &[u8],
        own: Option<Bytes>,
    ) -> Result<Option<Bytes>, StoreError> {
        let there = match self.tablet_of(model, key).await? {
            Some(tablet) => tablet.read(&self.key_there(key)).await?,
            None => None,
        };
        Ok(merge_over(model, key, own, there)?)
    }

    /// Returns the origin's bounds for a range of the table's keys, limited to the tokens of one of its tablets and to the `wanted` tokens.
    /// `None` if no key is left.
    pub fn bounds_there(
        &self,
        (start, end): &Bounds,
        tablet: TokenRange,
        wanted: TokenRange,
    ) -> Option<Bounds> {
        let tokens = TokenRange {
            first: tablet.first.max(wanted.first),
            last: tablet.last.min(wanted.last),
        };
        if tokens.first > tokens.last {
            return None;
        }
        let table = TableId(u32::from_be_bytes(self.there));
        let within = token_range(table, Bound::Included(tokens.first), Bound::Included(tokens.last));
        let first = within.start;
        let start = match start {
            Bound::Included(from) => Bound::Included(self.key_there(from).max(first)),
            Bound::Excluded(from) if self.key_there(from) >= first => Bound::Excluded(self.key_there(from)),
            Bound::Excluded(_) | Bound::Unbounded => Bound::Included(first),
        };
        let behind = within.end;
        let is_before = |to: &Bytes| behind.as_ref().is_none_or(|behind| to < behind);
        let there = |to: &Bytes| {
            to.starts_with(&self.own)
                .then(|| self.key_there(to))
                .filter(is_before)
        };
        let least = behind.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let end = match end {
            Bound::Included(to) => there(to).map_or(least, Bound::Included),
            Bound::Excluded(to) => there(to).map_or(least, Bound::Excluded),
            Bound::Unbounded => least,
        };
        (!is_empty(&start, &end)).then_some((start, end))
    }
}

/// Merges a row of a table over that of its origin.
pub(super) fn merge_over(
    model: &dyn RowMerge,
    key: &[u8],
    own: Option<Bytes>,
    there: Option<Bytes>,
) -> Result<Option<Bytes>, DataModelError> {
    match (own, there) {
        (Some(own), Some(there)) => model.merge(key, Some(&there), &[own]).map(Some),
        (own, there) => Ok(own.or(there)),
    }
}

#[cfg(test)]
#[path = "origins_tests.rs"]
mod tests;
