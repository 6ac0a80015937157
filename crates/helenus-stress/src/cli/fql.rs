//! Arguments of the commands for full query logs. Names and meanings are the same as in Cassandra's fqltool.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::numbers;

const EXAMPLES: &str = "\
Examples:
  nodetool enablefullquerylog --path /var/log/helenus/fql       requests to a node are logged there …
  helenus-stress fql dump /var/log/helenus/fql                  … can be read …
  helenus-stress fql replay --target 10.0.0.7 /var/log/helenus/fql            … and sent to another cluster
  helenus-stress fql replay --target 10.0.0.7 --target 10.0.0.8 --results results --store-queries queries fql
  helenus-stress fql compare --queries queries results/10.0.0.7 results/10.0.0.8";

/// The commands for full query logs.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct FqlArgs {
    #[command(subcommand)]
    pub command: FqlCommand,
}

#[derive(Subcommand, Debug)]
pub enum FqlCommand {
    /// Print the entries of full query logs as text, in the order of the log
    Dump(DumpArgs),
    /// Run the statements of full query logs on other servers, in the order in which they began
    Replay(ReplayArgs),
    /// Compare the results that `replay` kept of several servers
    Compare(CompareResultsArgs),
}

#[derive(Args, Debug)]
pub struct DumpArgs {
    /// Folders of full query logs, or single files of them
    #[arg(value_name = "FOLDER", required = true)]
    pub logs: Vec<PathBuf>,
    /// Wait for more entries at the end
    #[arg(long)]
    pub follow: bool,
}

#[derive(Args, Debug)]
pub struct ReplayArgs {
    /// Folders of full query logs, such as those of several nodes, or single files of them
    #[arg(value_name = "FOLDER", required = true)]
    pub logs: Vec<PathBuf>,
    /// A server to run the statements on; may be repeated
    #[arg(long, value_name = "HOST[:PORT]", required = true)]
    pub target: Vec<String>,
    /// Only statements whose current keyspace was this one or none
    #[arg(long)]
    pub keyspace: Option<String>,
    /// Also run statements that change the schema [default: they are left out]
    #[arg(long)]
    pub replay_ddl_statements: bool,
    /// Keep the results of each target in its own subfolder of this folder
    #[arg(long, value_name = "FOLDER")]
    pub results: Option<PathBuf>,
    /// Keep the replayed statements in this folder, for `compare`
    #[arg(long, value_name = "FOLDER", requires = "results")]
    pub store_queries: Option<PathBuf>,
    /// Replay at this multiple of the log's speed; 1 for the original speed [default: one statement after the other]
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    pub speed: Option<f64>,
    #[command(flatten)]
    pub login: TargetArgs,
}

/// Credentials, encryption and timeout of the targets.
#[derive(Args, Debug)]
#[command(next_help_heading = "Connection")]
pub struct TargetArgs {
    #[arg(long, short = 'U', default_value = "cassandra")]
    pub username: String,
    #[arg(long, short = 'P', default_value = "cassandra", hide_default_value = true)]
    pub password: String,
    /// Encrypt the connection, and verify the server's certificate
    #[arg(long, alias = "ssl")]
    pub tls: bool,
    /// The authority that signed the server's certificate, as a PEM file [default: those that the system trusts]
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub tls_authority: Option<PathBuf>,
    /// Maximum time to wait for an answer
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = numbers::duration)]
    pub timeout: Duration,
}

#[derive(Args, Debug)]
pub struct CompareResultsArgs {
    /// Folders that `replay --results` wrote, one for each target
    #[arg(value_name = "RESULTS", required = true, num_args = 2..)]
    pub results: Vec<PathBuf>,
    /// The folder that `replay --store-queries` wrote
    #[arg(long, value_name = "FOLDER")]
    pub queries: PathBuf,
}

fn speed(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| factor.is_finite());
    factor
        .filter(|factor| *factor > 0.0)
        .ok_or_else(|| "not a number above 0".to_owned())
}
