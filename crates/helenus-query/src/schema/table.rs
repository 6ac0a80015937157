//! Tables, their indexes and views.

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

/// The source of a table's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// An ordinary table.
    Stored,
    /// A materialized view, which its base table's writes maintain.
    View,
    /// The hidden table of an index, which CQL cannot name.
    Index,
    /// A table whose rows [`crate::engine::system`] computes when they are read.
    Virtual,
}

/// A table, a materialized view, the hidden table of an index, or a virtual table. The fields that every request needs come first. With
/// thousands of tables, no cache holds them all, and each cache line that a request touches is fetched from memory.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Table {
    /// The prefix of the table's keys in the store. TRUNCATE assigns a new number. Numbers are never reused.
    pub number: TableId,
    pub kind: TableKind,
    pub is_counter: bool,
    /// True if the table limits the request rate of its partitions. The rates are in `options`, which most requests need not touch.
    pub is_rate_limited: bool,
    /// True if columns have constraints, which writes must meet.
    pub has_constraints: bool,
    /// True if the table's changes are written to a log table.
    pub captures_changes: bool,
    /// True if the log table also gets the rows before or after changes, so that writes must read them.
    pub has_images: bool,
    pub partition_key_count: usize,
    pub clustering_count: usize,
    pub static_count: usize,
    pub indexes: Vec<Arc<Index>>,
    /// Names of the views on this table, in its keyspace.
    pub views: Vec<String>,
    /// Columns in the order of `SELECT *`: partition key, clustering, then static and then regular columns by name. A compact table may
    /// have hidden columns among them ([`Table::is_hidden`]).
    pub columns: Vec<Arc<Column>>,
    /// The layout of the table's keys.
    pub layout: KeyLayout,
    pub keyspace: String,
    /// The shape of a table created WITH COMPACT STORAGE. `None` for others.
    pub compact: Option<Compact>,
    /// Rules for reading the table's cells.
    pub cell_rules: CellRules,
    pub name: String,
    /// The id that drivers and tools see. Every CREATE assigns a new one.
    pub id: Uuid,
    /// An id that distinguishes the table from earlier ones, if the CREATE statement chose `id`. `None` if `id` itself is unique.
    pub incarnation: Option<Uuid>,
    pub options: TableOptions,
    /// The id of the next added column.
    pub next_column_id: ColumnId,
    pub dropped_columns: BTreeMap<String, DroppedColumn>,
    /// The view's definition. `None` if the table is not a materialized view.
    pub view: Option<Arc<View>>,
    /// The place of the rows with which the table began. `None` if it is not a branch of another table.
    pub origin: Option<Arc<TableOrigin>>,
    /// True while the origin's rows are being copied under the table's own number. Afterwards it has no origin any more.
    pub adopts_origin: bool,
    /// Name of the table whose captured changes this table contains. `None` for all other tables.
    pub cdc_log_of: Option<String>,
    by_name: HashMap<String, usize>,
    by_id: HashMap<ColumnId, usize>,
}

/// The parts of a new [`Table`]. [`TableBuilder::build`] sorts the columns and derives the rest.
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
    /// Columns in any order. [`Column::position`] has the positions of key columns.
    pub columns: Vec<Column>,
    pub next_column_id: ColumnId,
    pub dropped_columns: BTreeMap<String, DroppedColumn>,
    pub indexes: Vec<Arc<Index>>,
    pub views: Vec<String>,
    pub view: Option<Arc<View>>,
    pub origin: Option<Arc<TableOrigin>>,
    pub adopts_origin: bool,
    pub cdc_log_of: Option<String>,
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
            has_constraints: columns.iter().any(|column| !column.constraints.is_empty()),
            captures_changes: self.options.cdc.enabled && self.kind == TableKind::Stored,
            has_images: self.options.cdc.has_images() && self.kind == TableKind::Stored,
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
            cdc_log_of: self.cdc_log_of,
        };
        table.cell_rules = table.readable_cells();
        table
    }
}

