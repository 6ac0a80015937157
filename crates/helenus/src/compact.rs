//! `helenus compact`: does compactions for the nodes of a store in a bucket.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;
use helenus_query::storage::RowHooks;
use helenus_tablet::{FailureStreak, StoreConfig, why_unavailable};
use tokio::signal::unix::{SignalKind, signal};

use crate::serve::settings;

/// Pause before a store that does not answer is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// Does compactions for the nodes of a store in a bucket. Any number of such processes may run; without any, the nodes compact.
#[derive(Args, Clone, Debug)]
pub struct CompactArgs {
    /// The store: s3://bucket/prefix, gs://bucket/prefix or az://container/prefix
    #[arg(long, value_name = "URL")]
    store: String,
    /// A TOML file of settings, as for serve
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Another setting of serve, such as background_threads or compaction_poll_interval; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
}

/// Waits until the store answers.
async fn available(store: &StoreConfig) {
    let mut waiting = FailureStreak::new(
        "the store cannot be used at present; the compactor waits for it",
        "the store answers",
    );
    while let Some(why) = why_unavailable(store).await {
        waiting.note(&Err::<(), _>(why));
        tokio::time::sleep(PAUSE).await;
    }
    waiting.note(&Ok::<_, String>(()));
}

/// Compacts until a signal stops the process.
pub fn run(args: &CompactArgs) -> anyhow::Result<ExitCode> {
    let environment = std::env::vars().collect::<Vec<_>>();
    let mut given = vec![("store".to_owned(), args.store.clone())];
    given.extend(settings::pairs(&args.set)?);
    let config = settings::load(&given, args.config.as_deref(), &environment)?;
    let filter = tracing_subscriber::EnvFilter::try_new(&config.log)
        .map_err(|error| anyhow!("log = \"{}\": {error}", config.log))?;
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_env_filter(filter)
        .init();
    crate::keep_files_private();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("helenus")
        .worker_threads(2)
        .build()
        .context("cannot start the runtime")?;
    let ended = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
        let mut stop = Box::pin(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("stopping");
        });
        tokio::select! {
            () = available(&config.store) => {}
            () = &mut stop => return Ok(()),
        }
        println!("Compacts the store in {} for its nodes", args.store);
        helenus_tablet::compact(config.store, RowHooks::without_schema(), stop)
            .await
            .map_err(|error| anyhow!("cannot compact the store {}: {error}", args.store))
    });
    runtime.shutdown_background();
    ended.map(|()| ExitCode::SUCCESS)
}
