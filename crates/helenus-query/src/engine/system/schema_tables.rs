//! The keyspaces `system_schema` and `system_virtual_schema` (Cassandra's `SchemaKeyspace` and `VirtualSchemaKeyspace`).

use std::sync::Arc;

use helenus_cql::value::{pack_list, text::get_string, to_cql_literal};

use super::row::{blob, boolean, double, int, row, text, text_list, text_map, text_set, uuid};
use super::{HiddenTables, Row};
use crate::analysis::restrictions::view_filter::shown_where;
use crate::engine::Engine;
use crate::schema::names::is_virtual_keyspace;
use crate::schema::table_options;
use crate::schema::{
    Column, ColumnKind, ColumnMask, Keyspace, Table, TableKind, UserAggregate, UserFunction,
};

pub(crate) const SCYLLA_KEYSPACES: &str = "CREATE TABLE system_schema.scylla_keyspaces (
    keyspace_name text PRIMARY KEY,
    initial_tablets int
) WITH ID = fa0ea2bd-608f-3e74-9b1e-b84b46b33adf
    AND comment = 'keyspaces whose rows drivers find by tablets';";

/// Returns the rows of one of these tables. `of_each` returns those of a keyspace.
fn of_keyspaces(engine: &Arc<Engine>, table: &Table, of_each: fn(&Table, &Keyspace) -> Vec<Row>) -> Vec<Row> {
    let is_virtual = table.keyspace == "system_virtual_schema";
    let schema = engine.schema();
    let hidden = HiddenTables::of(&schema);
    let keyspaces = schema
        .keyspaces
        .values()
        .filter(|keyspace| is_virtual_keyspace(&keyspace.name) == is_virtual);
    let rows = |keyspace: &Keyspace| {
        if !hidden.may_be_in(keyspace) {
            return of_each(table, keyspace);
        }
        let mut shown = Keyspace::clone(keyspace);
        shown.tables.retain(|_, of| !hidden.contain(of));
        of_each(table, &shown)
    };
    keyspaces.flat_map(|keyspace| rows(keyspace)).collect()
}

pub(crate) fn keyspaces(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    of_keyspaces(engine, table, |table, keyspace| {
        vec![keyspace_row(table, keyspace)]
    })
}

/// Returns the rows of `system_virtual_schema.keyspaces`.
pub(crate) fn virtual_keyspaces(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    of_keyspaces(engine, table, |table, keyspace| {
        vec![row(table, [("keyspace_name", text(&keyspace.name))])]
    })
}

pub(crate) fn tables(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    of_keyspaces(engine, table, |table, keyspace| {
        tables_of(keyspace, false)
            .map(|of| table_row(table, of))
            .collect()
    })
}

/// Returns the rows of `system_virtual_schema.tables`.
pub(crate) fn virtual_tables(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    of_keyspaces(engine, table, |table, keyspace| {
        tables_of(keyspace, false)
            .map(|of| virtual_table_row(table, of))
            .collect()
    })
}

/// Returns the keyspaces with tablets. On a node with a store of its own there are none: drivers need not find rows.
pub(crate) fn scylla_keyspaces(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    if engine.cluster().is_none() {
        return Vec::new();
    }
    of_keyspaces(engine, table, |table, keyspace| {
        scylla_keyspace_row(table, keyspace).into_iter().collect()
    })
}

/// Returns the rows of `columns` in both keyspaces.
pub(crate) fn columns(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    of_keyspaces(engine, table, column_rows)
}

pub(crate) fn column_masks(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    of_keyspaces(engine, table, column_mask_rows)
}

pub(crate) fn dropped_columns(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    of_keyspaces(engine, table, dropped_column_rows)
}

pub(crate) fn indexes(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    of_keyspaces(engine, table, index_rows)
}

pub(crate) fn types(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    of_keyspaces(engine, table, type_rows)
}

pub(crate) fn functions(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    of_keyspaces(engine, table, |table, keyspace| {
        let functions = keyspace.functions.values();
        functions.map(|of| function_row(table, of)).collect()
    })
}

pub(crate) fn aggregates(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    of_keyspaces(engine, table, |table, keyspace| {
        let aggregates = keyspace.aggregates.values();
        aggregates.map(|of| aggregate_row(table, of)).collect()
    })
}

pub(crate) fn views(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    of_keyspaces(engine, table, |table, keyspace| {
        tables_of(keyspace, true).map(|of| view_row(table, of)).collect()
    })
}

/// Returns the tables of a keyspace, or its views.
fn tables_of(keyspace: &Keyspace, views: bool) -> impl Iterator<Item = &Arc<Table>> {
    keyspace
        .tables
        .values()
        .filter(move |table| (table.kind == TableKind::View) == views)
}

