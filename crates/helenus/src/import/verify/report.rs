//! The report of a verification: table by table, and the differences.

use std::time::Duration;

use helenus_import::TableName;
use helenus_import::verify::Counts;
use serde_json::{Value, json};

use super::differences::Named;

/// Everything that the end of a verification shows.
#[derive(Default)]
pub struct VerifyReport {
    pub tables: Vec<TableVerified>,
}

/// The result of a table.
pub struct TableVerified {
    name: TableName,
    pub counts: Counts,
    pub differences: u64,
    /// The first differences.
    pub named: Vec<Named>,
    /// Rows that differed at first, and not when they were read again.
    pub settled: u64,
    pub time: Duration,
    /// False if the comparison stopped within the table.
    pub is_complete: bool,
}

impl TableVerified {
    pub fn new(name: &TableName) -> TableVerified {
        TableVerified {
            name: name.clone(),
            counts: Counts::default(),
            differences: 0,
            named: Vec::new(),
            settled: 0,
            time: Duration::ZERO,
            is_complete: false,
        }
    }

    fn text(&self) -> String {
        let counts = &self.counts;
        let seconds = self.time.as_secs_f64();
        let state = if self.is_complete { "" } else { "; not complete" };
        let mut line = format!(
            "{}: {} differences; {} rows, {} cells, {} newer on the target, {} rows and {} cells only in the target, {seconds:.1} s{state}",
            self.name,
            self.differences,
            counts.rows,
            counts.cells,
            counts.newer,
            counts.rows_only_in_target,
            counts.cells_only_in_target,
        );
        if counts.not_compared_with_ranges > 0 {
            line += &format!(
                "; {} rows only in the target were not compared with deletions of ranges",
                counts.not_compared_with_ranges
            );
        }
        line
    }

    fn json(&self) -> Value {
        let counts = &self.counts;
        json!({
            "keyspace": self.name.keyspace,
            "table": self.name.table,
            "differences": self.differences,
            "named": self.named.iter().map(Named::json).collect::<Vec<_>>(),
            "settled": self.settled,
            "rows": counts.rows,
            "cells": counts.cells,
            "newer": counts.newer,
            "rows_only_in_target": counts.rows_only_in_target,
            "cells_only_in_target": counts.cells_only_in_target,
            "not_compared_with_ranges": counts.not_compared_with_ranges,
            "seconds": self.time.as_secs_f64(),
            "is_complete": self.is_complete,
        })
    }
}

impl VerifyReport {
    /// Returns the number of differences of all tables.
    pub fn differences(&self) -> u64 {
        self.tables.iter().map(|table| table.differences).sum()
    }

    /// Returns the number of differences that are named.
    pub fn shown(&self) -> usize {
        self.tables.iter().map(|table| table.named.len()).sum()
    }

    /// Prints the report to the standard output.
    pub fn print(&self, is_json: bool) {
        if is_json {
            let tables: Vec<Value> = self.tables.iter().map(TableVerified::json).collect();
            println!("{}", json!({"differences": self.differences(), "tables": tables}));
            return;
        }
        for table in &self.tables {
            println!("{}", table.text());
            for named in &table.named {
                println!("  {}", named.text());
            }
        }
        let hidden = self.differences().saturating_sub(self.shown() as u64);
        if hidden > 0 {
            println!("{hidden} more differences are not shown; --differences-max shows more");
        }
    }
}
