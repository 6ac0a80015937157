//! Flags of the commands that send load. Names and meanings are tlp-stress's where it has them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use scylla::statement::{Consistency, SerialConsistency};
use serde::{Serialize, Serializer};

use super::dynamic;
use crate::data::keys::Picking;
use crate::numbers;

/// Everything that `populate`, `run` and `verify` take.
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

/// Where the server is and how to speak to it.
#[derive(clap::Args, Serialize, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub struct ConnectArgs {
    /// Contact points, with commas between them; each may carry a port
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
    /// Encrypt, and check who the server is
    #[arg(long, alias = "ssl")]
    pub tls: bool,
    /// Who has signed the server's certificate, as a PEM file [default: whom the system trusts]
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
    /// Rows a page
    #[arg(long, value_name = "ROWS", default_value_t = 5000)]
    pub paging: i32,
    /// How long to wait for an answer before it counts as an error
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = numbers::duration)]
    #[serde(serialize_with = "seconds")]
    pub timeout: Duration,
}

impl ConnectArgs {
    /// `host:port` of each contact point.
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
    /// Replication of the keyspace: a number of copies, or CQL's map [default: as many as nodes, 3 at most]
    #[arg(long, value_name = "OPTIONS")]
    pub replication: Option<String>,
    /// Compaction of each table: CQL's map, or stcs, lcs, twcs with tlp-stress's short forms
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
    /// Neither keyspace nor tables are made: they are there
    #[arg(long)]
    pub no_schema: bool,
    /// A statement to run once the tables are there; may be given several times
    #[arg(long, value_name = "CQL")]
    pub cql: Vec<String>,
}

/// How much, how fast, over which keys.
#[derive(clap::Args, Serialize, Clone, Debug)]
#[command(next_help_heading = "Load")]
pub struct RateArgs {
    /// Threads. A thread is a stream of requests with keys of its own, not one of the operating system's
    #[arg(long, short, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub threads: u32,
    /// Requests in flight a thread
    #[arg(long, short, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub concurrency: u32,
    /// Operations a thread [default: 1M, unless -d is given]
    #[arg(long, short = 'n', short_alias = 'i', value_name = "N", value_parser = numbers::count, conflicts_with = "duration")]
    pub iterations: Option<u64>,
    /// How long to run: seconds, or 30m, 1d 3h
    #[arg(long, short, value_name = "TIME", value_parser = numbers::duration)]
    #[serde(serialize_with = "optional_seconds")]
    pub duration: Option<Duration>,
    /// Time before that, under the same load but not counted
    #[arg(long, value_name = "TIME", value_parser = numbers::duration)]
    #[serde(serialize_with = "optional_seconds")]
    pub warmup: Option<Duration>,
    /// Operations a second of all threads together: an open loop, in which a request's response time counts from when it
    /// was due. Without it (or with 0) the loop is closed: a thread sends when an answer has come
    #[arg(long, value_name = "N", default_value = "0", value_parser = numbers::rate)]
    pub rate: f64,
    /// Keys a thread [default: the workload's]
    #[arg(long, short, value_name = "N", value_parser = numbers::count)]
    pub partitions: Option<u64>,
    /// The part of reads, 0 to 1 [default: the workload's]
    #[arg(long, short, visible_alias = "reads", alias = "read-rate", value_name = "PART", value_parser = numbers::ratio)]
    pub readrate: Option<f64>,
    /// Only this operation of the workload; may be given several times
    #[arg(long, value_name = "OPERATION")]
    pub only: Vec<String>,
    /// The part of deletions, 0 to 1 [default: the workload's]
    #[arg(long, visible_alias = "deletes", value_name = "PART", value_parser = numbers::ratio)]
    pub deleterate: Option<f64>,
    /// How keys are chosen
    #[arg(
        long,
        visible_alias = "pg",
        value_name = "HOW",
        default_value = "random",
        ignore_case = true
    )]
    pub partitiongenerator: Picking,
    /// First part of each key; give each of several loaders its own
    #[arg(long, default_value = "001")]
    pub id: String,
    /// Write so many keys a thread before starting, each once (`all`: as many as -p says)
    #[arg(long, value_name = "N", value_parser = populate_count)]
    #[serde(serialize_with = "populate_text")]
    pub populate: Option<u64>,
    /// Of `populate` and `verify`: only these of the keys, FROM..TO, numbered through all threads
    #[arg(long, value_name = "FROM..TO", value_parser = numbers::range)]
    pub range: Option<(u64, Option<u64>)>,
    /// A parameter of the workload, as --workload.NAME=VALUE (see `info`)
    #[arg(long, value_name = "NAME=VALUE", value_parser = dynamic::pair, hide = true)]
    pub workload_parameter: Vec<(String, String)>,
    /// What fills a column, as --field.TABLE.COLUMN=GENERATOR (see `info` and `fields`)
    #[arg(long, value_name = "FIELD=GENERATOR", value_parser = dynamic::pair, hide = true)]
    pub field_generator: Vec<(String, String)>,
    /// Seed of the random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    #[serde(skip)]
    pub ignored: IgnoredArgs,
}

