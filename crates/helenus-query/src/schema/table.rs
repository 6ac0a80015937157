//! Tables and columns.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_cql::identifier::quote_qualified;
use helenus_cql::types::CqlType;
use helenus_cql::value::compare::is_canonical;
use helenus_cql::value::may_have_trailing_nulls;
use helenus_row::{CellRules, ColumnId, KeyLayout, TableId};
use helenus_tablet::TableOrigin;
use uuid::Uuid;

use super::TableOptions;
use crate::schema::column::DroppedColumn;
use crate::schema::index_target::{IndexKind, IndexTarget, is_text};
use crate::schema::{Column, ColumnKind, Expression, signature};

/// Where a table's rows come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// An ordinary table.
    Stored,
    /// A materialized view, kept by its base table's writes.
    View,
    /// The hidden table behind an index: never seen by name in CQL.
    Index,
    /// Computed by [`crate::engine::system`] when it is read.
    Virtual,
}

/// A table, a materialized view, the hidden table of an index, or a virtual table. What every request looks at comes first: where there
/// are thousands of tables, no cache holds them all, and each line of one that is looked at is fetched from memory.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Table {
    /// The prefix of the table's keys in the store; DROP and TRUNCATE leave the old number behind.
    pub number: TableId,
    pub kind: TableKind,
    pub is_counter: bool,
    /// Its partitions may be asked for only so often; the rates are among the options, which requests have no need of otherwise.
    pub is_rate_limited: bool,
    pub partition_key_count: usize,
    pub clustering_count: usize,
    pub static_count: usize,
    pub indexes: Vec<Arc<Index>>,
    /// Names of the views on this table, in its keyspace.
    pub views: Vec<String>,
    /// In the order of `SELECT *`: partition key, clustering, then static and then regular columns by name. A compact table may have
    /// hidden ones among them ([`Table::is_hidden`]).
    pub columns: Vec<Arc<Column>>,
    /// How this table's keys are laid out.
    pub layout: KeyLayout,
    pub keyspace: String,
    /// Set if it was made WITH COMPACT STORAGE.
    pub compact: Option<Compact>,
    /// How its cells are read.
    pub cell_rules: CellRules,
    pub name: String,
    /// The id that drivers and tools see; a new one for every CREATE.
    pub id: Uuid,
    /// Tells the table apart from earlier ones, if the statement that created it chose the id. `None` if the id is of the table alone.
    pub incarnation: Option<Uuid>,
    pub options: TableOptions,
    /// The id that the next added column takes.
    pub next_column_id: ColumnId,
    pub dropped_columns: BTreeMap<String, DroppedColumn>,
    /// Set for materialized views.
    pub view: Option<Arc<View>>,
    /// Where the rows lie with which it began, if it is a branch of another table.
    pub origin: Option<Arc<TableOrigin>>,
    /// The origin's rows are being copied under its own number; then it has no origin any more.
    pub adopts_origin: bool,
    by_name: HashMap<String, usize>,
    by_id: HashMap<ColumnId, usize>,
}

/// What a new [`Table`] is made of; [`TableBuilder::build`] sorts the columns and derives the rest.
#[derive(Clone, Debug)]
pub struct TableBuilder {
    pub keyspace: String,
    pub name: String,
    pub id: Uuid,
    pub incarnation: Option<Uuid>,
    pub number: TableId,
    pub kind: TableKind,
    pub compact: Option<Compact>,
    pub options: TableOptions,
    /// In any order; positions of key columns are in [`Column::position`].
    pub columns: Vec<Column>,
    pub next_column_id: ColumnId,
    pub dropped_columns: BTreeMap<String, DroppedColumn>,
    pub indexes: Vec<Arc<Index>>,
    pub views: Vec<String>,
    pub view: Option<Arc<View>>,
    pub origin: Option<Arc<TableOrigin>>,
    pub adopts_origin: bool,
}

impl TableBuilder {
    pub fn build(self) -> Table {
        let mut columns: Vec<Arc<Column>> = self.columns.into_iter().map(Arc::new).collect();
        columns.sort_by(|a, b| {
            (a.kind, a.position)
                .cmp(&(b.kind, b.position))
                .then_with(|| compare_names(&a.name, &b.name))
        });
        let count = |kind| columns.iter().filter(|column| column.kind == kind).count();
        let clustering = columns
            .iter()
            .filter(|column| column.kind == ColumnKind::Clustering)
            .map(|column| (column.ty.clone(), column.order))
            .collect();
        let mut table = Table {
            cell_rules: CellRules::default(),
            partition_key_count: count(ColumnKind::PartitionKey),
            clustering_count: count(ColumnKind::Clustering),
            static_count: count(ColumnKind::Static),
            is_counter: columns.iter().any(|column| column.ty.is_counter()),
            is_rate_limited: self.options.per_partition_rate_limit.is_some(),
            layout: KeyLayout::new(clustering),
            by_name: columns
                .iter()
                .enumerate()
                .map(|(at, column)| (column.name.clone(), at))
                .collect(),
            by_id: columns
                .iter()
                .enumerate()
                .map(|(at, column)| (column.id, at))
                .collect(),
            columns,
            keyspace: self.keyspace,
            name: self.name,
            id: self.id,
            incarnation: self.incarnation,
            number: self.number,
            kind: self.kind,
            compact: self.compact,
            options: self.options,
            next_column_id: self.next_column_id,
            dropped_columns: self.dropped_columns,
            indexes: self.indexes,
            views: self.views,
            view: self.view,
            origin: self.origin,
            adopts_origin: self.adopts_origin,
        };
        table.cell_rules = table.readable_cells();
        table
    }
}

