//! Flags of the commands that send load. Names and meanings are the same as in tlp-stress.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use scylla::statement::{Consistency, SerialConsistency};
use serde::{Serialize, Serializer};

use super::dynamic;
use crate::data::keys::Picking;
use crate::numbers;

/// Arguments of `populate`, `run` and `verify`.
#[derive(clap::Args, Serialize, Clone, Debug)]
pub struct LoadArgs {
    /// The workload, by its name or an alias (see `list`)
    #[arg(value_name = "WORKLOAD")]
    pub workload: String,
    #[command(flatten)]
    #[serde(flatten)]
    pub connect: ConnectArgs,
    #[command(flatten)]
    #[serde(flatten)]
    pub schema: SchemaArgs,
    #[command(flatten)]
    #[serde(flatten)]
    pub load: RateArgs,
    #[command(flatten)]
    #[serde(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    #[serde(flatten)]
    pub server: ServerArgs,
}

/// Addresses of the server, and the options of its connections.
#[derive(clap::Args, Serialize, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub struct ConnectArgs {
    /// Contact points, separated by commas; each may have a port
    #[arg(
        long,
        value_name = "HOST[:PORT],…",
        default_value = "127.0.0.1",
        value_delimiter = ','
    )]
    pub host: Vec<String>,
    /// The port of contact points without one
    #[arg(long, default_value_t = 9042)]
    pub port: u16,
    #[arg(long, short = 'U', default_value = "cassandra")]
    pub username: String,
    #[arg(long, short = 'P', default_value = "cassandra", hide_default_value = true)]
    #[serde(skip)]
    pub password: String,
    /// Encrypt the connections, and verify the server's certificate
    #[arg(long, alias = "ssl")]
    pub tls: bool,
    /// The authority that signed the server's certificate, as a PEM file [default: those that the system trusts]
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub tls_authority: Option<PathBuf>,
    /// Consistency of reads and writes
    #[arg(long, value_name = "LEVEL", default_value = "local_one", ignore_case = true)]
    pub cl: Level,
    /// Consistency of the Paxos round of lightweight transactions
    #[arg(
        long,
        value_name = "LEVEL",
        default_value = "local_serial",
        ignore_case = true
    )]
    pub scl: SerialLevel,
    /// Prefer this datacenter's nodes
    #[arg(long)]
    pub dc: Option<String>,
    /// Connections to each node
    #[arg(long, aliases = ["core-connections", "max-connections"], value_name = "N", default_value_t = 4)]
    pub connections: usize,
    /// Compress frames
    #[arg(long, value_name = "KIND")]
    pub frame_compression: Option<FrameCompression>,
    /// Rows per page
    #[arg(long, value_name = "ROWS", default_value_t = 5000)]
    pub paging: i32,
    /// Maximum time to wait for an answer before it counts as an error
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = numbers::duration)]
    #[serde(serialize_with = "seconds")]
    pub timeout: Duration,
}

impl ConnectArgs {
    /// Returns each contact point as `host:port`.
    pub fn addresses(&self) -> Vec<String> {
        let with_port = |host: &String| match host.rsplit_once(':') {
            Some((name, port))
                if port.parse::<u16>().is_ok() && (!name.contains(':') || name.ends_with(']')) =>
            {
                host.clone()
            }
            _ if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{}", self.port),
            _ => format!("{host}:{}", self.port),
        };
        self.host.iter().map(with_port).collect()
    }
}

