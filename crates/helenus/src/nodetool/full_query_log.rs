//! `nodetool getfullquerylog`, `enablefullquerylog`, `disablefullquerylog` and `resetfullquerylog`, with the options and the format of
//! Cassandra's.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::client::{NodeClient, TIMEOUT, option_lines};
use super::output::columns;

/// The options of `enablefullquerylog`. The node's settings apply to those that are not given.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FullQueryLogArgs {
    /// The folder for the log's files
    #[arg(long, value_name = "FOLDER")]
    path: Option<String>,
    /// Interval at which a new file begins: MINUTELY, HOURLY, DAILY
    #[arg(long, value_name = "CYCLE")]
    roll_cycle: Option<String>,
    /// True if requests wait while the queue is full; otherwise entries are dropped
    #[arg(long, value_name = "BOOL")]
    blocking: Option<String>,
    /// Maximum bytes of entries that wait for the disk
    #[arg(long, value_name = "BYTES")]
    max_queue_weight: Option<String>,
    /// Maximum bytes of all files; the oldest are deleted
    #[arg(long, value_name = "BYTES")]
    max_log_size: Option<String>,
    /// A command to run for each complete file; %path is replaced by the file
    #[arg(long, value_name = "COMMAND")]
    archive_command: Option<String>,
    /// Number of times that a failed archive command is run again
    #[arg(long, value_name = "N")]
    max_archive_retries: Option<String>,
}

impl FullQueryLogArgs {
    fn body(&self) -> String {
        option_lines([
            ("path", &self.path),
            ("roll_cycle", &self.roll_cycle),
            ("block", &self.blocking),
            ("max_queue_weight", &self.max_queue_weight),
            ("max_log_size", &self.max_log_size),
            ("archive_command", &self.archive_command),
            ("max_archive_retries", &self.max_archive_retries),
        ])
    }
}

pub(super) fn show(node: &NodeClient) -> anyhow::Result<ExitCode> {
    let options = node.request("/node/full_query_log")?;
    let row =
        |option: &Value| ["name", "value"].map(|field| option[field].as_str().unwrap_or_default().to_owned());
    let options = options.as_array().map_or(&[][..], Vec::as_slice);
    print!("{}", columns(&options.iter().map(row).collect::<Vec<_>>()));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn enable(node: &NodeClient, args: &FullQueryLogArgs) -> anyhow::Result<ExitCode> {
    switch(node, "enable", &args.body())
}

pub(super) fn disable(node: &NodeClient) -> anyhow::Result<ExitCode> {
    switch(node, "disable", "")
}

pub(super) fn reset(node: &NodeClient) -> anyhow::Result<ExitCode> {
    switch(node, "reset", "")
}

fn switch(node: &NodeClient, how: &str, body: &str) -> anyhow::Result<ExitCode> {
    let path = format!("/node/full_query_log/{how}");
    // The node itself waits up to TIMEOUT for its disk.
    node.command(&path, body, "/node/challenge", TIMEOUT * 2)?;
    Ok(ExitCode::SUCCESS)
}
