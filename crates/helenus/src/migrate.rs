//! `helenus migrate`: copies a local store into a bucket.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use clap::Args;
use helenus_query::storage::RowHooks;
use helenus_tablet::{Store, StoreConfig, StoreUrl};

/// Copies a stopped node's store from a local folder into an empty bucket, and compares the two.
#[derive(Args, Clone, Debug)]
pub struct MigrateArgs {
    /// The local store: file:///path or a path
    #[arg(long, value_name = "URL")]
    from: String,
    /// The bucket: s3://bucket/prefix, gs://bucket/prefix or az://container/prefix
    #[arg(long, value_name = "URL")]
    to: String,
}

/// Poll interval of compactions, so long that none begins while the store is copied.
const NEVER: Duration = Duration::from_secs(24 * 3600);

/// Returns the branches in a local store, which are tables with an origin. Empty if the URL is not that of a local store.
async fn branches(from: &StoreConfig) -> anyhow::Result<Vec<String>> {
    match &from.url {
        StoreUrl::File(folder) if folder.join("FORMAT").exists() => {}
        StoreUrl::File(_) | StoreUrl::Remote(_) => return Ok(Vec::new()),
    }
    let store = Store::open(from.clone(), RowHooks::without_schema()).await?;
    let branches = helenus_query::engine::branches::of_store(&store).await;
    store.close().await?;
    Ok(branches?)
}

/// Copies the store, and prints what was copied.
pub fn run(args: &MigrateArgs) -> anyhow::Result<ExitCode> {
    crate::keep_files_private();
    let parse = |name: &str, text: &str| StoreUrl::parse(text).with_context(|| format!("--{name}"));
    let from = StoreConfig {
        compaction_poll_interval: NEVER,
        ..StoreConfig::new(parse("from", &args.from)?)
    };
    let to = StoreConfig {
        compaction_poll_interval: NEVER,
        // A cache is useless here, because rows are written once and not read.
        row_cache_bytes: 0,
        open_all_tablets: false,
        ..StoreConfig::new(parse("to", &args.to)?)
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let branches = runtime
        .block_on(branches(&from))
        .with_context(|| format!("cannot read the schema of {}", args.from))?;
    if !branches.is_empty() {
        return Err(anyhow!(
            "cannot copy {}: tables are copies that share the files of others, which would stay behind: {}. Export and drop them first",
            args.from,
            branches.join(", ")
        ));
    }
    let began = Instant::now();
    let (mut rows, mut bytes) = (0, 0);
    let migrated = helenus_tablet::migrate(from, to, RowHooks::without_schema(), |copied| {
        rows += copied.rows;
        bytes += copied.bytes;
        println!(
            "tokens {} to {}: {} rows, {} bytes, checksum {:016x}",
            copied.tokens.first, copied.tokens.last, copied.rows, copied.bytes, copied.checksum
        );
    });
    runtime
        .block_on(migrated)
        .map_err(|error| anyhow!("cannot copy {} to {}: {error}", args.from, args.to))?;
    println!(
        "{rows} rows, {bytes} bytes copied and compared in {:.1} s. Start with",
        began.elapsed().as_secs_f64()
    );
    println!("  helenus serve --store {}", args.to);
    Ok(ExitCode::SUCCESS)
}