/// `--populate all` means every key.
pub const POPULATE_ALL: u64 = u64::MAX;

/// Where results go.
#[derive(clap::Args, Serialize, Clone, Debug)]
#[command(next_help_heading = "Results")]
pub struct OutputArgs {
    /// Folder of the result [default: stress-results/WORKLOAD-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// What the endpoint is called in tables and plots [default: server and version]
    #[arg(long, value_name = "NAME")]
    pub label: Option<String>,
    /// Also write the intervals to this file (the result's folder has them in any case)
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "")]
    pub csv: Option<String>,
    /// Also write the latency distributions as text, to PREFIX-OPERATION.txt
    #[arg(long, value_name = "PREFIX")]
    pub hdr: Option<String>,
    /// No progress, only the final table
    #[arg(long, short)]
    #[serde(skip)]
    pub quiet: bool,
}

/// What to watch of the server.
#[derive(clap::Args, Serialize, Clone, Debug, Default)]
#[command(next_help_heading = "Server")]
pub struct ServerArgs {
    /// The server's process on this machine: its CPU time and memory are recorded. Several with commas between them
    #[arg(long, value_name = "PID,…", value_delimiter = ',')]
    pub server_pid: Vec<u32>,
    /// A page of metrics in the text format of Prometheus to read each second
    #[arg(long, value_name = "URL")]
    pub metrics: Option<String>,
    /// A metric of that page to record, its series added up; may be given several times [default: a choice of Helenus's]
    #[arg(long, value_name = "NAME")]
    pub gauge: Vec<String>,
}

/// What `compare` takes.
#[derive(clap::Args, Clone, Debug)]
pub struct CompareArgs {
    /// Contact points of the one
    #[arg(long, value_name = "HOST[:PORT],…")]
    pub a: String,
    /// Contact points of the other
    #[arg(long, value_name = "HOST[:PORT],…")]
    pub b: String,
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// What they are called in tables and plots [default: their contact points]
    #[arg(long, value_name = "NAME")]
    pub label_a: Option<String>,
    #[arg(long, value_name = "NAME")]
    pub label_b: Option<String>,
    /// Their processes on this machine: CPU time and memory are recorded
    #[arg(long, value_name = "PID,…", value_delimiter = ',')]
    pub pid_a: Vec<u32>,
    #[arg(long, value_name = "PID,…", value_delimiter = ',')]
    pub pid_b: Vec<u32>,
    /// Their pages of metrics
    #[arg(long, value_name = "URL")]
    pub metrics_a: Option<String>,
    #[arg(long, value_name = "URL")]
    pub metrics_b: Option<String>,
    /// More arguments of `run` for the one side, in one word: two settings of one server compare as well as two servers
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
    /// Stop the processes of the one (SIGSTOP) while the other is measured
    #[arg(long)]
    pub pause: bool,
    /// Folder of the results [default: stress-results/compare-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The arguments of `run`, without host
    #[arg(last = true, required = true, value_name = "RUN ARGUMENTS")]
    pub run: Vec<OsString>,
}

/// What `repro` takes.
#[derive(clap::Args, Clone, Debug)]
pub struct ReproArgs {
    /// The experiment: many-tables (A), dense-kv (B), batch-mutate (C), user-quorum (D), tombstones (E), overload (F) or
    /// table-count (G)
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Its size, 1 being that of the report
    #[arg(long, value_name = "F", default_value_t = 0.01, value_parser = scale)]
    pub scale: f64,
    /// How long each of its steps takes, where it has no end of its own [default: by the scale]
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

/// Flags of tlp-stress that have no meaning here. They are taken, so that its command lines run.
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
    /// Those that were given.
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

/// How frames may be compressed.
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
