//! `nodetool snapshot`, `listsnapshots` and `clearsnapshot` in the format of Cassandra's, and `restore`, which Cassandra does not have.

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::{Value, json};

use super::client::NodeClient;
use super::output::{columns, file_size, list, number, text};

const CHALLENGE: &str = "/node/challenge";
const RESTORE: &str = "/node/snapshots/restore";
const CLEAR: &str = "/node/snapshots/clear";
const TAKE: &str = "/node/snapshots/take";
/// Maximum time of a flush of memtables.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum time until all nodes agree on the schema.
const AGREEMENT_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time of a restore, which copies the rows of existing tables.
const COPY_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub(super) struct TakeArgs {
    /// The name of the snapshot [default: milliseconds since 1970]
    #[arg(short = 't', long, value_name = "TAG")]
    tag: Option<String>,
    /// The table, in the single keyspace that is given (also -cf)
    #[arg(long, visible_alias = "column-family", value_name = "TABLE")]
    table: Option<String>,
    /// Tables, as KEYSPACE.TABLE,KEYSPACE.TABLE (also -kt, -kc)
    #[arg(long, aliases = ["kt", "kc.list"], value_name = "TABLES")]
    kt_list: Option<String>,
    /// Leave out rows in memtables (also -sf)
    #[arg(long)]
    skip_flush: bool,
    /// Time to keep the snapshot, such as 12h or 5d [default: until it is cleared]
    #[arg(long, value_name = "DURATION")]
    ttl: Option<String>,
    /// Take the snapshot as of a time, such as '2026-11-23 14:00:00Z', which point_in_time_window must cover
    #[arg(long, value_name = "TIME", conflicts_with = "skip_flush")]
    as_of: Option<String>,
    /// Keyspaces, with all their tables [default: all keyspaces]
    keyspaces: Vec<String>,
}

#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub(super) struct ListArgs {
    /// Leave out snapshots that expire (also -nt)
    #[arg(long)]
    no_ttl: bool,
    /// Ignored: there are no ephemeral snapshots
    #[arg(short, long)]
    ephemeral: bool,
}

#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub(super) struct ClearArgs {
    /// The name of the snapshot
    #[arg(short = 't', value_name = "TAG")]
    tag: Option<String>,
    /// Clear all snapshots
    #[arg(long, conflicts_with = "tag")]
    all: bool,
    /// Clear only snapshots older than this, such as 12h or 5d
    #[arg(long, value_name = "DURATION", requires = "all")]
    older_than: Option<String>,
    /// Clear only snapshots taken before this time, such as 2026-11-23T14:00:00Z
    #[arg(long, value_name = "TIME", requires = "all", conflicts_with = "older_than")]
    older_than_timestamp: Option<String>,
    /// Clear only snapshots of these keyspaces
    keyspaces: Vec<String>,
}

#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub(super) struct RestoreArgs {
    /// The name of the snapshot [default: the newest one of a TRUNCATE or DROP]
    #[arg(short = 't', value_name = "TAG")]
    tag: Option<String>,
    /// Restore the tables as of a time, such as '2026-11-23 14:00:00Z', instead of from a snapshot; point_in_time_window must cover it
    #[arg(long, value_name = "TIME", conflicts_with = "tag")]
    as_of: Option<String>,
    /// The table, as KEYSPACE.TABLE (also -kt)
    #[arg(long, value_name = "KEYSPACE.TABLE", conflicts_with = "keyspace")]
    kt: Option<String>,
    /// The keyspace: restores all its tables in the snapshot
    keyspace: Option<String>,
}

pub(super) fn take(node: &NodeClient, args: &TakeArgs) -> anyhow::Result<ExitCode> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let tag = args.tag.clone();
    let tag = tag.unwrap_or_else(|| since_epoch.as_millis().to_string());
    let body = args.body(&tag)?;
    println!("{}", args.announcement(&tag));
    node.command(TAKE, &body.to_string(), CHALLENGE, FLUSH_TIMEOUT)?;
    println!("Snapshot directory: {tag}");
    Ok(ExitCode::SUCCESS)
}

