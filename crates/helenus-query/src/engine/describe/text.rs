//! The CQL text that creates a schema element, exactly as Cassandra writes it (`SchemaCQLHelper`, `TableMetadata.toCqlString`,
//! `TableParams.appendCqlTo`).

use std::fmt::Write;

use bytes::Bytes;
use helenus_cql::identifier::{quote_identifier, quote_qualified, quote_text};
use helenus_cql::types::{CqlType, UserType};
use helenus_cql::value::to_cql_literal;
use helenus_row::Order;

use crate::analysis::restrictions::view_filter::shown_where;
use crate::schema::names::is_virtual_keyspace;
use crate::schema::table_options;
use crate::schema::table_options::values::map_literal;
use crate::schema::{
    Column, ColumnKind, Index, IndexKind, Keyspace, Table, TableKind, UserAggregate, UserFunction, View,
};

/// Returns the text in a comment, for an element that cannot be recreated.
fn as_comment(what: &str, name: &str, text: &str) -> String {
    let kind = what.to_lowercase();
    format!(
        "/*\nWarning: {what} {name} is a virtual {kind} and cannot be recreated with CQL.\n\
         Structure, for reference:\n{text}\n*/"
    )
}

/// Returns the text of a compact table in a comment. CQL can create such a table, but cannot describe it.
fn as_legacy_comment(name: &str, text: &str) -> String {
    format!(
        "/*\nWarning: Table {name} omitted because it has constructs not compatible with CQL (was created via legacy API).\n\
         Approximate structure, for reference:\n(this should not be used to reproduce this schema)\n\n{text}\n*/"
    )
}

/// Returns the CREATE KEYSPACE statement.
pub(crate) fn keyspace(keyspace: &Keyspace) -> String {
    let name = quote_identifier(&keyspace.name);
    if is_virtual_keyspace(&keyspace.name) {
        return as_comment("Keyspace", &name, &format!("VIRTUAL KEYSPACE {name};"));
    }
    let mut options = format!("'class': {}", quote_text(&keyspace.replication.class));
    for (key, value) in &keyspace.replication.options {
        // Writing to a string cannot fail.
        let _ = write!(options, ", {}: {}", quote_text(key), quote_text(value));
    }
    format!(
        "CREATE KEYSPACE {name} WITH replication = {{{options}}}  AND durable_writes = {};",
        keyspace.durable_writes
    )
}

/// Returns the CREATE TYPE statement.
pub(crate) fn user_type(ty: &UserType) -> String {
    let fields: Vec<String> = ty
        .fields
        .iter()
        .map(|field| format!("    {} {}", quote_identifier(&field.name), field.ty))
        .collect();
    format!(
        "CREATE TYPE {} (\n{}\n);",
        quote_qualified(&ty.keyspace, &ty.name),
        fields.join(",\n")
    )
}

/// Returns the type of an argument or a result. Tuples are shown without `frozen`.
fn function_type(ty: &CqlType) -> String {
    let text = ty.to_string();
    let within = match ty {
        CqlType::Tuple(_) => text
            .strip_prefix("frozen<")
            .and_then(|text| text.strip_suffix('>')),
        _ => None,
    };
    within.map(str::to_owned).unwrap_or(text)
}

/// Returns the list of the types of arguments.
pub(crate) fn types<'a>(types: impl IntoIterator<Item = &'a CqlType>) -> String {
    let types: Vec<String> = types.into_iter().map(function_type).collect();
    types.join(", ")
}

/// Returns the CREATE FUNCTION statement.
pub(crate) fn function(function: &UserFunction) -> String {
    let arguments: Vec<String> = function
        .arguments
        .iter()
        .map(|(name, ty)| format!("{} {}", quote_identifier(name), function_type(ty)))
        .collect();
    let on_null = match function.is_called_on_null {
        true => "CALLED",
        false => "RETURNS NULL",
    };
    format!(
        "CREATE FUNCTION {}({})\n    {on_null} ON NULL INPUT\n    RETURNS {}\n    LANGUAGE {}\n    AS $${}$$;",
        quote_qualified(&function.keyspace, &function.name),
        arguments.join(", "),
        function_type(&function.returns),
        function.language,
        function.body
    )
}

