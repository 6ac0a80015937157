//! The rows' part of an import: table after table, each by a pipeline.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use helenus_import::TableName;
use helenus_import::batch::{BATCH_BYTES, Batches};
use helenus_import::merge::{Merge, MergeOptions, Statistics};
use helenus_import::source::{Sources, TableFiles};
use helenus_import::table::{KnownTable, TableLayout};

use super::args::{Counters, ImportArgs};
use super::pipeline::{self, Job, SENDERS};
use super::prepare::KnownShapes;
use super::progress::Progress;
use super::report::{Report, TableReport};
use super::since;
use super::state::State;
use super::target::Target;
use super::window::Window;
use crate::shell::client::interrupted;
use crate::shell::interrupt::Interrupt;

/// Imports all tables that the state doesn't list as done.
pub fn import_tables(
    args: &ImportArgs,
    sources: &Sources,
    tables: &BTreeMap<TableName, KnownShapes>,
    mut target: Option<&mut Target>,
    mut state: Option<&mut State>,
    interrupt: &Interrupt,
    report: &mut Report,
) -> Result<()> {
    let nodes = target.as_ref().map_or(0, |target| target.servers.len());
    let window = Window::new(args.rate, SENDERS, nodes);
    let wanted = || {
        tables
            .iter()
            .filter_map(|(name, known)| Some((name, known, sources.tables.get(name)?)))
    };
    let bytes = wanted().map(|(_, _, files)| files.bytes()).sum();
    let mut progress = Progress::start(bytes, args.json);
    for (name, known, files) in wanted() {
        if state.as_ref().is_some_and(|state| state.is_done(name)) {
            progress.finish_table(files.bytes());
            continue;
        }
        progress.start_table(&name.to_string());
        let mut table = TableImport {
            args,
            name,
            files,
            window: &window,
            interrupt,
            progress: &mut progress,
        };
        let imported = table.run(known, target.as_deref_mut(), state.as_deref_mut(), report);
        if let Err(error) = imported {
            progress.finish();
            return Err(error);
        }
        if let Some(state) = &mut state {
            state.finish(name)?;
        }
        progress.finish_table(files.bytes());
    }
    progress.finish();
    Ok(())
}

/// The import of one table.
struct TableImport<'a> {
    args: &'a ImportArgs,
    name: &'a TableName,
    files: &'a TableFiles,
    window: &'a Window,
    interrupt: &'a Interrupt,
    progress: &'a mut Progress,
}

impl TableImport<'_> {
    fn run(
        &mut self,
        known: &KnownShapes,
        target: Option<&mut Target>,
        state: Option<&mut State>,
        report: &mut Report,
    ) -> Result<()> {
        let started = Instant::now();
        let since_us = self.args.since.map(|since| since.us);
        let mut open = self.files.open(since_us)?;
        let shapes = KnownTable {
            target: known.target.as_ref(),
            source: known.source.as_ref(),
        };
        let layout = TableLayout::new(self.name, &mut open.sstables, shapes)?;
        if since_us.is_some() && layout.is_counter {
            return Err(since::refused_counters(self.name));
        }
        let from_token = state.as_ref().and_then(|state| state.resume_token(self.name));
        let mut target = target.filter(|_| !self.args.dry_run);
        let counters_at_us = match &mut target {
            Some(target) => self.counters_at_us(&layout, known, from_token, target)?,
            None => None,
        };
        let options = MergeOptions {
            from_token,
            counters_at_us,
            since_us,
            ..MergeOptions::default()
        };
        let mut table = TableReport {
            name: self.name.clone(),
            sstables: open.sstables.len(),
            older_sstables: open.older,
            statistics: Statistics::default(),
            bytes: 0,
            time: Duration::ZERO,
            left_out: layout.left_out.clone(),
            is_resumed: from_token.is_some(),
            is_complete: false,
        };
        let statement = layout.statement();
        let merge = Merge::open(Arc::new(layout), &open.sstables, &open.files, options)?;
        let batches = Batches::new(merge, BATCH_BYTES);
        let result = match target {
            None => self.read_all(batches, &mut table),
            Some(target) => {
                let job = Job {
                    name: self.name,
                    statement: &statement,
                    target,
                    window: self.window,
                    interrupt: self.interrupt,
                };
                pipeline::send_all(&job, batches, self.progress, state, &mut table)
            }
        };
        table.time = started.elapsed();
        table.is_complete = result.is_ok();
        report.tables.push(table);
        result
    }

    /// Returns the timestamp of counters' totals. Refuses to add to values that the target has.
    fn counters_at_us(
        &self,
        layout: &TableLayout,
        known: &KnownShapes,
        from_token: Option<i64>,
        target: &mut Target,
    ) -> Result<Option<i64>> {
        if !layout.is_counter {
            return Ok(None);
        }
        if self.args.counters == Some(Counters::Replace) {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            return Ok(i64::try_from(now.as_micros()).ok());
        }
        if !known.is_new && from_token.is_none() && target.has_rows(self.name)? {
            bail!(
                "{}: the target's counters have values. Give --counters replace to write the source's totals over them, or choose \
                 others with --table",
                self.name
            );
        }
        Ok(None)
    }

    /// Reads everything, as a dry run.
    fn read_all(&mut self, mut batches: Batches, table: &mut TableReport) -> Result<()> {
        while let Some(batch) = batches.next_batch()? {
            self.progress.advance(batch.bytes_read, batch.statistics.rows);
            if self.interrupt.is_set() {
                return Err(interrupted());
            }
        }
        table.statistics = batches.statistics().clone();
        table.bytes = batches.bytes_read();
        Ok(())
    }
}