/// Returns the order of columns in `SELECT *`: by their bytes, of which Cassandra takes the first eight for one signed number
/// (`ColumnIdentifier.compareTo`), so that names which begin beyond ASCII come first.
fn compare_names(a: &str, b: &str) -> Ordering {
    let prefix = |name: &str| {
        let mut bytes = [0; 8];
        for (to, from) in bytes.iter_mut().zip(name.bytes()) {
            *to = from;
        }
        i64::from_be_bytes(bytes)
    };
    prefix(a)
        .cmp(&prefix(b))
        .then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

impl Table {
    /// What this table is made of, to change and build anew.
    pub fn to_builder(&self) -> TableBuilder {
        TableBuilder {
            keyspace: self.keyspace.clone(),
            name: self.name.clone(),
            id: self.id,
            incarnation: self.incarnation,
            number: self.number,
            kind: self.kind,
            compact: self.compact,
            options: self.options.clone(),
            columns: self.columns.iter().map(|column| Column::clone(column)).collect(),
            next_column_id: self.next_column_id,
            dropped_columns: self.dropped_columns.clone(),
            indexes: self.indexes.clone(),
            views: self.views.clone(),
            view: self.view.clone(),
            origin: self.origin.clone(),
            adopts_origin: self.adopts_origin,
        }
    }

    pub fn partition_key(&self) -> &[Arc<Column>] {
        &self.columns[..self.partition_key_count]
    }

    pub fn clustering(&self) -> &[Arc<Column>] {
        &self.columns[self.partition_key_count..self.partition_key_count + self.clustering_count]
    }

    pub fn primary_key(&self) -> &[Arc<Column>] {
        &self.columns[..self.partition_key_count + self.clustering_count]
    }

    pub fn static_columns(&self) -> &[Arc<Column>] {
        let start = self.partition_key_count + self.clustering_count;
        &self.columns[start..start + self.static_count]
    }

    pub fn regular_columns(&self) -> &[Arc<Column>] {
        &self.columns[self.partition_key_count + self.clustering_count + self.static_count..]
    }

    /// Returns true if both are the same table, perhaps at different times. Tables that were created one after the other under one name are
    /// not.
    pub fn is_same_as(&self, other: &Table) -> bool {
        self.id == other.id && self.incarnation == other.incarnation
    }

    /// Returns true if a column has a mask.
    pub fn is_masked(&self) -> bool {
        self.columns.iter().any(|column| column.mask.is_some())
    }

    /// Returns true if a column's mask calls the function of that signature.
    pub(crate) fn is_masked_by(&self, keyspace: &str, function: &str) -> bool {
        self.columns.iter().any(|column| {
            let mask = column.mask.as_deref().filter(|mask| mask.keyspace == keyspace);
            mask.is_some_and(|mask| {
                let arguments = mask.arguments.iter().map(|(ty, _)| ty);
                signature(&mask.name, std::iter::once(&column.ty).chain(arguments)) == function
            })
        })
    }

    pub fn has_static(&self) -> bool {
        self.static_count > 0
    }

    /// Returns the column of that name, hidden or not, and its place in [`Table::columns`].
    pub fn column(&self, name: &str) -> Option<(usize, &Arc<Column>)> {
        let at = *self.by_name.get(name)?;
        Some((at, self.columns.get(at)?))
    }

    /// Returns the place in [`Table::columns`] of the column whose cells carry that id; none if it was dropped.
    pub fn column_by_id(&self, id: ColumnId) -> Option<(usize, &Arc<Column>)> {
        let at = *self.by_id.get(&id)?;
        Some((at, self.columns.get(at)?))
    }

    /// Returns the ids of columns that the table once had.
    fn gone_column_ids(&self) -> impl Iterator<Item = ColumnId> {
        (0..self.next_column_id.0)
            .map(ColumnId)
            .filter(|id| !self.by_id.contains_key(id))
    }

    /// Of columns that came back, those written before.
    fn older_cells(&self) -> impl Iterator<Item = (ColumnId, i64)> {
        self.dropped_columns
            .values()
            .filter_map(|dropped| Some((self.column(&dropped.name)?.1.id, dropped.dropped_time_us)))
    }

    /// Returns the columns of many cells whose paths can be equal in other bytes, with the type of their paths.
    fn alike_paths(&self) -> Vec<(ColumnId, CqlType)> {
        let path_type = |column: &Arc<Column>| match &column.ty {
            CqlType::Set { element: path, .. } | CqlType::Map { key: path, .. }
                if column.ty.is_multicell() =>
            {
                (!is_canonical(path)).then(|| (column.id, CqlType::clone(path)))
            }
            _ => None,
        };
        self.columns.iter().filter_map(path_type).collect()
    }

    fn readable_cells(&self) -> CellRules {
        let gone = self.gone_column_ids().map(|id| (id, i64::MAX));
        CellRules::new(gone.chain(self.older_cells()).collect(), self.alike_paths())
    }

    /// Returns the cells that nobody will ever read: unlike the unreadable ones of a column that is gone, those that were written after it
    /// was dropped, which are seen should it come back.
    pub fn purgeable_cells(&self) -> CellRules {
        let time = |id: ColumnId| {
            let mut known = self.dropped_columns.values();
            known
                .find(|dropped| dropped.id == Some(id))
                .map_or(i64::MAX, |dropped| dropped.dropped_time_us)
        };
        let gone = self.gone_column_ids().map(|id| (id, time(id)));
        CellRules::new(gone.chain(self.older_cells()).collect(), self.alike_paths())
    }

    /// Returns the numbers of the table and its indexes that have an origin, with that.
    pub fn origins(&self) -> Vec<(u32, Arc<TableOrigin>)> {
        let own = self.origin.is_some().then_some(self);
        let indexes = own
            .iter()
            .flat_map(|table| table.indexes.iter().map(|index| index.table.as_ref()));
        let tables = indexes.chain(own);
        tables
            .filter_map(|table| Some((table.number.0, table.origin.clone()?)))
            .collect()
    }

    pub fn is_view(&self) -> bool {
        self.kind == TableKind::View
    }

    /// Returns true if its writes must also be brought into indexes or views.
    pub fn has_derived_tables(&self) -> bool {
        !self.indexes.is_empty() || !self.views.is_empty()
    }

    /// `keyspace.table`, as messages show it.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.keyspace, self.name)
    }

    /// `keyspace."Table"`: the same with quotes where CQL needs them.
    pub fn cql_name(&self) -> String {
        quote_qualified(&self.keyspace, &self.name)
    }
}

