//! The report of a comparison.

use std::time::Duration;

use helenus_import::TableName;
use serde_json::{Value, json};

/// The result of one table.
pub struct TableReport {
    pub name: TableName,
    pub rows_a: u64,
    pub rows_b: u64,
    /// Number of rows that differ.
    pub differing: u64,
    /// The differences in words, up to the given number.
    pub differences: Vec<String>,
    /// Differences of the schema, in words.
    pub schema: Vec<String>,
    /// False if the comparison stopped because too many rows differ.
    pub is_complete: bool,
    pub time: Duration,
}

impl TableReport {
    pub fn new(name: &TableName) -> TableReport {
        TableReport {
            name: name.clone(),
            rows_a: 0,
            rows_b: 0,
            differing: 0,
            differences: Vec::new(),
            schema: Vec::new(),
            is_complete: true,
            time: Duration::ZERO,
        }
    }

    pub fn is_equal(&self) -> bool {
        self.differing == 0 && self.schema.is_empty() && self.is_complete
    }

    fn text(&self) -> String {
        let mut lines = vec![format!(
            "{}: {} rows in a, {} in b; {} ({:.1} s)",
            self.name,
            self.rows_a,
            self.rows_b,
            match self.differing {
                0 if self.schema.is_empty() => "equal".to_owned(),
                0 => "the rows are equal, the schemas differ".to_owned(),
                1 => "1 row differs".to_owned(),
                several => format!("{several} rows differ"),
            },
            self.time.as_secs_f64()
        )];
        lines.extend(self.schema.iter().map(|note| format!("  schema: {note}")));
        lines.extend(self.differences.iter().map(|line| format!("  {line}")));
        let hidden = self.differing.saturating_sub(self.differences.len() as u64);
        if hidden > 0 {
            lines.push(format!("  and {hidden} more; --differences-max shows more"));
        }
        if !self.is_complete {
            lines.push("  the rest of the table was not compared, because too many rows differ".to_owned());
        }
        lines.join("\n")
    }

    fn json(&self) -> Value {
        json!({
            "keyspace": self.name.keyspace,
            "table": self.name.table,
            "rows_a": self.rows_a,
            "rows_b": self.rows_b,
            "differing": self.differing,
            "differences": self.differences,
            "schema": self.schema,
            "complete": self.is_complete,
            "seconds": self.time.as_secs_f64(),
        })
    }
}

/// The report of all tables.
pub struct Report {
    pub tables: Vec<TableReport>,
    /// The share of the ring that was compared, as a fraction of 1, and the seed of the sample.
    pub share: f64,
    pub seed: u64,
}

impl Report {
    pub fn is_equal(&self) -> bool {
        self.tables.iter().all(TableReport::is_equal)
    }

    /// Prints the report to the standard output.
    pub fn print(&self, is_json: bool) {
        if is_json {
            let tables: Vec<Value> = self.tables.iter().map(TableReport::json).collect();
            let report =
                json!({"equal": self.is_equal(), "share": self.share, "seed": self.seed, "tables": tables});
            println!("{report}");
            return;
        }
        for table in &self.tables {
            println!("{}", table.text());
        }
        if self.share < 1.0 {
            println!(
                "Compared {}% of the token ring, with --seed {}.",
                self.share * 100.0,
                self.seed
            );
        }
        println!(
            "{}",
            match self.is_equal() {
                true => "No differences.",
                false => "There are differences.",
            }
        );
    }
}
