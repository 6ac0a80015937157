//! Writes synthetic result folders, to look at reports without a load: `cargo run --example sample_results -- DIR`.
//!
//! `open` (60 s with a stall), `closed` and `other` (an hour), `short` (one interval), `empty` (none), `compare` (five rounds).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use helenus_stress::results::comparison::Side;
use helenus_stress::results::directory::IntervalHistograms;
use helenus_stress::results::run::FORMAT;
use helenus_stress::results::{
    Comparison, Endpoint, ErrorCount, Interval, IntervalOperation, LatencyHistogram, LatencySummary,
    LoadModel, OperationResult, Pacing, Phase, PublishedFigure, ReadOutcome, Round, RunKind, RunResult,
    RunWriter, ServerFigure, ServerSample, new_latency_histogram, write_comparison,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Properties of a synthetic server.
struct Scene {
    label: &'static str,
    seconds: u32,
    load: LoadModel,
    /// Operations and their rates.
    operations: &'static [(&'static str, f64)],
    median_us: f64,
    /// Pauses of the server: their interval in seconds and their length in milliseconds.
    pause: Option<(u32, f64)>,
    errors: bool,
}

const CLOSED: LoadModel = LoadModel::Closed {
    threads: 8,
    in_flight_per_thread: 50,
};
const MIXED: &[(&str, f64)] = &[("read", 900.0), ("write", 3600.0), ("delete", 300.0)];

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).context("which folder?")?);
    let random = &mut StdRng::seed_from_u64(7);
    let open = Scene {
        label: "helenus",
        seconds: 60,
        load: LoadModel::Open { rate_per_s: 4000.0 },
        operations: &[("read", 1000.0), ("write", 3000.0)],
        median_us: 420.0,
        pause: Some((30, 1800.0)),
        errors: true,
    };
    open.write(&folder.join("open"), random)?;
    let hour = Scene {
        label: "helenus",
        seconds: 3600,
        load: CLOSED,
        operations: MIXED,
        median_us: 310.0,
        pause: None,
        errors: false,
    };
    hour.write(&folder.join("closed"), random)?;
    Scene {
        label: "cassandra 5",
        median_us: 900.0,
        pause: Some((47, 180.0)),
        ..hour
    }
    .write(&folder.join("other"), random)?;
    Scene { seconds: 1, ..open }.write(&folder.join("short"), random)?;
    Scene {
        seconds: 0,
        operations: &[("read", 0.0)],
        errors: false,
        ..open
    }
    .write(&folder.join("empty"), random)?;
    compare(&folder.join("compare"), random)
}

fn compare(folder: &Path, random: &mut StdRng) -> Result<()> {
    let mut rounds = Vec::new();
    let (mut runs_a, mut runs_b) = (Vec::new(), Vec::new());
    for round in 1..=5 {
        let operations = &[("read", 2000.0), ("write", 2000.0)];
        let a = Scene {
            label: "helenus",
            seconds: 30,
            load: CLOSED,
            operations,
            median_us: 330.0,
            pause: None,
            errors: false,
        };
        let b = Scene {
            label: "cassandra 5",
            median_us: 820.0,
            pause: Some((11, 90.0)),
            ..a
        };
        let (directory_a, directory_b) = (format!("round-{round}-a"), format!("round-{round}-b"));
        runs_a.push(a.write(&folder.join(&directory_a), random)?);
        runs_b.push(b.write(&folder.join(&directory_b), random)?);
        rounds.push(Round {
            first: if round % 2 == 1 { Side::A } else { Side::B },
            directory_a: directory_a.into(),
            directory_b: directory_b.into(),
        });
    }
    let command = "helenus-stress compare --a 127.0.0.1:9042 --b 127.0.0.1:9043 -- kv -d 30s -t 8 -c 50";
    let command = command.split(' ').map(str::to_owned).collect();
    let comparison = Comparison::from_runs(command, rounds, &runs_a, &runs_b).context("no rounds")?;
    write_comparison(folder, &comparison)
}

/// An operation's figures while a run is generated.
struct Tally {
    name: &'static str,
    rate: f64,
    count: u64,
    errors: u64,
    response: LatencyHistogram,
    service: LatencyHistogram,
}

