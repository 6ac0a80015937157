//! The requests of a node to a bucket by the number of its tablets: during steady writes, and when idle.

use std::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::Common;
use crate::load::{self, Keys, Load, Operation, Values};
use crate::node::{Node, Store};

const KEYS: u64 = 100_000;
const VALUE_BYTES: usize = 256;
const CONNECTIONS: u32 = 64;
const KINDS: [&str; 4] = ["put", "list", "get", "delete"];
/// Price in dollars of a request of each kind in S3 Standard.
const DOLLARS: [f64; 4] = [5e-6, 5e-6, 4e-7, 0.0];
/// Time until all work that the writes caused is done.
const REST: Duration = Duration::from_secs(120);
const SECONDS_A_MONTH: f64 = 30.0 * 86_400.0;

#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Numbers of tablets
    #[arg(long, value_delimiter = ',', default_values_t = [4, 16, 64])]
    tablets: Vec<u16>,
    /// Writes a second
    #[arg(long, default_value_t = 2000)]
    rate: u32,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 30)]
    seconds: u64,
}

pub async fn run(options: Options) -> Result<()> {
    for &tablets in &options.tablets {
        let folder = tempfile::tempdir()?;
        let mut common = options.common.clone();
        common.set.push(format!("tablet_count={tablets}"));
        // The number of tablets must not change.
        common.set.push("merge_after=1000m".to_owned());
        let store = Store::start(&common, None)?;
        let mut node = Node::shared(&common, 1, &store, folder.path())?;
        node.wait_until_ready().await?;
        load::prepare(&node.cql).await?;
        let load = Load {
            operation: Operation::Write,
            values: Values::Distinct(VALUE_BYTES),
            in_flight: 1,
            length: Some(Duration::from_secs(options.seconds)),
            pace: Some(Duration::from_secs(1) * CONNECTIONS / options.rate),
        };
        let targets = vec![(node.cql.clone(), Keys::Any(0..KEYS)); CONNECTIONS as usize];
        let (before, logged) = (requests(&node)?, log_objects(&node)?);
        let outcome = load.run(&targets).await?;
        let seconds = outcome.elapsed.as_secs_f64();
        println!(
            "{tablets:>3} tablets  {:>6.0} writes/s: {:.1} objects of the log a second",
            outcome.operations_per_s(),
            (log_objects(&node)? - logged) / seconds
        );
        print("writing", &before, &requests(&node)?, seconds);
        // Files of level 0 are merged within half a minute, and the compactor is idle afterwards.
        tokio::time::sleep(REST).await;
        let before = requests(&node)?;
        tokio::time::sleep(Duration::from_secs(options.seconds)).await;
        print("at rest", &before, &requests(&node)?, options.seconds as f64);
    }
    Ok(())
}

fn log_objects(node: &Node) -> Result<f64> {
    Ok(node.metrics()?.sum("helenus_log_syncs_total"))
}

fn requests(node: &Node) -> Result<[f64; 4]> {
    let metrics = node.metrics()?;
    Ok(KINDS.map(|kind| metrics.sum(&format!("helenus_bucket_requests_total{{kind=\"{kind}\"}}"))))
}

fn print(name: &str, before: &[f64; 4], after: &[f64; 4], seconds: f64) {
    let mut dollars = 0.0;
    let mut reported = Vec::new();
    for (((kind, price), before), after) in KINDS.iter().zip(DOLLARS).zip(before).zip(after) {
        let rate = (after - before) / seconds;
        dollars += rate * price * SECONDS_A_MONTH;
        reported.push(format!("{rate:.2} {kind}"));
    }
    println!(
        "             {name}: {} a second, {dollars:.0} dollars a month",
        reported.join(", ")
    );
}