/// Keyspace and tables.
#[derive(clap::Args, Serialize, Clone, Debug, Default)]
#[command(next_help_heading = "Schema")]
pub struct SchemaArgs {
    #[arg(long, default_value = "helenus_stress", value_parser = keyspace_name)]
    pub keyspace: String,
    /// Replication of the keyspace: a number of replicas, or CQL's map [default: the number of nodes, at most 3]
    #[arg(long, value_name = "OPTIONS")]
    pub replication: Option<String>,
    /// Compaction of each table: CQL's map, or a short form of tlp-stress (stcs, lcs, twcs)
    #[arg(long, value_name = "OPTIONS")]
    pub compaction: Option<String>,
    /// Compression of each table: CQL's map
    #[arg(long, value_name = "OPTIONS")]
    pub compression: Option<String>,
    /// Row cache of each table: ALL, NONE or a number
    #[arg(long, value_name = "ROWS")]
    pub rowcache: Option<String>,
    /// Key cache of each table: ALL or NONE
    #[arg(long, value_name = "KEYS")]
    pub keycache: Option<String>,
    /// Default time to live of each table, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub ttl: u64,
    /// Drop the keyspace before starting
    #[arg(long)]
    pub drop: bool,
    /// Create neither keyspace nor tables, because they exist
    #[arg(long)]
    pub no_schema: bool,
    /// A statement to run after the tables are created; may be given several times
    #[arg(long, value_name = "CQL")]
    pub cql: Vec<String>,
}

/// Size and rate of the load, and the choice of its keys.
#[derive(clap::Args, Serialize, Clone, Debug)]
#[command(next_help_heading = "Load")]
pub struct RateArgs {
    /// Threads. A thread is a stream of requests with its own keys, not a thread of the operating system
    #[arg(long, short, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub threads: u32,
    /// Requests in flight per thread
    #[arg(long, short, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub concurrency: u32,
    /// Operations per thread [default: 1M, unless -d is given]
    #[arg(long, short = 'n', short_alias = 'i', value_name = "N", value_parser = numbers::count, conflicts_with = "duration")]
    pub iterations: Option<u64>,
    /// Duration of the run: seconds, or 30m, 1d 3h
    #[arg(long, short, value_name = "TIME", value_parser = numbers::duration)]
    #[serde(serialize_with = "optional_seconds")]
    pub duration: Option<Duration>,
    /// Time of warm-up before the run, under the same load but not counted
    #[arg(long, value_name = "TIME", value_parser = numbers::duration)]
    #[serde(serialize_with = "optional_seconds")]
    pub warmup: Option<Duration>,
    /// Operations per second of all threads together. The loop is open: a request's response time counts from when it was due. Without a
    /// rate (or with 0) the loop is closed: a thread sends a request when another was answered
    #[arg(long, value_name = "N", default_value = "0", value_parser = numbers::rate)]
    pub rate: f64,
    /// Keys per thread [default: the workload's]
    #[arg(long, short, value_name = "N", value_parser = numbers::count)]
    pub partitions: Option<u64>,
    /// Share of reads, 0 to 1 [default: the workload's]
    #[arg(long, short, visible_alias = "reads", alias = "read-rate", value_name = "PART", value_parser = numbers::ratio)]
    pub readrate: Option<f64>,
    /// Only this operation of the workload; may be given several times
    #[arg(long, value_name = "OPERATION")]
    pub only: Vec<String>,
    /// Share of deletions, 0 to 1 [default: the workload's]
    #[arg(long, visible_alias = "deletes", value_name = "PART", value_parser = numbers::ratio)]
    pub deleterate: Option<f64>,
    /// Distribution of the keys
    #[arg(
        long,
        visible_alias = "pg",
        value_name = "HOW",
        default_value = "random",
        ignore_case = true
    )]
    pub partitiongenerator: Picking,
    /// First part of each key; must differ between several loaders
    #[arg(long, default_value = "001")]
    pub id: String,
    /// Write this number of keys per thread before starting, each once (`all`: as many as -p)
    #[arg(long, value_name = "N", value_parser = populate_count)]
    #[serde(serialize_with = "populate_text")]
    pub populate: Option<u64>,
    /// Only these keys, FROM..TO, numbered over all threads (for `populate` and `verify`)
    #[arg(long, value_name = "FROM..TO", value_parser = numbers::range)]
    pub range: Option<(u64, Option<u64>)>,
    /// A parameter of the workload, as --workload.NAME=VALUE (see `info`)
    #[arg(long, value_name = "NAME=VALUE", value_parser = dynamic::pair, hide = true)]
    pub workload_parameter: Vec<(String, String)>,
    /// The generator of a column, as --field.TABLE.COLUMN=GENERATOR (see `info` and `fields`)
    #[arg(long, value_name = "FIELD=GENERATOR", value_parser = dynamic::pair, hide = true)]
    pub field_generator: Vec<(String, String)>,
    /// Seed of the random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    #[serde(skip)]
    pub ignored: IgnoredArgs,
}

