//! The servers under measurement: started, paused, watched, and killed at the end.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use helenus_stress::monitor::process::{self, Usage};
use helenus_stress::raw::Connection;

/// Cassandra takes about 20 s, and minutes when it must be downloaded first.
const START_TIMEOUT: Duration = Duration::from_secs(600);

/// A running server.
pub struct Server {
    name: &'static str,
    address: String,
    child: Child,
}

impl Server {
    /// Starts the helenus binary with its defaults on a fresh folder, but for these settings.
    pub fn helenus(binary: &Path, data: &Path, settings: &[String]) -> Result<Server> {
        let (address, http) = (free_address("127.0.0.1")?, free_address("127.0.0.1")?);
        let child = command(binary)
            .args([
                "serve",
                "--store",
                &format!("file://{}", data.join("helenus").display()),
            ])
            .args(["--listen", &address, "--http", &http])
            .args(settings.iter().map(|setting| format!("--set={setting}")))
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| not_there(binary, "helenus"))?;
        Ok(Server {
            name: "helenus",
            address,
            child,
        })
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
            address,
            child,
        })
    }

    /// Starts Apache Cassandra through `bench/cassandra/start.sh`.
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
            address,
            child,
        })
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Waits until the server takes connections.
    pub async fn wait_until_ready(&mut self) -> Result<()> {
        let started = Instant::now();
        while started.elapsed() < START_TIMEOUT {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended at once: {status}", self.name);
            }
            if Connection::open(&self.address).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        bail!("{} is not up after {} s", self.name, START_TIMEOUT.as_secs())
    }

    /// CPU time and resident memory of the process.
    pub fn usage(&self) -> Result<Usage> {
        process::usage(&[self.child.id()]).with_context(|| format!("{} is gone", self.name))
    }

    /// Stops the process until [`Server::resume`].
    pub fn pause(&self) -> Result<()> {
        self.signal("-STOP")
    }

    pub fn resume(&self) -> Result<()> {
        self.signal("-CONT")
    }

    fn signal(&self, signal: &str) -> Result<()> {
        let status = Command::new("kill")
            .args([signal, &self.child.id().to_string()])
            .status()?;
        if !status.success() {
            bail!("can't send {signal} to {}", self.name);
        }
        Ok(())
    }
}

/// An unused address of this host.
fn free_address(host: &str) -> Result<String> {
    let listener = TcpListener::bind((host, 0)).with_context(|| format!("can't listen on {host}"))?;
    Ok(listener.local_addr()?.to_string())
}

/// A command without variables that Helenus reads settings from: it refuses those that it doesn't know.
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
        // It may have ended by itself; there is nothing more to do then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
