//! Durable writes with the log in a Kafka topic, beside the writes of Kafka's own client, the log in the bucket, and a folder.
//!
//! All servers run all the time, and get the load in turn. Each engine is one node.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::Common;
use crate::kafka::Brokers;
use crate::load::{self, Keys, Load, Operation, Values};
use crate::node::{Node, Store};

const KEYS: u64 = 200_000;
const VALUE_BYTES: usize = 256;
/// Size of such a row's record in the log, in bytes.
const RECORD_BYTES: usize = 400;
const NODE_TOPIC: &str = "log";
const PRODUCE_TOPIC: &str = "produce";
/// Time in which the compilers of the brokers' virtual machines are busy.
const WARM_UP: Duration = Duration::from_secs(15);
const P50_FACTOR_MAX: f64 = 1.5;
const THROUGHPUT_FACTOR_MIN: f64 = 2.0;
const CPU_FACTOR_MAX: f64 = 1.2;

#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    common: Common,
    /// Rounds, each of which measures everything
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of each phase, after a warm-up of half that time
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// The script that starts a broker
    #[arg(long, default_value = "bench/kafka/start.sh")]
    start_broker: PathBuf,
    /// Folder in which the script keeps the brokers' program
    #[arg(long, default_value = "target/kafka")]
    kafka: PathBuf,
}

/// A server under measurement.
struct Engine {
    name: &'static str,
    node: Node,
}

/// The results of one phase.
#[derive(Clone, Copy)]
struct Phase {
    per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    node_us: f64,
    brokers_us: f64,
}

/// Phases of all rounds, by name.
type Phases = BTreeMap<String, Vec<Phase>>;

pub async fn run(options: Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let script = options.start_broker.canonicalize()?;
    std::fs::create_dir_all(&options.kafka)?;
    let brokers = Brokers::start(&script, &options.kafka.canonicalize()?, folder.path()).await?;
    for topic in [NODE_TOPIC, PRODUCE_TOPIC] {
        brokers.create_topic(topic).await?;
    }
    let store = Store::start(&options.common, None)?;
    let engines = engines(&options.common, &store, folder.path()).await?;
    brokers
        .produce(PRODUCE_TOPIC, 64, 1, RECORD_BYTES, WARM_UP)
        .await?;
    let mut phases = Phases::new();
    for round in 1..=options.rounds {
        println!("round {round}");
        measure(&options, &brokers, &engines, &mut phases).await?;
    }
    println!("medians");
    let medians: BTreeMap<&str, Phase> = phases
        .iter()
        .map(|(name, phases)| (name.as_str(), median(phases)))
        .collect();
    medians.iter().for_each(|(name, phase)| print(name, phase));
    summary(&medians);
    Ok(())
}

async fn engines(common: &Common, store: &Store, folder: &Path) -> Result<Vec<Engine>> {
    let mut on_topic = common.clone();
    let addresses = Brokers::addresses().join(",");
    on_topic
        .set
        .push(format!("log_store=kafka://{addresses}/{NODE_TOPIC}"));
    let mut engines = vec![
        Engine {
            name: "topic",
            node: Node::shared_at(&on_topic, 1, store, "topic", folder)?,
        },
        Engine {
            name: "bucket",
            node: Node::shared_at(common, 2, store, "bucket", folder)?,
        },
        Engine {
            name: "folder",
            node: Node::local(common, 3, &folder.join("local"), folder)?,
        },
    ];
    for engine in &mut engines {
        engine.node.wait_until_ready().await?;
        load::prepare(&engine.node.cql).await?;
    }
    Ok(engines)
}

