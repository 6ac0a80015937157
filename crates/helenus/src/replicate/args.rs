//! Options of `helenus replicate`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use helenus_import::TableName;

use super::state::KEYSPACE;
use crate::shell::connection_args;
use crate::table_reading::TableFilter;

/// Copies tables of a Helenus cluster into another cluster, and then sends it their changes as they are made. The other cluster may be Helenus,
/// Cassandra or ScyllaDB. Several processes with the same name share the work. The state is kept in the first cluster.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  helenus replicate --from 10.0.0.1 --to 10.1.0.1 --keyspace shop --enable-cdc\n  helenus replicate --from helenus1 --to cassandra1 --table shop.users --no-copy\n\nThe process runs until it gets SIGINT or SIGTERM. The exit code is 0 then, and 1 if a table has stopped or after an error."
)]
pub struct ReplicateArgs {
    /// A node of the cluster whose changes are sent, as HOST or HOST:PORT; may be given several times
    #[arg(long, value_name = "HOST", required = true)]
    pub from: Vec<String>,
    /// A node of the cluster that follows
    #[arg(long, value_name = "HOST", required = true)]
    pub to: Vec<String>,
    #[command(flatten)]
    pub tables: TableFilter,
    /// The name of the replication. Processes of one name share the work [default: the hosts of --to]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Enable change data capture on tables that lack it
    #[arg(long)]
    pub enable_cdc: bool,
    /// Copy no rows; send changes from now on
    #[arg(long)]
    pub no_copy: bool,
    /// Copy all rows again, and send changes from now on
    #[arg(long, conflicts_with = "no_copy")]
    pub restart_copy: bool,
    /// Time after which all changes of a moment are visible in the log. The clocks of clients and nodes must differ by less
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = humantime::parse_duration)]
    pub settle: Duration,
    /// Time after which another process takes over the work of a process that died
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = lease)]
    pub lease: Duration,
    /// Threads that read and send
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: u16,
    /// The address at which Prometheus reads the metrics, such as 127.0.0.1:9190 [default: none]
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
    #[command(flatten)]
    pub from_connection: ConnectionOfSource,
    #[command(flatten)]
    pub to_connection: ConnectionOfTarget,
}

connection_args!(
    ConnectionOfSource,
    "The connection to the cluster whose changes are sent.",
    from_username,
    from_password,
    "HELENUS_FROM_PASSWORD",
    from_tls,
    from_tls_authority,
    from_tls_certificate,
    from_tls_key
);
connection_args!(
    ConnectionOfTarget,
    "The connection to the cluster that follows.",
    to_username,
    to_password,
    "HELENUS_TO_PASSWORD",
    to_tls,
    to_tls_authority,
    to_tls_certificate,
    to_tls_key
);

/// Parses the time of a lease. Tables keep whole seconds.
fn lease(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    match time >= Duration::from_secs(3) {
        true => Ok(time),
        false => Err(format!("'{text}' is too short; the shortest lease is 3s")),
    }
}

impl ReplicateArgs {
    /// Returns the name of the replication.
    pub fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| {
            let mut hosts = self.to.clone();
            hosts.sort();
            hosts.join(",")
        })
    }

    /// Returns true for a table that the options select. Tables of the system and of replications are never sent.
    pub fn is_wanted(&self, name: &TableName) -> bool {
        let is_of_system = name.keyspace.starts_with("system") || name.keyspace == KEYSPACE;
        !is_of_system && !name.is_cdc_log() && self.tables.is_wanted(name)
    }
}
