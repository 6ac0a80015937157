//! Plans a load: turns a command line into threads, their pace and their work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::session::Session;
use crate::cli::options::{POPULATE_ALL, RateArgs};
use crate::load::job::{Keys, Mix};
use crate::load::pace::{Pace, Schedule, Stop};
use crate::load::{Job, Numbering, Pool};
use crate::monitor::progress::End;
use crate::results::RunKind;
use crate::workloads::{Info, Setup};

/// Operations per thread, if neither a number nor a time is given.
const DEFAULT_ITERATIONS: u64 = 1_000_000;

/// The plan of a load.
pub struct Plan {
    pub pools: Vec<Pool>,
    pub stop: Stop,
    pub measure_from: Instant,
    /// Names of the kinds of operations.
    pub names: Vec<&'static str>,
    pub end: End,
    pub title: &'static str,
}

impl Plan {
    /// Returns the plan of the session's command line. `warmup` is the time before measuring begins.
    pub fn new(session: &Session<'_>, kind: RunKind, warmup: Duration) -> Result<Self> {
        let start = Instant::now();
        match kind {
            RunKind::Run => Self::mix(session, start, warmup),
            RunKind::Populate | RunKind::Verify => Self::keys(session, start, kind),
        }
    }

    fn mix(session: &Session<'_>, start: Instant, warmup: Duration) -> Result<Self> {
        let (info, load) = (session.info, &session.args.load);
        let deadline = load.duration.map(|duration| start + warmup + duration);
        let iterations = load
            .iterations
            .or((deadline.is_none()).then_some(DEFAULT_ITERATIONS));
        let threads = mixes(info, &session.setup, load)?;
        let all: f64 = threads
            .iter()
            .map(|(threads, in_flight, _)| slots(*threads, *in_flight))
            .sum();
        let mut operations = 0;
        let pools = threads
            .into_iter()
            .map(|(threads, in_flight, mix)| {
                let total = iterations.map(|iterations| iterations * u64::from(threads));
                operations += total.unwrap_or_default();
                let rate = load.rate * slots(threads, in_flight) / all;
                Pool {
                    threads,
                    in_flight,
                    job: Job::Mix(mix),
                    pace: pace(start, rate, total),
                }
            })
            .collect();
        let end = match load.duration {
            Some(duration) => End::Time(duration.as_millis() as u64),
            None => End::Count(operations),
        };
        Ok(Self {
            pools,
            stop: Stop::new(deadline, iterations),
            measure_from: start + warmup,
            names: info.operations.iter().map(|operation| operation.name).collect(),
            end,
            title: info.name,
        })
    }

    fn keys(session: &Session<'_>, start: Instant, kind: RunKind) -> Result<Self> {
        let load = &session.args.load;
        let pieces = session
            .info
            .pieces
            .map_or(Ok(1), |pieces| pieces(&session.setup))?;
        let all = session.setup.keys.partitions;
        let meant = match load.populate {
            Some(count) if count != POPULATE_ALL => count.clamp(1, all),
            _ => all,
        };
        let numbering = Numbering {
            meant: meant * pieces,
            all: all * pieces,
        };
        let total = numbering.meant.saturating_mul(session.setup.keys.threads);
        let (from, to) = load.range.unwrap_or((0, None));
        let to = to.unwrap_or(total).min(total);
        if from >= to {
            bail!("no keys to {}: there are {total}", kind.name());
        }
        let (threads, in_flight) = (load.threads, load.concurrency);
        let keys = Arc::new(Keys::new(from..to, slots(threads, in_flight) as u64));
        // Failed keys are retried, so a limit on operations would end the load too early.
        let pace = pace(start, load.rate, None);
        let (name, job) = match kind {
            RunKind::Verify => ("verify", Job::Verify { keys, numbering }),
            _ => ("populate", Job::Populate { keys, numbering }),
        };
        Ok(Self {
            pools: vec![Pool {
                threads,
                in_flight,
                job,
                pace,
            }],
            stop: Stop::new(None, None),
            measure_from: start,
            names: vec![name],
            end: End::Count(to - from),
            title: name,
        })
    }
}

/// Returns the pools of threads: number of threads, requests in flight per thread, and operations.
pub fn mixes(info: &Info, setup: &Setup, load: &RateArgs) -> Result<Vec<(u32, u32, Mix)>> {
    if let Some(pools) = info.pools {
        return pools(setup)?
            .into_iter()
            .map(|of| Ok((of.threads, of.in_flight, Mix::only(info.operations, of.class)?)))
            .collect();
    }
    let mix = match load.only.as_slice() {
        [] => Mix::new(info.operations, load.readrate, load.deleterate)?,
        names => Mix::named(info.operations, names)?,
    };
    Ok(vec![(load.threads, load.concurrency, mix)])
}

fn slots(threads: u32, in_flight: u32) -> f64 {
    f64::from(threads) * f64::from(in_flight)
}

fn pace(start: Instant, rate: f64, total: Option<u64>) -> Pace {
    if rate > 0.0 {
        Pace::Open(Schedule::new(start, rate, total))
    } else {
        Pace::Closed
    }
}
