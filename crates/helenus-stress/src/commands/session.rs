//! A workload that is ready on a server: connected, with its tables created and statements prepared.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::runtime::Runtime;

use crate::cli::options::LoadArgs;
use crate::db::{Db, connect_with_schema, schema};
use crate::monitor::process;
use crate::operation::Workload;
use crate::results::RunKind;
use crate::workloads::{self, Info, Setup};

/// The inputs of a load.
pub struct Session<'a> {
    pub runtime: &'a Runtime,
    pub args: &'a LoadArgs,
    pub info: &'static Info,
    pub setup: Setup,
    pub db: Arc<Db>,
    pub workload: Arc<dyn Workload>,
    pub setup_times: SetupTimes,
}

/// The parts of a session that the next one of the same workload can reuse.
pub struct PreparedWorkload {
    info: &'static Info,
    setup: Setup,
    db: Arc<Db>,
    workload: Arc<dyn Workload>,
}

/// Durations of the steps of the preparation.
#[derive(Clone, Copy, Debug, Default)]
pub struct SetupTimes {
    /// Time to create all tables, and the number of statements.
    pub create: Duration,
    pub created: usize,
    pub prepare: Duration,
    /// Time to connect like an application, which reads the whole schema. `None` if only one table or none was created.
    pub connect_with_schema: Option<Duration>,
    /// Growth of the server's memory during the preparation. `None` like the field before, or if the processes are unknown.
    pub memory_bytes: Option<u64>,
}

impl<'a> Session<'a> {
    /// Connects and prepares the workload. Creates its tables, unless `kind` is `Verify` or the command line forbids it.
    pub fn open(runtime: &'a Runtime, args: &'a LoadArgs, kind: RunKind) -> Result<Self> {
        runtime.block_on(Self::open_on(runtime, args, kind))
    }

    async fn open_on(runtime: &'a Runtime, args: &'a LoadArgs, kind: RunKind) -> Result<Self> {
        let info = workloads::find(&args.workload)?;
        let setup = Setup::new(info, &args.load)?;
        let mut times = SetupTimes::default();
        let db = Db::connect(&args.connect, &args.schema.keyspace).await?;
        let memory = || process::usage(&args.server.server_pid).map(|usage| usage.rss_bytes);
        let memory_before = memory();
        let begun = Instant::now();
        times.created = make_schema(&db, args, kind, &(info.schema)(&setup)?).await?;
        times.create = begun.elapsed();
        let begun = Instant::now();
        let workload = (info.prepare)(&setup, &db).await?;
        times.prepare = begun.elapsed();
        if times.created > 1 {
            let begun = Instant::now();
            connect_with_schema(&args.connect).await?;
            times.connect_with_schema = Some(begun.elapsed());
            times.memory_bytes = memory_before
                .zip(memory())
                .map(|(before, after)| after.saturating_sub(before));
        }
        Ok(Self {
            runtime,
            args,
            info,
            setup,
            db: Arc::new(db),
            workload: workload.into(),
            setup_times: times,
        })
    }
}

impl<'a> Session<'a> {
    /// Returns a session with the workload of an earlier session, and other arguments of the load. The workload and its keys must be the
    /// same.
    pub fn over(prepared: PreparedWorkload, runtime: &'a Runtime, args: &'a LoadArgs) -> Self {
        let PreparedWorkload {
            info,
            setup,
            db,
            workload,
        } = prepared;
        Self {
            runtime,
            args,
            info,
            setup,
            db,
            workload,
            setup_times: SetupTimes::default(),
        }
    }

    /// Returns the prepared workload for another session.
    pub fn into_prepared(self) -> PreparedWorkload {
        PreparedWorkload {
            info: self.info,
            setup: self.setup,
            db: self.db,
            workload: self.workload,
        }
    }
}

impl Session<'_> {
    /// Drops the keyspace with all its tables.
    pub async fn drop_keyspace(&self) -> Result<()> {
        run(
            &self.db,
            &format!("DROP KEYSPACE IF EXISTS {}", self.args.schema.keyspace),
        )
        .await
    }
}

/// Creates the keyspace and its tables, and uses the keyspace. Returns the number of statements for tables.
async fn make_schema(db: &Db, args: &LoadArgs, kind: RunKind, statements: &[String]) -> Result<usize> {
    let keyspace = &args.schema.keyspace;
    let make = kind != RunKind::Verify && !args.schema.no_schema;
    let mut made = 0;
    if make {
        if args.schema.drop {
            run(db, &format!("DROP KEYSPACE IF EXISTS {keyspace}")).await?;
        }
        run(db, &schema::create_keyspace(&args.schema, db.nodes)).await?;
    }
    db.use_keyspace(keyspace).await?;
    if make {
        for statement in statements {
            run(db, &schema::with_options(statement, &args.schema)).await?;
            made += 1;
        }
        for statement in &args.schema.cql {
            run(db, statement).await?;
        }
    }
    if db.nodes > 1 {
        db.refresh().await?;
    }
    Ok(made)
}

async fn run(db: &Db, statement: &str) -> Result<()> {
    db.query(statement)
        .await
        .with_context(|| format!("failed: {statement}"))?;
    Ok(())
}
