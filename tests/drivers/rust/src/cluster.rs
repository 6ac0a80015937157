//! Runs commands from standard input against several nodes: see tests/cluster_drivers/programs.py.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::timestamp_generator::MonotonicTimestampGenerator;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;
use tokio::task::JoinHandle;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const WORKERS: i32 = 8;

struct Cluster {
    session: Session,
    insert: PreparedStatement,
    select: PreparedStatement,
    stopped: AtomicBool,
    operations: AtomicU64,
    failures: AtomicU64,
    worst_ms: AtomicI64,
    first: std::sync::Mutex<String>,
}

impl Cluster {
    async fn connect(address: &str, keyspace: &str) -> Result<Cluster, Failure> {
        let profile = ExecutionProfile::builder()
            .consistency(Consistency::Quorum)
            .build();
        let session = SessionBuilder::new()
            .known_node(address)
            .use_keyspace(keyspace, false)
            .connection_timeout(Duration::from_secs(10))
            // A client's timestamp lets a node repeat a write whose answer was lost. Other drivers set one by default.
            .timestamp_generator(Arc::new(MonotonicTimestampGenerator::new()))
            .default_execution_profile_handle(profile.into_handle())
            .build()
            .await?;
        let mut insert = session.prepare("INSERT INTO t (k, v) VALUES (?, ?)").await?;
        let mut select = session.prepare("SELECT v FROM t WHERE k = ?").await?;
        insert.set_is_idempotent(true);
        select.set_is_idempotent(true);
        Ok(Cluster {
            session,
            insert,
            select,
            stopped: AtomicBool::new(false),
            operations: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            worst_ms: AtomicI64::new(0),
            first: std::sync::Mutex::default(),
        })
    }

    async fn write(&self, k: i32) -> Result<(), Failure> {
        self.session.execute_unpaged(&self.insert, (k, k)).await?;
        Ok(())
    }

    async fn read(&self, k: i32) -> Result<(), Failure> {
        let rows = self
            .session
            .execute_unpaged(&self.select, (k,))
            .await?
            .into_rows_result()?;
        let (v,) = rows.single_row::<(i32,)>()?;
        if v != k {
            return Err(format!("{v} was read for {k}").into());
        }
        Ok(())
    }

    async fn timed(&self, operation: impl Future<Output = Result<(), Failure>>) {
        let began = Instant::now();
        if let Err(error) = operation.await {
            self.failures.fetch_add(1, Ordering::SeqCst);
            let mut first = self.first.lock().unwrap();
            if first.is_empty() {
                *first = error.to_string().replace('\n', " ");
            }
        }
        self.operations.fetch_add(1, Ordering::SeqCst);
        let took_ms = began.elapsed().as_millis() as i64;
        self.worst_ms.fetch_max(took_ms, Ordering::SeqCst);
    }

    async fn work(self: Arc<Cluster>, start: i32) {
        let mut k = start;
        while !self.stopped.load(Ordering::SeqCst) {
            self.timed(self.write(k)).await;
            self.timed(self.read(k)).await;
            k += WORKERS;
        }
    }

    async fn run(
        self: &Arc<Cluster>,
        line: &str,
        workers: &mut Vec<JoinHandle<()>>,
    ) -> Result<String, Failure> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["nodes"] => {
                let state = self.session.get_cluster_state();
                let up = state.get_nodes_info().iter().filter(|node| node.is_connected());
                Ok(up.count().to_string())
            }
            ["route", from, count] => {
                let (from, count): (i32, i32) = (from.parse()?, count.parse()?);
                for k in from..from + count {
                    self.write(k).await?;
                }
                for k in from..from + count {
                    self.read(k).await?;
                }
                Ok("done".to_owned())
            }
            ["load"] => {
                let start = |worker| tokio::spawn(self.clone().work(1_000_000 + worker));
                workers.extend((0..WORKERS).map(start));
                Ok("done".to_owned())
            }
            ["stop"] => {
                self.stopped.store(true, Ordering::SeqCst);
                for worker in workers.drain(..) {
                    worker.await?;
                }
                let figure = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
                let worst_ms = self.worst_ms.load(Ordering::SeqCst);
                let first = self.first.lock().unwrap().clone();
                let (operations, failures) = (figure(&self.operations), figure(&self.failures));
                Ok(format!("{operations} {failures} {worst_ms} {first}"))
            }
            _ => Err(format!("unknown: {line}").into()),
        }
    }
}

pub async fn main(address: &str, keyspace: &str) -> Result<(), Failure> {
    let cluster = Arc::new(Cluster::connect(address, keyspace).await?);
    let mut workers = Vec::new();
    println!("ready");
    loop {
        let mut line = String::new();
        let read = tokio::task::block_in_place(|| std::io::stdin().lock().read_line(&mut line))?;
        if read == 0 {
            return Ok(());
        }
        println!("{}", cluster.run(line.trim(), &mut workers).await?);
    }
}