/// Returns the CREATE AGGREGATE statement.
pub(crate) fn aggregate(aggregate: &UserAggregate) -> String {
    let mut text = format!(
        "CREATE AGGREGATE {}({})\n    SFUNC {}\n    STYPE {}",
        quote_qualified(&aggregate.keyspace, &aggregate.name),
        types(&aggregate.arg_types),
        quote_identifier(&aggregate.state_function),
        function_type(&aggregate.state_type)
    );
    if let Some(name) = &aggregate.final_function {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n    FINALFUNC {}", quote_identifier(name));
    }
    if let Some(value) = &aggregate.initial
        && let Ok(literal) = to_cql_literal(&aggregate.state_type, value)
    {
        let _ = write!(text, "\n    INITCOND {literal}");
    }
    text.push(';');
    text
}

/// Returns the CREATE INDEX statement.
pub(crate) fn index(table: &Table, index: &Index) -> String {
    let name = quote_identifier(&index.name);
    let table = quote_qualified(&table.keyspace, &table.name);
    let target = index.options.get("target").map_or("", String::as_str);
    if index.kind != IndexKind::Custom {
        return format!("CREATE INDEX {name} ON {table} ({target});");
    }
    let class = index.options.get("class_name").map_or("", String::as_str);
    let mut options = index.options.clone();
    options.retain(|key, _| key != "target" && key != "class_name");
    let with = match options.is_empty() {
        true => String::new(),
        false => format!(" WITH OPTIONS = {}", map_literal(&options)),
    };
    format!(
        "CREATE CUSTOM INDEX {name} ON {table} ({target}) USING {}{with};",
        quote_text(class)
    )
}

/// Returns the CREATE TABLE or CREATE MATERIALIZED VIEW statement. Internals are the id and the dropped columns.
pub(crate) fn table(table: &Table, with_internals: bool) -> String {
    match &table.view {
        Some(view) => view_text(table, view, with_internals),
        None => table_text(table, with_internals),
    }
}

fn table_text(table: &Table, with_internals: bool) -> String {
    let name = quote_qualified(&table.keyspace, &table.name);
    let is_virtual = table.kind == TableKind::Virtual && is_virtual_keyspace(&table.keyspace);
    let mut text = format!(
        "{} TABLE {name} (\n",
        if is_virtual { "VIRTUAL" } else { "CREATE" }
    );
    text.push_str(&definitions(table, with_internals).join(",\n"));
    text.push_str("\n) WITH ");
    text.push_str(&options(table, with_internals, is_virtual).join("\n    AND "));
    text.push(';');
    if with_internals {
        text.push_str(&drops(table, &name));
    }
    if is_virtual {
        as_comment("Table", &name, &text)
    } else if table.compact.is_some() {
        as_legacy_comment(&name, &text)
    } else {
        text
    }
}

/// Returns the columns in Cassandra's order: static before regular ones, within these simple types before collections, and then by name.
fn in_create_order(table: &Table) -> Vec<&Column> {
    let mut columns: Vec<&Column> = table
        .visible_places()
        .filter_map(|place| table.columns.get(place))
        .map(AsRef::as_ref)
        .collect();
    columns.sort_by(|a, b| {
        (a.kind, a.position, a.ty.is_multicell())
            .cmp(&(b.kind, b.position, b.ty.is_multicell()))
            .then_with(|| place_of_name(&a.name).cmp(&place_of_name(&b.name)))
    });
    columns
}

/// Returns the sort key of a name: its first six bytes, with non-ASCII first bytes first (Cassandra's `ColumnMetadata.comparisonOrder`),
/// and then all bytes.
fn place_of_name(name: &str) -> ([u8; 6], &[u8]) {
    let mut first = [0; 6];
    for (to, from) in first.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    first[0] ^= 0x80;
    (first, name.as_bytes())
}

/// Returns the text that follows the type of a masked column. Empty without a mask.
fn mask(column: &Column) -> String {
    let Some(mask) = &column.mask else {
        return String::new();
    };
    let literal = |(ty, value): &(CqlType, Option<Bytes>)| match value {
        Some(value) => to_cql_literal(ty, value).unwrap_or_default(),
        None => "null".to_owned(),
    };
    let arguments: Vec<String> = mask.arguments.iter().map(literal).collect();
    format!(" MASKED WITH {}({})", mask.function_name(), arguments.join(", "))
}

