//! `nodetool tablestats`, in the formats of Cassandra's (`TableStats`, `TableStatsPrinter`, `TableStatsHolder`).
//!
//! Logs of captured changes have one figure more, the age of their oldest change.
//!
//! Tables share memtables, filters and indexes of files, and their memory. Figures that Cassandra has for each table are 0 here.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use serde_json::{Map, Value, json};

use super::client::NodeClient;
use super::formats::{Format, yaml};
use super::output::{file_size, text};

pub(super) const TABLES: &str = "/node/tables";

#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub(super) struct TableStatsArgs {
    /// Output format (json, yaml)
    #[arg(short = 'F', long)]
    format: Option<String>,
    /// Display bytes in human readable form, i.e. KiB, MiB, GiB, TiB
    #[arg(short = 'H', long)]
    human_readable: bool,
    /// Ignore the list of tables and display the remaining tables
    #[arg(short)]
    ignore: bool,
    /// Sort tables by a figure's name in JSON, such as local_read_count
    #[arg(short, long, value_name = "SORT_KEY")]
    sort: Option<String>,
    /// Show only the first of the sorted tables
    #[arg(short, long, value_name = "TOP", requires = "sort")]
    top: Option<usize>,
    /// Keyspaces, and tables as keyspace.table [default: all]
    tables: Vec<String>,
}

/// A figure of a table.
struct Figure {
    /// Name in the text format. Empty if the figure is only in JSON and YAML.
    label: &'static str,
    /// Name in JSON and YAML. Empty if the figure is only in the text format.
    key: &'static str,
    text: String,
    value: Value,
}

/// A table with its figures.
struct Table {
    keyspace: String,
    name: String,
    reads: Operations,
    writes: Operations,
    figures: Vec<Figure>,
}

/// Number of operations, and the sum of their times.
#[derive(Clone, Copy, Default)]
struct Operations {
    count: u64,
    nanos: u64,
}

impl Operations {
    fn of(histogram: Option<&Value>) -> Operations {
        let number = |name| histogram.and_then(|of| of.get(name)).and_then(Value::as_u64);
        Operations {
            count: number("count").unwrap_or_default(),
            nanos: number("sum").unwrap_or_default(),
        }
    }

    /// Returns the mean in milliseconds. NaN without operations.
    fn mean_ms(self) -> f64 {
        self.nanos as f64 / 1e6 / self.count as f64
    }

    fn add(self, other: Operations) -> Operations {
        Operations {
            count: self.count + other.count,
            nanos: self.nanos + other.nanos,
        }
    }
}

pub(super) fn run(node: &NodeClient, args: &TableStatsArgs) -> anyhow::Result<ExitCode> {
    let format = Format::of(args.format.as_deref())?;
    let report = node.request(TABLES)?;
    let all = report.as_array().map_or(&[] as &[Value], Vec::as_slice);
    check_names(&args.tables, all)?;
    let is_shown = |table: &&Value| args.tables.is_empty() || args.ignore != is_named(&args.tables, table);
    let mut tables: Vec<Table> = all
        .iter()
        .filter(is_shown)
        .map(|report| table(report, args.human_readable))
        .collect();
    if let Some(key) = &args.sort {
        sort(&mut tables, key)?;
    }
    let shown = &tables[..args.top.unwrap_or(tables.len()).min(tables.len())];
    let page = match (format, &args.sort) {
        (Format::Text, None) => page(&tables),
        (Format::Text, Some(key)) => sorted_page(shown, tables.len(), args.top, key),
        (Format::Json, _) => format!("{:#}\n", values(shown, tables.len(), args.sort.is_some())),
        (Format::Yaml, _) => format!("{}\n", yaml(&values(shown, tables.len(), args.sort.is_some()))),
    };
    print!("{page}");
    Ok(ExitCode::SUCCESS)
}

/// Refuses names of keyspaces and tables that do not exist.
fn check_names(names: &[String], all: &[Value]) -> anyhow::Result<()> {
    for name in names {
        let one = std::slice::from_ref(name);
        if all.iter().any(|table| is_named(one, table)) {
            continue;
        }
        match name.split_once('.') {
            Some(_) => bail!("Unknown tables: {name}"),
            None => bail!("Unknown keyspaces: [{name}]"),
        }
    }
    Ok(())
}

fn is_named(names: &[String], table: &Value) -> bool {
    let (keyspace, name) = (text(table, "keyspace"), text(table, "table"));
    names.iter().any(|named| match named.split_once('.') {
        Some(named) => named == (keyspace.as_str(), name.as_str()),
        None => *named == keyspace,
    })
}