impl IndexTarget {
    /// Whether the column is one of text.
    pub fn is_on_text(&self, base: &Table) -> bool {
        base.column(&self.column)
            .is_some_and(|(_, column)| is_text(&column.ty))
    }

    /// Returns true if tuples or user types in the column may end with nulls, which entries leave out.
    pub fn may_have_trailing_nulls(&self, base: &Table) -> bool {
        base.column(&self.column)
            .is_some_and(|(_, column)| may_have_trailing_nulls(&column.ty))
    }
}

/// Makes the hidden table of an index on a target of a base table, by the index's name and the hidden table's number and id.
pub type EntryTable = fn(&Table, &str, &IndexTarget, TableId, Uuid) -> Result<Table, CqlError>;

/// A secondary index. Its entries lie in a hidden table keyed by the indexed value; see `docs/data-layout.md`.
#[derive(Clone, Debug)]
pub struct Index {
    pub name: String,
    pub kind: IndexKind,
    /// As declared, `target` and (for custom ones) `class_name` included.
    pub options: BTreeMap<String, String>,
    pub target: IndexTarget,
    /// The hidden table: partition key is the indexed value, clustering is the base row's token-less primary key.
    pub table: Arc<Table>,
    /// Whether the column holds text.
    pub is_on_text: bool,
    /// The type in whose order the entries lie on the ring; none if they lie by the hash of the value.
    pub order: Option<CqlType>,
    /// Whether the entries lie in lists of vectors that are near to each other, with the vectors; see `index/posting_lists`.
    pub has_posting_lists: bool,
    /// False while it is being built on rows that were there before it; reads don't use it until then.
    pub is_complete: bool,
    /// True if a binary wrote the entries that left nulls at the end of tuples and user types in them. Such an index is not complete: it is
    /// built again, once the schema says that all nodes write entries of the present form.
    pub has_old_entries: bool,
}

/// What makes a table a materialized view.
#[derive(Clone, Debug)]
pub struct View {
    pub base_table: String,
    pub base_table_id: Uuid,
    pub include_all_columns: bool,
    /// The WHERE clause as CQL that can be parsed.
    pub where_clause: String,
    /// What it asks of the view's key columns, by their places in the view.
    pub filter: Vec<Expression>,
    /// False while the rows that were there before it are brought in; reads don't find all of them until then.
    pub is_built: bool,
}

/// The shape of a compact table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compact {
    /// Declared with a partition key alone. The other columns that were declared are static, and hidden ones stand for the rows that
    /// Thrift might have added: a clustering column and a value.
    Static,
    /// Declared with clustering columns, and with one other column at most. Where there was none, a hidden one of the type `empty`
    /// takes its place. The last clustering columns of a row may have no value, if there are several.
    Dense,
}
