//! The schemas of both clusters: what is replicated, what the target lacks, and what has changed since.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use helenus_cql::ast::PropertyValue;
use helenus_cql::identifier::quote_identifier;
use helenus_cql::types::CqlType;
use helenus_import::TableName;
use helenus_import::schema::script::SchemaText;
use helenus_import::schema::{
    ColumnRole, LiveSchema, PlanOptions, SourceSchema, TableShape, differences, plan,
};

use super::args::ReplicateArgs;
use super::target::ClusterKind;
use crate::import::target::{Target, text};

/// Seconds for which a log keeps changes, unless the table says otherwise.
const LOG_TTL_DEFAULT_S: i64 = 86_400;

/// A table that is replicated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicatedTable {
    pub shape: TableShape,
    /// Time in seconds for which the log keeps changes. 0 if it keeps them for ever.
    pub log_ttl_s: i64,
}

/// The schema of the source.
pub struct SourceTables {
    pub live: LiveSchema,
    /// The statements that make the schema.
    pub script: SourceSchema,
}

impl SourceTables {
    pub fn read(source: &mut Target) -> Result<SourceTables> {
        let live = source.read_schema().context("can't read the source's schema")?;
        let mut statements = String::new();
        for row in source.select("DESCRIBE SCHEMA")? {
            statements += &text(&row, "create_statement")?;
            statements.push('\n');
        }
        let described = SchemaText {
            path: "the source's schema".to_owned(),
            text: statements,
        };
        let mut script = SourceSchema::read(&[described])?;
        script.remove_option("cdc");
        Ok(SourceTables { live, script })
    }

    /// Returns the names of the tables that are replicated.
    pub fn wanted<'s>(&'s self, args: &'s ReplicateArgs) -> impl Iterator<Item = &'s TableName> + Clone {
        self.live.tables.keys().filter(|name| args.is_wanted(name))
    }

    /// Returns a part of the map of the option `cdc`. `None` if the table's option lacks it.
    fn cdc(&self, table: &TableName, part: &str) -> Option<&str> {
        match self.script.tables.get(table)?.properties().get("cdc")? {
            PropertyValue::Text(enabled) => (part == "enabled").then_some(enabled.as_str()),
            PropertyValue::Map(parts) => {
                let found = parts.iter().find(|(name, _)| name == part);
                found.map(|(_, value)| value.as_str())
            }
        }
    }

    /// Returns true if the changes of a table are captured.
    pub fn is_captured(&self, table: &TableName) -> bool {
        let enabled = self.cdc(table, "enabled");
        enabled.is_some_and(|enabled| enabled.eq_ignore_ascii_case("true"))
    }

    /// Returns the reason why a table can't be replicated. `None` if it can.
    pub fn refusal(&self, table: &TableName, kind: ClusterKind) -> Option<String> {
        let shape = self.live.tables.get(table)?;
        if shape.is_counter() {
            return Some("counters have no write times that could be kept".to_owned());
        }
        if shape.is_compact {
            return Some("changes of tables WITH COMPACT STORAGE are not captured".to_owned());
        }
        if self
            .cdc(table, "delta")
            .is_some_and(|delta| delta.eq_ignore_ascii_case("keys"))
        {
            return Some(
                "its log has the keys of changes without their values: set 'delta': 'full'".to_owned(),
            );
        }
        let mut lists = shape
            .columns
            .iter()
            .filter(|(_, column)| matches!(column.ty, CqlType::List { frozen: false, .. }));
        let (list, _) = lists.next().filter(|_| kind == ClusterKind::Other)?;
        Some(format!(
            "column {} is a list that is not frozen. Only Helenus takes the ids of its elements: in other clusters, elements that \
             are written twice would be there twice",
            quote_identifier(list)
        ))
    }

    /// Returns what replication has to know of a table.
    pub fn table(&self, name: &TableName) -> Option<ReplicatedTable> {
        Some(ReplicatedTable {
            shape: self.live.tables.get(name)?.clone(),
            log_ttl_s: self
                .cdc(name, "ttl")
                .and_then(|ttl| ttl.parse().ok())
                .unwrap_or(LOG_TTL_DEFAULT_S),
        })
    }
}

