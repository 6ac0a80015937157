//! `nodetool profileload` and `toppartitions`, with the options and the format of Cassandra's. `toppartitions` is another name of
//! `profileload` (`org.apache.cassandra.tools.nodetool.ProfileLoad` and `TopPartitions`).

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use helenus_query::metrics::sampling::SamplerKind;
use serde_json::{Value, json};

use super::client::{NodeClient, TIMEOUT};
use super::output::{columns, list, text};

const SAMPLING: &str = "/node/sampling";
const CHALLENGE: &str = "/node/challenge";
const DURATION_DEFAULT_MS: i64 = 10_000;
const CAPACITY_MAX: i64 = 1024;

/// The arguments of both commands.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub(super) struct ProfileArgs {
    /// KEYSPACE TABLE DURATION, KEYSPACE TABLE, DURATION or nothing; * for all tables of a keyspace; the duration in milliseconds [default: 10000]
    #[arg(allow_negative_numbers = true)]
    arguments: Vec<String>,
    /// Capacity of the sampler, higher for more accuracy
    #[arg(
        short = 's',
        value_name = "CAPACITY",
        default_value_t = 256,
        allow_negative_numbers = true
    )]
    capacity: i64,
    /// Number of the top samples to list
    #[arg(
        short = 'k',
        value_name = "COUNT",
        default_value_t = 10,
        allow_negative_numbers = true
    )]
    top: i64,
    /// Samplers to use, separated by commas [default: all]
    #[arg(short = 'a', value_name = "SAMPLERS")]
    samplers: Option<String>,
    /// Sample in the background at this interval in milliseconds, and log the samples
    #[arg(short = 'i', long, value_name = "MILLISECONDS", allow_negative_numbers = true)]
    interval: Option<i64>,
    /// Stop the background sampling of KEYSPACE and TABLE
    #[arg(short = 't', long)]
    stop: bool,
    /// List the background samplings
    #[arg(short = 'l', long)]
    list: bool,
}

/// The parsed arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Profile {
    keyspace: Option<String>,
    table: Option<String>,
    duration_ms: i64,
    kinds: Vec<SamplerKind>,
}

pub(super) fn run(node: &NodeClient, args: &ProfileArgs) -> anyhow::Result<ExitCode> {
    let profile = args.profile()?;
    if args.interval.is_some() || args.stop {
        return schedule(node, args, &profile);
    }
    if args.list {
        let jobs = node.request(SAMPLING)?;
        print!("{}", jobs_page(jobs.as_array().map_or(&[], Vec::as_slice)));
        return Ok(ExitCode::SUCCESS);
    }
    let patience = Duration::from_millis(u64::try_from(profile.duration_ms)?) + TIMEOUT;
    let body = profile.body(args).to_string();
    let answer = node.command(SAMPLING, &body, CHALLENGE, patience)?;
    let found = node.parse(SAMPLING, &answer)?;
    println!("{}", samples_page(&profile.kinds, &found));
    Ok(ExitCode::SUCCESS)
}

