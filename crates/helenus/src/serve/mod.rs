//! `helenus serve`: one node.

mod config;
mod host_id;
mod settings;
#[cfg(test)]
mod settings_tests;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, anyhow};
use clap::Args;
use helenus_query::clock::SystemClock;
use helenus_query::engine::{Engine, EngineConfig, NodeInfo};
use helenus_server::http::{self, HttpServer};
use helenus_server::{Backend, Server};
use helenus_tablet::StoreUrl;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::prelude::*;

use self::config::{CASSANDRA_VERSION, Config};

/// Runs a node. Every setting can also stand in the file of --config and in the environment.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = settings::help())]
pub struct ServeArgs {
    /// Where the data lies [default: file://./helenus-data]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Where CQL is served [default: 127.0.0.1:9042]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Where /health and /metrics are served; "off" for nowhere [default: 127.0.0.1:9180]
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    /// Where other nodes will find this one. A node of this version stands alone and opens no such port
    #[arg(long, value_name = "HOST:PORT")]
    rpc: Option<String>,
    /// A TOML file of settings
    #[arg(long, value_name = "FILE")]
    config: Option<std::path::PathBuf>,
    /// Any other setting; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
}

impl ServeArgs {
    /// The settings of the command line, in the order given.
    fn settings(&self) -> anyhow::Result<Vec<(String, String)>> {
        let named = [
            ("store", &self.store),
            ("listen", &self.listen),
            ("http", &self.http),
            ("rpc", &self.rpc),
        ];
        let mut all: Vec<(String, String)> = named
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)))
            .collect();
        for pair in &self.set {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| anyhow!("--set {pair}: allowed is NAME=VALUE"))?;
            all.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        Ok(all)
    }
}

/// Runs a node until it is told to stop.
pub fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let environment = std::env::vars().collect::<Vec<_>>();
    let config = settings::load(&args.settings()?, args.config.as_deref(), &environment)?;
    let filter = tracing_subscriber::EnvFilter::try_new(&config.log).map_err(|error| {
        anyhow!(
            "log = \"{}\": {error}; allowed are filters like info or info,slatedb=warn",
            config.log
        )
    })?;
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_filter(filter);
    tracing_subscriber::registry()
        .with(lines)
        .with(helenus_tablet::trace::layer())
        .init();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.enable_all().thread_name("helenus");
    if let Some(threads) = config.worker_threads {
        runtime.worker_threads(threads);
    }
    runtime
        .build()
        .context("cannot start the runtime")?
        .block_on(serve(config, began))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(config: Config, began: Instant) -> anyhow::Result<()> {
    let prometheus = http::install_recorder().map_err(|error| anyhow!("cannot install metrics: {error}"))?;
    // Asked for early: a signal that comes while the store opens must not be lost.
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;

    let engine = open_engine(&config).await?;
    let server = Server::start(config.server.clone(), engine.clone())
        .await
        .with_context(|| format!("listen = \"{}\": cannot listen there", config.server.listen))?;
    let http = match config.http {
        Some(address) => {
            let stats = engine.clone();
            let started =
                HttpServer::start(address, prometheus, Arc::new(move || stats.record_stats())).await;
            Some(started.with_context(|| format!("http = \"{address}\": cannot listen there"))?)
        }
        None => None,
    };
    greet(&config, &server, http.as_ref(), began);

    let signal = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    };
    tracing::info!(signal, "stopping");
    if let Some(http) = &http {
        http.set_stopping();
    }
    server.stop().await;
    engine
        .close()
        .await
        .map_err(|error| anyhow!("cannot close the store: {error}"))?;
    if let Some(http) = http {
        http.stop();
    }
    tracing::info!("stopped");
    Ok(())
}

async fn open_engine(config: &Config) -> anyhow::Result<Arc<Engine>> {
    let host_id = match &config.store.url {
        StoreUrl::File(folder) => host_id::load(folder)?,
        StoreUrl::Remote(_) => uuid::Uuid::new_v4(),
    };
    let node = NodeInfo {
        cluster_name: config.cluster_name.clone(),
        data_center: config.data_center.clone(),
        rack: config.rack.clone(),
        host_id,
        native_address: config.advertised(),
        release_version: CASSANDRA_VERSION.to_owned(),
    };
    let url = config.store.url.to_string();
    let engine_config = EngineConfig {
        store: config.store.clone(),
        node,
        limits: config.limits.clone(),
        clock: Arc::new(SystemClock),
    };
    Engine::open(engine_config)
        .await
        .map_err(|error| anyhow!("cannot open the store {url}: {error}"))
}

/// Says where everything is and how to connect.
fn greet(config: &Config, server: &Server, http: Option<&HttpServer>, began: Instant) {
    let address = server.address();
    let reachable = config.reachable(address);
    let (host, port) = (reachable.ip(), reachable.port());
    println!(
        "Helenus {} serves CQL as Apache Cassandra {CASSANDRA_VERSION}",
        env!("CARGO_PKG_VERSION")
    );
    println!(
        "  listening on  {address}   (ready after {} ms)",
        began.elapsed().as_millis()
    );
    println!("  data in       {}", place(&config.store.url));
    if let Some(http) = http {
        println!(
            "  metrics at    http://{0}/metrics, health at http://{0}/health",
            http.address()
        );
    }
    println!("Connect with");
    println!("  helenus shell {reachable}");
    println!("  cqlsh {host} {port}");
    println!(
        "  a driver: contact point {reachable}, local data center {}",
        config.data_center
    );
    if let Some(rpc) = config.rpc {
        println!("Note: rpc = {rpc}: a node of this version stands alone; it opens no port for other nodes.");
    }
}

/// Where a store lies, in full.
fn place(url: &StoreUrl) -> String {
    match url {
        StoreUrl::File(folder) => {
            let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            folder.display().to_string()
        }
        StoreUrl::Remote(url) => url.to_string(),
    }
}