fn table(report: &Value, is_human: bool) -> Table {
    let (reads, writes) = (
        Operations::of(report.get("reads")),
        Operations::of(report.get("writes")),
    );
    Table {
        keyspace: text(report, "keyspace"),
        name: text(report, "table"),
        reads,
        writes,
        figures: figures(report, reads, writes, is_human),
    }
}

/// Returns the recent mean of a histogram of numbers, and its recent maximum.
fn mean_and_max(histogram: Option<&Value>) -> (f64, u64) {
    let mean = histogram
        .and_then(|of| of.get("recent_mean"))
        .and_then(Value::as_f64);
    let percentiles = histogram
        .and_then(|of| of.get("percentiles"))
        .and_then(Value::as_array);
    let max = percentiles.and_then(|all| all.last()).and_then(Value::as_u64);
    (mean.unwrap_or(f64::NAN), max.unwrap_or(0))
}

fn figures(report: &Value, reads: Operations, writes: Operations, is_human: bool) -> Vec<Figure> {
    let number = |name: &str| report.get(name).and_then(Value::as_u64).unwrap_or_default();
    let bytes = number("bytes");
    let size = |bytes: u64| match is_human {
        true => file_size(bytes),
        false => bytes.to_string(),
    };
    let partition = |at: usize| {
        let percentiles = report.get("partition_bytes").and_then(|of| of.get("percentiles"));
        let value = percentiles.and_then(|all| all.get(at)).and_then(Value::as_u64);
        value.unwrap_or_default()
    };
    let mean_partition = report
        .get("partition_bytes")
        .and_then(|of| of.get("mean"))
        .and_then(Value::as_u64)
        .unwrap_or_default();
    let (rows, rows_max) = mean_and_max(report.get("rows_per_read"));
    let (tombstones, tombstones_max) = mean_and_max(report.get("tombstones_per_read"));
    let whole = |label, key, value: u64| Figure {
        label,
        key,
        text: value.to_string(),
        value: json!(value),
    };
    let sized = |label, key, bytes: u64| Figure {
        label,
        key,
        text: size(bytes),
        value: json!(size(bytes)),
    };
    let pretty = |label, key, bytes: u64| Figure {
        label,
        key,
        text: pretty_bytes(bytes),
        value: json!(bytes),
    };
    let mean = |label, key, mean: f64| Figure {
        label,
        key,
        text: java_double(mean),
        value: double_value(mean),
    };
    let decimal = |label, key, value: f64, places: usize, unit: &str| Figure {
        label,
        key,
        text: format!("{value:.places$}{unit}"),
        value: json!(format!("{value:.places$}")),
    };
    let ratio = match writes.count {
        0 => 0.0,
        writes => reads.count as f64 / writes as f64,
    };
    let mut figures = vec![
        whole("SSTable count", "sstable_count", number("sstables")),
        whole("Old SSTable count", "old_sstable_count", 0),
        pretty(
            "Max SSTable size",
            "max_sstable_size",
            number("largest_sstable_bytes"),
        ),
        sized("Space used (live)", "space_used_live", bytes),
        sized("Space used (total)", "space_used_total", bytes),
        sized(
            "Space used by snapshots (total)",
            "space_used_by_snapshots_total",
            0,
        ),
        sized("Off heap memory used (total)", "off_heap_memory_used_total", 0),
        Figure {
            // Cassandra shows -1 if the ratio is not known.
            value: json!(-1.0),
            ..decimal(
                "SSTable Compression Ratio",
                "sstable_compression_ratio",
                -1.0,
                5,
                "",
            )
        },
        whole(
            "Number of partitions (estimate)",
            "number_of_partitions_estimate",
            number("partitions"),
        ),
        whole("Memtable cell count", "memtable_cell_count", 0),
        sized("Memtable data size", "memtable_data_size", 0),
        sized(
            "Memtable off heap memory used",
            "memtable_off_heap_memory_used",
            0,
        ),
        whole("Memtable switch count", "memtable_switch_count", 0),
        whole("Speculative retries", "speculative_retries", 0),
        whole("Local read count", "local_read_count", reads.count),
        decimal(
            "Local read latency",
            "local_read_latency_ms",
            reads.mean_ms(),
            3,
            " ms",
        ),
        whole("Local write count", "local_write_count", writes.count),
        decimal(
            "Local write latency",
            "local_write_latency_ms",
            writes.mean_ms(),
            3,
            " ms",
        ),
        decimal("Local read/write ratio", "local_read_write_ratio", ratio, 5, ""),
        whole("Pending flushes", "pending_flushes", 0),
        // Always 100 %, because partitions have no replicas that could differ.
        mean("Percent repaired", "percent_repaired", 100.0),
        pretty("Bytes repaired", "bytes_repaired", bytes),
        pretty("Bytes unrepaired", "bytes_unrepaired", 0),
        pretty("Bytes pending repair", "bytes_pending_repair", 0),
        whole("Bloom filter false positives", "bloom_filter_false_positives", 0),
        decimal("Bloom filter false ratio", "bloom_filter_false_ratio", 0.0, 5, ""),
        sized("Bloom filter space used", "bloom_filter_space_used", 0),
        sized(
            "Bloom filter off heap memory used",
            "bloom_filter_off_heap_memory_used",
            0,
        ),
        sized(
            "Index summary off heap memory used",
            "index_summary_off_heap_memory_used",
            0,
        ),
        sized(
            "Compression metadata off heap memory used",
            "compression_metadata_off_heap_memory_used",
            0,
        ),
        whole(
            "Compacted partition minimum bytes",
            "compacted_partition_minimum_bytes",
            partition(5),
        ),
        whole(
            "Compacted partition maximum bytes",
            "compacted_partition_maximum_bytes",
            partition(6),
        ),
        whole(
            "Compacted partition mean bytes",
            "compacted_partition_mean_bytes",
            mean_partition,
        ),
        mean(
            "Average live cells per slice (last five minutes)",
            "average_live_cells_per_slice_last_five_minutes",
            rows,
        ),
        whole(
            "Maximum live cells per slice (last five minutes)",
            "maximum_live_cells_per_slice_last_five_minutes",
            rows_max,
        ),
        mean(
            "Average tombstones per slice (last five minutes)",
            "average_tombstones_per_slice_last_five_minutes",
            tombstones,
        ),
        whole(
            "Maximum tombstones per slice (last five minutes)",
            "maximum_tombstones_per_slice_last_five_minutes",
            tombstones_max,
        ),
        decimal(
            "Droppable tombstone ratio",
            "droppable_tombstone_ratio",
            0.0,
            5,
            "",
        ),
    ];
    if let Some(seconds) = report.get("oldest_change_seconds") {
        let text = seconds
            .as_u64()
            .map_or("none".to_owned(), |seconds| seconds.to_string());
        figures.push(Figure {
            label: "Age of oldest change (seconds)",
            key: "oldest_change_age_seconds",
            text,
            value: seconds.clone(),
        });
    }
    let unlabelled = [
        ("twcs", Value::Null),
        ("sstables_in_each_level", json!([])),
        ("sstable_bytes_in_each_level", json!([])),
        ("top_size_partitions", json!({})),
        ("top_tombstone_partitions", json!({})),
    ];
    figures.extend(unlabelled.map(|(key, value)| Figure {
        label: "",
        key,
        text: String::new(),
        value,
    }));
    figures
}

