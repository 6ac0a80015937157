//! CREATE, ALTER and DROP MATERIALIZED VIEW (Cassandra's `CreateViewStatement`).

pub(crate) mod base;

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::ast::{self, Compared, Ident, Relation, Selector};
use helenus_cql::error::CqlError;
use helenus_row::{ColumnId, Order};

use super::table::{already_exists, check_name, composite_in_key, new_id, not_frozen_in_key};
use super::{Applied, Change, DdlContext, Effect};
use crate::analysis::PlanContext;
use crate::analysis::restrictions::view_filter::view_filter;
use crate::analysis::restrictions::{relation_source, require_column};
use crate::java_order;
use crate::request::Markers;
use crate::response::{ChangeKind, SchemaTarget};
use crate::schema::table_options::{self, transactional_mode};
use crate::schema::{
    Column, ColumnKind, DerivedTable, Keyspace, Schema, Table, TableBuilder, TableKind, TableOptions, View,
};

pub(crate) use base::with_base;

const TTL_ON_CREATE: &str = "Cannot set default_time_to_live for a materialized view. Data in a materialized view always expire at \
                             the same time than the corresponding data in the parent table.";
const TTL_ON_ALTER: &str = "Forbidden default_time_to_live detected for a materialized view. Data in a materialized view always \
                            expire at the same time than the corresponding data in the parent table. default_time_to_live must \
                            be set to zero, see CASSANDRA-12868 for more information";

pub(crate) const UNDELIVERED: &str = "since this value is used to TTL undelivered updates. Setting gc_grace_seconds too low \
                                      might cause undelivered updates to expire before being replayed.";

/// The columns and the key that a new view takes from its base table.
struct Shape<'a> {
    name: &'a str,
    base: &'a Table,
    statement: &'a ast::CreateView,
    selected: Vec<&'a Column>,
}

pub fn create(ctx: &DdlContext<'_>, statement: &ast::CreateView) -> Applied {
    let keyspace_name = ctx.keyspace_of(&statement.view)?;
    let keyspace = ctx.keyspace_to_change(keyspace_name)?;
    let name = statement.view.name.as_str();
    let base = keyspace
        .tables
        .get(statement.base.name.as_str())
        .filter(|table| !table.is_view())
        .ok_or_else(|| CqlError::invalid(format!("Base table '{}' doesn't exist", statement.base.name)))?;
    match keyspace.tables.get(name) {
        Some(taken) if !taken.is_view() => {
            return Err(CqlError::invalid(format!(
                "Cannot create materialized view '{name}' - a table with the same name already exists"
            )));
        }
        Some(_) if statement.if_not_exists => return Ok(Effect::Unchanged(Vec::new())),
        Some(_) => return Err(already_exists(keyspace_name, name)),
        None => {}
    }
    if base.is_counter {
        return Err(CqlError::invalid(
            "Materialized views are not supported on counter tables",
        ));
    }
    if base.is_cdc_log() {
        return Err(CqlError::invalid(
            "Materialized views are not supported on CDC log tables",
        ));
    }
    if base.options.gc_grace_s == 0 {
        return Err(CqlError::invalid(format!(
            "Cannot create materialized view '{name}' for base table '{}' with gc_grace_seconds of 0, {UNDELIVERED}",
            base.name
        )));
    }
    let shape = Shape {
        name,
        base,
        statement,
        selected: selected(base, statement)?,
    };
    shape.check()?;
    let view_options = checked_options(table_options::of_new(&statement.properties)?, TTL_ON_CREATE)?;
    let (id, incarnation) = new_id(&statement.properties)?;
    check_name(keyspace_name, name)?;
    let mut schema = ctx.schema.clone();
    let builder = TableBuilder {
        keyspace: keyspace_name.to_owned(),
        name: name.to_owned(),
        id,
        incarnation,
        number: schema.take_table_number(),
        kind: TableKind::View,
        compact: None,
        options: view_options,
        columns: shape.columns(),
        next_column_id: ColumnId(u32::try_from(shape.selected.len()).unwrap_or(u32::MAX)),
        dropped_columns: BTreeMap::new(),
        indexes: Vec::new(),
        views: Vec::new(),
        view: None,
        origin: None,
        adopts_origin: false,
        cdc_log_of: None,
    };
    let view = shape.view(ctx.schema, &builder.clone().build())?;
    let view = Arc::new(
        TableBuilder {
            view: Some(Arc::new(view)),
            ..builder
        }
        .build(),
    );
    let mut with_view = base.to_builder();
    with_view.views.push(name.to_owned());
    let with_view = Arc::new(with_view.build());
    let schema = schema
        .with_table(Table::clone(&view))
        .with_table(Table::clone(&with_view));
    let mut change = Change::new(
        schema,
        ChangeKind::Created,
        keyspace_name,
        SchemaTarget::Table(name.to_owned()),
    );
    change.to_build = Some(DerivedTable::View(view).of(&with_view));
    Ok(Effect::Changed(change))
}

