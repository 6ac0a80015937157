//! `helenus migrate-log`: moves the log of a store in a bucket to another place.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use helenus_cluster::{CLUSTER_DOCUMENT, tablets_in};
use helenus_query::storage::RowHooks;
use helenus_tablet::{LogMove, StoreConfig, StoreUrl, TokenRange, TopicUrl};

use crate::running_nodes::{heartbeats_of, refuse_if_alive};
use crate::serve::settings;

/// Name of the place of a log that is stored beside the data.
const DATA_STORE: &str = "store";
/// Poll interval of compactions, so long that none begins while tablets are flushed.
const NEVER: Duration = Duration::from_secs(24 * 3600);

/// Moves the log of a store in a bucket. No node may run on the store. All tablets are flushed before the store changes to the new log. The
/// command can be repeated if it is interrupted.
#[derive(Args, Clone, Debug)]
pub struct MigrateLogArgs {
    /// The store: s3://bucket/prefix, gs://bucket/prefix or az://container/prefix
    #[arg(long, value_name = "URL")]
    store: String,
    /// The present log, if its address differs from the recorded one
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// The new place: a value of serve's --log-store, or "store" for beside the data
    #[arg(long, value_name = "URL")]
    to: String,
    /// A TOML file of settings, as for serve
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Another setting of serve, such as log_store_user; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
}

/// Moves the log, and prints what was done.
pub fn run(args: &MigrateLogArgs) -> anyhow::Result<ExitCode> {
    crate::keep_files_private();
    let environment = std::env::vars().collect::<Vec<_>>();
    let mut given = vec![("store".to_owned(), args.store.clone())];
    given.extend(settings::pairs(&args.set)?);
    let config = StoreConfig {
        // A disk cache is useless here, because nothing is read twice.
        cache_dir: None,
        ..settings::load(&given, args.config.as_deref(), &environment)?.store
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let began = Instant::now();
    let moved = runtime.block_on(move_log(args, config));
    let flushed = moved.with_context(|| format!("cannot move the log of {} to {}", args.store, args.to))?;
    println!(
        "{flushed} tablets were flushed in {:.1} s. Start with",
        began.elapsed().as_secs_f64()
    );
    match args.to.as_str() {
        DATA_STORE => println!("  helenus serve --store {}", args.store),
        to => println!("  helenus serve --store {} --log-store {to}", args.store),
    }
    Ok(ExitCode::SUCCESS)
}

async fn move_log(args: &MigrateLogArgs, config: StoreConfig) -> anyhow::Result<u64> {
    let from = match &args.from {
        Some(from) => Some(from.clone()),
        None => helenus_tablet::log_place(&config.url).await?,
    };
    let from = with_log(&config, from.as_deref()).context("--from")?;
    let to = with_log(&config, Some(&args.to)).context("--to")?;
    let log_move = LogMove::begin(from, to).await?;
    let documents = log_move.documents();
    let heartbeats = refuse_if_alive(documents).await?;
    log_move.mark().await?;
    if heartbeats_of(documents).await? != heartbeats {
        log_move.cancel().await?;
        bail!("a node has been started: stop it first");
    }
    let tablets = tablets(&log_move).await?;
    let mut flushed = 0;
    let drained = log_move.drain(RowHooks::without_schema(), &tablets, |_| flushed += 1);
    drained.await?;
    log_move.finish().await?;
    Ok(flushed)
}

/// Returns the configuration of the store with its log at `place`. `None` is beside the data.
fn with_log(config: &StoreConfig, place: Option<&str>) -> anyhow::Result<StoreConfig> {
    let place = place.filter(|place| *place != DATA_STORE);
    let topic = place.and_then(TopicUrl::parse).transpose()?;
    let objects = match (&topic, place) {
        (None, Some(place)) => Some(StoreUrl::parse(place)?),
        _ => None,
    };
    Ok(StoreConfig {
        log_store: objects,
        log_topic: topic,
        compaction_poll_interval: NEVER,
        ..config.clone()
    })
}

/// Returns the tablets of the cluster, or the initial ones if there is no cluster document.
async fn tablets(log_move: &LogMove) -> anyhow::Result<Vec<(u32, TokenRange)>> {
    let Some(document) = log_move.documents().get(CLUSTER_DOCUMENT).await? else {
        return Ok(log_move.initial_tablets());
    };
    let found = tablets_in(&document.content, log_move.identity())
        .map_err(|error| anyhow!("the cluster document: {error}"))?;
    let spec = |tablet: helenus_cluster::TabletSpec| (tablet.id.0, tablet.tokens);
    Ok(found.into_iter().map(spec).collect())
}
