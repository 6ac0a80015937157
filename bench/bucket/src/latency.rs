//! Durable writes to a bucket, beside those to a local folder.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use helenus_stress::raw::Outcome;

use crate::Common;
use crate::load::{self, Keys, Load, Operation, Values};
use crate::node::{Node, Store};

const KEYS: u64 = 200_000;
const VALUE_BYTES: usize = 256;
/// Maximum number of requests in flight on one connection.
const CONNECTION_MAX: usize = 256;

#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Writes in flight
    #[arg(long, value_delimiter = ',', default_values_t = [1, 64, 256, 1024])]
    in_flight: Vec<usize>,
    /// Seconds of each phase, after a warm-up of the same time
    #[arg(long, default_value_t = 4)]
    seconds: u64,
}

/// The result of one phase.
struct Phase {
    in_flight: usize,
    outcome: Outcome,
    node_cpu: Duration,
    store_cpu: Duration,
    log_objects: f64,
}

pub async fn run(options: Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let local = {
        let mut node = Node::local(&options.common, 1, &folder.path().join("local"), folder.path())?;
        node.wait_until_ready().await?;
        phases(&options, &node, None).await?
    };
    println!("local folder");
    local.iter().for_each(|phase| print(phase, None));
    let store = Store::start(&options.common, None)?;
    let mut node = Node::shared(&options.common, 1, &store, folder.path())?;
    node.wait_until_ready().await?;
    let shared = phases(&options, &node, Some(&store)).await?;
    let delay_ms = options.common.delay_ms as f64;
    match &options.common.endpoint {
        None => println!("bucket that answers after {delay_ms} ms"),
        Some(endpoint) => println!("bucket at {endpoint}"),
    }
    for (phase, local) in shared.iter().zip(&local) {
        print(phase, Some(&local.outcome));
        if options.common.endpoint.is_none() && delay_ms > 0.0 {
            println!(
                "            p50 is {:.2} times the store's answer; with so many in flight no more than {:.0}/s can wait for one each",
                phase.outcome.quantile_ms(0.5) / delay_ms,
                phase.in_flight as f64 * 1e3 / delay_ms
            );
        }
    }
    Ok(())
}

async fn phases(options: &Options, node: &Node, store: Option<&Store>) -> Result<Vec<Phase>> {
    load::prepare(&node.cql).await?;
    let mut phases = Vec::new();
    for &in_flight in &options.in_flight {
        let connections = in_flight.div_ceil(CONNECTION_MAX);
        let load = Load {
            operation: Operation::Write,
            values: Values::Distinct(VALUE_BYTES),
            in_flight: in_flight / connections,
            length: Some(Duration::from_secs(options.seconds)),
            pace: None,
        };
        let targets = vec![(node.cql.clone(), Keys::Any(0..KEYS)); connections];
        load.run(&targets).await?;
        let cpu = || -> Result<(Duration, Duration)> {
            let store = store.map_or(Ok(Duration::ZERO), Store::cpu_time)?;
            Ok((node.cpu_time()?, store))
        };
        let (node_before, store_before) = cpu()?;
        let objects_before = node.metrics()?.sum("helenus_log_syncs_total");
        let outcome = load.run(&targets).await?;
        let (node_after, store_after) = cpu()?;
        phases.push(Phase {
            in_flight,
            node_cpu: node_after.saturating_sub(node_before),
            store_cpu: store_after.saturating_sub(store_before),
            log_objects: node.metrics()?.sum("helenus_log_syncs_total") - objects_before,
            outcome,
        });
    }
    Ok(phases)
}

fn print(phase: &Phase, local: Option<&Outcome>) {
    let outcome = &phase.outcome;
    let operations = outcome.operations.max(1) as f64;
    let seconds = outcome.elapsed.as_secs_f64();
    let micros = |cpu: Duration| cpu.as_secs_f64() * 1e6 / operations;
    let share = local.map_or(String::new(), |local| {
        format!(
            "  {:.0}% of local",
            100.0 * outcome.operations_per_s() / local.operations_per_s()
        )
    });
    println!(
        "{:>6} in flight {:>8.0}/s  p50 {:>7.2}  p99 {:>7.2}  max {:>8.2} ms  node {:>6.1}, store {:>5.1} us of CPU each  {:>6.0} log writes/s of {:.1}{share}",
        phase.in_flight,
        outcome.operations_per_s(),
        outcome.quantile_ms(0.5),
        outcome.quantile_ms(0.99),
        outcome.quantile_ms(1.0),
        micros(phase.node_cpu),
        micros(phase.store_cpu),
        phase.log_objects / seconds,
        operations / phase.log_objects.max(1.0),
    );
}