impl TakeArgs {
    fn body(&self, tag: &str) -> anyhow::Result<Value> {
        let tables = match (&self.kt_list, &self.table) {
            (Some(_), Some(_)) => {
                bail!(
                    "When specifying the Keyspace table list for a snapshot, you should not specify column family"
                )
            }
            (Some(_), None) if !self.keyspaces.is_empty() => {
                bail!(
                    "When specifying the Keyspace table list for a snapshot, you should not specify keyspaces"
                )
            }
            (Some(list), None) => list.replace(' ', "").split(',').map(str::to_owned).collect(),
            (None, Some(table)) => match self.keyspaces.as_slice() {
                [keyspace] => vec![format!("{keyspace}.{table}")],
                _ => bail!(
                    "When specifying the column family for a snapshot, you must specify one and only one keyspace"
                ),
            },
            (None, None) => Vec::new(),
        };
        let ttl = self.ttl.as_deref().map(humantime::parse_duration).transpose();
        let ttl = ttl.context("--ttl is not a duration such as 12h or 5d")?;
        let keyspaces: &[String] = match tables.is_empty() {
            true => &self.keyspaces,
            false => &[],
        };
        Ok(json!({
            "tag": tag,
            "keyspaces": keyspaces,
            "tables": tables,
            "ttl_ms": ttl.map(|ttl| ttl.as_millis() as u64),
            "skip_flush": self.skip_flush,
            "as_of": self.as_of,
        }))
    }

    /// Returns the line that Cassandra's tool prints before it begins.
    fn announcement(&self, tag: &str) -> String {
        let of = match &self.kt_list {
            Some(list) => list.replace(' ', ""),
            None if self.keyspaces.is_empty() => "all keyspaces".to_owned(),
            None => self.keyspaces.join(", "),
        };
        let ttl = self.ttl.as_ref().map(|ttl| format!(", ttl={ttl}"));
        format!(
            "Requested creating snapshot(s) for [{of}] with snapshot name [{tag}] and options {{skipFlush={}{}}}",
            self.skip_flush,
            ttl.unwrap_or_default()
        )
    }
}

pub(super) fn list_all(node: &NodeClient, args: &ListArgs) -> anyhow::Result<ExitCode> {
    let mut rows = node.rows("snapshots")?;
    if args.no_ttl {
        rows.retain(|row| row.get("expires_at").is_none_or(Value::is_null));
    }
    print!("{}", page(&rows, args.ephemeral));
    Ok(ExitCode::SUCCESS)
}

fn page(rows: &[Value], with_ephemeral: bool) -> String {
    let mut page = "Snapshot Details: \n".to_owned();
    if rows.is_empty() {
        return page + "There are no snapshots\n";
    }
    let heads = [
        "Snapshot name",
        "Keyspace name",
        "Column family name",
        "True size",
        "Size on disk",
        "Creation time",
        "Expiration time",
        "Ephemeral",
    ];
    let mut cells = vec![heads.map(str::to_owned)];
    cells.extend(rows.iter().map(|row| {
        [
            text(row, "name"),
            text(row, "keyspace_name"),
            text(row, "table_name"),
            file_size(number(row, "true_size")),
            file_size(number(row, "size_on_disk")),
            instant(row, "created_at"),
            instant(row, "expires_at"),
            text(row, "ephemeral"),
        ]
    }));
    page += &match with_ephemeral {
        true => columns(&cells),
        false => {
            let short = |[a, b, c, d, e, f, g, _]: [String; 8]| [a, b, c, d, e, f, g];
            columns(&cells.into_iter().map(short).collect::<Vec<_>>())
        }
    };
    let total = rows.iter().map(|row| number(row, "true_size")).sum();
    page + &format!("\nTotal TrueDiskSpaceUsed: {}\n\n", file_size(total))
}

/// Returns a timestamp of CQL's JSON (`2026-11-23 14:00:00.123Z`) in Java's format. Empty if there is none.
fn instant(row: &Value, name: &str) -> String {
    row.get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .replace(' ', "T")
}

