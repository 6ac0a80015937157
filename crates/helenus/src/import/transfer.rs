//! The rows' part of an import: table after table, one thread reads and merges, and several send.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow, bail};
use helenus_import::TableName;
use helenus_import::batch::{BATCH_BYTES, Batch, Batches};
use helenus_import::merge::{Merge, MergeOptions, Statistics};
use helenus_import::source::{Sources, TableFiles};
use helenus_import::table::{KnownTable, TableLayout};

use super::args::{Counters, ImportArgs};
use super::prepare::KnownShapes;
use super::progress::Progress;
use super::report::{Report, TableReport};
use super::sender::Sender;
use super::state::State;
use super::target::Target;
use super::window::Window;
use crate::shell::interrupt::Interrupt;

/// Connections, and the maximum number of batches in flight.
const SENDERS: usize = 16;
/// Batches that are merged ahead of those in flight.
const AHEAD: usize = 2;
/// Minimum time between two writes of the state.
const STATE_INTERVAL: Duration = Duration::from_secs(1);

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
    let window = Window::new(args.rate, SENDERS);
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

/// A batch and its number within the table.
type Numbered = (u64, Batch);

/// The acknowledgement of a batch.
struct Acknowledged {
    number: u64,
    resume_token: i64,
    rows: u64,
    bytes_read: u64,
    statistics: Statistics,
}

/// The sum of the acknowledgements.
#[derive(Default)]
struct Sent {
    statistics: Statistics,
    bytes_read: u64,
    /// Tokens of acknowledged batches, behind one that isn't acknowledged.
    ahead: BTreeMap<u64, i64>,
    next: u64,
    resume_token: Option<i64>,
}

impl TableImport<'_> {
    fn run(
        &mut self,
        known: &KnownShapes,
        target: Option<&mut Target>,
        mut state: Option<&mut State>,
        report: &mut Report,
    ) -> Result<()> {
        let started = Instant::now();
        let mut sstables = self.files.open()?;
        let shapes = KnownTable {
            target: known.target.as_ref(),
            source: known.source.as_ref(),
        };
        let layout = TableLayout::new(self.name, &mut sstables, shapes)?;
        let from_token = state.as_ref().and_then(|state| state.from_token(self.name));
        let target = target.filter(|_| !self.args.dry_run);
        let options = MergeOptions {
            from_token,
            counters_at_us: None,
            ..MergeOptions::default()
        };
        let mut table = TableReport {
            name: self.name.clone(),
            sstables: sstables.len(),
            statistics: Statistics::default(),
            bytes: 0,
            time: Duration::ZERO,
            left_out: layout.left_out.clone(),
            is_resumed: from_token.is_some(),
            is_complete: false,
        };
        let result = match target {
            None => {
                let layout = Arc::new(layout);
                let merge = Merge::open(layout, &sstables, &self.files.sstables, options)?;
                self.read_all(Batches::new(merge, BATCH_BYTES), &mut table)
            }
            Some(target) => {
                let counters_at_us = self.counters_at_us(&layout, known, from_token, target)?;
                let options = MergeOptions {
                    counters_at_us,
                    ..options
                };
                let statement = layout.statement();
                let merge = Merge::open(Arc::new(layout), &sstables, &self.files.sstables, options)?;
                let batches = Batches::new(merge, BATCH_BYTES);
                self.send_all(batches, &statement, target, state.as_deref_mut(), &mut table)
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
                bail!("interrupted by Ctrl-C; run the command again");
            }
        }
        table.statistics = batches.statistics().clone();
        table.bytes = batches.bytes_read();
        Ok(())
    }

    /// Reads, sends, and notes what is acknowledged.
    fn send_all(
        &mut self,
        batches: Batches,
        statement: &str,
        target: &Target,
        mut state: Option<&mut State>,
        table: &mut TableReport,
    ) -> Result<()> {
        let (name, window, interrupt) = (self.name.to_string(), self.window, self.interrupt);
        let (merged, to_send) = sync_channel::<Numbered>(AHEAD);
        let to_send = Mutex::new(to_send);
        let (answers, answered) = channel::<Result<Acknowledged>>();
        let is_over = AtomicBool::new(false);
        let mut sent = Sent::default();
        let mut failed = None;
        let read = thread::scope(|scope| {
            let reader = scope.spawn(|| read_batches(batches, merged, &is_over, interrupt));
            for (_, server) in (0..SENDERS).zip(target.servers.iter().cycle()) {
                let answers = answers.clone();
                let (to_send, is_over) = (&to_send, &is_over);
                let mut sender = Sender::new(server, target.login.clone(), statement, window);
                scope.spawn(move || {
                    while let Some(answer) = send_next(&mut sender, to_send, window, is_over, interrupt) {
                        let _ = answers.send(answer);
                    }
                });
            }
            drop(answers);
            let mut noted = Instant::now();
            for answer in answered {
                let acknowledged = match answer {
                    Ok(acknowledged) => acknowledged,
                    Err(error) => {
                        failed.get_or_insert(error);
                        continue;
                    }
                };
                self.progress.advance(acknowledged.bytes_read, acknowledged.rows);
                sent.add(acknowledged);
                if let (Some(state), Some(token)) = (&mut state, sent.resume_token)
                    && noted.elapsed() >= STATE_INTERVAL
                {
                    noted = Instant::now();
                    if let Err(error) = state.reach(self.name, token) {
                        failed.get_or_insert(error);
                        is_over.store(true, Ordering::Relaxed);
                    }
                }
            }
            reader
                .join()
                .unwrap_or_else(|_| Err(anyhow!("{name}: the reader has failed; report this error")))
        });
        table.statistics = sent.statistics;
        table.bytes = sent.bytes_read;
        let result = match (failed, read) {
            _ if interrupt.is_set() => Err(anyhow!("interrupted by Ctrl-C; run the command again")),
            (Some(error), _) => Err(error.context(format!("{name}: rows can't be sent"))),
            (None, Ok((statistics, bytes_read))) => {
                table.statistics = statistics;
                table.bytes = bytes_read;
                Ok(())
            }
            (None, Err(error)) => Err(error),
        };
        if let (Err(_), Some(state), Some(token)) = (&result, state, sent.resume_token) {
            state.reach(self.name, token)?;
        }
        result
    }
}