impl Scene {
    fn write(&self, directory: &Path, random: &mut StdRng) -> Result<RunResult> {
        let mut writer = RunWriter::create(directory, SystemTime::now())?;
        let tally = |&(name, rate): &(&'static str, f64)| Tally {
            name,
            rate,
            count: 0,
            errors: 0,
            response: new_latency_histogram(),
            service: new_latency_histogram(),
        };
        let mut tallies: Vec<Tally> = self.operations.iter().map(tally).collect();
        // Rounds differ by a few percent in their speed.
        let pace = random.random_range(0.97..1.03);
        let mut lag_max_ms: f64 = 0.0;
        for second in 1..=self.seconds {
            let lag_ms = self.pause_ms(second);
            lag_max_ms = lag_max_ms.max(lag_ms);
            let mut operations = BTreeMap::new();
            let mut histograms = Vec::new();
            for tally in &mut tallies {
                let (row, response, service) = self.second(tally, lag_ms, pace, random);
                operations.insert(tally.name.to_owned(), row);
                histograms.push((tally.name, response, service));
            }
            let histograms: Vec<IntervalHistograms<'_>> = histograms
                .iter()
                .map(|(operation, response, service)| IntervalHistograms {
                    operation,
                    response,
                    service,
                })
                .collect();
            let lag_ms = matches!(self.load, LoadModel::Open { .. }).then_some(lag_ms);
            let elapsed_s = f64::from(second) + random.random_range(-0.002..0.002);
            writer.push(
                Interval {
                    elapsed_s,
                    lag_ms,
                    operations,
                    server: sample(second, random),
                },
                &histograms,
            )?;
        }
        let result = self.result(&tallies, lag_max_ms, pace);
        writer.finish(&result)?;
        Ok(result)
    }

    fn pause_ms(&self, second: u32) -> f64 {
        match self.pause {
            Some((every, ms)) if second.is_multiple_of(every) => ms,
            Some((every, ms)) if second > every && second % every < 3 => ms / 2.0 / f64::from(second % every),
            _ => 0.0,
        }
    }

    fn second(
        &self,
        tally: &mut Tally,
        lag_ms: f64,
        pace: f64,
        random: &mut StdRng,
    ) -> (IntervalOperation, LatencyHistogram, LatencyHistogram) {
        let (mut response, mut service) = (new_latency_histogram(), new_latency_histogram());
        let wobble = random.random_range(0.95..1.05) / pace;
        let open = matches!(self.load, LoadModel::Open { .. });
        let slowed = if open {
            1.0
        } else {
            wobble * 330.0 / self.median_us
        };
        let paused = (1.0 - lag_ms / 1000.0).max(0.02);
        let ops = (tally.rate * slowed * paused) as u64;
        // In a long run each generated latency stands for 20 operations, because single ones would take too long.
        let each = if self.seconds > 600 { 20 } else { 1 };
        for _ in 0..ops / each {
            let mut us = self.median_us * pace * log_normal(0.45, random);
            if random.random_bool(0.002) {
                us *= random.random_range(5.0..40.0);
            }
            if lag_ms > 0.0 && random.random_bool(0.02) {
                us += lag_ms * 400.0;
            }
            let waited = if open {
                lag_ms * 1000.0 * random.random_range(0.0..1.0)
            } else {
                0.0
            };
            service.saturating_record_n(us as u64, each);
            response.saturating_record_n((us + waited) as u64, each);
        }
        let errors = if self.errors && lag_ms > 100.0 {
            (tally.rate * lag_ms / 9000.0) as u64
        } else {
            0
        };
        let summary = LatencySummary::from(&response);
        tally.count += response.len();
        tally.errors += errors;
        let bounds = "made with the same bounds";
        tally.response.add(&response).expect(bounds);
        tally.service.add(&service).expect(bounds);
        let row = IntervalOperation {
            ops: response.len(),
            errors,
            p50_us: summary.p50_us,
            p99_us: summary.p99_us,
            p99_9_us: summary.p99_9_us,
            max_us: summary.max_us,
        };
        (row, response, service)
    }