/// Returns a size as Cassandra's `prettyPrintMemory` writes it, such as `37.607KiB`.
fn pretty_bytes(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.iter().find(|(shift, _)| bytes >> shift > 0) {
        Some((shift, unit)) => format!("{:.3}{unit}", bytes as f64 / (1_u64 << shift) as f64),
        None => format!("{bytes}B"),
    }
}

/// Returns a number in Java's format, with at least one decimal.
fn java_double(value: f64) -> String {
    match value.fract() == 0.0 {
        true => format!("{value:.1}"),
        false => value.to_string(),
    }
}

/// Returns a number for JSON. JSON has no NaN, so NaN is a text, as in Cassandra's tool.
fn double_value(value: f64) -> Value {
    match value.is_nan() {
        true => json!("NaN"),
        false => json!(value),
    }
}

fn put_table(page: &mut String, table: &Table, name: &str, indent: &str) {
    let _ = writeln!(page, "{indent}Table: {name}");
    for figure in table.figures.iter().filter(|figure| !figure.label.is_empty()) {
        let _ = writeln!(page, "{indent}{}: {}", figure.label, figure.text);
    }
    page.push('\n');
}

fn by_keyspace(tables: &[Table]) -> BTreeMap<&str, Vec<&Table>> {
    let mut keyspaces = BTreeMap::<&str, Vec<&Table>>::new();
    for table in tables {
        keyspaces.entry(&table.keyspace).or_default().push(table);
    }
    keyspaces
}

