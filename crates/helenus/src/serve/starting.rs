//! The start of a node until it serves. If the store does not answer, the node waits for it and reports that.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use helenus_query::clock::SystemClock;
use helenus_query::engine::{Engine, EngineConfig, LocalNode};
use helenus_server::http::StartingHttp;
use helenus_server::metrics::PrometheusHandle;
use helenus_server::node::{ClusterNode, Reader};
use helenus_tablet::{FailureStreak, StoreConfig, StoreUrl, why_unavailable};

use super::cluster::{self, Identity};
use super::config::Config;
use super::{live, read_only};

/// Pause between two attempts to use the store.
const PAUSE: Duration = Duration::from_secs(1);

/// Parts of a node that is ready.
pub struct Booted {
    pub engine: Arc<Engine>,
    pub reader: Option<Reader>,
    pub node: Option<ClusterNode>,
    /// Reason why scheduled backups cannot be written at present. `None` if they can, or none are scheduled.
    pub backup_trouble: Option<String>,
}

/// Binds the address for HTTP and answers that the node is starting. `None` if HTTP is off.
pub async fn http(config: &Config, prometheus: &PrometheusHandle) -> anyhow::Result<Option<StartingHttp>> {
    let Some(address) = config.http else {
        return Ok(None);
    };
    let started = StartingHttp::start(address, prometheus.clone()).await;
    let started = started.with_context(|| format!("http = \"{address}\": cannot listen there"))?;
    Ok(Some(started))
}

/// Opens the store and joins the cluster.
///
/// # Errors
/// Fails if the node cannot start and waiting would not help.
pub async fn boot(
    config: &Config,
    identity: &Identity,
    http: Option<&StartingHttp>,
) -> anyhow::Result<Booted> {
    let engine = once_available(config, http, async || open_engine(config, identity).await).await?;
    let reader = once_available(config, http, async || read_only::start(config, &engine).await).await?;
    let backup_trouble = match reader {
        Some(_) => None,
        None => check_backups(config, &engine).await?,
    };
    if let Some(http) = http {
        http.set_waits_for(Some("the node joins the cluster"));
    }
    let node = cluster::join(config, identity, &engine).await?;
    if engine.authenticates() && reader.is_none() {
        let make = async || {
            let made = engine.make_superuser(config.superuser_password.as_deref()).await;
            made.map_err(|error| anyhow!("cannot make the role cassandra: {error}"))
        };
        once_available(config, http, make).await?;
    }
    Ok(Booted {
        engine,
        reader,
        node,
        backup_trouble,
    })
}

/// Refuses a wrong place for scheduled backups. Returns the reason if the place is valid and cannot be used at present.
async fn check_backups(config: &Config, engine: &Engine) -> anyhow::Result<Option<String>> {
    let Some(schedule) = config.backup_schedule() else {
        return Ok(None);
    };
    let checked = schedule.check(engine).await;
    checked.map_err(|why| anyhow!("backup_to = \"{}\": {why}", schedule.to))
}

/// Runs a step of the start, and repeats it as long as the store does not answer.
async fn once_available<T>(
    config: &Config,
    http: Option<&StartingHttp>,
    step: impl AsyncFn() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut waiting = FailureStreak::new(
        "the store cannot be used at present; the node waits for it, and is not ready",
        "the store answers; the start goes on",
    );
    // A step that fails while the store answers is repeated once, because the store may have answered again after the failure.
    let mut is_repeated = false;
    loop {
        let error = match step().await {
            Ok(done) => {
                waiting.note(&Ok::<_, String>(()));
                return Ok(done);
            }
            Err(error) => error,
        };
        if matches!(config.store.url, StoreUrl::File(_)) {
            return Err(error);
        }
        match why_unavailable(&config.store).await {
            Some(why) => {
                if let Some(http) = http {
                    http.set_waits_for(Some(&why));
                }
                waiting.note(&Err::<(), _>(why));
                is_repeated = false;
            }
            None if is_repeated => return Err(error),
            None => {
                if let Some(http) = http {
                    http.set_waits_for(None);
                }
                waiting.note(&Ok::<_, String>(()));
                is_repeated = true;
                continue;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn open_engine(config: &Config, identity: &Identity) -> anyhow::Result<Arc<Engine>> {
    let node = LocalNode {
        cluster_name: config.cluster_name.clone(),
        data_center: identity.description.data_center.clone(),
        rack: identity.description.rack.clone(),
        host_id: identity.host_id,
        native_address: identity.description.cql_address,
        release_version: config.release_version.clone(),
    };
    let url = config.store.url.to_string();
    let engine_config = EngineConfig {
        store: StoreConfig {
            // Tablets of a shared store are opened by the cluster's agent.
            open_all_tablets: false,
            ..config.store.clone()
        },
        node,
        limits: live::limits(config),
        control: config.control,
        clock: Arc::new(SystemClock),
    };
    let opened = Engine::open(engine_config).await;
    let engine = opened.map_err(|error| anyhow!("cannot open the store {url}: {error}"))?;
    engine.measure_plans(super::allocations::of_thread);
    Ok(engine)
}
