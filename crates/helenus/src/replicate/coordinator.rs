//! The main thread: it keeps the leases, finds new streams, watches the schema, and gives the threads their work.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use bytes::Bytes;
use helenus_import::TableName;

use super::copy::CopyJob;
use super::follow::{FollowJob, first_us, is_finished};
use super::leases::{Leases, slot_of};
use super::queue::{Job, JobKey, Queue};
use super::shared::{Phase, Shared};
use super::state::to_bigint;
use super::streams::{self, Stream};
use super::watch::Watch;
use crate::node_session::NodeSession;
use crate::shell::interrupt::Interrupt;

const INTERVAL: Duration = Duration::from_millis(500);
/// Lag of an ended stream from which those that follow it wait. A deletion must not arrive so long before an older write that the target has
/// forgotten it: Helenus remembers deletions for ten minutes.
const PREDECESSOR_LAG_MAX_US: i64 = 120_000_000;

/// The main thread of the process.
pub struct Coordinator<'a> {
    shared: &'a Shared,
    queue: &'a Queue,
    watch: Watch<'a>,
    session: NodeSession,
    leases: Leases,
    /// Time of the last renewal. `None` before the first one.
    renewed_at: Option<Instant>,
    /// Streams that had ended, and of which everything was sent, before this process saw them.
    ended: HashSet<JobKey>,
    /// Tables whose stop is noted in the state.
    noted: BTreeSet<usize>,
    /// Time of the last message about a failure. `None` if the last tick succeeded.
    failed_at: Option<Instant>,
}

/// Returns the time of the source in ms since 1970.
pub fn source_time_ms(session: &mut NodeSession) -> Result<i64> {
    let found = session.first_row(
        "SELECT toTimestamp(now()) FROM system.local WHERE key = 'local'",
        &[],
    )?;
    let time = found.and_then(|(row, _)| row.into_iter().next().flatten());
    time.as_deref()
        .and_then(to_bigint)
        .ok_or_else(|| anyhow!("the source has not answered with its time; give nodes of Helenus to --from"))
}