/// Returns the columns of the SELECT clause, in the base table's order.
fn selected<'a>(base: &'a Table, statement: &ast::CreateView) -> Result<Vec<&'a Column>, CqlError> {
    let mut places = Vec::new();
    for item in &statement.items {
        if let Some(alias) = &item.alias {
            return Err(CqlError::invalid(format!(
                "Cannot use aliases when defining a materialized view (got {alias})"
            )));
        }
        let Selector::Column(column) = &item.selector else {
            return Err(CqlError::invalid(
                "Can only select columns by name when defining a materialized view",
            ));
        };
        places.push(require_column(base, column)?.0);
    }
    let is_selected = |place: &usize| statement.items.is_empty() || places.contains(place);
    let columns: Vec<&Column> = (0..base.columns.len())
        .filter(is_selected)
        .filter_map(|place| base.columns.get(place))
        .map(AsRef::as_ref)
        .collect();
    let names = java_order::of_names(base.columns.iter().map(|column| column.name.as_str()).collect());
    let mut in_order = names
        .iter()
        .filter_map(|name| columns.iter().find(|column| column.name == **name));
    match in_order.find(|column| column.is_static()) {
        Some(column) => Err(CqlError::invalid(format!(
            "Cannot include static column '{}' in materialized view '{}'",
            column.name, statement.view.name
        ))),
        None => Ok(columns),
    }
}