/// Value of `--populate all`, which means every key.
pub const POPULATE_ALL: u64 = u64::MAX;

/// Destinations of results.
#[derive(clap::Args, Serialize, Clone, Debug)]
#[command(next_help_heading = "Results")]
pub struct OutputArgs {
    /// Folder of the result [default: stress-results/WORKLOAD-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Name of the endpoint in tables and plots [default: server and version]
    #[arg(long, value_name = "NAME")]
    pub label: Option<String>,
    /// Write the intervals to this file too (they are always in the result's folder)
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "")]
    pub csv: Option<String>,
    /// Write the latency distributions as text too, to PREFIX-OPERATION.txt
    #[arg(long, value_name = "PREFIX")]
    pub hdr: Option<String>,
    /// Show no progress, only the final table
    #[arg(long, short)]
    #[serde(skip)]
    pub quiet: bool,
}

/// Figures of the server that are recorded.
#[derive(clap::Args, Serialize, Clone, Debug, Default)]
#[command(next_help_heading = "Server")]
pub struct ServerArgs {
    /// The server's processes on this machine, separated by commas: their CPU time and memory are recorded
    #[arg(long, value_name = "PID,…", value_delimiter = ',')]
    pub server_pid: Vec<u32>,
    /// A page of metrics in Prometheus' text format, which is read every second
    #[arg(long, value_name = "URL")]
    pub metrics: Option<String>,
    /// A metric of that page to record, as the sum of its series; may be given several times [default: a choice of Helenus's]
    #[arg(long, value_name = "NAME")]
    pub gauge: Vec<String>,
}

/// Arguments of `compare`.
#[derive(clap::Args, Clone, Debug)]
pub struct CompareArgs {
    /// Contact points of side A
    #[arg(long, value_name = "HOST[:PORT],…")]
    pub a: String,
    /// Contact points of side B
    #[arg(long, value_name = "HOST[:PORT],…")]
    pub b: String,
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Name of a side in tables and plots [default: its contact points]
    #[arg(long, value_name = "NAME")]
    pub label_a: Option<String>,
    #[arg(long, value_name = "NAME")]
    pub label_b: Option<String>,
    /// A side's processes on this machine: their CPU time and memory are recorded
    #[arg(long, value_name = "PID,…", value_delimiter = ',')]
    pub pid_a: Vec<u32>,
    #[arg(long, value_name = "PID,…", value_delimiter = ',')]
    pub pid_b: Vec<u32>,
    /// A side's page of metrics
    #[arg(long, value_name = "URL")]
    pub metrics_a: Option<String>,
    #[arg(long, value_name = "URL")]
    pub metrics_b: Option<String>,
    /// More arguments of `run` for side A, in one word; this can compare two settings on one server
    #[arg(
        long,
        value_name = "ARGUMENTS",
        default_value = "",
        allow_hyphen_values = true
    )]
    pub args_a: String,
    #[arg(
        long,
        value_name = "ARGUMENTS",
        default_value = "",
        allow_hyphen_values = true
    )]
    pub args_b: String,
    /// Stop the processes of one side (SIGSTOP) while the other is measured
    #[arg(long)]
    pub pause: bool,
    /// Folder of the results [default: stress-results/compare-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The arguments of `run`, without the host
    #[arg(last = true, required = true, value_name = "RUN ARGUMENTS")]
    pub run: Vec<OsString>,
}

