//! The report of an import: table by table, and what was left out.

use std::time::Duration;

use helenus_import::TableName;
use helenus_import::merge::Statistics;
use helenus_import::source::{LeftOut, Sources};
use helenus_import::table::LeftOutColumn;
use serde_json::{Value, json};

use super::prepare::SchemaReport;

/// Everything that the end of an import shows.
pub struct Report {
    schema: SchemaReport,
    left_out: Vec<LeftOut>,
    pub tables: Vec<TableReport>,
}

/// The report of a table.
pub struct TableReport {
    pub name: TableName,
    pub sstables: usize,
    /// SSTables that were not read, because all that they hold is older than `--since`.
    pub older_sstables: usize,
    pub statistics: Statistics,
    /// Bytes of the files that were read.
    pub bytes: u64,
    pub time: Duration,
    pub left_out: Vec<LeftOutColumn>,
    /// True if an earlier run did a part of the table, or all of it.
    pub is_resumed: bool,
    /// False if the import stopped within the table.
    pub is_complete: bool,
}

impl Report {
    pub fn new(sources: &Sources, schema: SchemaReport) -> Report {
        Report {
            schema,
            left_out: sources.left_out.clone(),
            tables: Vec::new(),
        }
    }

    /// Prints the report to the standard output.
    pub fn print(&self, is_json: bool) {
        match is_json {
            true => println!("{}", self.json()),
            false => print!("{}", self.text()),
        }
    }

    fn text(&self) -> String {
        let mut lines = Vec::new();
        if !self.schema.made.is_empty() {
            let made = if self.schema.is_dry {
                "would be made"
            } else {
                "made"
            };
            lines.push(format!("Schema, {made}: {}", self.schema.made.join(", ")));
        }
        lines.extend(self.schema.notes.iter().map(|note| format!("Note: {note}")));
        if !self.schema.without_effect.is_empty() {
            let options: Vec<&str> = self.schema.without_effect.iter().map(String::as_str).collect();
            lines.push(format!(
                "Options of tables without an effect here: {}",
                options.join(", ")
            ));
        }
        for table in &self.tables {
            lines.push(table.text());
            for (column, cells) in table.left_out() {
                lines.push(format!(
                    "  left out: {cells} cells of column {}: {}",
                    column.name, column.reason
                ));
            }
            if table.statistics.cells_before_drop > 0 {
                lines.push(format!(
                    "  left out: {} cells from before their column was dropped",
                    table.statistics.cells_before_drop
                ));
            }
            if table.older_sstables > 0 || table.statistics.cells_before_since > 0 {
                lines.push(format!(
                    "  left out: {} SSTables, and {} cells in others, from before --since",
                    table.older_sstables, table.statistics.cells_before_since
                ));
            }
        }
        for left_out in &self.left_out {
            lines.push(format!(
                "Left out: {}, {} SSTables ({})",
                left_out.what,
                left_out.sstables,
                left_out.reason.words()
            ));
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn json(&self) -> Value {
        let left_out = |left_out: &LeftOut| json!({"what": left_out.what, "sstables": left_out.sstables, "reason": left_out.reason.words()});
        json!({
            "schema": {
                "made": self.schema.made,
                "is_dry": self.schema.is_dry,
                "notes": self.schema.notes,
                "without_effect": self.schema.without_effect,
            },
            "tables": self.tables.iter().map(TableReport::json).collect::<Vec<_>>(),
            "left_out": self.left_out.iter().map(left_out).collect::<Vec<_>>(),
        })
    }
}

impl TableReport {
    fn text(&self) -> String {
        let statistics = &self.statistics;
        let seconds = self.time.as_secs_f64();
        let state = match (self.is_complete, self.is_resumed) {
            (false, _) => "; not complete",
            (true, true) => "; the rest of an interrupted import",
            (true, false) => "",
        };
        format!(
            "{}: {} SSTables, {} partitions, {} rows, {} cells, {} tombstones, {} bytes, {seconds:.1} s{state}",
            self.name,
            self.sstables,
            statistics.partitions,
            statistics.rows,
            statistics.cells,
            statistics.tombstones,
            self.bytes
        )
    }

    /// Returns the columns with cells that were left out.
    fn left_out(&self) -> impl Iterator<Item = (&LeftOutColumn, u64)> {
        let counts = self.statistics.left_out.iter().copied();
        self.left_out.iter().zip(counts).filter(|(_, cells)| *cells > 0)
    }

    fn json(&self) -> Value {
        let columns = self
            .left_out()
            .map(|(column, cells)| json!({"column": column.name, "cells": cells, "reason": column.reason}));
        json!({
            "keyspace": self.name.keyspace,
            "table": self.name.table,
            "sstables": self.sstables,
            "older_sstables": self.older_sstables,
            "partitions": self.statistics.partitions,
            "rows": self.statistics.rows,
            "cells": self.statistics.cells,
            "tombstones": self.statistics.tombstones,
            "counters": self.statistics.counters,
            "cells_before_drop": self.statistics.cells_before_drop,
            "cells_before_since": self.statistics.cells_before_since,
            "shadowed": self.statistics.shadowed,
            "bytes": self.bytes,
            "seconds": self.time.as_secs_f64(),
            "left_out_columns": columns.collect::<Vec<_>>(),
            "is_resumed": self.is_resumed,
            "is_complete": self.is_complete,
        })
    }
}
