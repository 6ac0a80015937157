//! `helenus restore`: restores tables from a backup.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::{ArgAction, Args};
use helenus_query::clock::SystemClock;
use helenus_query::engine::backups::RestoreBackup;
use helenus_query::engine::{AccessControl, Engine, EngineConfig, Limits, LocalNode};
use helenus_tablet::{StoreConfig, refuse_unless_empty};
use serde_json::{Value, json};

use crate::backup::{from_anywhere, full_path, runtime};
use crate::nodetool::client::NodeClient;
use crate::nodetool::output::{list, text};
use crate::serve::settings;

const CHALLENGE: &str = "/node/challenge";
const RESTORE: &str = "/node/backups/restore";
/// Maximum time that a restore may take.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3600);

// Help has no short option, because -h is the node, as in nodetool.
/// Restores tables from a backup into a running node, or with --to into a new store. In a running node, existing tables of the same names
/// become a snapshot. A new store also gets all roles.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub struct RestoreArgs {
    /// Place of the backups: s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or a folder; the node must reach it too
    #[arg(long, value_name = "URL")]
    from: String,
    /// The backup [default: the newest]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// A time between two backups, such as '2026-11-23 14:00:00Z'; the store must have point_in_time_window
    #[arg(long, value_name = "TIME", conflicts_with = "name")]
    as_of: Option<String>,
    /// Restore only the tables of this keyspace [default: all keyspaces]
    #[arg(long, value_name = "KEYSPACE")]
    keyspace: Option<String>,
    /// Restore only this table, with its indexes and views
    #[arg(long, value_name = "TABLE", requires = "keyspace")]
    table: Option<String>,
    /// Restore roles too; they replace those of the same names
    #[arg(long)]
    roles: bool,
    /// The file with the key of encrypted backups; a node reads it on its own machine
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// A place for a new store: file:///path, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// A TOML file of settings for a new store, as for serve
    #[arg(long, value_name = "FILE", requires = "to")]
    config: Option<PathBuf>,
    /// Another setting for a new store, such as tablet_count; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE", requires = "to")]
    set: Vec<String>,
    #[command(flatten)]
    node: NodeClient,
    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// Restores the tables, and prints what was restored.
pub fn run(args: &RestoreArgs) -> anyhow::Result<ExitCode> {
    let from = from_anywhere(&args.from).context("--from")?;
    let key_file = full_path(args.key_file.as_deref())?;
    let Some(to) = &args.to else {
        let body = json!({
            "from": from, "name": args.name, "keyspace": args.keyspace, "table": args.table, "roles": args.roles,
            "key_file": key_file, "as_of": args.as_of,
        });
        let answer = args
            .node
            .command(RESTORE, &body.to_string(), CHALLENGE, RESTORE_TIMEOUT)?;
        print!("{}", report(&args.node.parse(RESTORE, &answer)?));
        return Ok(ExitCode::SUCCESS);
    };
    let wanted = RestoreBackup {
        from,
        name: args.name.clone(),
        keyspace: args.keyspace.clone(),
        table: args.table.clone(),
        roles: true,
        key_file,
        as_of: args.as_of.clone(),
    };
    crate::keep_files_private();
    let restored = runtime()?.block_on(into_new(args, to, &wanted))?;
    print!("{}", report(&restored));
    println!("Start with");
    println!("  helenus serve --store {to}");
    Ok(ExitCode::SUCCESS)
}

/// Restores a backup into a new store, with an engine in this process.
async fn into_new(args: &RestoreArgs, to: &str, wanted: &RestoreBackup) -> anyhow::Result<Value> {
    let environment = std::env::vars().collect::<Vec<_>>();
    let mut given = vec![("store".to_owned(), to.to_owned())];
    given.extend(settings::pairs(&args.set)?);
    let config = settings::load(&given, args.config.as_deref(), &environment)?;
    refuse_unless_empty(&config.store.url).await.context("--to")?;
    let engine = Engine::open(EngineConfig {
        store: StoreConfig {
            open_all_tablets: true,
            // Caches are useless here, because nothing is read twice.
            cache_dir: None,
            row_cache_bytes: 0,
            ..config.store.clone()
        },
        // This engine has no clients, so its identity does not matter.
        node: LocalNode {
            cluster_name: config.cluster_name.clone(),
            data_center: config.data_center.clone(),
            rack: config.rack.clone(),
            host_id: uuid::Uuid::nil(),
            native_address: config.server.listen,
            release_version: String::new(),
        },
        limits: Limits::default(),
        control: AccessControl::default(),
        clock: Arc::new(SystemClock),
    });
    let engine = engine
        .await
        .map_err(|error| anyhow!("cannot make a store in {to}: {error}"))?;
    let restored = engine.restore_backup(wanted).await;
    let closed = engine.close().await;
    let restored = restored.map_err(|error| {
        anyhow!("{error}; the restore into {to} is incomplete: delete it before the next attempt")
    })?;
    closed.map_err(|error| anyhow!("cannot close the store in {to}: {error}"))?;
    Ok(json!(restored))
}

fn report(restored: &Value) -> String {
    let backup = text(restored, "backup");
    let mut report = String::new();
    for of in list(restored, "keyspaces") {
        let keyspace = text(of, "keyspace");
        let tables = list(of, "tables").iter().filter_map(Value::as_str);
        let tables: Vec<String> = tables.map(|table| format!("{keyspace}.{table}")).collect();
        let what = match tables.is_empty() {
            true => format!("keyspace {keyspace}, which has no tables,"),
            false => tables.join(", "),
        };
        report += &format!("Restored {what} from backup {backup}\n");
        if let Some(replaced) = of.get("replaced").and_then(Value::as_str) {
            report += &format!("The replaced rows are in snapshot {replaced}\n");
        }
    }
    let roles: Vec<&str> = list(restored, "roles").iter().filter_map(Value::as_str).collect();
    if !roles.is_empty() {
        report += &format!("Restored roles {}\n", roles.join(", "));
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_tables_and_what_they_have_replaced() {
        let restored = json!({
            "backup": "b",
            "keyspaces": [
                { "keyspace": "empty", "tables": [], "replaced": null },
                { "keyspace": "shop", "tables": ["orders", "users"], "replaced": "replaced-1-shop" },
            ],
            "roles": ["ann"],
        });
        assert_eq!(
            report(&restored),
            "Restored keyspace empty, which has no tables, from backup b\n\
             Restored shop.orders, shop.users from backup b\n\
             The replaced rows are in snapshot replaced-1-shop\n\
             Restored roles ann\n"
        );
    }
}