impl Sent {
    fn add(&mut self, acknowledged: Acknowledged) {
        self.statistics += &acknowledged.statistics;
        self.bytes_read = self.bytes_read.max(acknowledged.bytes_read);
        self.ahead.insert(acknowledged.number, acknowledged.resume_token);
        // Batches are acknowledged in any order; only those without a gap before them count.
        while let Some(token) = self.ahead.remove(&self.next) {
            self.resume_token = Some(token);
            self.next += 1;
        }
    }
}

/// Merges batches until the end, or until the import is over. Returns the numbers of everything that was read.
fn read_batches(
    mut batches: Batches,
    merged: SyncSender<Numbered>,
    is_over: &AtomicBool,
    interrupt: &Interrupt,
) -> Result<(Statistics, u64)> {
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) || interrupt.is_set() {
            break;
        }
        let Some(batch) = batches.next_batch()? else {
            break;
        };
        if merged.send((number, batch)).is_err() {
            break;
        }
    }
    Ok((batches.statistics().clone(), batches.bytes_read()))
}

/// Sends the next batch. `None` if there are no more. After the end of the import, the remaining batches are dropped, so that the reader
/// doesn't wait for their place.
fn send_next(
    sender: &mut Sender<'_>,
    to_send: &Mutex<Receiver<Numbered>>,
    window: &Window,
    is_over: &AtomicBool,
    interrupt: &Interrupt,
) -> Option<Result<Acknowledged>> {
    loop {
        let is_inside = window.enter(|| is_over.load(Ordering::Relaxed) || interrupt.is_set());
        let next = to_send.lock().unwrap_or_else(PoisonError::into_inner).recv();
        if !is_inside {
            match next {
                Ok(_) => continue,
                Err(_) => return None,
            }
        }
        let result = next.ok().map(|(number, batch)| {
            sender.send(&batch.blob).map(|()| Acknowledged {
                number,
                resume_token: batch.resume_token,
                rows: batch.statistics.rows,
                bytes_read: batch.bytes_read,
                statistics: batch.statistics,
            })
        });
        window.leave();
        if matches!(result, Some(Err(_))) {
            is_over.store(true, Ordering::Relaxed);
        }
        return result;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acknowledged(number: u64, resume_token: i64) -> Acknowledged {
        Acknowledged {
            number,
            resume_token,
            rows: 1,
            bytes_read: number * 10,
            statistics: Statistics {
                rows: 1,
                ..Statistics::default()
            },
        }
    }

    #[test]
    fn resume_token_has_no_gap_before_it() {
        let mut sent = Sent::default();
        sent.add(acknowledged(1, 20));
        sent.add(acknowledged(2, 30));
        assert_eq!(sent.resume_token, None);
        sent.add(acknowledged(0, 10));
        assert_eq!(sent.resume_token, Some(30));
        sent.add(acknowledged(4, 50));
        assert_eq!(sent.resume_token, Some(30));
        assert_eq!((sent.statistics.rows, sent.bytes_read), (4, 40));
    }
}
