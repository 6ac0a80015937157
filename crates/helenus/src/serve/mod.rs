//! `helenus serve`: runs one node.

mod allocations;
mod audit_settings;
mod cluster;
mod config;
pub mod descriptors;
mod guardrail_settings;
mod host_id;
mod live;
mod log_filter;
mod log_lines;
mod logging;
mod query_log_settings;
mod read_only;
mod setting;
pub mod settings;
pub mod settings_file;
mod settings_live;
mod settings_shown;
#[cfg(test)]
mod settings_tests;
mod signals;
mod starting;
mod stopping;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, anyhow};
use clap::Args;
use helenus_server::backups::BackupMonitor;
use helenus_server::bucket_cost::BucketCostMeter;
use helenus_server::http::commands::{NodeCommands, RequestLogs};
use helenus_server::http::reports::{NodeReporter, Watched};
use helenus_server::http::{HttpServer, StartingHttp};
use helenus_server::logs::audit::AuditLog;
use helenus_server::logs::full_query_log::FullQueryLog;
use helenus_server::metrics::{PrometheusHandle, install_recorder};
use helenus_server::node::ClusterNode;
use helenus_server::rpc::secret::Secret;
use helenus_server::spans::{RequestSpans, SpanOptions};
use helenus_server::tls::{ClientTls, Expiry};
use helenus_server::{Backend, Server, ServerConfig};
use helenus_tablet::{StoreUrl, machine_memory_bytes};
use tokio::sync::Notify;

use self::cluster::Identity;
use self::config::{Config, LogFormat};
use self::live::{AppliedTo, Live};
use self::log_filter::LogFilter;
use self::settings::{ExplicitSettings, Sources};
use self::starting::Booted;
use self::stopping::Stopping;

/// Runs a node. Every setting can also be given in the file of --config and in the environment.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = settings::help())]
pub struct ServeArgs {
    /// The location of the data [default: file://./helenus-data]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// The location of the log of a store in a bucket [default: beside the data]
    #[arg(long, value_name = "URL")]
    log_store: Option<String>,
    /// The folder of the disk cache of a store in a bucket [default: ./helenus-cache]
    #[arg(long, value_name = "PATH")]
    cache_dir: Option<String>,
    /// The address for CQL clients [default: 127.0.0.1:9042]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// The address for /health, /metrics and nodetool, or "off" [default: 127.0.0.1:9180]
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
    /// The address for other nodes of a shared store [default: port 7000 on the address for clients]
    #[arg(long, value_name = "HOST:PORT")]
    rpc: Option<String>,
    /// The name of this node in its cluster
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The rack of this node [default: rack1]
    #[arg(long, value_name = "NAME")]
    rack: Option<String>,
    /// Serves only reads, from the bucket, beside the nodes of the store; takes no part in their cluster
    #[arg(long)]
    read_only: bool,
    /// A TOML file of settings
    #[arg(long, value_name = "FILE")]
    config: Option<std::path::PathBuf>,
    /// Any other setting; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
}

impl ServeArgs {
    /// Returns the sources of the node's settings.
    fn sources(&self) -> anyhow::Result<Sources> {
        Ok(Sources {
            command_line: self.settings()?,
            file: self.config.clone(),
            environment: std::env::vars().collect(),
        })
    }

    /// Returns the settings of the command line, in the order given.
    fn settings(&self) -> anyhow::Result<Vec<(String, String)>> {
        let named = [
            ("store", &self.store),
            ("log_store", &self.log_store),
            ("cache_dir", &self.cache_dir),
            ("listen", &self.listen),
            ("http", &self.http),
            ("rpc", &self.rpc),
            ("name", &self.name),
            ("rack", &self.rack),
        ];
        let mut all: Vec<(String, String)> = named
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)))
            .collect();
        if self.read_only {
            all.push(("read_only".to_owned(), "true".to_owned()));
        }
        all.extend(settings::pairs(&self.set)?);
        Ok(all)
    }
}

/// Everything that a node is started with.
struct Start {
    config: Config,
    sources: Sources,
    given: ExplicitSettings,
    log_filter: LogFilter,
    began: Instant,
}

/// Runs a node without a command line. Prints first where it listens and stores its data.
pub fn run_without_command() -> anyhow::Result<ExitCode> {
    let args = ServeArgs::default();
    let (config, _) = args.sources()?.load()?;
    if config.log_format == LogFormat::Json {
        return run(&args);
    }
    println!(
        "No command is given: serving CQL on {}, with the data in {} (`helenus --help` lists the other commands)",
        config.server.listen,
        place(&config.store.url)
    );
    run(&args)
}

