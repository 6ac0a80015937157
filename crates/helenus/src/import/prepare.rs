//! The schema's part of an import: makes what the target lacks, and compares what it has.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use helenus_import::TableName;
use helenus_import::schema::{LiveSchema, Plan, PlanOptions, SourceSchema, TableShape, differences, plan};
use helenus_import::source::Sources;

use super::args::ImportArgs;
use super::since;
use super::target::Target;

/// The tables before their rows are imported, and the schema's part of the report.
pub struct Prepared {
    pub tables: BTreeMap<TableName, KnownShapes>,
    pub report: SchemaReport,
}

/// The columns of a table.
#[derive(Default)]
pub struct KnownShapes {
    /// On the target. `None` if there is no target, or a dry run doesn't make the table.
    pub target: Option<TableShape>,
    /// In schema.cql. `None` if no file has the table.
    pub source: Option<TableShape>,
    /// True if this run made the table on the target.
    pub is_new: bool,
}

/// The schema's part of the report.
#[derive(Default)]
pub struct SchemaReport {
    /// Things that were made, or that a dry run would make.
    pub made: Vec<String>,
    pub is_dry: bool,
    pub notes: BTreeSet<String>,
    pub without_effect: BTreeSet<String>,
}

/// Makes and compares the schema. Views are removed from the sources' tables.
pub fn prepare(
    args: &ImportArgs,
    sources: &mut Sources,
    schema: &SourceSchema,
    target: Option<&mut Target>,
) -> Result<Prepared> {
    args.tables.check_names(
        sources.tables.keys().chain(schema.tables.keys()),
        "the sources have no",
    )?;
    let Some(target) = target else {
        return without_target(args, sources, schema);
    };
    let before = target.read_schema().context("can't read the target's schema")?;
    for view in &before.views {
        sources.leave_out_view(view);
    }
    let mut report = SchemaReport {
        is_dry: args.dry_run || args.verify,
        ..SchemaReport::default()
    };
    let mut live = before.clone();
    if !args.no_schema {
        let plan = planned(args, sources, schema, &before);
        if !args.dry_run && !args.verify {
            for statement in &plan.statements {
                target.execute(&statement.text).with_context(|| {
                    format!(
                        "can't make {}; correct its statement, or make it yourself and give --no-schema: {}",
                        statement.what, statement.text
                    )
                })?;
            }
            if !plan.statements.is_empty() {
                live = target.read_schema().context("can't read the target's schema")?;
            }
        }
        report.add(plan);
        compare(args, schema, &live)?;
    }
    let mut tables = BTreeMap::new();
    for (name, files) in sources
        .tables
        .iter()
        .filter(|(name, _)| args.tables.is_wanted(name))
    {
        let known = KnownShapes {
            target: live.tables.get(name).cloned(),
            source: schema.shape(name)?,
            is_new: !before.tables.contains_key(name),
        };
        if known.target.is_none() && !args.dry_run {
            // Live folders have no schema.cql. A table without rows there needs none.
            if files.sstables.is_empty() {
                continue;
            }
            if args.verify {
                bail!(
                    "{name}: the target has no such table; import it first, or leave it out with --exclude"
                );
            }
            bail!(missing(name, schema));
        }
        check_since(args, name, &known)?;
        tables.insert(name.clone(), known);
    }
    Ok(Prepared { tables, report })
}

fn without_target(args: &ImportArgs, sources: &Sources, schema: &SourceSchema) -> Result<Prepared> {
    let mut report = SchemaReport {
        is_dry: true,
        ..SchemaReport::default()
    };
    if !args.no_schema {
        report.add(planned(args, sources, schema, &LiveSchema::default()));
    }
    let mut tables = BTreeMap::new();
    for name in sources.tables.keys().filter(|name| args.tables.is_wanted(name)) {
        let known = KnownShapes {
            source: schema.shape(name)?,
            ..KnownShapes::default()
        };
        check_since(args, name, &known)?;
        tables.insert(name.clone(), known);
    }
    Ok(Prepared { tables, report })
}

/// Refuses `--since` for counters, before any row is sent.
fn check_since(args: &ImportArgs, name: &TableName, known: &KnownShapes) -> Result<()> {
    let shape = known.target.as_ref().or(known.source.as_ref());
    match args.since {
        Some(_) if shape.is_some_and(TableShape::is_counter) => Err(since::refused_counters(name)),
        _ => Ok(()),
    }
}

fn planned(args: &ImportArgs, sources: &Sources, schema: &SourceSchema, live: &LiveSchema) -> Plan {
    let options = PlanOptions {
        is_wanted: &|name| args.tables.is_wanted(name),
        with_data: sources.tables.keys().cloned().collect(),
    };
    plan(schema, live, &options)
}

/// Compares all tables that schema.cql and the target have.
fn compare(args: &ImportArgs, schema: &SourceSchema, live: &LiveSchema) -> Result<()> {
    let mut found = Vec::new();
    for name in schema.tables.keys().filter(|name| args.tables.is_wanted(name)) {
        if let (Some(source), Some(target)) = (schema.shape(name)?, live.tables.get(name)) {
            let differences = differences(&source, target);
            found.extend(
                differences
                    .into_iter()
                    .map(|difference| format!("{name}: {difference}")),
            );
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    bail!(
        "the target's tables differ from the source's. Correct them, or give --no-schema to leave out what has no place:\n  {}",
        found.join("\n  ")
    )
}

fn missing(name: &TableName, schema: &SourceSchema) -> String {
    if let Some(path) = schema.omitted.iter().find(|path| path.contains(&name.table)) {
        return format!(
            "{name}: CQL can't create this table of the Thrift protocol ({path} has its approximate structure). Create a table of \
             that structure on the target, or choose others with --table"
        );
    }
    format!(
        "{name}: the target has no such table, and the sources have no schema.cql of it. Create the table on the target, take a snapshot \
         (which has a schema.cql), or choose others with --table"
    )
}

impl SchemaReport {
    fn add(&mut self, plan: Plan) {
        let made = plan.statements.into_iter().map(|statement| statement.what);
        self.made
            .extend(made.filter(|what| !what.starts_with("change of")));
        self.notes.extend(plan.notes);
        self.without_effect.extend(plan.without_effect);
    }
}
