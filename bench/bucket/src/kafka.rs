//! Three brokers of Apache Kafka, and writes with their own client.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chrono::Utc;
use helenus_stress::raw::random_value;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rskafka::client::partition::{Compression, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::Record;

use crate::node::{cpu_time, end};

const BROKERS: u8 = 3;
const START_TIMEOUT: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(500);
const PARTITIONS: i32 = 6;
const CREATE_TIMEOUT_MS: i32 = 20_000;

/// The brokers, which are killed at the end.
pub struct Brokers {
    children: Vec<Child>,
    client: Client,
}

/// The latencies of a phase.
pub struct Produced {
    pub records: u64,
    pub elapsed: Duration,
    /// Latencies in ascending order.
    latencies: Vec<Duration>,
}

impl Produced {
    pub fn quantile_ms(&self, quantile: f64) -> f64 {
        let at =
            ((self.latencies.len() as f64 * quantile) as usize).min(self.latencies.len().saturating_sub(1));
        self.latencies
            .get(at)
            .map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e3)
    }
}

impl Brokers {
    /// Starts the brokers with a script, which keeps its downloads in `cache`.
    pub async fn start(script: &Path, cache: &Path, folder: &Path) -> Result<Brokers> {
        let mut children = Vec::new();
        for number in 1..=BROKERS {
            let log = std::fs::File::create(folder.join(format!("broker{number}.log")))?;
            let child = Command::new(script)
                .arg(cache)
                .arg(folder.join(format!("broker{number}")))
                .arg(number.to_string())
                .stdout(log.try_clone()?)
                .stderr(log)
                .stdin(Stdio::null())
                .spawn()
                .with_context(|| format!("can't start {}", script.display()))?;
            children.push(child);
        }
        let started = Instant::now();
        loop {
            let connecting = tokio::time::timeout(Duration::from_secs(5), connect()).await;
            if let Ok(Ok(client)) = connecting {
                return Ok(Brokers { children, client });
            }
            if started.elapsed() > START_TIMEOUT {
                children.iter_mut().for_each(end);
                bail!("no answer from the brokers within {START_TIMEOUT:?}");
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Returns the brokers' addresses.
    pub fn addresses() -> Vec<String> {
        (1..=BROKERS)
            .map(|number| format!("127.0.0.1:1939{number}"))
            .collect()
    }

    pub async fn create_topic(&self, name: &str) -> Result<()> {
        let controller = self.client.controller_client()?;
        let started = Instant::now();
        loop {
            let created = controller.create_topic(name, PARTITIONS, i16::from(BROKERS), CREATE_TIMEOUT_MS);
            match created.await {
                Ok(()) => return Ok(()),
                // An error is expected until all brokers have joined.
                Err(_) if started.elapsed() < START_TIMEOUT => tokio::time::sleep(POLL).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the CPU time of all brokers.
    pub fn cpu_time(&self) -> Result<Duration> {
        self.children.iter().map(|child| cpu_time(child.id())).sum()
    }

    /// Produces groups of `group` records of `bytes` each to one partition, with `in_flight` concurrent requests.
    pub async fn produce(
        &self,
        topic: &str,
        in_flight: usize,
        group: usize,
        bytes: usize,
        length: Duration,
    ) -> Result<Produced> {
        let client = self
            .client
            .partition_client(topic, 0, UnknownTopicHandling::Retry);
        let client = Arc::new(client.await?);
        let began = Instant::now();
        let loops = (0..in_flight as u64)
            .map(|seed| tokio::spawn(produce_until(client.clone(), seed, group, bytes, began + length)));
        let mut latencies = Vec::new();
        for of_one in loops.collect::<Vec<_>>() {
            latencies.extend(of_one.await??);
        }
        latencies.sort_unstable();
        Ok(Produced {
            records: (latencies.len() * group) as u64,
            elapsed: began.elapsed(),
            latencies,
        })
    }
}

impl Drop for Brokers {
    fn drop(&mut self) {
        self.children.iter_mut().for_each(end);
    }
}

async fn connect() -> Result<Client> {
    Ok(ClientBuilder::new(Brokers::addresses()).build().await?)
}

async fn produce_until(
    client: Arc<PartitionClient>,
    seed: u64,
    group: usize,
    bytes: usize,
    until: Instant,
) -> Result<Vec<Duration>> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut latencies = Vec::new();
    while Instant::now() < until {
        let record = || Record {
            key: None,
            value: Some(random_value(bytes, &mut random).to_vec()),
            headers: Default::default(),
            timestamp: Utc::now(),
        };
        let records: Vec<Record> = std::iter::repeat_with(record).take(group).collect();
        let began = Instant::now();
        client.produce(records, Compression::NoCompression).await?;
        latencies.push(began.elapsed());
    }
    Ok(latencies)
}