impl<'a> Coordinator<'a> {
    pub fn new(shared: &'a Shared, queue: &'a Queue, watch: Watch<'a>, lease: Duration) -> Coordinator<'a> {
        let worker = uuid::Uuid::new_v4().to_string();
        Coordinator {
            shared,
            queue,
            watch,
            session: NodeSession::new(&shared.source, 0, None),
            leases: Leases::new(shared.state.clone(), worker, lease),
            renewed_at: None,
            ended: HashSet::new(),
            noted: BTreeSet::new(),
            failed_at: None,
        }
    }

    /// Coordinates until the process is to end, or all tables have stopped. Returns the tables that have stopped, with the reasons.
    pub fn run(mut self) -> Vec<(TableName, String)> {
        while !self.shared.interrupt.is_set() && !self.has_only_stopped() {
            match self.tick() {
                Ok(()) => self.failed_at = None,
                Err(_) if self.shared.interrupt.is_set() => {}
                Err(error)
                    if self
                        .failed_at
                        .is_none_or(|at| at.elapsed() > Duration::from_secs(10)) =>
                {
                    eprintln!("{error:#}; trying again");
                    self.failed_at = Some(Instant::now());
                }
                Err(_) => {}
            }
            self.shared.interrupt.sleep(INTERVAL);
        }
        self.finish()
    }

    fn has_only_stopped(&self) -> bool {
        let mut tables = self.shared.tables.iter();
        tables.all(|table| matches!(table.phase(), Phase::Stopped(_)))
    }

    /// Ends the threads, notes the tables that have stopped, and releases the leases.
    fn finish(mut self) -> Vec<(TableName, String)> {
        self.shared.interrupt.set();
        // Statements of the other session are cancelled now.
        let mut source = self.shared.source.clone();
        for server in &mut source.servers {
            server.interrupt = Interrupt::default();
        }
        self.session = NodeSession::new(&source, 0, None);
        let noted = self.stop_ended();
        if let Err(error) = noted.and_then(|()| self.leases.release_all(&mut self.session)) {
            eprintln!("the leases of this process end by themselves: {error:#}");
        }
        let phases = self
            .shared
            .tables
            .iter()
            .map(|table| (&table.name, table.phase()));
        phases
            .filter_map(|(name, phase)| match phase {
                Phase::Stopped(reason) => Some((name.clone(), reason)),
                Phase::Running(_) | Phase::Ending { .. } => None,
            })
            .collect()
    }

    fn tick(&mut self) -> Result<()> {
        self.shared.set_source_time(source_time_ms(&mut self.session)?);
        if self
            .renewed_at
            .is_none_or(|at| at.elapsed() >= self.leases.interval())
        {
            self.leases.renew(&mut self.session)?;
            self.renewed_at = Some(Instant::now());
            self.see_copied()?;
        }
        self.watch.check(self.shared)?;
        let streams = streams::read(&mut self.session)?;
        let ends = streams
            .iter()
            .filter_map(|stream| Some((stream.id.clone(), stream.end_us?)));
        self.shared.set_ends(ends.collect());
        self.assign(&streams)?;
        self.stop_ended()
    }

    /// Gives the threads the work of this process's slots.
    fn assign(&mut self, streams: &[Stream]) -> Result<()> {
        let mut keys = BTreeSet::new();
        let mut from = BTreeMap::new();
        for (position, table) in self.shared.tables.iter().enumerate() {
            if matches!(table.phase(), Phase::Stopped(_)) {
                continue;
            }
            let ranges = table.missing_ranges().into_iter();
            let ranges = ranges.filter(|range| self.leases.has(slot_of(&range.to_be_bytes())));
            keys.extend(ranges.map(|range| JobKey::Copy(position, range)));
            let held = streams
                .iter()
                .filter(|stream| self.leases.has(slot_of(&stream.id)));
            // Times up to which streams were sent. `None` until they are needed.
            let mut sent: Option<BTreeMap<Bytes, i64>> = None;
            for stream in held {
                let key = JobKey::Follow(position, stream.id.clone());
                if self.ended.contains(&key) {
                    continue;
                }
                if self.queue.knows(&key) {
                    keys.insert(key);
                    continue;
                }
                let sent = match &sent {
                    Some(sent) => sent,
                    None => sent.insert(self.shared.state.streams(&mut self.session, &table.name)?),
                };
                let until_us = sent.get(&stream.id).copied();
                let until_us = until_us.unwrap_or_else(|| first_us(table.start_us, stream.begin_us));
                let is_old = is_finished(table.start_us.max(until_us), stream.end_us);
                if is_old {
                    self.ended.insert(key);
                } else if !self.must_wait(stream, streams, sent, table.start_us) {
                    from.insert(key.clone(), until_us);
                    keys.insert(key);
                }
            }
        }
        let tables = &self.shared.tables;
        let gone = self.queue.want(&keys, |key| match key {
            JobKey::Copy(table, range) => {
                let ranges = tables.get(*table)?.ranges;
                Some(Job::Copy(CopyJob::new(*table, *range, ranges)))
            }
            JobKey::Follow(table, stream) => {
                let until_us = *from.get(key)?;
                Some(Job::Follow(FollowJob::new(*table, stream.clone(), until_us)))
            }
        });
        for key in gone {
            if let JobKey::Follow(table, stream) = key {
                self.shared.forget(table, &stream);
            }
        }
        Ok(())
    }

    /// Finds out which ranges other processes have copied. They are not copied again when this process takes leases over.
    fn see_copied(&mut self) -> Result<()> {
        let shared = self.shared;
        for table in shared
            .tables
            .iter()
            .filter(|table| !table.missing_ranges().is_empty())
        {
            let copied = shared.state.copied(&mut self.session, &table.name)?;
            table.add_copied(copied);
        }
        Ok(())
    }

    /// Returns true if a stream has changes from before this one's, which are sent late.
    fn must_wait(
        &self,
        stream: &Stream,
        streams: &[Stream],
        sent: &BTreeMap<Bytes, i64>,
        start_us: i64,
    ) -> bool {
        let late_us = self.shared.now_us() - PREDECESSOR_LAG_MAX_US;
        streams.iter().filter(|other| stream.follows(other)).any(|other| {
            let until_us = sent.get(&other.id).copied().unwrap_or(start_us);
            !is_finished(until_us, other.end_us) && until_us < late_us
        })
    }

    /// Stops tables of which everything was sent, and notes the tables that have stopped.
    fn stop_ended(&mut self) -> Result<()> {
        let shared = self.shared;
        for (position, table) in shared.tables.iter().enumerate() {
            match table.phase() {
                Phase::Ending { reason, .. } if self.queue.is_drained(position) => table.stop(reason),
                _ => {}
            }
            if let Phase::Stopped(reason) = table.phase()
                && !self.noted.contains(&position)
            {
                shared
                    .state
                    .set_stopped(&mut self.session, &table.name, Some(&reason))?;
                self.noted.insert(position);
            }
        }
        Ok(())
    }
}