fn schedule(node: &NodeClient, args: &ProfileArgs, profile: &Profile) -> anyhow::Result<ExitCode> {
    let path = match args.stop {
        true => "/node/sampling/stop",
        false => "/node/sampling/schedule",
    };
    let answer = node.command(path, &profile.body(args).to_string(), CHALLENGE, TIMEOUT)?;
    let is_done = node.parse(path, &answer)?.get("done").and_then(Value::as_bool);
    if is_done != Some(true) {
        // Java prints a missing name as null.
        let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "null".to_owned());
        let (keyspace, table) = (name(&profile.keyspace), name(&profile.table));
        match args.stop {
            true => println!(
                "Unable to stop the non-existent scheduled sampling for keyspace: {keyspace}, table: {table}"
            ),
            false => println!(
                "Unable to schedule sampling for keyspace: {keyspace}, table: {table} due to existing samplings. Stop the existing sampling jobs first."
            ),
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl ProfileArgs {
    /// Parses the arguments.
    ///
    /// # Errors
    /// Fails with Cassandra's messages.
    fn profile(&self) -> anyhow::Result<Profile> {
        ensure!(
            self.arguments.len() <= 3,
            "Invalid arguments, either [keyspace table/* duration] or [keyspace table/*] or [duration] or no args.\n\
             Optionally, use * to represent all tables under the keyspace."
        );
        ensure!(self.top > 0, "TopK count (-k) option must have positive value");
        ensure!(
            self.top < self.capacity,
            "TopK count (-k) option must be smaller then the summary capacity (-s)"
        );
        ensure!(
            self.capacity <= CAPACITY_MAX,
            "Capacity (-s) cannot exceed {CAPACITY_MAX}."
        );
        let (keyspace, table, duration) = match self.arguments.as_slice() {
            [keyspace, table, duration] => (Some(keyspace), Some(table), Some(duration)),
            [keyspace, table] => (Some(keyspace), Some(table), None),
            [duration] => (None, None, Some(duration)),
            _ => (None, None, None),
        };
        let duration_ms = duration.map_or(Ok(DURATION_DEFAULT_MS), |duration| {
            duration
                .parse()
                .with_context(|| format!("{duration} is no number of milliseconds"))
        })?;
        ensure!(duration_ms > 0, "Duration: {duration_ms} must be positive");
        if let Some(interval_ms) = self.interval {
            ensure!(
                interval_ms >= duration_ms,
                "Invalid scheduled sampling interval. Expecting interval >= duration, but interval: {interval_ms} ms; duration: {duration_ms} ms"
            );
        }
        let unless_all = |name: Option<&String>| name.filter(|name| *name != "*").cloned();
        Ok(Profile {
            keyspace: unless_all(keyspace),
            table: unless_all(table),
            duration_ms,
            kinds: kinds(self.samplers.as_deref())?,
        })
    }
}

fn kinds(names: Option<&str>) -> anyhow::Result<Vec<SamplerKind>> {
    let Some(names) = names else {
        return Ok(SamplerKind::ALL.to_vec());
    };
    let mut kinds = Vec::new();
    for name in names.split(',') {
        let Some(kind) = SamplerKind::named(&name.trim().to_uppercase()) else {
            let known = SamplerKind::ALL.map(SamplerKind::name).join(", ");
            bail!("'{name}' sampler is not available from: [{known}]");
        };
        kinds.push(kind);
    }
    Ok(kinds)
}

impl Profile {
    fn body(&self, args: &ProfileArgs) -> Value {
        json!({
            "keyspace": self.keyspace,
            "table": self.table,
            "duration_ms": self.duration_ms,
            "interval_ms": args.interval,
            "capacity": args.capacity,
            "top": args.top,
            "samplers": self.kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>(),
        })
    }
}

/// Returns the samples in the format of Cassandra's `SamplingManager.formatResult`: the samplers in its order, with an empty line between.
fn samples_page(kinds: &[SamplerKind], found: &Value) -> String {
    let wanted = SamplerKind::ALL.into_iter().filter(|kind| kinds.contains(kind));
    let parts: Vec<String> = wanted
        .map(|kind| sampler_part(kind, list(found, kind.name())))
        .collect();
    parts.join("\n")
}

fn sampler_part(kind: SamplerKind, samples: &[Value]) -> String {
    let heading = description(kind);
    if samples.is_empty() {
        return format!("{heading}:\n   Nothing recorded during sampling period...\n");
    }
    let of = |sample: &Value, name: &str| text(sample, name);
    let table = match value_heading(kind) {
        None => {
            let mut rows = vec![["  ", "Table", "Partition", "Count", "+/-"].map(str::to_owned)];
            rows.extend(samples.iter().map(|one| {
                let [table, value, count, error] =
                    ["table", "value", "count", "error"].map(|name| of(one, name));
                ["  ".to_owned(), table, value, count, error]
            }));
            columns(&rows)
        }
        Some("Microseconds") => {
            let mut rows = vec![["  ", "Query", "Microseconds"].map(str::to_owned)];
            rows.extend(
                samples
                    .iter()
                    .map(|one| ["  ".to_owned(), of(one, "value"), of(one, "count")]),
            );
            columns(&rows)
        }
        Some(count) => {
            let mut rows = vec![["  ", "Table", "Partition", count].map(str::to_owned)];
            rows.extend(samples.iter().map(|one| {
                [
                    "  ".to_owned(),
                    of(one, "table"),
                    of(one, "value"),
                    of(one, "count"),
                ]
            }));
            columns(&rows)
        }
    };
    format!("{heading}:\n{table}")
}

/// Returns Cassandra's title of a sampler.
fn description(kind: SamplerKind) -> &'static str {
    match kind {
        SamplerKind::Reads => "Frequency of reads by partition",
        SamplerKind::Writes => "Frequency of writes by partition",
        SamplerKind::LocalReadTime => "Longest read query times",
        SamplerKind::ReadRowCount => "Partitions read with the most rows",
        SamplerKind::ReadTombstoneCount => "Partitions read with the most tombstones",
        SamplerKind::ReadSstableCount => "Partitions read with the most sstables",
        SamplerKind::WriteSize => "Max mutation size by partition",
        SamplerKind::CasContentions => "Frequency of CAS contention by partition",
    }
}

/// Returns the heading of a sampler's values. `None` if the sampler counts how often a partition occurs.
fn value_heading(kind: SamplerKind) -> Option<&'static str> {
    match kind {
        SamplerKind::Reads | SamplerKind::Writes | SamplerKind::CasContentions => None,
        SamplerKind::LocalReadTime => Some("Microseconds"),
        SamplerKind::ReadRowCount => Some("Rows"),
        SamplerKind::ReadTombstoneCount => Some("Tombstones"),
        SamplerKind::ReadSstableCount => Some("SSTables"),
        SamplerKind::WriteSize => Some("Bytes"),
    }
}

/// Returns a table of the background samplings. Names are aligned to the right, as in Cassandra's tool.
fn jobs_page(jobs: &[Value]) -> String {
    let names = jobs.iter().filter_map(|job| job.as_str()?.split_once('.'));
    let names: Vec<(&str, &str)> = std::iter::once(("KEYSPACE", "TABLE")).chain(names).collect();
    let width = names
        .iter()
        .map(|(keyspace, _)| keyspace.len())
        .max()
        .unwrap_or_default();
    let line = |(keyspace, table): &(&str, &str)| format!("{keyspace:>width$} {table:>5}\n");
    names.iter().map(line).collect()
}

#[cfg(test)]
#[path = "profileload_tests.rs"]
mod tests;