/// Returns the row that makes ScyllaDB's drivers find rows by tablets. `None` for virtual keyspaces, which have no tablets.
fn scylla_keyspace_row(table: &Table, keyspace: &Keyspace) -> Option<Row> {
    let values = [
        ("keyspace_name", text(&keyspace.name)),
        ("initial_tablets", int(0)),
    ];
    (!keyspace.is_virtual).then(|| row(table, values))
}

fn keyspace_row(table: &Table, keyspace: &Keyspace) -> Row {
    let mut replication = keyspace.replication.options.clone();
    replication.insert(
        "class".to_owned(),
        format!("org.apache.cassandra.locator.{}", keyspace.replication.class),
    );
    row(
        table,
        [
            ("keyspace_name", text(&keyspace.name)),
            ("durable_writes", boolean(keyspace.durable_writes)),
            ("replication", text_map(&replication)),
        ],
    )
}

fn table_row(table: &Table, of: &Table) -> Row {
    let mut flags = Vec::new();
    if of.compact.is_none() || of.is_dense() && of.clustering_count > 1 {
        flags.push("compound");
    }
    if of.is_counter {
        flags.push("counter");
    }
    if of.is_dense() {
        flags.push("dense");
    }
    let mut cells = with_options(table, of);
    put(table, &mut cells, "keyspace_name", text(&of.keyspace));
    put(table, &mut cells, "table_name", text(&of.name));
    put(table, &mut cells, "flags", text_set(flags));
    cells
}

fn put(table: &Table, row: &mut Row, column: &str, value: Option<bytes::Bytes>) {
    if let Some(cell) = table.column(column).and_then(|(at, _)| row.get_mut(at)) {
        *cell = value;
    }
}

/// Returns a row with the id and the options of a table or view.
fn with_options(table: &Table, of: &Table) -> Row {
    let of_old = [
        ("id", uuid(of.id)),
        ("dclocal_read_repair_chance", double(0.0)),
        ("read_repair_chance", double(0.0)),
    ];
    let options = table_options::cells(&of.options).map(|(column, value)| (column, Some(value)));
    row(table, of_old.into_iter().chain(options))
}

fn virtual_table_row(table: &Table, of: &Table) -> Row {
    row(
        table,
        [
            ("keyspace_name", text(&of.keyspace)),
            ("table_name", text(&of.name)),
            ("comment", text(&of.options.comment)),
        ],
    )
}

fn column_rows(table: &Table, keyspace: &Keyspace) -> Vec<Row> {
    keyspace
        .tables
        .values()
        .flat_map(|of| of.columns.iter().map(|column| column_row(table, of, column)))
        .collect()
}

/// Returns the name of a kind in `system_schema.columns`.
fn kind_name(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::PartitionKey => "partition_key",
        ColumnKind::Clustering => "clustering",
        ColumnKind::Static => "static",
        ColumnKind::Regular => "regular",
    }
}

fn column_row(table: &Table, of: &Table, column: &Column) -> Row {
    let clustering_order = match (column.kind, column.order) {
        (ColumnKind::Clustering, helenus_row::Order::Asc) => "asc",
        (ColumnKind::Clustering, helenus_row::Order::Desc) => "desc",
        _ => "none",
    };
    let position = if column.is_primary_key() {
        column.position as i32
    } else {
        -1
    };
    row(
        table,
        [
            ("keyspace_name", text(&of.keyspace)),
            ("table_name", text(&of.name)),
            ("column_name", text(&column.name)),
            ("clustering_order", text(clustering_order)),
            ("column_name_bytes", blob(&column.name)),
            ("kind", text(kind_name(column.kind))),
            ("position", int(position)),
            ("type", text(column.ty.to_string())),
        ],
    )
}

fn column_mask_rows(table: &Table, keyspace: &Keyspace) -> Vec<Row> {
    let of_table = |of: &Arc<Table>| -> Vec<Row> {
        let masked = of
            .columns
            .iter()
            .filter_map(|column| Some((column, column.mask.as_deref()?)));
        masked
            .map(|(column, mask)| mask_row(table, of, column, mask))
            .collect()
    };
    keyspace.tables.values().flat_map(of_table).collect()
}

