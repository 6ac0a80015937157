//! Options of `helenus import`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::since::Since;
use crate::shell::ConnectionArgs;
use crate::table_reading::TableFilter;

/// Brings tables of a Cassandra cluster in, with timestamps, TTLs and tombstones. Give the files of all nodes at once. Clients may write
/// meanwhile: the newest write of a cell wins.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  helenus import --from /mnt/node1/data --from /mnt/node2/data --snapshot monday --to 10.0.0.1\n  helenus import --from /mnt/copies/shop --to 10.0.0.1\n  helenus import --from /mnt/node1/data --snapshot monday --dry-run\n  helenus import --from s3://backups/live --backup 202611300200 --to 10.0.0.1\n  helenus import --from /mnt/node1/data --from /mnt/node2/data --snapshot monday --to 10.0.0.1 --verify"
)]
pub struct ImportArgs {
    /// A data folder of Cassandra, a folder of SSTables with schema.cql, or a storage of Medusa: a path, s3://bucket/prefix,
    /// gs://bucket/prefix or az://container/prefix; may be given several times
    #[arg(long, value_name = "PLACE", required = true)]
    pub from: Vec<String>,
    /// The snapshot to read, by its name [default: the live files]
    #[arg(long, value_name = "NAME")]
    pub snapshot: Option<String>,
    /// The backup of Medusa to read, by its name; --from is the storage, or the folder of one node in it
    #[arg(long, value_name = "NAME", conflicts_with = "snapshot")]
    pub backup: Option<String>,
    /// Import only cells written, and deletions made, at this time or later: such as '2026-11-30 14:00:00' (UTC), or microseconds since 1970
    #[arg(long, value_name = "TIME")]
    pub since: Option<Since>,
    /// A node that takes the rows, as HOST or HOST:PORT; may be given several times
    #[arg(long, value_name = "HOST")]
    pub to: Vec<String>,
    #[command(flatten)]
    pub tables: TableFilter,
    /// Make and compare the schema, and import no rows
    #[arg(long)]
    pub schema_only: bool,
    /// Leave the schema as it is; all tables must exist
    #[arg(long, conflicts_with = "schema_only")]
    pub no_schema: bool,
    /// Read everything, report what would be imported, and send nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Compare the sources with the target, and send nothing. The exit code is 0 if all is equal, 1 if not, and 2 after an error
    #[arg(
        long,
        requires = "to",
        conflicts_with_all = ["dry_run", "schema_only", "counters", "state", "restart", "rate"]
    )]
    pub verify: bool,
    /// The number of differences that --verify shows
    #[arg(long, value_name = "N", default_value_t = 100, requires = "verify")]
    pub differences_max: usize,
    /// Time after which --verify reads rows that differ again
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = humantime::parse_duration, requires = "verify")]
    pub pause: Duration,
    /// The way with counters that have values on the target: replace writes the source's totals over them
    #[arg(long, value_enum, value_name = "WAY")]
    pub counters: Option<Counters>,
    /// The speed: adaptive, so that the times of other clients stay, or MB of rows a second
    #[arg(long, value_name = "RATE", default_value = "adaptive")]
    pub rate: Rate,
    /// The file from which an interrupted import goes on [default: helenus-import-<hash of the options>.state]
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Begin again, whatever the state says
    #[arg(long)]
    pub restart: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

/// The way with counters that have values on the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Counters {
    /// Write the source's totals with the present time
    Replace,
}

/// The speed of an import.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Batches in flight follow the times of acknowledgements.
    Adaptive,
    /// Bytes of batches a second.
    Fixed(f64),
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        if text == "adaptive" {
            return Ok(Rate::Adaptive);
        }
        match text.parse::<f64>() {
            Ok(megabytes) if megabytes > 0.0 && megabytes.is_finite() => Ok(Rate::Fixed(megabytes * 1e6)),
            _ => Err(format!("'{text}' is no rate; use adaptive or MB/s, such as 20")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_adaptive_or_megabytes() {
        assert_eq!("adaptive".parse(), Ok(Rate::Adaptive));
        assert_eq!("1.5".parse(), Ok(Rate::Fixed(1_500_000.0)));
        for wrong in ["0", "-1", "fast", "NaN", "inf"] {
            assert!(wrong.parse::<Rate>().unwrap_err().contains(wrong));
        }
    }
}