impl Shape<'_> {
    fn key(&self) -> impl Iterator<Item = &Ident> {
        self.statement
            .partition_key
            .iter()
            .chain(&self.statement.clustering_columns)
    }

    fn is_in_key(&self, column: &Column) -> bool {
        self.key().any(|name| *name == column.name.as_str())
    }

    fn check(&self) -> Result<(), CqlError> {
        let mut seen: Vec<&Ident> = Vec::new();
        for name in self.key() {
            let Some(column) = self.selected.iter().find(|column| *name == column.name.as_str()) else {
                return Err(CqlError::invalid(format!(
                    "Unknown column '{name}' referenced in PRIMARY KEY for materialized view '{}'",
                    self.name
                )));
            };
            if seen.contains(&name) {
                return Err(CqlError::invalid(format!(
                    "Duplicate column '{name}' in PRIMARY KEY clause for materialized view '{}'",
                    self.name
                )));
            }
            seen.push(name);
            check_key_type(column)?;
        }
        self.check_clustering_order()?;
        self.check_base_key()
    }

    fn check_clustering_order(&self) -> Result<(), CqlError> {
        let ordered = self.statement.clustering_order.iter().map(|order| &order.column);
        if self.statement.clustering_order.is_empty() || ordered.eq(&self.statement.clustering_columns) {
            return Ok(());
        }
        Err(CqlError::invalid(
            "Clustering key columns must exactly match columns in CLUSTERING ORDER BY directive",
        ))
    }

    /// Refuses a key that does not contain the whole key of the base table, or contains more than one other column. Each row of the view
    /// must stand for one row of the base table.
    fn check_base_key(&self) -> Result<(), CqlError> {
        let missing: Vec<&str> = self
            .base
            .primary_key()
            .iter()
            .filter(|column| !self.is_in_key(column))
            .map(|column| column.name.as_str())
            .collect();
        if !missing.is_empty() {
            return Err(CqlError::invalid(format!(
                "Cannot create materialized view '{}' without primary key columns {} from base table '{}'",
                self.name,
                missing.join(", "),
                self.base.name
            )));
        }
        let added: Vec<&str> = self
            .selected
            .iter()
            .filter(|column| !column.is_primary_key() && self.is_in_key(column))
            .map(|column| column.name.as_str())
            .collect();
        if added.len() > 1 {
            return Err(CqlError::invalid(format!(
                "Cannot include more than one non-primary key column in materialized view primary key (got {})",
                java_order::of_names(added).join(", ")
            )));
        }
        Ok(())
    }

    fn columns(&self) -> Vec<Column> {
        let position =
            |names: &[Ident], column: &Column| names.iter().position(|name| *name == column.name.as_str());
        // Without CLUSTERING ORDER, columns keep their order of the base table.
        let orders = &self.statement.clustering_order;
        let descends = |column: &Column| match orders.iter().find(|order| order.column == *column.name) {
            Some(order) => order.descending,
            None => column.is_reversed(),
        };
        let mut columns = Vec::with_capacity(self.selected.len());
        for (number, column) in self.selected.iter().enumerate() {
            let (kind, position) = match (
                position(&self.statement.partition_key, column),
                position(&self.statement.clustering_columns, column),
            ) {
                (Some(at), _) => (ColumnKind::PartitionKey, at),
                (None, Some(at)) => (ColumnKind::Clustering, at),
                (None, None) => (ColumnKind::Regular, 0),
            };
            // Columns of the partition key keep their order too, because it determines the order in which IN returns partitions.
            let is_descending = kind != ColumnKind::Regular && descends(column);
            columns.push(Column {
                name: column.name.clone(),
                ty: column.ty.clone(),
                kind,
                position,
                id: ColumnId(u32::try_from(number).unwrap_or(u32::MAX)),
                order: if is_descending { Order::Desc } else { Order::Asc },
                mask: column.mask.clone(),
                constraints: Arc::default(),
            });
        }
        columns
    }

    fn view(&self, schema: &Schema, table: &Table) -> Result<View, CqlError> {
        let relations = &self.statement.relations;
        let restricted = restricted_columns(relations);
        let free: Vec<&str> = self
            .key()
            .filter(|name| !restricted.contains(name))
            .map(Ident::as_str)
            .collect();
        let mut ctx = PlanContext::new(schema, Some(&table.keyspace), Markers::new(Vec::new()));
        let filter = view_filter(&mut ctx, self.base, table, relations)?;
        if !free.is_empty() {
            return Err(CqlError::invalid(format!(
                "Primary key columns {} must be restricted with 'IS NOT NULL' or otherwise",
                java_order::of_names(free).join(", ")
            )));
        }
        Ok(View {
            base_table: self.base.name.clone(),
            base_table_id: self.base.id,
            include_all_columns: self.statement.items.is_empty(),
            where_clause: where_source(relations),
            filter,
            is_built: false,
        })
    }
}

fn check_key_type(column: &Column) -> Result<(), CqlError> {
    let (name, ty) = (&column.name, &column.ty);
    if ty.is_multicell() {
        return Err(not_frozen_in_key(name, ty));
    }
    if ty.holds_dynamic_composite() {
        return Err(composite_in_key(name, ty));
    }
    if ty.references_duration() {
        return Err(CqlError::invalid(format!(
            "duration type is not supported for PRIMARY KEY column '{name}'"
        )));
    }
    Ok(())
}