/// Runs a node until a signal or command stops it.
pub fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let sources = args.sources()?;
    let (config, given) = match sources.load() {
        Err(error) if sources.has_json_lines() => {
            logging::write_json_error(&error);
            return Ok(ExitCode::FAILURE);
        }
        loaded => loaded?,
    };
    let log_format = config.log_format;
    let log_filter = logging::start(&config)?;
    crate::keep_files_private();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.enable_all().thread_name("helenus");
    if let Some(threads) = config.worker_threads {
        runtime.worker_threads(threads);
    }
    let runtime = runtime.build().context("cannot start the runtime")?;
    let served = runtime.block_on(serve(Start {
        config,
        sources,
        given,
        log_filter,
        began,
    }));
    // Tasks that wait for an unavailable store must not delay the exit.
    runtime.shutdown_background();
    match (served, log_format) {
        (Err(error), LogFormat::Json) => {
            tracing::error!(error = format!("{error:#}"), "the node has ended");
            Ok(ExitCode::FAILURE)
        }
        (served, _) => served.map(|()| ExitCode::SUCCESS),
    }
}

async fn serve(start: Start) -> anyhow::Result<()> {
    let Start {
        config,
        sources,
        given,
        log_filter,
        began,
    } = start;
    let prometheus = install_recorder().map_err(|error| anyhow!("cannot install metrics: {error}"))?;
    // Signal handlers are installed first, so that a signal during the opening of the store is not lost.
    let mut signals = signals::stop_signals().context("cannot listen for signals")?;
    let hangup = signals::take().context("cannot listen for signals")?;

    let descriptors = descriptors::raise();
    let connections_max = descriptors::connections_max(config.server.connections_max, descriptors);
    log_start(&config, descriptors, connections_max);
    let certificates = Arc::new(Notify::new());
    let stop_requested = Arc::new(Notify::new());
    let identity = cluster::identity(&config)?;
    let starting_http = starting::http(&config, &prometheus).await?;
    let booted = tokio::select! {
        booted = starting::boot(&config, &identity, starting_http.as_ref()) => booted?,
        reason = signals.next() => {
            tracing::info!(reason, "stopped before the node was ready");
            return Ok(());
        }
    };
    let Booted {
        engine,
        reader,
        node,
        backup_trouble,
    } = booted;
    let bucket_cost = BucketCostMeter::start(engine.store(), config.bucket_prices).map(Arc::new);
    engine.begin_upkeep();
    let tls = config
        .client_tls()
        .and_then(|files| files.map(ClientTls::load).transpose())
        .map_err(|error| anyhow!("tls: {error}"))?;
    let tls_expiry = tls.as_ref().map(ClientTls::expiry);
    if let Some(tls) = &tls {
        tokio::spawn(tls.clone().follow_files(config.tls_reload, certificates.clone()));
    }
    let audit = AuditLog::new(config.audit.clone()).map_err(|error| anyhow!("audit log: {error}"))?;
    let spans = start_spans(&config, &identity)?;
    let request_logs = RequestLogs {
        audit: Arc::new(audit),
        full_query: Arc::new(FullQueryLog::new(config.full_query_log.clone())),
    };
    let server_config = ServerConfig {
        tls,
        audit: request_logs.audit.clone(),
        full_query_log: request_logs.full_query.clone(),
        spans,
        connections_max,
        ..config.server.clone()
    };
    let server = Server::start(server_config, engine.clone())
        .await
        .with_context(|| format!("listen = \"{}\": cannot listen there", config.server.listen))?;
    let log_filter = Arc::new(log_filter);
    let applied_to = AppliedTo {
        log: log_filter.clone(),
        engine: engine.clone(),
        slow_requests: server.slow_request_log(),
        certificates,
    };
    let live = Arc::new(Live::new(sources, given, config.clone(), applied_to));
    tokio::spawn(live.clone().follow(hangup));
    let schedule = config.backup_schedule().filter(|_| reader.is_none());
    let backups = schedule.map(|schedule| schedule.start(&engine, live.clone(), backup_trouble));
    let reporter = NodeReporter {
        engine: engine.clone(),
        agent: node.as_ref().map(|node| node.agent().clone()),
        bucket_cost,
        metrics: server.metrics().clone(),
        transport: server.transport(),
        slow_requests: server.slow_request_log(),
        watched: watched(backups, tls_expiry, node.as_ref()),
        started: began,
    };
    let of_cluster = node.as_ref().map(ClusterNode::secret);
    // A node that is alone uses the secret only to authenticate commands.
    let secret = of_cluster.or_else(|| config.cluster_secret.as_deref().map(Secret::new));
    let http = match starting_http {
        Some(starting_http) => {
            let commands = NodeCommands::new(
                engine.clone(),
                log_filter,
                live,
                request_logs.clone(),
                server.transport(),
                stop_requested.clone(),
                secret,
            );
            Some(serve_http(
                starting_http,
                prometheus,
                node.as_ref(),
                reporter,
                commands,
            ))
        }
        None => None,
    };
    if let Some(node) = &node {
        node.announce(server.announcer());
    }
    match config.log_format {
        LogFormat::Text => print_banner(&config, &server, http.as_ref(), node.as_ref(), began),
        LogFormat::Json => log_ready(&config, &server, http.as_ref(), began),
    }

    let reason = tokio::select! {
        signal = signals.next() => signal,
        () = stop_requested.notified() => "nodetool",
        () = cluster::leaves(node.as_ref()) => "the node leaves the cluster",
    };
    tracing::info!(reason, "stopping");
    let stopping = Stopping {
        server,
        http,
        node,
        reader,
        engine,
        shutdown_timeout: config.server.shutdown_timeout,
    };
    stopping.run(signals).await?;
    // Disabling the logs writes the lines that still wait for the disk.
    request_logs.audit.disable();
    request_logs.full_query.disable();
    tracing::info!("stopped");
    Ok(())
}

