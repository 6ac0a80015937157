//! `helenus replicate`: copies tables into another cluster, and sends it their changes.
//!
//! The process reads the logs of captured changes over CQL. Changes keep their write times, so they may be sent in any order, and twice.
//!
//! - `args`: the options;
//! - `schema`: the tables, and what the target lacks of them; `watch`: changes of the schema since;
//! - `plan`, `columns`, `cql_statements`: the columns and statements of a table;
//! - `streams`: the streams of the logs;
//! - `changes`: changes from rows of the log;
//! - `copy`, `follow`: the work itself; `queue`, `threads`, `worker`: its order, and the threads that do it;
//! - `target`: statements for the cluster that follows;
//! - `state`: where another process goes on; `leases`: who does what;
//! - `coordinator`: what this process has to do;
//! - `shared`: what the threads share; `metrics`: what Prometheus reads.

mod args;
mod changes;
mod columns;
mod coordinator;
mod copy;
mod cql_statements;
mod follow;
mod leases;
mod metrics;
mod plan;
mod queue;
mod schema;
mod shared;
mod state;
mod streams;
mod target;
mod threads;
mod watch;
mod worker;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use helenus_cql::error::Consistency;
use helenus_import::TableName;

pub use args::ReplicateArgs;
use coordinator::Coordinator;
use plan::TablePlan;
use queue::Queue;
use schema::ReplicatedTable;
use shared::{Shared, TableWork};
pub use state::KEYSPACE as STATE_KEYSPACE;
use state::State;
use target::ClusterKind;
use watch::Watch;
use worker::Worker;

use crate::import::target::Target;
use crate::node_session::{NodeSession, Nodes};
use crate::shell::interrupt::Interrupt;

/// Runs the replication until SIGINT or SIGTERM. The exit code is 1 if a table has stopped.
pub fn run(args: &ReplicateArgs) -> Result<ExitCode> {
    let interrupt = Interrupt::default();
    let from = args.from_connection.connection();
    let to = args.to_connection.connection();
    let mut source = Target::connect(&args.from, &from, &interrupt).context("the source")?;
    let mut target = Target::connect(&args.to, &to, &interrupt).context("the target")?;
    interrupt.catch()?;
    interrupt.catch_termination()?;
    if ClusterKind::of(source.client())? != ClusterKind::Helenus {
        bail!(
            "--from {}: the source must be Helenus, of this version or later",
            args.from.join(" ")
        );
    }
    let kind = ClusterKind::of(target.client()).context("the target")?;
    if let Some(address) = args.metrics {
        metrics::serve(address)?;
    }
    let nodes = |name, cluster: &Target| Nodes {
        name,
        servers: cluster.servers.clone(),
        login: cluster.login.clone(),
        consistency: Consistency::LocalQuorum,
    };
    let (from, to) = (nodes("the source", &source), nodes("the target", &target));
    let state = State { name: args.name() };
    State::create(&mut source)?;
    let start_ms = coordinator::source_time_ms(&mut NodeSession::new(&from, 0, None))?;
    let planned = schema::prepare(args, &mut source, &mut target, kind)?;
    let settle_ms = i64::try_from(args.settle.as_millis()).unwrap_or(i64::MAX);
    let start_us = start_ms.saturating_sub(settle_ms).saturating_mul(1000);
    let tables = begin(
        args,
        &state,
        &mut NodeSession::new(&from, 0, None),
        &planned,
        start_us,
    )?;
    let shared = Shared::new(state, (from, to, kind), args.settle, interrupt.clone(), tables);
    let watch = Watch::new(args, (source, target), planned, &interrupt);
    let queue = Queue::default();
    let workers = usize::from(args.workers);
    let copying = workers.div_ceil(2);
    let stopped = thread::scope(|scope| {
        for number in 0..workers {
            let (shared, queue) = (&shared, &queue);
            scope.spawn(move || threads::run(Worker::new(shared, number), queue, number < copying));
        }
        scope.spawn(|| metrics::record_until_end(&shared, &queue));
        Coordinator::new(&shared, &queue, watch, args.lease).run()
    });
    for (table, reason) in &stopped {
        eprintln!("{table} has stopped: {reason}");
    }
    Ok(match stopped.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Begins the replication of tables, or goes on with it.
fn begin(
    args: &ReplicateArgs,
    state: &State,
    session: &mut NodeSession,
    planned: &BTreeMap<TableName, ReplicatedTable>,
    start_us: i64,
) -> Result<Vec<TableWork>> {
    let ranges = if args.no_copy { 0 } else { copy::RANGES };
    let mut tables = Vec::new();
    for (name, table) in planned {
        if args.restart_copy {
            state.forget(session, name)?;
        }
        let begun = state.begin(session, name, start_us, ranges)?;
        state.set_stopped(session, name, None)?;
        let left = begun.ranges - i32::try_from(begun.copied.len()).unwrap_or(0);
        let time_s = Duration::from_micros(u64::try_from(start_us - begun.start_us).unwrap_or(0)).as_secs();
        eprintln!(
            "{name}: {left} of {} ranges to copy, changes since {time_s} s ago",
            begun.ranges
        );
        let plan = TablePlan::new(name, &table.shape, table.log_ttl_s, 0);
        tables.push(TableWork::new(plan, begun.start_us, begun.ranges, begun.copied));
    }
    Ok(tables)
}
