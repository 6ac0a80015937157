//! The measured servers. They are started, paused and watched, and killed at the end.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use helenus_stress::monitor::process::{self, Usage};
use helenus_stress::raw::Connection;

/// Maximum time of a start. Cassandra takes about 20 s, and minutes if it must be downloaded first.
const START_TIMEOUT: Duration = Duration::from_secs(600);

/// A running server.
pub struct Server {
    name: &'static str,
    /// Addresses of the server's nodes.
    addresses: Vec<String>,
    children: Vec<Child>,
}

impl Server {
    /// Starts `nodes` nodes of the helenus binary with defaults and these settings, on an object store or on a new folder. On a folder
    /// there must be one node.
    pub fn helenus(
        binary: &Path,
        data: &Path,
        settings: &[String],
        object_store: Option<&str>,
        nodes: u8,
    ) -> Result<Server> {
        let folder = format!("file://{}", data.join("helenus").display());
        let store = object_store.unwrap_or(&folder);
        let mut server = Server {
            name: "helenus",
            addresses: Vec::new(),
            children: Vec::new(),
        };
        for number in 1..=nodes {
            // Each node has its own IP address, as drivers expect.
            let free = || free_address(&format!("127.0.0.{number}"));
            let (address, http, rpc) = (free()?, free()?, free()?);
            let mut command = command(binary);
            if object_store.is_some() {
                command.env("HELENUS_CACHE_DIR", data.join(format!("cache{number}")));
            }
            let child = command
                .args(["serve", "--store", store])
                .args(["--listen", &address, "--http", &http, "--rpc", &rpc])
                .args(settings.iter().map(|setting| format!("--set={setting}")))
                .stdout(Stdio::null())
                .spawn()
                .with_context(|| not_there(binary, "helenus"))?;
            server.addresses.push(address);
            server.children.push(child);
        }
        Ok(server)
    }

    /// Starts the server that answers without storage.
    pub fn baseline(binary: &Path) -> Result<Server> {
        let address = free_address("127.0.0.1")?;
        let child = command(binary)
            .args(["--listen", &address])
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| not_there(binary, "helenus-baseline"))?;
        Ok(Server {
            name: "baseline",
            addresses: vec![address],
            children: vec![child],
        })
    }

    /// Starts Apache Cassandra with `bench/cassandra/start.sh`.
    pub fn cassandra(cache: &Path, data: &Path, heap: &str) -> Result<Server> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cassandra/start.sh");
        let address = free_address("127.0.0.3")?;
        let (host, port) = address.rsplit_once(':').context("no port")?;
        std::fs::create_dir_all(cache)?;
        let child = Command::new("bash")
            .arg(script)
            .args([cache.canonicalize()?.as_path(), &data.join("cassandra")])
            .args([host, port, heap])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("can't start Apache Cassandra; it needs bash, Java 17 and Maven")?;
        Ok(Server {
            name: "cassandra",
            addresses: vec![address],
            children: vec![child],
        })
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the client addresses of all nodes.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Returns the client address of the first node.
    pub fn first_address(&self) -> Result<&str> {
        self.addresses.first().map(String::as_str).context("no node")
    }

    /// Waits until all nodes accept connections.
    pub async fn wait_until_ready(&mut self) -> Result<()> {
        let started = Instant::now();
        while started.elapsed() < START_TIMEOUT {
            for child in &mut self.children {
                if let Some(status) = child.try_wait()? {
                    bail!("{} ended at once: {status}", self.name);
                }
            }
            if self.takes_connections().await {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        bail!("{} is not up after {} s", self.name, START_TIMEOUT.as_secs())
    }

    async fn takes_connections(&self) -> bool {
        for address in &self.addresses {
            if Connection::open(address).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Returns the CPU time and resident memory of the processes.
    pub fn usage(&self) -> Result<Usage> {
        process::usage(&self.processes()).with_context(|| format!("{} is gone", self.name))
    }

    /// Returns the ids of the processes.
    pub fn processes(&self) -> Vec<u32> {
        self.children.iter().map(Child::id).collect()
    }

    /// Stops the processes until [`Server::resume`].
    pub fn pause(&self) -> Result<()> {
        self.signal("-STOP")
    }

    pub fn resume(&self) -> Result<()> {
        self.signal("-CONT")
    }

    fn signal(&self, signal: &str) -> Result<()> {
        let status = Command::new("kill")
            .arg(signal)
            .args(self.children.iter().map(|child| child.id().to_string()))
            .status()?;
        if !status.success() {
            bail!("can't send {signal} to {}", self.name);
        }
        Ok(())
    }
}

/// Returns an unused address of this host.
fn free_address(host: &str) -> Result<String> {
    let listener = TcpListener::bind((host, 0)).with_context(|| format!("can't listen on {host}"))?;
    Ok(listener.local_addr()?.to_string())
}

/// Returns a command without the variables from which Helenus reads settings, because it refuses unknown ones.
fn command(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HELENUS_")) {
        command.env_remove(name);
    }
    command
}

fn not_there(binary: &Path, package: &str) -> String {
    format!(
        "can't start {}; build it with `cargo build --release -p {package}`",
        binary.display()
    )
}

impl Drop for Server {
    fn drop(&mut self) {
        for child in &mut self.children {
            // An error is ignored, because the process may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