pub(super) fn clear(node: &NodeClient, args: &ClearArgs) -> anyhow::Result<ExitCode> {
    ensure!(args.tag.is_some() || args.all, "Specify snapshot name or --all");
    let body = json!({
        "tag": args.tag,
        "keyspaces": args.keyspaces,
        "taken_before_ms": args.taken_before_ms(SystemTime::now())?,
    });
    println!("{}", args.announcement()?);
    node.command(CLEAR, &body.to_string(), CHALLENGE, AGREEMENT_TIMEOUT)?;
    Ok(ExitCode::SUCCESS)
}

impl ClearArgs {
    /// Returns the requested minimum age. `None` if none is given.
    fn age(&self) -> anyhow::Result<Option<Duration>> {
        let Some(age) = &self.older_than else {
            return Ok(None);
        };
        let age =
            humantime::parse_duration(age).with_context(|| format!("{age} is not a duration such as 12h"))?;
        Ok(Some(age))
    }

    /// Returns the line that Cassandra's tool prints before it begins.
    fn announcement(&self) -> anyhow::Result<String> {
        let keyspaces = match self.keyspaces.is_empty() {
            true => "all keyspaces".to_owned(),
            false => self.keyspaces.join(", "),
        };
        let snapshots = match &self.tag {
            Some(tag) => format!("snapshot name [{tag}]"),
            None => "[all snapshots]".to_owned(),
        };
        let older = match (self.age()?, &self.older_than_timestamp) {
            (Some(age), _) => format!(" older than {} seconds.", age.as_secs()),
            (None, Some(time)) => format!(" older than timestamp {time}"),
            (None, None) => String::new(),
        };
        Ok(format!(
            "Requested clearing snapshot(s) for [{keyspaces}] with {snapshots}{older}"
        ))
    }

    fn taken_before_ms(&self, now: SystemTime) -> anyhow::Result<Option<i64>> {
        let time = match (self.age()?, &self.older_than_timestamp) {
            (Some(age), _) => now.checked_sub(age).unwrap_or(UNIX_EPOCH),
            (None, Some(time)) => humantime::parse_rfc3339(time)
                .with_context(|| format!("{time} is not a time such as 2026-11-23T14:00:00Z"))?,
            (None, None) => return Ok(None),
        };
        let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Some(i64::try_from(since_epoch.as_millis())?))
    }
}

pub(super) fn restore(node: &NodeClient, args: &RestoreArgs) -> anyhow::Result<ExitCode> {
    let (keyspace, table) = args.named()?;
    let body = json!({ "tag": args.tag, "keyspace": keyspace, "table": table, "as_of": args.as_of });
    let answer = node.command(RESTORE, &body.to_string(), CHALLENGE, COPY_TIMEOUT)?;
    print!("{}", report(&node.parse(RESTORE, &answer)?, args.as_of.is_some()));
    Ok(ExitCode::SUCCESS)
}

impl RestoreArgs {
    /// Returns the given keyspace and table.
    fn named(&self) -> anyhow::Result<(Option<&str>, Option<&str>)> {
        if let Some(name) = &self.kt {
            return match name.split_once('.') {
                Some((keyspace, table)) if !keyspace.is_empty() && !table.is_empty() => {
                    Ok((Some(keyspace), Some(table)))
                }
                _ => bail!("{name} is not of the form KEYSPACE.TABLE"),
            };
        }
        ensure!(
            self.tag.is_some() || self.keyspace.is_some(),
            "name a snapshot by -t, a table by -kt KEYSPACE.TABLE, or a keyspace; nodetool listsnapshots lists the snapshots"
        );
        Ok((self.keyspace.as_deref(), None))
    }
}

fn report(restored: &Value, is_time: bool) -> String {
    let keyspace = text(restored, "keyspace");
    let tables = list(restored, "tables").iter().filter_map(Value::as_str);
    let tables: Vec<String> = tables.map(|table| format!("{keyspace}.{table}")).collect();
    let mut report = format!(
        "Restored {} {} {}\n",
        tables.join(", "),
        if is_time { "as of" } else { "from snapshot" },
        text(restored, "snapshot")
    );
    if let Some(replaced) = restored.get("replaced").and_then(Value::as_str) {
        report += &format!("The replaced rows are in snapshot {replaced}\n");
    }
    report
}

#[cfg(test)]
#[path = "snapshots_tests.rs"]
mod tests;