/// Checks the tables of the source, enables CDC where it is allowed, and makes what the target lacks. Returns the tables.
///
/// # Errors
/// If a table can't be replicated, or the target's table differs.
pub fn prepare(
    args: &ReplicateArgs,
    source: &mut Target,
    target: &mut Target,
    kind: ClusterKind,
) -> Result<BTreeMap<TableName, ReplicatedTable>> {
    let mut tables = SourceTables::read(source)?;
    args.tables
        .check_names(tables.live.tables.keys(), "the source has no")?;
    let wanted: Vec<TableName> = tables.wanted(args).cloned().collect();
    if wanted.is_empty() {
        bail!("the source has no tables of users; create them first, or give --keyspace or --table");
    }
    let refused: Vec<String> = wanted
        .iter()
        .filter_map(|name| Some(format!("{name}: {}", tables.refusal(name, kind)?)))
        .collect();
    if !refused.is_empty() {
        bail!(
            "these tables can't be replicated; leave them out with --exclude:\n  {}",
            refused.join("\n  ")
        );
    }
    enable_cdc(args, source, &tables, &wanted)?;
    make_schema(args, &tables, target, kind)?;
    let mut found = Vec::new();
    let mut live = target.read_schema().context("can't read the target's schema")?;
    for name in &wanted {
        let Some(shape) = tables.live.tables.get(name) else {
            continue;
        };
        for difference in align(name, shape, target, &mut live)? {
            found.push(format!("{name}: {difference}"));
        }
    }
    if !found.is_empty() {
        bail!(
            "the target's tables differ from the source's:\n  {}",
            found.join("\n  ")
        );
    }
    // CDC was enabled since, so the options are others.
    tables = SourceTables::read(source)?;
    let planned = wanted.into_iter().filter_map(|name| {
        let table = tables.table(&name)?;
        Some((name, table))
    });
    Ok(planned.collect())
}

/// Enables CDC on tables that lack it.
fn enable_cdc(
    args: &ReplicateArgs,
    source: &mut Target,
    tables: &SourceTables,
    wanted: &[TableName],
) -> Result<()> {
    let statement = |name: &TableName| format!("ALTER TABLE {name} WITH cdc = {{'enabled': true}}");
    let missing: Vec<&TableName> = wanted.iter().filter(|name| !tables.is_captured(name)).collect();
    if !missing.is_empty() && !args.enable_cdc {
        let statements: Vec<String> = missing
            .iter()
            .map(|name| format!("{};", statement(name)))
            .collect();
        bail!(
            "changes of these tables are not captured. Run these statements on the source, or give --enable-cdc:\n  {}",
            statements.join("\n  ")
        );
    }
    for name in missing {
        source.execute(&statement(name))?;
        eprintln!("{name}: changes are captured from now on");
    }
    Ok(())
}

/// Makes keyspaces, types, tables, indexes and views that the target lacks. Another process may make them at the same time.
fn make_schema(
    args: &ReplicateArgs,
    tables: &SourceTables,
    target: &mut Target,
    kind: ClusterKind,
) -> Result<()> {
    let options = PlanOptions {
        is_wanted: &|name| args.is_wanted(name),
        with_data: BTreeSet::new(),
    };
    let missing = |target: &mut Target| {
        let live = target.read_schema().context("can't read the target's schema")?;
        Ok::<_, anyhow::Error>(plan(&tables.script, &live, &options).statements)
    };
    for statement in missing(target)? {
        let (what, text) = (&statement.what, &statement.text);
        let Err(error) = target.execute(text) else {
            eprintln!("made {what} on the target");
            continue;
        };
        let holds_no_data = what.starts_with("view") || what.starts_with("index");
        if kind == ClusterKind::Other && holds_no_data {
            // Other clusters may lack the kinds of views and indexes that the source has.
            eprintln!("the target has no {what}: {error:#}");
        } else if missing(target)?.contains(&statement) {
            return Err(error.context(format!(
                "can't make {what} on the target; make it yourself: {text}"
            )));
        }
    }
    Ok(())
}

/// Adds the columns that the target's table lacks. Returns the remaining differences.
pub fn align(
    name: &TableName,
    source: &TableShape,
    target: &mut Target,
    live: &mut LiveSchema,
) -> Result<Vec<String>> {
    let Some(there) = live.tables.get_mut(name) else {
        return Ok(vec!["the target has no such table".to_owned()]);
    };
    for (column, shape) in &source.columns {
        if there.columns.contains_key(column) || shape.role.is_key() {
            continue;
        }
        let is_static = if shape.role == ColumnRole::Static {
            " static"
        } else {
            ""
        };
        let added = format!("{} {}{is_static}", quote_identifier(column), shape.ty);
        if let Err(error) = target.execute(&format!("ALTER TABLE {name} ADD {added}")) {
            return Ok(vec![format!(
                "column {added} can't be added to the target: {error:#}"
            )]);
        }
        eprintln!("{name}: added column {added} to the target");
        there.columns.insert(column.clone(), shape.clone());
    }
    Ok(differences(source, there))
}
