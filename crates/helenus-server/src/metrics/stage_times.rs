//! The time that a request takes in each stage, from its first byte to the last byte of its response.

use std::fmt::{self, Write};
use std::time::{Duration, Instant};

use helenus_query::measurement::RequestMeasurement;

/// The times at which a request arrived and began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Times at which the first and the last byte of the request were read.
    pub first_byte: Instant,
    pub last_byte: Instant,
    /// Time at which the request began to run.
    pub begun: Instant,
}

/// The stages of a request, in order. A request may pass some of them more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestStage {
    /// From the first byte of the request to its last.
    Receive,
    /// Waiting in the queue of the connection, and for room among the running requests.
    Wait,
    Parse,
    /// Waiting for the locks of partitions.
    Lock,
    /// Waiting until the store admits the write.
    Admission,
    /// From entering the log's queue until the log is synced and the write is visible to reads.
    Log,
    /// Waiting for blocks of SSTables.
    Read,
    /// Waiting for the node that owns the tablet.
    Owner,
    /// All the rest: computing, and waiting for a core.
    Run,
}

impl RequestStage {
    pub const ALL: [RequestStage; 9] = [
        RequestStage::Receive,
        RequestStage::Wait,
        RequestStage::Parse,
        RequestStage::Lock,
        RequestStage::Admission,
        RequestStage::Log,
        RequestStage::Read,
        RequestStage::Owner,
        RequestStage::Run,
    ];

    pub fn name(self) -> &'static str {
        match self {
            RequestStage::Receive => "receive",
            RequestStage::Wait => "wait",
            RequestStage::Parse => "parse",
            RequestStage::Lock => "lock",
            RequestStage::Admission => "admission",
            RequestStage::Log => "log",
            RequestStage::Read => "read",
            RequestStage::Owner => "owner",
            RequestStage::Run => "run",
        }
    }
}

/// The time that a request spent in each stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StageTimes {
    stages: [Duration; RequestStage::ALL.len()],
}

impl StageTimes {
    pub fn new(arrival: &Arrival, measurement: &RequestMeasurement, answered: Instant) -> StageTimes {
        let RequestMeasurement { statement, store } = measurement;
        let known = [
            statement.parsing_ns,
            statement.lock_ns,
            store.admission_ns,
            store.log_ns,
            store.read_wait_ns,
            statement.owner_ns,
        ]
        .map(Duration::from_nanos);
        let [parse, lock, admission, log, read, owner] = known;
        let ran = answered.saturating_duration_since(arrival.begun);
        StageTimes {
            stages: [
                arrival.last_byte.saturating_duration_since(arrival.first_byte),
                arrival.begun.saturating_duration_since(arrival.last_byte),
                parse,
                lock,
                admission,
                log,
                read,
                owner,
                ran.saturating_sub(known.iter().sum()),
            ],
        }
    }

    pub fn stages(&self) -> impl Iterator<Item = (RequestStage, Duration)> + '_ {
        RequestStage::ALL.into_iter().zip(self.stages)
    }
}

/// Shows the stages that took at least a tenth of a millisecond, such as `log 12.3, run 0.4`, in ms.
impl fmt::Display for StageTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        for (stage, took) in self.stages() {
            let took_ms = took.as_secs_f64() * 1e3;
            if took_ms < 0.1 {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                f.write_str(", ")?;
            }
            f.write_str(stage.name())?;
            f.write_char(' ')?;
            write!(f, "{took_ms:.1}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "stage_times_tests.rs"]
mod tests;