/// Compares names in the order of columns in `SELECT *`. Cassandra compares the first eight bytes as one signed number
/// (`ColumnIdentifier.compareTo`), so names that begin with a non-ASCII character come first.
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
    /// Returns the parts of this table, to change them and to build it again.
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
            cdc_log_of: self.cdc_log_of.clone(),
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

    /// Returns true if both are the same table, perhaps at different times. Two tables that were created one after the other under one name
    /// are not the same.
    pub fn is_same_as(&self, other: &Table) -> bool {
        self.id == other.id && self.incarnation == other.incarnation
    }

    /// Returns true if any column has a mask.
    pub fn is_masked(&self) -> bool {
        self.columns.iter().any(|column| column.mask.is_some())
    }

    /// Returns true if any column's mask calls the function of that signature.
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

    /// Returns the column of that name, hidden or not, with its index in [`Table::columns`].
    pub fn column(&self, name: &str) -> Option<(usize, &Arc<Column>)> {
        let at = *self.by_name.get(name)?;
        Some((at, self.columns.get(at)?))
    }

    /// Returns the column whose cells have that id, with its index in [`Table::columns`]. `None` if it was dropped.
    pub fn column_by_id(&self, id: ColumnId) -> Option<(usize, &Arc<Column>)> {
        let at = *self.by_id.get(&id)?;
        Some((at, self.columns.get(at)?))
    }

    /// Returns the ids of dropped columns.
    fn gone_column_ids(&self) -> impl Iterator<Item = ColumnId> {
        (0..self.next_column_id.0)
            .map(ColumnId)
            .filter(|id| !self.by_id.contains_key(id))
    }

    /// Returns the ids of columns that were dropped and added again, with the times of the drop. Cells up to these times are deleted.
    fn older_cells(&self) -> impl Iterator<Item = (ColumnId, i64)> {
        self.dropped_columns
            .values()
            .filter_map(|dropped| Some((self.column(&dropped.name)?.1.id, dropped.dropped_time_us)))
    }

    /// Returns the multi-cell columns in which equal paths can have different bytes, with the types of their paths.
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

    /// Returns the rules for cells that a compaction may drop, because no read will ever return them. Unlike [`Table::cell_rules`], they
    /// keep cells that were written to a column after it was dropped. These become visible if the column is added again.
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

    /// Returns the numbers of the table and its indexes that have an origin, with that origin.
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

    /// Returns true if a write must maintain indexes or views.
    pub fn has_derived_tables(&self) -> bool {
        !self.indexes.is_empty() || !self.views.is_empty()
    }

    /// Returns true if a write must read the row that it changes: to maintain indexes or views, or to capture the row before and after the
    /// change.
    pub fn reads_old_rows(&self) -> bool {
        self.has_derived_tables() || self.has_images
    }

    /// Returns `keyspace.table`, as messages show it.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.keyspace, self.name)
    }

    /// Returns `keyspace.table` with quotes where CQL needs them.
    pub fn cql_name(&self) -> String {
        quote_qualified(&self.keyspace, &self.name)
    }
}

impl IndexTarget {
    /// Returns true if the column holds text.
    pub fn is_on_text(&self, base: &Table) -> bool {
        base.column(&self.column)
            .is_some_and(|(_, column)| is_text(&column.ty))
    }

    /// Returns true if the column may hold tuples or user types that end with nulls. Entries omit these nulls.
    pub fn may_have_trailing_nulls(&self, base: &Table) -> bool {
        base.column(&self.column)
            .is_some_and(|(_, column)| may_have_trailing_nulls(&column.ty))
    }
}

/// A function that makes the hidden table of an index. It takes the base table, the index's name and target, and the hidden table's number
/// and id.
pub type EntryTable = fn(&Table, &str, &IndexTarget, TableId, Uuid) -> Result<Table, CqlError>;

/// A secondary index. Its entries are rows of a hidden table that is keyed by the indexed value. See `docs/data-layout.md`.
#[derive(Clone, Debug)]
pub struct Index {
    pub name: String,
    pub kind: IndexKind,
    /// The declared options, including `target` and, for custom indexes, `class_name`.
    pub options: BTreeMap<String, String>,
    pub target: IndexTarget,
    /// The hidden table. Its partition key is the indexed value, and its clustering is the base row's primary key without the token.
    pub table: Arc<Table>,
    /// True if the column holds text.
    pub is_on_text: bool,
    /// The type by whose order the entries are placed on the ring. `None` if they are placed by the hash of the value.
    pub order: Option<CqlType>,
    /// True if the entries are in posting lists: lists of vectors that are near to each other, with the vectors. See `index/posting_lists`.
    pub has_posting_lists: bool,
    /// False while rows that existed before the index are being indexed. Reads do not use the index until then.
    pub is_complete: bool,
    /// True if an older binary wrote entries that contain trailing nulls of tuples and user types. Such an index is not complete. It is
    /// rebuilt once the schema shows that all nodes write entries of the current form.
    pub has_old_entries: bool,
}

/// The definition of a materialized view.
#[derive(Clone, Debug)]
pub struct View {
    pub base_table: String,
    pub base_table_id: Uuid,
    pub include_all_columns: bool,
    /// The WHERE clause, as parsable CQL.
    pub where_clause: String,
    /// The conditions of the WHERE clause on the view's key columns. Their indexes are those in the view.
    pub filter: Vec<Expression>,
    /// False while rows that existed before the view are being added. Reads do not find all of them until then.
    pub is_built: bool,
}

/// The shape of a compact table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compact {
    /// Declared with a partition key alone. The other declared columns are static. A hidden clustering column and a hidden value column
    /// stand for rows that Thrift might have added.
    Static,
    /// Declared with clustering columns and at most one other column. If there was no other column, a hidden one of type `empty` takes its
    /// place. If there are several clustering columns, the last ones of a row may have no value.
    Dense,
}