    fn result(&self, tallies: &[Tally], lag_max_ms: f64, pace: f64) -> RunResult {
        let seconds = f64::from(self.seconds);
        let done: u64 = tallies.iter().map(|tally| tally.count).sum();
        let reads = tallies.first().map_or(0, |tally| tally.count);
        let config = [
            ("threads", "8"),
            ("in_flight", "50"),
            ("read_ratio", "0.2"),
            ("partitions", "10000000"),
        ];
        let config = config.into_iter().chain([
            ("consistency", "LOCAL_ONE"),
            ("value_size", "100-199"),
            ("keyspace", "stress_kv"),
            ("compaction", "default"),
        ]);
        RunResult {
            format: FORMAT,
            tool_version: env!("CARGO_PKG_VERSION").into(),
            workload: "kv".into(),
            label: self.label.into(),
            kind: RunKind::Run,
            command_line:
                "helenus-stress run kv --host 127.0.0.1 -d 60s -p 10M -r 0.2 --workload.value=random(100,199)"
                    .split(' ')
                    .map(str::to_owned)
                    .collect(),
            config: config
                .map(|(name, value)| (name.to_owned(), value.into()))
                .collect(),
            endpoint: Endpoint {
                addresses: vec!["127.0.0.1:9042".into()],
                release_version: "5.0.5".into(),
                cluster_name: "Test Cluster".into(),
                driver: "scylla 1.3.1".into(),
            },
            load: self.load,
            started_at: SystemTime::now().into(),
            duration_s: seconds,
            operations: tallies.iter().map(|tally| tally.result(seconds)).collect(),
            reads: (reads > 0).then_some(ReadOutcome {
                hits: reads * 9 / 10,
                misses: reads / 10,
                missing: 0,
                corrupt: 0,
            }),
            pacing: match self.load {
                LoadModel::Open { rate_per_s } => Some(Pacing {
                    target_per_s: rate_per_s,
                    achieved_per_s: if seconds > 0.0 { done as f64 / seconds } else { 0.0 },
                    lag_max_ms,
                    lag_end_ms: 0.0,
                }),
                LoadModel::Closed { .. } => None,
            },
            phases: if self.errors {
                self.phases(done)
            } else {
                Vec::new()
            },
            notes: Vec::new(),
            published: if self.errors { published(done) } else { Vec::new() },
            server: vec![
                ServerFigure {
                    name: "CPU time an operation".into(),
                    value: self.median_us / 25.0 * pace,
                    unit: "µs".into(),
                },
                ServerFigure {
                    name: "resident memory at most".into(),
                    value: 1.31e9,
                    unit: "bytes".into(),
                },
            ],
        }
    }

    fn phases(&self, done: u64) -> Vec<Phase> {
        let third = f64::from(self.seconds) / 3.0;
        let phase = |name: &str, start_s, duration_s, count| Phase {
            name: name.into(),
            start_s,
            duration_s,
            count,
        };
        vec![
            phase("warm up", 0.0, third, done / 3),
            phase("steady", third, third, done / 3),
            phase("after the stall", 2.0 * third, third, done / 3),
        ]
    }
}

impl Tally {
    fn result(&self, seconds: f64) -> OperationResult {
        let error = |code, name: &str, count, example: &str| ErrorCount {
            code,
            name: name.into(),
            count,
            example: Some(example.into()),
        };
        let overloaded = "Too many requests are waiting: 1024 of at most 1024";
        let errors = [
            error(
                Some(0x1001),
                "OVERLOADED",
                self.errors - self.errors / 4,
                overloaded,
            ),
            error(
                None,
                "client timeout",
                self.errors / 4,
                "Request took longer than 2s",
            ),
        ];
        OperationResult {
            name: self.name.into(),
            count: self.count,
            rows: self.count,
            rate_per_s: if seconds > 0.0 {
                self.count as f64 / seconds
            } else {
                0.0
            },
            response: LatencySummary::from(&self.response),
            service: LatencySummary::from(&self.service),
            errors: errors.into_iter().filter(|error| error.count > 0).collect(),
        }
    }
}

fn sample(second: u32, random: &mut StdRng) -> ServerSample {
    let t = f64::from(second);
    ServerSample {
        cpu_cores: Some(0.9 + 0.2 * (t / 9.0).sin() + random.random_range(0.0..0.1)),
        rss_bytes: Some(((0.5 + 0.7 * (1.0 - (-t / 40.0).exp())) * 1e9) as u64),
        gauges: BTreeMap::from([
            ("memtable_bytes".to_owned(), f64::from(second % 20) * 3.2e6),
            (
                "compactions_running".to_owned(),
                f64::from(u8::from(second % 20 < 6)),
            ),
        ]),
    }
}

fn published(done: u64) -> Vec<PublishedFigure> {
    let figure = |name: &str, published: &str, measured: String, note: Option<&str>| PublishedFigure {
        name: name.into(),
        published: published.into(),
        measured,
        note: note.map(str::to_owned),
    };
    vec![
        figure(
            "writes in 30 minutes, 10 tables",
            "68M",
            format!("{done}"),
            Some("at scale 0.001, for 60 s"),
        ),
        figure("fall from 10 to 1,000 tables", "-29%", "-0.6%".into(), None),
    ]
}

/// Returns a random number with a log-normal distribution of the given spread.
fn log_normal(spread: f64, random: &mut StdRng) -> f64 {
    // The sum of twelve uniform deviates is close to normal, with a variance of one.
    let normal = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
    (normal * spread).exp()
}
