//! Changes of the source's schema while tables are replicated. Added columns are added to the target. Any other difference stops the table, after
//! what came before was sent.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use helenus_import::TableName;
use helenus_import::schema::{LiveSchema, TableShape};

use super::args::ReplicateArgs;
use super::plan::TablePlan;
use super::schema::{ReplicatedTable, SourceTables, align};
use super::shared::{Phase, Shared, TableWork};
use crate::import::target::Target;
use crate::shell::interrupt::Interrupt;

/// The watch over both schemas.
pub struct Watch<'a> {
    args: &'a ReplicateArgs,
    interrupt: Interrupt,
    /// Connections. `None` after a loss.
    source: Option<Target>,
    target: Option<Target>,
    /// The tables as they were planned.
    planned: BTreeMap<TableName, ReplicatedTable>,
    number: u64,
}

impl<'a> Watch<'a> {
    pub fn new(
        args: &'a ReplicateArgs,
        (source, target): (Target, Target),
        planned: BTreeMap<TableName, ReplicatedTable>,
        interrupt: &Interrupt,
    ) -> Watch<'a> {
        Watch {
            args,
            interrupt: interrupt.clone(),
            source: Some(source),
            target: Some(target),
            planned,
            number: 0,
        }
    }

    /// Plans the tables again if the source's schema is another one than the plans are made for.
    pub fn check(&mut self, shared: &Shared) -> Result<()> {
        let checked = self.try_check(shared);
        if checked.is_err() {
            self.source = None;
            self.target = None;
        }
        checked
    }

    fn try_check(&mut self, shared: &Shared) -> Result<()> {
        let mut source = match self.source.take() {
            Some(source) => source,
            None => {
                let connection = self.args.from_connection.connection();
                Target::connect(&self.args.from, &connection, &self.interrupt).context("the source")?
            }
        };
        let version = schema_version(&mut source)?;
        if version.is_some() && version != shared.schema_version() {
            self.plan_anew(shared, &mut source)?;
            shared.set_schema_version(version);
        }
        self.source = Some(source);
        Ok(())
    }

    fn plan_anew(&mut self, shared: &Shared, source: &mut Target) -> Result<()> {
        let tables = SourceTables::read(source)?;
        let mut target = match self.target.take() {
            Some(target) => target,
            None => {
                let connection = self.args.to_connection.connection();
                Target::connect(&self.args.to, &connection, &self.interrupt).context("the target")?
            }
        };
        let mut live = target.read_schema().context("can't read the target's schema")?;
        for work in &shared.tables {
            if matches!(work.phase(), Phase::Running(_)) {
                self.plan_table(shared, work, &tables, &mut target, &mut live)?;
            }
        }
        let known = |name: &&TableName| !shared.tables.iter().any(|work| work.name == **name);
        for name in tables.wanted(self.args).filter(known) {
            eprintln!("{name} is new, and is not replicated: start the command again");
        }
        self.target = Some(target);
        Ok(())
    }

    /// Replaces the plan of a table that has changed, or stops the table.
    fn plan_table(
        &mut self,
        shared: &Shared,
        work: &TableWork,
        tables: &SourceTables,
        target: &mut Target,
        live: &mut LiveSchema,
    ) -> Result<()> {
        let Some(table) = tables.table(&work.name) else {
            work.stop("the table was dropped in the source; drop it on the target yourself".to_owned());
            return Ok(());
        };
        let mut problem = tables.refusal(&work.name, shared.kind);
        if !tables.is_captured(&work.name) {
            problem = Some(
                "changes are not captured any more: enable cdc, and give --restart-copy to copy the table again"
                    .to_owned(),
            );
        }
        if problem.is_none() {
            let found = align(&work.name, &table.shape, target, live)?;
            problem = (!found.is_empty()).then(|| {
                format!(
                    "the schema of the source has changed: {}. Change the target in the same way, and start the command again",
                    found.join("; ")
                )
            });
        }
        let known = self.planned.get(&work.name);
        let there = live.tables.get(&work.name);
        match problem {
            None if known == Some(&table) => {}
            None => {
                let plan = self.planned_again(&work.name, &table);
                work.set_phase(Phase::Running(plan));
            }
            Some(reason) if !has_same_key(known.map(|known| &known.shape), &table.shape) => work.stop(reason),
            Some(reason) => {
                eprintln!("{}: stops when what came before is sent: {reason}", work.name);
                let both = in_both(&table, there);
                let plan = self.planned_again(&work.name, &both);
                work.set_phase(Phase::Ending {
                    plan,
                    until_us: shared.now_us(),
                    reason,
                });
            }
        }
        Ok(())
    }

    fn planned_again(&mut self, name: &TableName, table: &ReplicatedTable) -> Arc<TablePlan> {
        self.number += 1;
        self.planned.insert(name.clone(), table.clone());
        Arc::new(TablePlan::new(name, &table.shape, table.log_ttl_s, self.number))
    }
}

/// Returns the version of a cluster's schema.
pub fn schema_version(cluster: &mut Target) -> Result<Option<Bytes>> {
    let rows = cluster.select("SELECT schema_version FROM system.local WHERE key = 'local'")?;
    Ok(rows
        .into_iter()
        .next()
        .and_then(|mut row| Some(row.remove("schema_version")?.1)))
}

/// Returns true if the primary keys have the same columns.
fn has_same_key(known: Option<&TableShape>, now: &TableShape) -> bool {
    known.is_some_and(|known| {
        [false, true]
            .into_iter()
            .all(|is_clustering| known.key_columns(is_clustering) == now.key_columns(is_clustering))
    })
}

/// Returns the table with the columns that both sides have, with one type.
fn in_both(table: &ReplicatedTable, there: Option<&TableShape>) -> ReplicatedTable {
    let mut both = table.clone();
    both.shape.columns.retain(|name, column| {
        let other = there.and_then(|there| there.columns.get(name));
        other.is_some_and(|other| other.ty == column.ty)
    });
    both
}
