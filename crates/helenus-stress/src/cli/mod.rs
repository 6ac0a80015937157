//! The command line.

pub mod dynamic;
pub mod fql;
pub mod options;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use crate::report::ReportArgs;
use options::{CompareArgs, LoadArgs, ReproArgs};

const EXAMPLES: &str = "\
Examples:
  helenus-stress list
  helenus-stress info KeyValue
  helenus-stress run KeyValue -d 30m -p 10M -r 0.2 -t 8 -c 50
  helenus-stress run kv -d 60 --rate 20k --populate all -p 1M       an open loop: latency from when a request was due
  helenus-stress populate kv -p 5M -t 4                             each key once …
  helenus-stress verify kv -p 5M -t 4                               … and each read back and checked
  helenus-stress run many-tables --workload.tables=1000 -t 8 -c 50 -d 30m --server-pid $(pidof helenus)

Exit status:
  0  the load ran and nothing was wrong
  1  it could not run: no connection, no such workload, a file that can't be written
  2  the command line is not understood
  3  operations failed
  4  the requested rate was missed by more than 1%
  5  verification failed: values that are missing or corrupt, or results that differ (fql compare)
  The greatest of those that apply.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  helenus-stress compare --a 127.0.0.1:9042 --b 127.0.0.1:9043 --label-a Cassandra --label-b Helenus \\
      --pid-a 4711 --pid-b 4712 --pause -- kv -d 30 -t 4 -c 16 -r 0.5 --populate all -p 100k
  helenus-stress compare --a 127.0.0.1 --b 127.0.0.1 --args-a --workload.tables=10 --args-b --workload.tables=1000 \\
      -- many-tables -d 30 -t 8 -c 8 -p 100k

Each round runs the load on both, in a fresh keyspace that is dropped afterwards; the next round begins with the other.";

/// A load generator for any CQL endpoint.
#[derive(Parser, Debug)]
#[command(name = "helenus-stress", version, after_help = EXAMPLES, max_term_width = 120)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// List the workloads
    List,
    /// Show a workload's tables, operations, parameters, fields and published figures
    Info {
        #[arg(value_name = "WORKLOAD")]
        workload: String,
    },
    /// List the generators for columns
    Fields,
    /// Write every key of a workload exactly once
    #[command(after_help = EXAMPLES)]
    Populate(LoadArgs),
    /// Run a workload's load on a server
    #[command(after_help = EXAMPLES)]
    Run(LoadArgs),
    /// Read back every key that `populate` wrote, and check it
    #[command(after_help = EXAMPLES)]
    Verify(LoadArgs),
    /// Reproduce a published experiment at a scale, and print the published figures beside the measured ones
    Repro(ReproArgs),
    /// Run the same load on two servers in alternating rounds, and report differences larger than noise
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    /// Make one page for the browser from the folders of runs, or of a comparison
    Report(ReportArgs),
    /// Print the full query logs of nodes, replay them on other servers, and compare the results
    Fql(fql::FqlArgs),
}

/// Parses a command line, whose first word is the program's name. Ends the process with a message if it is invalid.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Cli {
    Cli::parse_from(dynamic::rewrite(arguments))
}

/// A parser for the arguments of `run`.
#[derive(Parser)]
#[command(name = "run")]
struct RunLine {
    #[command(flatten)]
    load: LoadArgs,
}

/// Parses the arguments of `run`. The first word may be `run`.
pub fn run_arguments(words: impl IntoIterator<Item = OsString>) -> Result<LoadArgs, clap::Error> {
    let mut words = dynamic::rewrite(words);
    if words.first().is_none_or(|first| first != "run") {
        words.insert(0, "run".into());
    }
    RunLine::try_parse_from(words).map(|line| line.load)
}

#[cfg(test)]
mod tests;
