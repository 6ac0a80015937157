//! `helenus import --verify`: compares the sources with a target, and sends nothing.
//!
//! The source is merged again, and the target is read by tokens, so that both come in the same order. Rows that differ are read once more
//! after a pause, because clients may write meanwhile.
//!
//! - `selection`: the columns that are read, and the rows of their results;
//! - `rows`: the rows of the target;
//! - `differences`: differences in words;
//! - `report`: the result.

mod differences;
mod report;
mod rows;
mod selection;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use helenus_cql::error::Consistency;
use helenus_import::TableName;
use helenus_import::merge::{Merge, MergeOptions};
use helenus_import::schema::TableShape;
use helenus_import::source::{Sources, TableFiles};
use helenus_import::table::{KnownTable, TableLayout};
use helenus_import::verify::{Join, Suspect, TargetRow};

use self::differences::Named;
use self::report::{TableVerified, VerifyReport};
use self::rows::SelectedRows;
use self::selection::Selection;
use super::args::ImportArgs;
use super::prepare::KnownShapes;
use super::progress::Progress;
use super::target::Target;
use crate::node_session::{NodeSession, Nodes, now_s};
use crate::shell::client::interrupted;
use crate::shell::interrupt::Interrupt;

/// Rows that differ and wait for a second look.
const SUSPECTS_MAX: usize = 1000;
/// Steps between two updates of the progress.
const STEPS_SHOWN: u64 = 1024;

/// Compares all tables, and prints the report. Returns true if no difference was found.
pub fn verify_tables(
    args: &ImportArgs,
    sources: &Sources,
    tables: &BTreeMap<TableName, KnownShapes>,
    target: &Target,
    interrupt: &Interrupt,
) -> Result<bool> {
    let wanted = || {
        let tables = tables.iter();
        tables.filter_map(|(name, known)| {
            let shapes = (known.target.as_ref()?, known.source.as_ref());
            Some((name, shapes, sources.tables.get(name)?))
        })
    };
    let bytes = wanted().map(|(_, _, files)| files.bytes()).sum();
    let mut progress = Progress::start(bytes, args.json);
    let mut report = VerifyReport::default();
    let mut result = Ok(());
    for (name, shapes, files) in wanted() {
        progress.start_table(&name.to_string());
        let table = TableVerification {
            args,
            files,
            target,
            interrupt,
            shown_before: report.shown(),
        };
        let mut verified = TableVerified::new(name);
        result = table.run(name, shapes, &mut progress, &mut verified);
        verified.is_complete = result.is_ok();
        report.tables.push(verified);
        if result.is_err() {
            break;
        }
        progress.finish_table(files.bytes());
    }
    progress.finish();
    report.print(args.json);
    result.map(|()| report.differences() == 0)
}

/// The comparison of one table.
struct TableVerification<'a> {
    args: &'a ImportArgs,
    files: &'a TableFiles,
    target: &'a Target,
    interrupt: &'a Interrupt,
    /// Differences of other tables that are shown.
    shown_before: usize,
}

impl TableVerification<'_> {
    fn run(
        &self,
        name: &TableName,
        (shape, source): (&TableShape, Option<&TableShape>),
        progress: &mut Progress,
        verified: &mut TableVerified,
    ) -> Result<()> {
        let started = Instant::now();
        let since_us = self.args.since.map(|since| since.us);
        let mut open = self.files.open(since_us)?;
        let shapes = KnownTable {
            target: Some(shape),
            source,
        };
        let layout = Arc::new(TableLayout::new(name, &mut open.sstables, shapes)?);
        let selection = Selection::new(&layout, shape)?;
        let options = MergeOptions {
            since_us,
            ..MergeOptions::default()
        };
        let merge = Merge::open(Arc::clone(&layout), &open.sstables, &open.files, options)?;
        let mut reader = self.reader();
        let rows = SelectedRows::new(&mut reader, &selection);
        let mut join = Join::new(merge, Arc::clone(&layout), rows, now_s);
        let mut second = SecondLook {
            table: self,
            layout: &layout,
            selection: &selection,
            reader: self.reader(),
            suspects: Vec::new(),
        };
        let mut shown = 0;
        for step in 1.. {
            let Some(suspects) = join.step().with_context(|| format!("table {name}"))? else {
                break;
            };
            second.suspects.extend(suspects);
            if second.suspects.len() >= SUSPECTS_MAX {
                second.look(verified)?;
            }
            if step % STEPS_SHOWN == 0 {
                let rows = join.counts().rows;
                progress.advance(join.merge().bytes_read(), rows - shown);
                shown = rows;
            }
            if self.interrupt.is_set() {
                return Err(interrupted());
            }
        }
        second.look(verified)?;
        verified.counts = join.counts();
        verified.time = started.elapsed();
        Ok(())
    }

    fn reader(&self) -> NodeSession {
        let nodes = Nodes {
            name: "the target",
            servers: self.target.servers.clone(),
            login: self.target.login.clone(),
            consistency: Consistency::LocalQuorum,
        };
        NodeSession::new(&nodes, 0, None)
    }
}

/// Rows that differ, until they are read again.
struct SecondLook<'a> {
    table: &'a TableVerification<'a>,
    layout: &'a TableLayout,
    selection: &'a Selection,
    reader: NodeSession,
    suspects: Vec<Suspect>,
}

impl SecondLook<'_> {
    /// Waits, reads all rows again, and notes those that still differ.
    fn look(&mut self, verified: &mut TableVerified) -> Result<()> {
        if self.suspects.is_empty() {
            return Ok(());
        }
        if !self.table.interrupt.sleep(self.table.args.pause) {
            return Err(interrupted());
        }
        for suspect in std::mem::take(&mut self.suspects) {
            self.look_at(&suspect, verified)?;
        }
        Ok(())
    }

    fn look_at(&mut self, suspect: &Suspect, verified: &mut TableVerified) -> Result<()> {
        let clustering = suspect.clustering.as_deref();
        let (statement, values) = self.selection.row_statement(&suspect.key, clustering)?;
        let row = self.reader.first_row(statement, &values)?;
        let row = row.map(|(row, read_at_s)| self.selection.decode(row, read_at_s));
        // The first row of a prefix may be another one.
        let is_suspect = |row: &TargetRow| clustering.is_none() || row.clustering.as_deref() == clustering;
        let row = row.transpose()?.filter(is_suspect);
        let outcome = suspect.compare(self.layout, row.as_ref(), now_s())?;
        if outcome.differences.is_empty() {
            verified.settled += 1;
            return Ok(());
        }
        for difference in &outcome.differences {
            verified.differences += 1;
            if self.table.shown_before + verified.named.len() < self.table.args.differences_max {
                let key = self
                    .selection
                    .key_text(&suspect.key, suspect.clustering.as_deref());
                verified.named.push(Named::new(self.layout, key, difference));
            }
        }
        Ok(())
    }
}
