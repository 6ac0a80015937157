//! `helenus backup`: has a node write a backup, and reads backups without a node.

mod list;
mod verify;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{ArgAction, Args, Subcommand};
use helenus_tablet::{BackupKey, BackupLocation, StoreUrl};
use serde_json::{Value, json};

use crate::nodetool::client::NodeClient;
use crate::nodetool::output::{file_size, list as items, number, text};

const CHALLENGE: &str = "/node/challenge";
const WRITE: &str = "/node/backups/write";
/// Maximum time that a backup may take.
const WRITE_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3600);

// Help has no short option, because -h is the node, as in nodetool.
/// Has a running node write a backup of its store. Only files that the backups lack are copied; clients are served meanwhile.
#[derive(Args, Debug)]
#[command(
    disable_help_flag = true,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct BackupArgs {
    #[command(subcommand)]
    look: Option<Look>,
    /// Place of this store's backups, as the node reaches it: s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or a folder
    #[arg(long, value_name = "URL", required = true)]
    to: Option<String>,
    /// The name of the backup [default: the time, as 20261128T004226Z]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Keep only this number of the newest backups, and remove older ones
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Remove backups older than this, such as 30d; the newest is kept
    #[arg(long, value_name = "DURATION")]
    keep_for: Option<humantime::Duration>,
    /// Encrypt with the key in this file on the node's machine (64 hexadecimal digits); all backups of a place use the same key
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    #[command(flatten)]
    node: NodeClient,
    /// Print help
    #[arg(long, action = ArgAction::Help, global = true)]
    help: Option<bool>,
}

#[derive(Subcommand, Clone, Debug)]
enum Look {
    /// List the backups in a place, or the content of one of them
    List(LookArgs),
    /// Read all files of backups, and name those that are damaged or missing
    Verify(LookArgs),
}

#[derive(Args, Clone, Debug)]
struct LookArgs {
    /// Place of the backups
    #[arg(long, value_name = "URL")]
    from: String,
    /// One backup [default: all]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The file with the key of encrypted backups
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

impl LookArgs {
    fn location(&self) -> anyhow::Result<BackupLocation> {
        let key = self.key_file.as_deref().map(BackupKey::read).transpose();
        let key = key.context("--key-file")?;
        BackupLocation::open(&self.from, key).context("--from")
    }
}

/// Writes, lists or verifies backups.
pub fn run(args: &BackupArgs) -> anyhow::Result<ExitCode> {
    match &args.look {
        Some(Look::List(look)) => list::run(&look.location()?, look.name.as_deref()),
        Some(Look::Verify(look)) => verify::run(&look.location()?, look.name.as_deref()),
        None => write(args),
    }
}

fn write(args: &BackupArgs) -> anyhow::Result<ExitCode> {
    let to = args.to.as_deref().unwrap_or_default();
    let to = from_anywhere(to).context("--to")?;
    let keep_for_ms = args.keep_for.map(|age| u64::try_from(age.as_millis()));
    let body = json!({
        "to": to,
        "name": args.name,
        "keep": args.keep,
        "key_file": full_path(args.key_file.as_deref())?,
        "keep_for_ms": keep_for_ms.transpose().context("--keep-for is too long")?,
    });
    let answer = args
        .node
        .command(WRITE, &body.to_string(), CHALLENGE, WRITE_TIMEOUT)?;
    let written = args.node.parse(WRITE, &answer)?;
    print!("{}", report(&written, &to));
    if let Some(warning) = written.get("warning").and_then(Value::as_str) {
        eprintln!("{warning}");
    }
    Ok(ExitCode::SUCCESS)
}

fn report(written: &Value, to: &str) -> String {
    let some = |files: &str, bytes: &str| {
        let (files, bytes) = (number(written, files), number(written, bytes));
        format!("{files} files, {}", file_size(bytes))
    };
    let mut report = format!(
        "Backup {} is in {to}: {} copied; {} were there\n",
        text(written, "name"),
        some("copied_files", "copied_bytes"),
        some("reused_files", "reused_bytes")
    );
    let removed = items(written, "removed_backups").iter().filter_map(Value::as_str);
    let removed: Vec<&str> = removed.collect();
    if !removed.is_empty() {
        report += &format!(
            "Removed {}: {} that no other backup needs\n",
            removed.join(", "),
            some("removed_files", "removed_bytes")
        );
    }
    report
}

/// Returns a URL that means the same to a process with another working directory.
pub(crate) fn from_anywhere(url: &str) -> anyhow::Result<String> {
    match StoreUrl::parse(url)? {
        StoreUrl::File(folder) => Ok(full_path(Some(&folder))?.unwrap_or_default()),
        StoreUrl::Remote(_) => Ok(url.to_owned()),
    }
}

/// Returns a path that means the same to a process with another working directory.
pub(crate) fn full_path(path: Option<&Path>) -> anyhow::Result<Option<String>> {
    let Some(path) = path else { return Ok(None) };
    let full = std::path::absolute(path)?;
    Ok(Some(full.to_str().context("the path is no UTF-8")?.to_owned()))
}

/// Returns the runtime of a command that needs no node.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("helenus")
        .build()
        .context("cannot start the runtime")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_what_was_copied_and_removed() {
        let mut written = json!({
            "name": "b", "copied_files": 2, "copied_bytes": 2048, "reused_files": 1, "reused_bytes": 10,
            "removed_backups": [], "removed_files": 0, "removed_bytes": 0,
        });
        let copied = "Backup b is in /there: 2 files, 2 KiB copied; 1 files, 10 bytes were there\n";
        assert_eq!(report(&written, "/there"), copied);
        written["removed_backups"] = json!(["x", "y"]);
        let removed = "Removed x, y: 0 files, 0 bytes that no other backup needs\n";
        assert_eq!(report(&written, "/there"), format!("{copied}{removed}"));
    }

    #[test]
    fn folders_are_named_in_full() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(from_anywhere("b").unwrap(), here.join("b").to_str().unwrap());
        assert_eq!(from_anywhere("file:///x/y").unwrap(), "/x/y");
        assert_eq!(from_anywhere("s3://b/p").unwrap(), "s3://b/p");
    }
}
