//! The pipeline of one table: one thread merges, several send, and that of the caller notes acknowledgements.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use helenus_import::TableName;
use helenus_import::batch::{Batch, Batches};
use helenus_import::merge::Statistics;

use super::probe::probe;
use super::progress::Progress;
use super::report::TableReport;
use super::sender::Sender;
use super::state::State;
use super::target::Target;
use super::window::Window;
use crate::shell::client::interrupted;
use crate::shell::interrupt::Interrupt;

/// Connections, and the maximum number of batches in flight.
pub const SENDERS: usize = 16;
/// Batches that are merged ahead of those in flight.
const AHEAD: usize = 2;
/// Minimum time between two writes of the state.
const STATE_INTERVAL: Duration = Duration::from_secs(1);

/// The rows of one table, and their way.
pub struct Job<'a> {
    pub name: &'a TableName,
    pub statement: &'a str,
    pub target: &'a Target,
    pub window: &'a Window,
    pub interrupt: &'a Interrupt,
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

/// Sends all batches, and notes in the state and the report what is acknowledged.
pub fn send_all(
    job: &Job<'_>,
    batches: Batches,
    progress: &mut Progress,
    mut state: Option<&mut State>,
    table: &mut TableReport,
) -> Result<()> {
    let (name, window, interrupt) = (job.name.to_string(), job.window, job.interrupt);
    let (merged, to_send) = sync_channel::<Numbered>(AHEAD);
    let to_send = Mutex::new(to_send);
    let (answers, answered) = channel::<Result<Acknowledged>>();
    let is_over = AtomicBool::new(false);
    let is_sent = AtomicBool::new(false);
    let mut sent = Sent::default();
    let mut failed = None;
    let read = thread::scope(|scope| {
        let reader = scope.spawn(|| read_batches(batches, merged, &is_over, interrupt));
        for (_, server) in (0..SENDERS).zip(job.target.servers.iter().cycle()) {
            let answers = answers.clone();
            let (to_send, is_over) = (&to_send, &is_over);
            let mut sender = Sender::new(server, job.target.login.clone(), job.statement, window);
            scope.spawn(move || {
                while let Some(answer) = send_next(&mut sender, to_send, window, is_over, interrupt) {
                    let _ = answers.send(answer);
                }
            });
        }
        drop(answers);
        if window.needs_probes() {
            for (node, server) in job.target.servers.iter().enumerate() {
                let (login, is_sent) = (job.target.login.clone(), &is_sent);
                scope.spawn(move || probe(server, login, node, window, is_sent));
            }
        }
        let mut noted = Instant::now();
        for answer in answered {
            let acknowledged = match answer {
                Ok(acknowledged) => acknowledged,
                Err(error) => {
                    failed.get_or_insert(error);
                    continue;
                }
            };
            progress.advance(acknowledged.bytes_read, acknowledged.rows);
            sent.add(acknowledged);
            if let (Some(state), Some(token)) = (&mut state, sent.resume_token)
                && noted.elapsed() >= STATE_INTERVAL
            {
                noted = Instant::now();
                if let Err(error) = state.reach(job.name, token) {
                    failed.get_or_insert(error);
                    is_over.store(true, Ordering::Relaxed);
                }
            }
        }
        is_sent.store(true, Ordering::Relaxed);
        reader
            .join()
            .unwrap_or_else(|_| Err(anyhow!("{name}: the reader has failed; report this error")))
    });
    table.statistics = sent.statistics;
    table.bytes = sent.bytes_read;
    let result = match (failed, read) {
        _ if interrupt.is_set() => Err(interrupted()),
        (Some(error), _) => Err(error.context(format!("{name}: rows can't be sent"))),
        (None, Ok((statistics, bytes_read))) => {
            table.statistics = statistics;
            table.bytes = bytes_read;
            Ok(())
        }
        (None, Err(error)) => Err(error),
    };
    if let (Err(_), Some(state), Some(token)) = (&result, state, sent.resume_token) {
        state.reach(job.name, token)?;
    }
    result
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