/// Arguments of `repro`.
#[derive(clap::Args, Clone, Debug)]
pub struct ReproArgs {
    /// The experiment: many-tables (A), dense-kv (B), batch-mutate (C), user-quorum (D), tombstones (E), overload (F) or
    /// table-count (G)
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Scale of the experiment; 1 is the size in the report
    #[arg(long, value_name = "F", default_value_t = 0.01, value_parser = scale)]
    pub scale: f64,
    /// Duration of each step that has no end of its own [default: by the scale]
    #[arg(long, short, value_name = "TIME", value_parser = numbers::duration)]
    pub duration: Option<Duration>,
    #[command(flatten)]
    pub connect: ConnectArgs,
    #[command(flatten)]
    pub schema: SchemaArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Flags of tlp-stress without a meaning here. They are accepted, so that its command lines work.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct IgnoredArgs {
    #[arg(long, visible_alias = "co", hide = true)]
    pub coordinatoronly: bool,
    #[arg(long, hide = true)]
    pub prometheusport: Option<String>,
    #[arg(long, hide = true)]
    pub queue: Option<String>,
    #[arg(long, hide = true)]
    pub max_requests: Option<String>,
    #[arg(long, hide = true)]
    pub paginate: bool,
}

impl IgnoredArgs {
    /// Returns the ignored flags that were given.
    pub fn given(&self) -> Vec<&'static str> {
        [
            ("--coordinatoronly", self.coordinatoronly),
            ("--prometheusport", self.prometheusport.is_some()),
            ("--queue", self.queue.is_some()),
            ("--max-requests", self.max_requests.is_some()),
            ("--paginate", self.paginate),
        ]
        .into_iter()
        .filter_map(|(flag, given)| given.then_some(flag))
        .collect()
    }
}

/// CQL's consistency levels.
#[derive(clap::ValueEnum, Serialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[value(rename_all = "snake_case")]
pub enum Level {
    Any,
    One,
    Two,
    Three,
    Quorum,
    All,
    LocalQuorum,
    EachQuorum,
    Serial,
    LocalSerial,
    LocalOne,
}

impl From<Level> for Consistency {
    fn from(level: Level) -> Self {
        match level {
            Level::Any => Consistency::Any,
            Level::One => Consistency::One,
            Level::Two => Consistency::Two,
            Level::Three => Consistency::Three,
            Level::Quorum => Consistency::Quorum,
            Level::All => Consistency::All,
            Level::LocalQuorum => Consistency::LocalQuorum,
            Level::EachQuorum => Consistency::EachQuorum,
            Level::Serial => Consistency::Serial,
            Level::LocalSerial => Consistency::LocalSerial,
            Level::LocalOne => Consistency::LocalOne,
        }
    }
}

/// Consistency levels of lightweight transactions.
#[derive(clap::ValueEnum, Serialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[value(rename_all = "snake_case")]
pub enum SerialLevel {
    Serial,
    LocalSerial,
}

impl From<SerialLevel> for SerialConsistency {
    fn from(level: SerialLevel) -> Self {
        match level {
            SerialLevel::Serial => SerialConsistency::Serial,
            SerialLevel::LocalSerial => SerialConsistency::LocalSerial,
        }
    }
}

/// Compressions of frames.
#[derive(clap::ValueEnum, Serialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum FrameCompression {
    Lz4,
    Snappy,
}

fn keyspace_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.len() <= 48 && text.chars().all(plain) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(format!(
        "{text:?} is no name of a keyspace: at most 48 letters, digits and underscores, a letter first"
    ))
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if scale > 0.0 && scale <= 100.0 => Ok(scale),
        _ => Err(format!("{text:?} is not a scale, like 0.01")),
    }
}

fn populate_count(text: &str) -> Result<u64, String> {
    if text.eq_ignore_ascii_case("all") {
        Ok(POPULATE_ALL)
    } else {
        numbers::count(text)
    }
}

fn populate_text<S: Serializer>(count: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    match count {
        Some(POPULATE_ALL) => serializer.serialize_str("all"),
        count => count.serialize(serializer),
    }
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

fn optional_seconds<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => seconds(duration, serializer),
        None => serializer.serialize_none(),
    }
}