fn restricted_columns(relations: &[Relation]) -> Vec<&Ident> {
    let mut columns = Vec::new();
    for relation in relations {
        match relation {
            Relation::Column { column, .. }
            | Relation::ColumnIn { column, .. }
            | Relation::IsNotNull { column }
            | Relation::Element { column, .. } => columns.push(column),
            Relation::Tuple { columns: several, .. } | Relation::TupleIn { columns: several, .. } => {
                columns.extend(several);
            }
            Relation::Between { compared, .. } => match compared {
                Compared::Column(column) => columns.push(column),
                Compared::Tuple(several) => columns.extend(several),
                Compared::Token(_) => {}
            },
            Relation::Token { .. } | Relation::CustomIndex { .. } => {}
        }
    }
    columns
}

/// Returns a WHERE clause as text that can be parsed again.
fn where_source(relations: &[Relation]) -> String {
    let written: Vec<String> = relations.iter().map(relation_source).collect();
    written.join(" AND ")
}

/// Returns the options of a view. Refuses a TTL, because a view has none of its own, and a transactional mode.
fn checked_options(options: TableOptions, ttl_refusal: &str) -> Result<TableOptions, CqlError> {
    if !options.transactional_mode.is_off() {
        return Err(CqlError::invalid(format!(
            "Cannot set {} of a materialized view: transactions write the view with its base table, and read the base table only",
            transactional_mode::NAME
        )));
    }
    match options.default_time_to_live_s {
        0 => Ok(options),
        _ => Err(CqlError::invalid(ttl_refusal)),
    }
}

/// Returns the view that a statement changes. It must exist.
fn view_to_change<'a>(
    ctx: &'a DdlContext<'_>,
    name: &ast::QualifiedName,
) -> Result<(&'a Keyspace, &'a Table), CqlError> {
    match ctx.named(name)? {
        Some((keyspace, table)) if table.is_view() => Ok((keyspace, table)),
        _ => Err(CqlError::invalid(format!(
            "Materialized view '{}' doesn't exist",
            super::qualified(ctx, name)?
        ))),
    }
}

pub fn alter(ctx: &DdlContext<'_>, statement: &ast::AlterView) -> Applied {
    let (_, view) = match view_to_change(ctx, &statement.view) {
        Err(CqlError::Invalid(_)) if statement.if_exists => return super::unchanged(),
        found => found?,
    };
    let changed = checked_options(
        table_options::apply(&statement.properties, view.options.clone())?,
        TTL_ON_ALTER,
    )?;
    super::table::new_id(&statement.properties)?;
    if changed.gc_grace_s == 0 {
        return Err(CqlError::invalid(format!(
            "Cannot alter gc_grace_seconds of a materialized view to 0, {UNDELIVERED}"
        )));
    }
    if changed == view.options {
        return super::unchanged();
    }
    let mut builder = view.to_builder();
    builder.options = changed;
    Ok(Effect::Changed(Change::new(
        ctx.schema.with_table(builder.build()),
        ChangeKind::Updated,
        &view.keyspace,
        SchemaTarget::Table(view.name.clone()),
    )))
}

pub fn drop(ctx: &DdlContext<'_>, statement: &ast::DropView) -> Applied {
    let (keyspace, view) = match view_to_change(ctx, &statement.view) {
        Err(CqlError::Invalid(_)) if statement.if_exists => return super::unchanged(),
        found => found?,
    };
    let mut keyspace = keyspace.clone();
    keyspace.tables.remove(&view.name);
    let base = view
        .view
        .as_ref()
        .and_then(|of| keyspace.tables.get(&of.base_table));
    if let Some(base) = base {
        let mut builder = base.to_builder();
        builder.views.retain(|name| *name != view.name);
        let base = builder.build();
        keyspace.tables.insert(base.name.clone(), Arc::new(base));
    }
    Ok(Effect::Changed(Change::new(
        ctx.schema.with_keyspace(keyspace),
        ChangeKind::Dropped,
        &view.keyspace,
        SchemaTarget::Table(view.name.clone()),
    )))
}
