//! `helenus adopt`: a copy of a store in a bucket becomes a store of its own.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use helenus_cluster::{CLUSTER_DOCUMENT, LEASE_DEFAULT};
use helenus_server::node::SECRET_DOCUMENT;
use helenus_tablet::{CopyRestore, StoreConfig, StoreUrl};

/// Makes a store of its own of a copy of one, with no node running on it: the nodes and owners that the copied documents tell of are
/// forgotten, the data stays.
#[derive(Args, Clone, Debug)]
pub struct AdoptArgs {
    /// The copy: s3://bucket/prefix, gs://bucket/prefix or az://container/prefix
    #[arg(long, value_name = "URL")]
    store: String,
    /// The copy of its log, if that lies apart
    #[arg(long, value_name = "URL")]
    log_store: Option<String>,
    /// Where that bucket is served, if not where the environment says
    #[arg(long, value_name = "URL")]
    log_store_endpoint: Option<String>,
}

/// Adopts, and says what was done.
pub fn run(args: &AdoptArgs) -> anyhow::Result<ExitCode> {
    let log_store = args.log_store.as_deref().map(StoreUrl::parse).transpose();
    let config = StoreConfig {
        log_store: log_store.context("--log-store")?,
        log_store_endpoint: args.log_store_endpoint.clone(),
        ..StoreConfig::new(StoreUrl::parse(&args.store).context("--store")?)
    };
    if let StoreUrl::File(folder) = &config.url {
        println!(
            "{}: nothing is to be done: the copy of a folder is a store of its own as soon as a node is started on it",
            folder.display()
        );
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let adopted = runtime.block_on(adopt(&config));
    let identity = adopted.with_context(|| format!("cannot adopt {}", args.store))?;
    println!("{} is store {identity} now. Start with", args.store);
    println!("  helenus serve --store {}", args.store);
    Ok(ExitCode::SUCCESS)
}

async fn adopt(config: &StoreConfig) -> anyhow::Result<uuid::Uuid> {
    let adoption = CopyRestore::begin(config).await?;
    let heartbeats = refuse_if_alive(&adoption).await?;
    if let Some(document) = adoption.get(CLUSTER_DOCUMENT).await? {
        let adopted = helenus_cluster::adopt(&document.content, adoption.identity())?;
        adoption.put(CLUSTER_DOCUMENT, &adopted, document.version).await?;
    }
    for name in heartbeats.keys() {
        adoption.delete(name).await?;
    }
    // The next node makes one that the other store's nodes don't know.
    adoption.delete(SECRET_DOCUMENT).await?;
    let identity = adoption.identity();
    adoption.finish().await?;
    Ok(identity)
}

/// The heartbeats that lie there, none of which is renewed.
async fn refuse_if_alive(adoption: &CopyRestore) -> anyhow::Result<BTreeMap<String, String>> {
    let prefix = format!("{CLUSTER_DOCUMENT}.");
    let before = adoption.documents(&prefix).await?;
    if before.is_empty() {
        return Ok(before);
    }
    let mut lease = LEASE_DEFAULT;
    for name in before.keys() {
        let heartbeat = heartbeat(adoption, name).await?;
        let lease_ms = heartbeat.get("lease_ms").and_then(serde_json::Value::as_u64);
        lease = lease.max(Duration::from_millis(lease_ms.unwrap_or(0)));
    }
    println!(
        "looking for nodes that are running on it, for {:.1} s",
        lease.as_secs_f64()
    );
    tokio::time::sleep(lease).await;
    let now = adoption.documents(&prefix).await?;
    let Some((name, _)) = now.iter().find(|(name, stamp)| before.get(*name) != Some(stamp)) else {
        return Ok(now);
    };
    let heartbeat = heartbeat(adoption, name).await?;
    let text = |key| {
        heartbeat
            .get(key)
            .and_then(serde_json::Value::as_str)
            .unwrap_or("?")
    };
    bail!(
        "node {} at {} is running on it: stop its nodes first",
        text("host_id"),
        text("rpc_address")
    )
}

/// What a heartbeat says; nothing if it is gone or makes no sense.
async fn heartbeat(adoption: &CopyRestore, name: &str) -> anyhow::Result<serde_json::Value> {
    let found = adoption.get(name).await?;
    Ok(found
        .and_then(|found| serde_json::from_slice(&found.content).ok())
        .unwrap_or_default())
}