/// Returns the constraints of a column in CQL. Empty without constraints.
fn check(column: &Column) -> String {
    let constraints = column.constraints.iter();
    let conditions: Vec<String> = constraints
        .map(|constraint| constraint.to_cql(&column.name))
        .collect();
    match conditions.is_empty() {
        true => String::new(),
        false => format!(" CHECK {}", conditions.join(" AND ")),
    }
}

fn definition(name: &str, ty: &CqlType, kind: ColumnKind) -> String {
    let is_static = if kind == ColumnKind::Static { " static" } else { "" };
    format!("{} {ty}{is_static}", quote_identifier(name))
}

/// Returns the lines between the parentheses. A column that was dropped and added again is shown as dropped. Its addition follows the
/// statement.
fn definitions(table: &Table, with_internals: bool) -> Vec<String> {
    let single_key = table.partition_key_count == 1 && table.clustering_count == 0;
    let mut lines = Vec::new();
    for column in in_create_order(table) {
        if with_internals && table.dropped_columns.contains_key(&column.name) {
            continue;
        }
        let key = if single_key && column.kind == ColumnKind::PartitionKey {
            " PRIMARY KEY"
        } else {
            ""
        };
        let kind = match table.compact {
            Some(_) if column.is_static() => ColumnKind::Regular,
            _ => column.kind,
        };
        let definition = definition(&column.name, &column.ty, kind);
        lines.push(format!("    {definition}{}{}{key}", mask(column), check(column)));
    }
    if with_internals {
        for column in table.dropped_columns.values() {
            lines.push(format!(
                "    {}",
                definition(&column.name, &column.ty, column.kind)
            ));
        }
    }
    if !single_key {
        lines.push(format!("    {}", primary_key(table)));
    }
    lines
}

fn names(columns: &[std::sync::Arc<Column>]) -> Vec<String> {
    columns.iter().map(|column| column.cql_name()).collect()
}

fn primary_key(table: &Table) -> String {
    let partition_key = names(table.partition_key()).join(", ");
    let mut parts = vec![match table.partition_key_count {
        1 => partition_key,
        _ => format!("({partition_key})"),
    }];
    if !table.is_static_compact() {
        parts.extend(names(table.clustering()));
    }
    format!("PRIMARY KEY ({})", parts.join(", "))
}

/// Returns the options after WITH.
fn options(table: &Table, with_internals: bool, is_virtual: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if table.compact.is_some() {
        lines.push("COMPACT STORAGE".to_owned());
    }
    if with_internals {
        lines.push(format!("ID = {}", table.id));
    }
    if table.clustering_count > 0 {
        let order: Vec<String> = table
            .clustering()
            .iter()
            .map(|column| {
                let direction = match column.order {
                    Order::Asc => "ASC",
                    Order::Desc => "DESC",
                };
                format!("{} {direction}", column.cql_name())
            })
            .collect();
        lines.push(format!("CLUSTERING ORDER BY ({})", order.join(", ")));
    }
    if is_virtual {
        lines.push(format!("comment = {}", quote_text(&table.options.comment)));
    } else {
        lines.extend(table_options::describe(&table.options, table.is_view()));
    }
    lines
}

/// Returns the statements that drop columns, and those that add some of them again.
fn drops(table: &Table, name: &str) -> String {
    let mut text = String::new();
    for dropped in table.dropped_columns.values() {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\nALTER TABLE {name} DROP {} USING TIMESTAMP {};",
            quote_identifier(&dropped.name),
            dropped.dropped_time_us.div_euclid(1000) * 1000
        );
        if let Some((_, column)) = table.column(&dropped.name) {
            let definition = definition(&column.name, &column.ty, column.kind);
            let _ = write!(text, "\nALTER TABLE {name} ADD {definition}{};", mask(column));
            let check = check(column);
            if !check.is_empty() {
                let _ = write!(text, "\nALTER TABLE {name} ALTER {}{check};", column.cql_name());
            }
        }
    }
    text
}

fn view_text(table: &Table, view: &View, with_internals: bool) -> String {
    let selected = match view.include_all_columns {
        true => "*".to_owned(),
        false => names(&table.columns).join(", "),
    };
    format!(
        "CREATE MATERIALIZED VIEW {} AS\n    SELECT {selected}\n    FROM {}\n    WHERE {}\n    {}\n WITH {};",
        quote_qualified(&table.keyspace, &table.name),
        quote_qualified(&table.keyspace, &view.base_table),
        shown_where(view),
        primary_key(table),
        options(table, with_internals, false).join("\n    AND ")
    )
}
