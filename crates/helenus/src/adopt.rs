//! `helenus adopt`: makes the copy of a store in a bucket a store of its own.

use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use helenus_cluster::CLUSTER_DOCUMENT;
use helenus_server::node::SECRET_DOCUMENT;
use helenus_tablet::{CopyRestore, StoreConfig, StoreUrl};

use crate::running_nodes::refuse_if_alive;

/// Makes the copy of a store a store of its own. No node may run on the copy. The nodes and owners recorded in the copy are removed; the
/// data stays.
#[derive(Args, Clone, Debug)]
pub struct AdoptArgs {
    /// The copy: s3://bucket/prefix, gs://bucket/prefix or az://container/prefix
    #[arg(long, value_name = "URL")]
    store: String,
    /// The copy of the log, if it is not in the copy of the store
    #[arg(long, value_name = "URL")]
    log_store: Option<String>,
    /// Endpoint of the log's bucket, if it is not the one of the environment
    #[arg(long, value_name = "URL")]
    log_store_endpoint: Option<String>,
}

/// Adopts the copy, and prints its new identity.
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
    let documents = adoption.documents();
    let heartbeats = refuse_if_alive(documents).await?;
    if let Some(document) = documents.get(CLUSTER_DOCUMENT).await? {
        let adopted = helenus_cluster::adopt(&document.content, adoption.identity())?;
        documents
            .put(CLUSTER_DOCUMENT, &adopted, document.version)
            .await?;
    }
    for name in heartbeats.keys() {
        documents.delete(name).await?;
    }
    // The next node writes a new secret, which the nodes of the original store do not have.
    documents.delete(SECRET_DOCUMENT).await?;
    let identity = adoption.identity();
    adoption.finish().await?;
    Ok(identity)
}