fn sums(tables: &[&Table]) -> (Operations, Operations) {
    let sum = |of: fn(&Table) -> Operations| {
        tables
            .iter()
            .map(|table| of(table))
            .fold(Operations::default(), Operations::add)
    };
    (sum(|table| table.reads), sum(|table| table.writes))
}

fn page(tables: &[Table]) -> String {
    let mut page = format!("Total number of tables: {}\n----------------\n", tables.len());
    for (name, tables) in by_keyspace(tables) {
        let (reads, writes) = sums(&tables);
        let _ = writeln!(page, "Keyspace: {name}");
        let _ = writeln!(page, "\tRead Count: {}", reads.count);
        let _ = writeln!(page, "\tRead Latency: {} ms", java_double(reads.mean_ms()));
        let _ = writeln!(page, "\tWrite Count: {}", writes.count);
        let _ = writeln!(page, "\tWrite Latency: {} ms", java_double(writes.mean_ms()));
        let _ = writeln!(page, "\tPending Flushes: 0");
        tables
            .iter()
            .for_each(|table| put_table(&mut page, table, &table.name, "\t\t"));
        page.push_str("----------------\n");
    }
    page
}

fn sorted_page(shown: &[Table], count: usize, top: Option<usize>, key: &str) -> String {
    let mut page = format!("Total number of tables: {count}");
    if top.is_some() {
        let _ = write!(page, " (showing top {} by {key})", shown.len());
    }
    page.push_str("\n----------------\n");
    for table in shown {
        let name = format!("{}.{}", table.keyspace, table.name);
        put_table(&mut page, table, &name, "\t");
    }
    page.push_str("----------------\n");
    page
}

/// Returns the tables for JSON and YAML. Sorted tables are in one map, others are grouped by keyspace.
fn values(shown: &[Table], count: usize, is_sorted: bool) -> Value {
    let mut all = Map::new();
    let figures = |table: &Table| {
        let figures = table.figures.iter();
        Value::from_iter(figures.map(|figure| (figure.key.to_owned(), figure.value.clone())))
    };
    if is_sorted {
        for table in shown {
            all.insert(format!("{}.{}", table.keyspace, table.name), figures(table));
        }
    } else {
        for (name, tables) in by_keyspace(shown) {
            let (reads, writes) = sums(&tables);
            let of = tables.iter().map(|table| (table.name.clone(), figures(table)));
            let keyspace = json!({
                "read_count": reads.count,
                "read_latency": double_value(reads.mean_ms()),
                "read_latency_ms": double_value(reads.mean_ms()),
                "write_count": writes.count,
                "write_latency_ms": double_value(writes.mean_ms()),
                "pending_flushes": 0,
                "tables": Value::from_iter(of),
            });
            all.insert(name.to_owned(), keyspace);
        }
    }
    all.insert("total_number_of_tables".to_owned(), json!(count));
    Value::Object(all)
}

/// Sorts tables by a figure, the greatest first, or by their name.
fn sort(tables: &mut [Table], key: &str) -> anyhow::Result<()> {
    let key = match key {
        "reads" => "local_read_count",
        "writes" => "local_write_count",
        "read_latency" => "local_read_latency_ms",
        "write_latency" => "local_write_latency_ms",
        key => key,
    };
    let number = |table: &Table| {
        let figure = table.figures.iter().find(|figure| figure.key == key)?;
        match &figure.value {
            Value::String(text) => text.parse::<f64>().ok(),
            other => other.as_f64(),
        }
    };
    let by_name =
        |left: &Table, right: &Table| (&left.keyspace, &left.name).cmp(&(&right.keyspace, &right.name));
    match key {
        "full_name" => tables.sort_by(by_name),
        "table_name" => tables.sort_by(|left, right| left.name.cmp(&right.name)),
        _ if tables.iter().all(|table| number(table).is_none()) && !tables.is_empty() => {
            bail!(
                "argument for sort must be a figure of a table such as local_read_count, full_name or table_name: {key} is none"
            )
        }
        // A latency without operations is NaN.
        _ => tables.sort_by(|left, right| {
            let of = |table| number(table).filter(|value| !value.is_nan());
            match (of(left), of(right)) {
                (Some(left), Some(right)) => right.total_cmp(&left),
                (left, right) => right.is_some().cmp(&left.is_some()),
            }
            .then_with(|| by_name(left, right))
        }),
    }
    Ok(())
}
