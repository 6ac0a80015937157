//! The measured processes: nodes, and the object store. They are killed at the end.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use helenus_stress::raw::Connection;
use serde_json::Value;

use crate::Common;

const START_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
/// Time without a change after which tablets are at rest. Moves begin at most every two leases.
const REST: Duration = Duration::from_secs(5);
/// Ports below the range that the system uses for outgoing connections. Each node has its own IP address.
const CQL_PORT: u16 = 19142;
const HTTP_PORT: u16 = 19280;
const RPC_PORT: u16 = 17000;
const STORE_ADDRESS: &str = "127.0.0.1:19000";

/// The object store: the stand-in, or the one of the command line.
pub struct Store {
    pub endpoint: String,
    pub url: String,
    child: Option<Child>,
}

impl Store {
    /// Starts the stand-in, with its large objects in `folder`, unless the command line names another store.
    pub fn start(common: &Common, folder: Option<&Path>) -> Result<Store> {
        if let (Some(endpoint), Some(bucket)) = (&common.endpoint, &common.bucket) {
            return Ok(Store {
                endpoint: endpoint.clone(),
                url: format!("s3://{bucket}"),
                child: None,
            });
        }
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["store", "--listen", STORE_ADDRESS]);
        command.args(["--delay-ms", &common.delay_ms.to_string()]);
        if let Some(folder) = folder {
            command.arg("--folder").arg(folder);
        }
        let child = command.stdout(Stdio::null()).spawn()?;
        let started = Instant::now();
        while std::net::TcpStream::connect(STORE_ADDRESS).is_err() {
            ensure!(started.elapsed() < START_TIMEOUT, "the stand-in does not start");
            std::thread::sleep(POLL);
        }
        Ok(Store {
            endpoint: format!("http://{STORE_ADDRESS}"),
            url: "s3://stand-in/store".to_owned(),
            child: Some(child),
        })
    }

    /// Returns the CPU time of the stand-in.
    pub fn cpu_time(&self) -> Result<Duration> {
        self.child
            .as_ref()
            .map_or(Ok(Duration::ZERO), |child| cpu_time(child.id()))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            end(child);
        }
    }
}

/// Returns a command of the helenus binary that can reach the object store.
fn command(common: &Common, endpoint: Option<&str>) -> Command {
    let mut command = Command::new(&common.helenus);
    // Helenus would read settings from these variables.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HELENUS_")) {
        command.env_remove(name);
    }
    if let Some(endpoint) = endpoint {
        command.env("AWS_ENDPOINT_URL", endpoint);
    }
    if common.endpoint.is_none() {
        command
            .env("AWS_ACCESS_KEY_ID", "any")
            .env("AWS_SECRET_ACCESS_KEY", "any");
        command.env("AWS_REGION", "us-east-1");
    }
    command
}

/// A `helenus compact` process.
pub struct Compactor(Child);

impl Compactor {
    /// Starts a compactor beside the nodes of the store.
    pub fn start(common: &Common, store: &Store, log: &Path) -> Result<Compactor> {
        let child = command(common, Some(&store.endpoint))
            .args(["compact", "--store", &store.url])
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(log.join("compactor.log"))?)
            .spawn()?;
        Ok(Compactor(child))
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Returns the CPU time of the process.
    pub fn cpu_time(&self) -> Result<Duration> {
        cpu_time(self.0.id())
    }

    /// Stops the process for a while (SIGSTOP). The nodes take over its work after half a minute.
    pub fn pause(&self) -> Result<()> {
        self.signal("-STOP")
    }

    /// Resumes the process.
    pub fn resume(&self) -> Result<()> {
        self.signal("-CONT")
    }

    fn signal(&self, signal: &str) -> Result<()> {
        let pid = self.0.id().to_string();
        let status = Command::new("kill").args([signal, &pid]).status()?;
        ensure!(status.success(), "the compactor has ended");
        Ok(())
    }
}

impl Drop for Compactor {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

/// A helenus process.
pub struct Node {
    pub cql: String,
    http: String,
    log: PathBuf,
    child: Child,
}

impl Node {
    /// Starts a single node on a folder. `number`, from 1, determines its address.
    pub fn local(common: &Common, number: u8, folder: &Path, log: &Path) -> Result<Node> {
        let url = format!("file://{}", folder.display());
        Node::start(common, number, &url, None, log)
    }

