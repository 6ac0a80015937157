//! Options of `helenus compare`.

use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use helenus_cql::error::Consistency;
use helenus_import::TableName;

use crate::replicate::STATE_KEYSPACE;
use crate::shell::connection_args;
use crate::table_reading::TableFilter;

/// Compares the tables of two running clusters, row by row. Both may be Cassandra, ScyllaDB or Helenus. Clients may write meanwhile: rows
/// that differ are read again before they are reported. The exit code is 0 if the tables are equal, and 1 if they differ.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  helenus compare --a 10.0.0.1 --b 10.0.1.1 --keyspace shop\n  helenus compare --a cassandra1 --b helenus1 --table shop.users --sample 1%"
)]
pub struct CompareArgs {
    /// A node of the first cluster, as HOST or HOST:PORT; may be given several times
    #[arg(long, value_name = "HOST", required = true)]
    pub a: Vec<String>,
    /// A node of the second cluster
    #[arg(long, value_name = "HOST", required = true)]
    pub b: Vec<String>,
    #[command(flatten)]
    pub tables: TableFilter,
    /// The share of the token ring to compare, in ranges at random
    #[arg(long, value_name = "PERCENT", default_value = "100%")]
    pub sample: Percent,
    /// The seed by which ranges are sampled [default: a random one, which the report shows]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Compare values alone, without write times and TTLs
    #[arg(long)]
    pub no_writetime: bool,
    /// The consistency level of all reads
    #[arg(long, value_enum, value_name = "LEVEL", default_value = "local-quorum")]
    pub consistency: Level,
    /// Maximum rows a second that are read from each side [default: no limit]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: Option<u32>,
    /// Ranges that are compared at once
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: u16,
    /// Time after which rows that differ are read again, twice
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = humantime::parse_duration)]
    pub pause: Duration,
    /// Maximum number of differences of a table that are shown
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    pub differences_max: usize,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub a_connection: ConnectionOfA,
    #[command(flatten)]
    pub b_connection: ConnectionOfB,
}

/// The consistency level of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    One,
    LocalOne,
    LocalQuorum,
    Quorum,
    All,
}

impl From<Level> for Consistency {
    fn from(level: Level) -> Consistency {
        match level {
            Level::One => Consistency::One,
            Level::LocalOne => Consistency::LocalOne,
            Level::LocalQuorum => Consistency::LocalQuorum,
            Level::Quorum => Consistency::Quorum,
            Level::All => Consistency::All,
        }
    }
}

/// A share, as a fraction of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percent(pub f64);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Percent, String> {
        let number = text.strip_suffix('%').unwrap_or(text);
        match number.parse::<f64>() {
            Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(Percent(percent / 100.0)),
            _ => Err(format!("'{text}' is no share; use a percentage such as 1%")),
        }
    }
}

connection_args!(
    ConnectionOfA,
    "The connection to the first cluster.",
    a_username,
    a_password,
    "HELENUS_A_PASSWORD",
    a_tls,
    a_tls_authority,
    a_tls_certificate,
    a_tls_key
);
connection_args!(
    ConnectionOfB,
    "The connection to the second cluster.",
    b_username,
    b_password,
    "HELENUS_B_PASSWORD",
    b_tls,
    b_tls_authority,
    b_tls_certificate,
    b_tls_key
);

impl CompareArgs {
    /// Returns true for a table that the options select. Without any, tables of the system and of replications are left out. Logs of captured
    /// changes, which differ in all clusters, are compared only if they are named.
    pub fn is_wanted(&self, name: &TableName) -> bool {
        let is_of_system = name.keyspace.starts_with("system") || name.keyspace == STATE_KEYSPACE;
        let is_named = self.tables.table.iter().any(|given| name.is_given_as(given));
        self.tables.is_wanted(name)
            && !(self.tables.is_open() && is_of_system)
            && (is_named || !name.is_cdc_log())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages() {
        assert_eq!("1%".parse(), Ok(Percent(0.01)));
        assert_eq!("100".parse(), Ok(Percent(1.0)));
        for wrong in ["0", "-1%", "101%", "some", "NaN"] {
            assert!(wrong.parse::<Percent>().unwrap_err().contains(wrong));
        }
    }
}