fn mask_row(table: &Table, of: &Table, column: &Column, mask: &ColumnMask) -> Row {
    let arguments = mask.arguments.iter();
    let is_null = |value: &Option<bytes::Bytes>| vec![u8::from(value.is_none())];
    let nulls = arguments.clone().map(|(_, value)| is_null(value));
    let types = arguments.clone().map(|(ty, _)| ty.to_string());
    let values = arguments.map(|(ty, value)| match value {
        Some(value) => get_string(ty, value).unwrap_or_default(),
        None => String::new(),
    });
    row(
        table,
        [
            ("keyspace_name", text(&of.keyspace)),
            ("table_name", text(&of.name)),
            ("column_name", text(&column.name)),
            ("function_argument_nulls", Some(pack_list(nulls))),
            ("function_argument_types", text_list(types)),
            ("function_argument_values", text_list(values)),
            ("function_keyspace", text(&mask.keyspace)),
            ("function_name", text(&mask.name)),
        ],
    )
}

fn dropped_column_rows(table: &Table, keyspace: &Keyspace) -> Vec<Row> {
    let of_table = |of: &Arc<Table>| -> Vec<Row> {
        of.dropped_columns
            .values()
            .map(|column| {
                row(
                    table,
                    [
                        ("keyspace_name", text(&of.keyspace)),
                        ("table_name", text(&of.name)),
                        ("column_name", text(&column.name)),
                        (
                            "dropped_time",
                            super::row::bigint(column.dropped_time_us.div_euclid(1000)),
                        ),
                        ("kind", text(kind_name(column.kind))),
                        ("type", text(column.ty.to_string())),
                    ],
                )
            })
            .collect()
    };
    keyspace.tables.values().flat_map(of_table).collect()
}

fn index_rows(table: &Table, keyspace: &Keyspace) -> Vec<Row> {
    let of_table = |of: &Arc<Table>| -> Vec<Row> {
        of.indexes
            .iter()
            .map(|index| {
                row(
                    table,
                    [
                        ("keyspace_name", text(&of.keyspace)),
                        ("table_name", text(&of.name)),
                        ("index_name", text(&index.name)),
                        ("kind", text(index.kind.name())),
                        ("options", text_map(&index.options)),
                    ],
                )
            })
            .collect()
    };
    keyspace.tables.values().flat_map(of_table).collect()
}

fn type_rows(table: &Table, keyspace: &Keyspace) -> Vec<Row> {
    keyspace
        .types
        .values()
        .map(|ty| {
            row(
                table,
                [
                    ("keyspace_name", text(&keyspace.name)),
                    ("type_name", text(&ty.name)),
                    (
                        "field_names",
                        text_list(ty.fields.iter().map(|field| field.name.as_str())),
                    ),
                    (
                        "field_types",
                        text_list(ty.fields.iter().map(|field| field.ty.to_string())),
                    ),
                ],
            )
        })
        .collect()
}

fn function_row(table: &Table, of: &UserFunction) -> Row {
    row(
        table,
        [
            ("keyspace_name", text(&of.keyspace)),
            ("function_name", text(&of.name)),
            (
                "argument_types",
                text_list(of.arg_types().map(ToString::to_string)),
            ),
            (
                "argument_names",
                text_list(of.arguments.iter().map(|(name, _)| name)),
            ),
            ("body", text(&of.body)),
            ("called_on_null_input", boolean(of.is_called_on_null)),
            ("language", text(&of.language)),
            ("return_type", text(of.returns.to_string())),
        ],
    )
}

fn aggregate_row(table: &Table, of: &UserAggregate) -> Row {
    // The value was checked when the aggregate was created.
    let literal = |value: &bytes::Bytes| text(to_cql_literal(&of.state_type, value).ok()?);
    row(
        table,
        [
            ("keyspace_name", text(&of.keyspace)),
            ("aggregate_name", text(&of.name)),
            (
                "argument_types",
                text_list(of.arg_types.iter().map(ToString::to_string)),
            ),
            ("final_func", of.final_function.as_ref().and_then(text)),
            ("initcond", of.initial.as_ref().and_then(literal)),
            ("return_type", text(of.returns.to_string())),
            ("state_func", text(&of.state_function)),
            ("state_type", text(of.state_type.to_string())),
        ],
    )
}

fn view_row(table: &Table, of: &Table) -> Row {
    let mut cells = with_options(table, of);
    put(table, &mut cells, "keyspace_name", text(&of.keyspace));
    put(table, &mut cells, "view_name", text(&of.name));
    if let Some(view) = &of.view {
        put(table, &mut cells, "base_table_id", uuid(view.base_table_id));
        put(table, &mut cells, "base_table_name", text(&view.base_table));
        put(
            table,
            &mut cells,
            "include_all_columns",
            boolean(view.include_all_columns),
        );
        put(table, &mut cells, "where_clause", text(shown_where(view)));
    }
    cells
}