    /// Starts a node on the object store. `number`, from 1, determines its address.
    pub fn shared(common: &Common, number: u8, store: &Store, log: &Path) -> Result<Node> {
        Node::start(common, number, &store.url, Some(&store.endpoint), log)
    }

    /// Starts a node with its own store, in a folder of the object store.
    pub fn shared_at(common: &Common, number: u8, store: &Store, folder: &str, log: &Path) -> Result<Node> {
        let url = format!("{}/{folder}", store.url);
        Node::start(common, number, &url, Some(&store.endpoint), log)
    }

    fn start(common: &Common, number: u8, url: &str, endpoint: Option<&str>, log: &Path) -> Result<Node> {
        let at = |port: u16| format!("127.0.0.{number}:{port}");
        let cache = log.join(format!("cache{number}"));
        let log = log.join(format!("node{number}.log"));
        let (cql, http, rpc) = (at(CQL_PORT), at(HTTP_PORT), at(RPC_PORT));
        let mut command = command(common, endpoint);
        if endpoint.is_some() {
            command.env("HELENUS_CACHE_DIR", &cache);
        }
        command
            .args([
                "serve", "--store", url, "--listen", &cql, "--http", &http, "--rpc", &rpc,
            ])
            .args(common.set.iter().map(|setting| format!("--set={setting}")))
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log)?);
        let child = command.spawn().with_context(|| {
            format!(
                "can't start {}; cargo build --release makes it",
                common.helenus.display()
            )
        })?;
        Ok(Node {
            cql,
            http,
            log,
            child,
        })
    }

    /// Waits until the node accepts connections.
    pub async fn wait_until_ready(&mut self) -> Result<()> {
        let started = Instant::now();
        while started.elapsed() < START_TIMEOUT {
            if let Some(status) = self.child.try_wait()? {
                let log = std::fs::read_to_string(&self.log).unwrap_or_default();
                bail!("the node at {} ended, {status}: {log}", self.cql);
            }
            if Connection::open(&self.cql).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
        bail!("the node at {} is not up", self.cql)
    }

    pub fn cpu_time(&self) -> Result<Duration> {
        cpu_time(self.child.id())
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the node's GETs of the bucket since its start.
    pub fn bucket_gets(&self) -> Result<f64> {
        Ok(self.metrics()?.sum("helenus_bucket_requests_total{kind=\"get\"}"))
    }

    /// Stops the node gracefully.
    pub fn terminate(mut self) -> Result<()> {
        let pid = self.child.id().to_string();
        let signalled = Command::new("kill").arg(&pid).status()?;
        ensure!(
            signalled.success(),
            "the node at {} could not be stopped",
            self.cql
        );
        let ended = self.child.wait()?;
        ensure!(ended.success(), "the node at {} ended with {ended}", self.cql);
        Ok(())
    }

    fn get(&self, path: &str) -> Result<String> {
        let url = format!("http://{}{path}", self.http);
        Ok(ureq::get(&url).call()?.body_mut().read_to_string()?)
    }

    /// Returns the bytes read from the bucket up to the opening of the last tablet. The node's log has them.
    pub fn read_bytes_at_opening(&self) -> Result<u64> {
        let log = std::fs::read_to_string(&self.log)?;
        let read = |line: &str| {
            let (_, rest) = line.split_once("read_bytes=")?;
            rest.split_whitespace().next()?.parse::<u64>().ok()
        };
        let openings = log.lines().filter(|line| line.contains("tablet open"));
        openings.filter_map(read).max().context("no tablet was opened")
    }

    pub fn metrics(&self) -> Result<Metrics> {
        Ok(Metrics(self.get("/metrics")?))
    }

    pub fn cluster(&self) -> Result<Cluster> {
        let report: Value = serde_json::from_str(&self.get("/cluster")?)?;
        Cluster::read(&report).context("the cluster's report is not as expected")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Kills a process.
pub fn end(child: &mut Child) {
    // An error is ignored, because the process may have ended already.
    let _ = child.kill();
    let _ = child.wait();
}

/// Returns the total CPU time of nodes.
pub fn cpu_time_of(nodes: &[Node]) -> Result<Duration> {
    nodes.iter().map(Node::cpu_time).sum()
}

/// Returns the CPU time of all threads of a process in nanoseconds. `stat` has only hundredths of a second.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    let mut nanos = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // The thread may have ended after the listing.
        let stat = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        nanos += stat.split_whitespace().next().map_or(Ok(0), str::parse::<u64>)?;
    }
    Ok(Duration::from_nanos(nanos))
}

/// A page of metrics.
pub struct Metrics(String);

impl Metrics {
    /// Returns the sum of a metric's series, or one series if `name` has its labels. 0 if there is none.
    pub fn sum(&self, name: &str) -> f64 {
        let value = |line: &str| {
            let rest = line.strip_prefix(name)?;
            let rest = match rest.strip_prefix('{') {
                Some(labels) => labels.split_once('}')?.1,
                None => rest,
            };
            rest.strip_prefix(' ')?.trim().parse::<f64>().ok()
        };
        self.0.lines().filter_map(value).sum()
    }
}

/// The owners of all tablets, as one node knows them.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// Client addresses of the nodes that are alive.
    pub nodes: Vec<String>,
    pub tablets: Vec<Tablet>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Tablet {
    pub id: u64,
    pub last_token: i64,
    /// Client address of the tablet's owner. `None` if it is not known.
    pub owner: Option<String>,
    pub is_stable: bool,
}

impl Cluster {
    fn read(report: &Value) -> Option<Cluster> {
        let nodes = report["nodes"].as_array()?;
        let address = |host: &Value| {
            let node = nodes.iter().find(|node| node["host_id"] == *host)?;
            node["cql_address"].as_str().map(str::to_owned)
        };
        let tablet = |tablet: &Value| {
            Some(Tablet {
                id: tablet["id"].as_u64()?,
                last_token: tablet["last_token"].as_str()?.parse().ok()?,
                owner: address(&tablet["owner"]),
                is_stable: tablet["state"] == "stable",
            })
        };
        Some(Cluster {
            nodes: nodes
                .iter()
                .filter(|node| node["alive"] == true)
                .filter_map(|node| node["cql_address"].as_str().map(str::to_owned))
                .collect(),
            tablets: report["tablets"]
                .as_array()?
                .iter()
                .map(tablet)
                .collect::<Option<_>>()?,
        })
    }

    /// Returns the owner of a token. `None` if it is not known.
    pub fn owner(&self, token: i64) -> Option<&str> {
        let tablet = self.tablets.iter().find(|tablet| token <= tablet.last_token)?;
        tablet.owner.as_deref()
    }

    pub fn tablets_of(&self, address: &str) -> usize {
        let owned = self
            .tablets
            .iter()
            .filter(|tablet| tablet.owner.as_deref() == Some(address));
        owned.count()
    }

    /// Returns true if this number of nodes have tablets, and no tablet is moving.
    fn is_at_rest(&self, nodes: usize) -> bool {
        self.nodes.len() == nodes
            && self.nodes.iter().all(|node| self.tablets_of(node) > 0)
            && self
                .tablets
                .iter()
                .all(|tablet| tablet.is_stable && tablet.owner.is_some())
    }
}

/// Waits until this number of nodes have tablets, and nothing has changed for a while. Returns the owners, and the time of their last
/// change.
pub async fn settled(node: &Node, nodes: usize, longest: Duration) -> Result<(Cluster, Instant)> {
    let started = Instant::now();
    let (mut seen, mut since) = (node.cluster()?, Instant::now());
    loop {
        if seen.is_at_rest(nodes) && since.elapsed() > REST {
            return Ok((seen, since));
        }
        ensure!(
            started.elapsed() < longest,
            "{nodes} nodes do not come to rest: {:?}",
            seen.nodes
                .iter()
                .map(|node| seen.tablets_of(node))
                .collect::<Vec<_>>()
        );
        tokio::time::sleep(POLL).await;
        let now = node.cluster()?;
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
    }
}