async fn measure(
    options: &Options,
    brokers: &Brokers,
    engines: &[Engine],
    phases: &mut Phases,
) -> Result<()> {
    let length = Duration::from_secs(options.seconds);
    for (name, in_flight, group) in [
        ("produce of 1 record, 64 in flight", 64, 1),
        ("produce of 64 records, 1 in flight", 1, 64),
        ("produce of 1 record, 1 in flight", 1, 1),
    ] {
        let produce = |length| brokers.produce(PRODUCE_TOPIC, in_flight, group, RECORD_BYTES, length);
        produce(length / 2).await?;
        let before = brokers.cpu_time()?;
        let produced = produce(length).await?;
        let used = brokers.cpu_time()?.saturating_sub(before);
        let records = produced.records.max(1) as f64;
        let phase = Phase {
            per_s: records / produced.elapsed.as_secs_f64(),
            p50_ms: produced.quantile_ms(0.5),
            p99_ms: produced.quantile_ms(0.99),
            node_us: f64::NAN,
            brokers_us: used.as_secs_f64() * 1e6 / records,
        };
        note(phases, name.to_owned(), phase);
    }
    for in_flight in [1, 64, 256] {
        for engine in engines {
            let phase = engine.measure(brokers, in_flight, length).await?;
            note(phases, format!("{}, {in_flight} in flight", engine.name), phase);
        }
    }
    Ok(())
}

impl Engine {
    async fn measure(&self, brokers: &Brokers, in_flight: usize, length: Duration) -> Result<Phase> {
        let load = |length| Load {
            operation: Operation::Write,
            values: Values::Distinct(VALUE_BYTES),
            in_flight,
            length: Some(length),
            pace: None,
        };
        let targets = [(self.node.cql.clone(), Keys::Any(0..KEYS))];
        load(length / 2).run(&targets).await?;
        let before = (self.node.cpu_time()?, brokers.cpu_time()?);
        let outcome = load(length).run(&targets).await?;
        let after = (self.node.cpu_time()?, brokers.cpu_time()?);
        let each_us = |used: Duration| used.as_secs_f64() * 1e6 / outcome.operations.max(1) as f64;
        Ok(Phase {
            per_s: outcome.operations_per_s(),
            p50_ms: outcome.quantile_ms(0.5),
            p99_ms: outcome.quantile_ms(0.99),
            node_us: each_us(after.0.saturating_sub(before.0)),
            brokers_us: each_us(after.1.saturating_sub(before.1)),
        })
    }
}

fn note(phases: &mut Phases, name: String, phase: Phase) {
    print(&name, &phase);
    phases.entry(name).or_default().push(phase);
}

fn median(phases: &[Phase]) -> Phase {
    let of = |figure: fn(&Phase) -> f64| {
        let mut figures: Vec<f64> = phases.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
    };
    Phase {
        per_s: of(|phase| phase.per_s),
        p50_ms: of(|phase| phase.p50_ms),
        p99_ms: of(|phase| phase.p99_ms),
        node_us: of(|phase| phase.node_us),
        brokers_us: of(|phase| phase.brokers_us),
    }
}

fn print(name: &str, phase: &Phase) {
    println!(
        "{name:<36} {:>8.0}/s  p50 {:>7.2}  p99 {:>7.2} ms  node {:>6.1}, brokers {:>6.1} us of CPU each",
        phase.per_s, phase.p50_ms, phase.p99_ms, phase.node_us, phase.brokers_us
    );
}

fn summary(medians: &BTreeMap<&str, Phase>) {
    let ratio = |one: &str, other: &str, figure: fn(&Phase) -> f64| {
        let of = |name| medians.get(name).map_or(f64::NAN, figure);
        of(one) / of(other)
    };
    let p50 = |phase: &Phase| phase.p50_ms;
    for produce in [
        "produce of 1 record, 64 in flight",
        "produce of 64 records, 1 in flight",
    ] {
        println!(
            "p50 of a write, 64 in flight, over {produce}: {:.2}, at most {P50_FACTOR_MAX} wanted",
            ratio("topic, 64 in flight", produce, p50)
        );
    }
    println!(
        "throughput over the bucket's, 256 in flight: {:.2}, at least {THROUGHPUT_FACTOR_MIN} wanted",
        ratio("topic, 256 in flight", "bucket, 256 in flight", |phase| phase
            .per_s)
    );
    for in_flight in [64, 256] {
        let of = |name: &str| format!("{name}, {in_flight} in flight");
        println!(
            "CPU time of the node over the folder's, {in_flight} in flight: {:.2}, at most {CPU_FACTOR_MAX} wanted",
            ratio(&of("topic"), &of("folder"), |phase| phase.node_us)
        );
    }
}
