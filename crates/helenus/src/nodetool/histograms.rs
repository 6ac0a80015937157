//! `nodetool tablehistograms` and `proxyhistograms`, in the format of Cassandra's (`TableHistograms`, `ProxyHistograms`).

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use serde_json::Value;

use super::client::NodeClient;
use super::output::text;
use super::tablestats::TABLES;

const LATENCIES: &str = "/node/latencies";
const PERCENTILES: [&str; 7] = ["50%", "75%", "95%", "98%", "99%", "Min", "Max"];

/// The figures at [`PERCENTILES`]. `None` if there is no histogram.
type Column = Option<[f64; PERCENTILES.len()]>;

fn column(histogram: Option<&Value>) -> Column {
    let values = histogram?.get("percentiles")?.as_array()?;
    let mut column = [0.0; PERCENTILES.len()];
    for (to, value) in column.iter_mut().zip(values) {
        *to = value.as_f64().unwrap_or_default();
    }
    Some(column)
}

fn value(column: &Column, at: usize, places: usize) -> String {
    match column.and_then(|column| column.get(at).copied()) {
        Some(value) => format!("{value:.places$}"),
        None => "NaN".to_owned(),
    }
}

/// Prints the histograms of one table, or of all.
pub(super) fn run_tables(node: &NodeClient, words: &[String]) -> anyhow::Result<ExitCode> {
    let wanted = match words {
        [] => None,
        [keyspace, table] => Some((keyspace.clone(), table.clone())),
        [name] => match name.split_once('.') {
            Some((keyspace, table)) => Some((keyspace.to_owned(), table.to_owned())),
            None => bail!("tablehistograms requires keyspace and table name arguments"),
        },
        _ => bail!("tablehistograms requires <keyspace> <table> or <keyspace.table> format argument."),
    };
    let tables = node.request(TABLES)?;
    let tables = tables.as_array().map_or(&[] as &[Value], Vec::as_slice);
    let is_wanted = |table: &&Value| {
        wanted.as_ref().is_none_or(|(keyspace, name)| {
            text(table, "keyspace") == *keyspace && text(table, "table") == *name
        })
    };
    let mut found = tables.iter().filter(is_wanted).peekable();
    if let (Some((keyspace, name)), None) = (&wanted, found.peek()) {
        return Err(anyhow!("Unknown table '{name}' in keyspace '{keyspace}'"));
    }
    found.for_each(|table| print!("{}", table_page(table)));
    Ok(ExitCode::SUCCESS)
}

/// Returns the histograms of a table. SSTables of a read and cells of a partition are not counted, and shown as NaN.
fn table_page(table: &Value) -> String {
    let mut page = String::new();
    let partitions = column(table.get("partition_bytes"));
    if partitions.is_none() {
        page.push_str(
            "No SSTables exists, unable to calculate 'Partition Size' and 'Cell Count' percentiles\n",
        );
    }
    let _ = writeln!(
        page,
        "{}/{} histograms",
        text(table, "keyspace"),
        text(table, "table")
    );
    let line = |page: &mut String, [percentile, read, write, sstables, size, cells]: [&str; 6]| {
        let _ = writeln!(
            page,
            "{percentile:<10}{read:>18}{write:>18}{sstables:>18}{size:>18}{cells:>18}"
        );
    };
    line(
        &mut page,
        [
            "Percentile",
            "Read Latency",
            "Write Latency",
            "SSTables",
            "Partition Size",
            "Cell Count",
        ],
    );
    line(&mut page, ["", "(micros)", "(micros)", "", "(bytes)", ""]);
    let (reads, writes) = (column(table.get("reads")), column(table.get("writes")));
    for (at, percentile) in PERCENTILES.iter().enumerate() {
        let cells = [
            value(&reads, at, 2),
            value(&writes, at, 2),
            value(&None, at, 2),
            value(&partitions, at, 0),
            value(&None, at, 0),
        ];
        let [read, write, sstables, size, cell_count] = cells.each_ref().map(String::as_str);
        line(&mut page, [percentile, read, write, sstables, size, cell_count]);
    }
    page.push('\n');
    page
}

/// Prints the latencies of the node's clients. Reads of transactions count as reads. Writes to views count with their table.
pub(super) fn run_proxy(node: &NodeClient) -> anyhow::Result<ExitCode> {
    print!("{}", proxy_page(&node.request(LATENCIES)?));
    Ok(ExitCode::SUCCESS)
}

fn proxy_page(latencies: &Value) -> String {
    let mut page = "proxy histograms\n".to_owned();
    let line = |page: &mut String, percentile: &str, cells: [&str; 6]| {
        let _ = write!(page, "{percentile:<10}");
        cells.iter().for_each(|cell| {
            let _ = write!(page, "{cell:>19}");
        });
        page.push('\n');
    };
    let heads = [
        "Read Latency",
        "Write Latency",
        "Range Latency",
        "CAS Read Latency",
        "CAS Write Latency",
        "View Write Latency",
    ];
    line(&mut page, "Percentile", heads);
    line(&mut page, "", ["(micros)"; 6]);
    let none: Column = Some([0.0; PERCENTILES.len()]);
    let of = |kind| column(latencies.get(kind));
    let columns = [of("read"), of("write"), of("range"), none, of("lwt"), none];
    for (at, percentile) in PERCENTILES.iter().enumerate() {
        let cells = columns.each_ref().map(|column| value(column, at, 2));
        line(&mut page, percentile, cells.each_ref().map(String::as_str));
    }
    page.push('\n');
    page
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_pages_are_those_of_cassandra() {
        let percentiles = json!({ "percentiles": [310, 535, 2299, 3311, 4768, 104, 126_934] });
        let page = proxy_page(
            &json!({ "read": percentiles, "write": percentiles, "range": percentiles, "lwt": percentiles }),
        );
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(
            lines[1],
            "Percentile       Read Latency      Write Latency      Range Latency   CAS Read Latency  CAS Write Latency View Write Latency"
        );
        assert_eq!(
            lines[3],
            "50%                    310.00             310.00             310.00               0.00             310.00               0.00"
        );
        assert!(lines[9].starts_with("Max                 126934.00"), "{page}");
        let page = table_page(
            &json!({ "keyspace": "shop", "table": "carts", "reads": percentiles, "writes": percentiles, "partition_bytes": null }),
        );
        assert!(page.starts_with("No SSTables exists"), "{page}");
        assert!(
            page.contains("\nPercentile      Read Latency     Write Latency          SSTables    Partition Size        Cell Count\n"),
            "{page}"
        );
        assert!(
            page.contains("\n50%                   310.00            310.00               NaN               NaN               NaN\n"),
            "{page}"
        );
    }
}
