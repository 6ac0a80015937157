//! Logs of requests: the [`audit`] log, the [`full_query_log`] and the log of [`slow`] requests. The modules beside them have what several
//! logs share: the check of a log's folder, the interval of new files, and the rate limit of log lines.
//!
//! Spans of requests are in `spans/`. Logs are switched by `http/commands/`.

pub mod audit;
mod folder;
pub mod full_query_log;
pub(crate) mod rate_limit;
mod roll_cycle;
pub(crate) mod slow;

pub use roll_cycle::RollCycle;
