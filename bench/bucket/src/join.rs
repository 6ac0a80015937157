//! The joining of a node: the bytes that it reads from the bucket before it serves its share, and the tablets that move to it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::Common;
use crate::load::{self, Keys, Load, Operation, Values};
use crate::node::{self, Cluster, Node, Store};

const SETTLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of a value. Large values shorten the filling.
const VALUE_BYTES: usize = 32 << 10;
/// Number of different values. A node's blocks have one row each and are incompressible; the frames of the stand-in have many rows and
/// compress well.
const VALUES: u64 = 4;
const IN_FLIGHT: usize = 64;

#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Gigabytes of rows to fill the store with
    #[arg(long, default_value_t = 1.0)]
    gigabytes: f64,
    /// Nodes that join one after the other
    #[arg(long, default_value_t = 2)]
    joining: u8,
    /// Folder for the stand-in's large objects
    #[arg(long, default_value = "/tmp")]
    folder: PathBuf,
}

pub async fn run(mut options: Options) -> Result<()> {
    // The node gets the caches of a test machine, although the bucket has more data.
    if options.common.set.is_empty() {
        options.common.set = vec!["memtable_bytes=256MiB".to_owned(), "write_timeout=30s".to_owned()];
    }
    let folder = tempfile::tempdir_in(&options.folder)?;
    let store = Store::start(&options.common, Some(folder.path()))?;
    let mut nodes = vec![started(&options, 1, &store, folder.path()).await?];
    let first = nodes.first().context("no node")?;
    fill(&options, first).await?;
    let metrics = first.metrics()?;
    println!(
        "{:.2} GB written; {:.2} GB of data in {} tablets, {} files at level 0",
        options.gigabytes,
        metrics.sum("helenus_store_data_bytes") / 1e9,
        metrics.sum("helenus_store_tablets"),
        metrics.sum("helenus_store_level0_files"),
    );
    for number in 2..options.joining.saturating_add(2) {
        let (before, _) =
            node::settled(nodes.first().context("no node")?, nodes.len(), SETTLE_TIMEOUT).await?;
        let joined = join(&options, number, &store, folder.path(), &before).await?;
        nodes.push(joined);
    }
    Ok(())
}

async fn started(options: &Options, number: u8, store: &Store, log: &Path) -> Result<Node> {
    let mut node = Node::shared(&options.common, number, store, log)?;
    node.wait_until_ready().await?;
    Ok(node)
}

async fn fill(options: &Options, node: &Node) -> Result<()> {
    load::prepare(&node.cql).await?;
    let load = Load {
        operation: Operation::Write,
        values: Values::Repeated(VALUE_BYTES, VALUES),
        in_flight: IN_FLIGHT,
        length: None,
        pace: None,
    };
    let rows = (options.gigabytes * 1e9 / VALUE_BYTES as f64).ceil() as u64;
    let outcome = load.run(&[(node.cql.clone(), Keys::each(rows))]).await?;
    println!("filled in {:.0} s", outcome.elapsed.as_secs_f64());
    Ok(())
}

async fn join(options: &Options, number: u8, store: &Store, log: &Path, before: &Cluster) -> Result<Node> {
    let count = usize::from(number);
    let began = Instant::now();
    let node = started(options, number, store, log).await?;
    let serves = began.elapsed();
    let (after, since) = node::settled(&node, count, SETTLE_TIMEOUT).await?;
    let metrics = node.metrics()?;
    ensure!(
        metrics.sum("helenus_store_tablets") == after.tablets_of(&node.cql) as f64,
        "it does not serve what it owns"
    );
    println!(
        "node {number}: answers after {:.2} s, has its {} tablets after {:.2} s, having read {:.1} kB; some seconds later {:.1} kB in {} GETs and {} LISTs",
        serves.as_secs_f64(),
        after.tablets_of(&node.cql),
        since.duration_since(began).as_secs_f64(),
        node.read_bytes_at_opening()? as f64 / 1e3,
        metrics.sum("helenus_bucket_read_bytes_total") / 1e3,
        metrics.sum("helenus_bucket_requests_total{kind=\"get\"}"),
        metrics.sum("helenus_bucket_requests_total{kind=\"list\"}"),
    );
    let old: HashSet<&str> = before.nodes.iter().map(String::as_str).collect();
    let owner = |cluster: &Cluster, id: u64| {
        let tablet = cluster.tablets.iter().find(|tablet| tablet.id == id);
        tablet.and_then(|tablet| tablet.owner.clone())
    };
    let (mut moved, mut between_old) = (0, 0);
    for tablet in &after.tablets {
        let (from, to) = (owner(before, tablet.id), &tablet.owner);
        if from == *to {
            continue;
        }
        moved += 1;
        between_old += usize::from(to.as_deref().is_some_and(|to| old.contains(to)));
    }
    println!(
        "        {moved} of {} tablets moved (1/{count} is {:.1}), {between_old} of them between old nodes",
        after.tablets.len(),
        after.tablets.len() as f64 / count as f64
    );
    Ok(node)
}