/// Returns the states that an operator must see before clients are affected, such as the expiry of certificates.
fn watched(
    backups: Option<Arc<BackupMonitor>>,
    tls_expiry: Option<Expiry>,
    node: Option<&ClusterNode>,
) -> Watched {
    let of_nodes = node.and_then(ClusterNode::certificate_expiry);
    let certificates = [("clients", tls_expiry), ("nodes", of_nodes)].into_iter();
    Watched {
        backups,
        certificates: certificates
            .filter_map(|(purpose, expiry)| Some((purpose, expiry?)))
            .collect(),
        clock_skew: node.map(ClusterNode::clock_skew),
    }
}

/// Starts the sending of requests' spans. `None` if no collector is set.
fn start_spans(config: &Config, identity: &Identity) -> anyhow::Result<Option<Arc<RequestSpans>>> {
    let Some(endpoint) = config.otlp_endpoint.clone() else {
        return Ok(None);
    };
    let options = SpanOptions {
        endpoint,
        sample_ratio: config.otlp_sample_ratio,
        instance: identity.host_id.to_string(),
    };
    let spans = RequestSpans::start(options).map_err(|error| anyhow!("otlp_endpoint: {error}"))?;
    Ok(Some(Arc::new(spans)))
}

/// Logs the version, the settings that differ from the defaults, and the limits of the process.
fn log_start(config: &Config, open_files_max: Option<u64>, connections_max: usize) {
    let unusual = live::unusual(config);
    let settings: Vec<String> = unusual
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        store = %config.store.url,
        settings = settings.join(" "),
        "starting, with these settings beside the defaults"
    );
    let open_files_max = open_files_max.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    tracing::info!(
        open_files_max,
        connections_max,
        memory_bytes = machine_memory_bytes(),
        cores = std::thread::available_parallelism().map_or(1, usize::from),
        "limits of the process"
    );
}

/// Starts to serve all paths over HTTP.
fn serve_http(
    starting_http: StartingHttp,
    prometheus: PrometheusHandle,
    node: Option<&ClusterNode>,
    reporter: NodeReporter,
    commands: NodeCommands,
) -> HttpServer {
    let engine = reporter.engine.clone();
    let bucket_cost = reporter.bucket_cost.clone();
    let cluster_metrics = node.map(ClusterNode::metrics_recorder);
    let record = Arc::new(move || {
        engine.record_stats();
        if let Some(bucket_cost) = &bucket_cost {
            bucket_cost.record();
        }
        if let Some(record) = &cluster_metrics {
            record();
        }
    });
    let control = node.map(|node| node.control(&reporter.engine));
    HttpServer::start(starting_http, prometheus, record, reporter, commands, control)
}

/// Logs the content of the banner as one line, for logs in JSON.
fn log_ready(config: &Config, server: &Server, http: Option<&HttpServer>, began: Instant) {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        listen = %server.address(),
        http = http.map(|http| http.address().to_string()),
        store = place(&config.store.url),
        ready_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        "serving CQL"
    );
}

/// Prints the node's addresses and places, and how to connect.
fn print_banner(
    config: &Config,
    server: &Server,
    http: Option<&HttpServer>,
    node: Option<&ClusterNode>,
    began: Instant,
) {
    let address = server.address();
    let reachable = config.reachable(address);
    let (host, port) = (reachable.ip(), reachable.port());
    println!(
        "Helenus {} serves CQL as Apache Cassandra {}",
        env!("CARGO_PKG_VERSION"),
        config.release_version
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
    if let Some(node) = node {
        println!("  store id      {}", node.store());
        let tablets = node.agent().view();
        println!(
            "  node port     {} for other nodes   ({} of {} tablets here, {} nodes)",
            node.rpc_address(),
            tablets.tablets_of(node.host_id()).count(),
            tablets.tablets().len(),
            tablets.nodes().len()
        );
    } else if config.store.read_only {
        println!(
            "  read-only     what the nodes of the store have flushed, read every {} ms",
            config.store.read_only_refresh_interval.as_millis()
        );
    } else if let Some(rpc) = config.rpc {
        println!("Note: rpc = {rpc}: a store in a local folder has one node; no port is opened for others.");
    }
    println!("Connect with");
    println!("  helenus shell {reachable}");
    println!("  cqlsh {host} {port}");
    println!(
        "  a driver: contact point {reachable}, local data center {}",
        config.data_center
    );
}

/// Returns the location of a store, with the full path of a folder.
fn place(url: &StoreUrl) -> String {
    match url {
        StoreUrl::File(folder) => {
            let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            folder.display().to_string()
        }
        StoreUrl::Remote(url) => url.to_string(),
    }
}
