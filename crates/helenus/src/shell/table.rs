//! Result rows as an aligned table, or one value a line (EXPAND ON).

use bytes::Bytes;
use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value;
use tabled::builder::Builder;
use tabled::settings::object::{Columns, Rows as TableRows};
use tabled::settings::{Alignment, Style};

/// A page of rows with its columns.
pub struct Page {
    pub columns: Vec<(String, CqlType)>,
    pub rows: Vec<Vec<Option<Bytes>>>,
}

/// A value as the shell shows it: text bare, everything else as CQL writes it.
fn show(ty: &CqlType, cell: Option<&Bytes>) -> String {
    let Some(bytes) = cell else {
        return "null".to_owned();
    };
    match ty {
        CqlType::Native(NativeType::Text | NativeType::Ascii) => String::from_utf8_lossy(bytes)
            .replace('\n', "\\n")
            .replace('\t', "\\t"),
        ty => match value::to_cql_literal(ty, bytes) {
            Ok(text) if matches!(ty, CqlType::Native(NativeType::Timestamp)) => {
                text.trim_matches('\'').to_owned()
            }
            Ok(text) => text,
            Err(_) => value::hex(bytes),
        },
    }
}

/// Text leans left, everything else right, as in cqlsh.
fn leans_left(ty: &CqlType) -> bool {
    !matches!(
        ty,
        CqlType::Native(
            NativeType::Bigint
                | NativeType::Counter
                | NativeType::Decimal
                | NativeType::Double
                | NativeType::Float
                | NativeType::Int
                | NativeType::Smallint
                | NativeType::Tinyint
                | NativeType::Varint
        )
    )
}

impl Page {
    /// The rows as a table with a header.
    pub fn to_table(&self) -> String {
        let mut builder = Builder::default();
        builder.push_record(self.columns.iter().map(|(name, _)| name.clone()));
        for row in &self.rows {
            builder.push_record(
                self.columns
                    .iter()
                    .zip(row)
                    .map(|((_, ty), cell)| show(ty, cell.as_ref())),
            );
        }
        let mut table = builder.build();
        table.with(Style::psql());
        for (at, (_, ty)) in self.columns.iter().enumerate() {
            if !leans_left(ty) {
                table.modify(Columns::one(at), Alignment::right());
            }
        }
        table.modify(TableRows::first(), Alignment::center());
        table.to_string()
    }

    /// Each row as lines of `column | value`.
    pub fn to_lines(&self, first_row: usize) -> String {
        let width = self
            .columns
            .iter()
            .map(|(name, _)| name.chars().count())
            .max()
            .unwrap_or(0);
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            lines.push(format!("@ Row {}", first_row + number + 1));
            for ((name, ty), cell) in self.columns.iter().zip(row) {
                lines.push(format!(" {name:<width$} | {}", show(ty, cell.as_ref())));
            }
        }
        lines.join("\n")
    }
}

/// The columns with which the server answers DESCRIBE of something: what matters is the last one.
const DESCRIPTION: [&str; 4] = ["keyspace_name", "type", "name", "create_statement"];

impl Page {
    /// The statements of a DESCRIBE, if that is what the rows are.
    pub fn as_description(&self) -> Option<String> {
        if !self.columns.iter().map(|(name, _)| name.as_str()).eq(DESCRIPTION) {
            return None;
        }
        let statement = |row: &Vec<Option<Bytes>>| {
            row.last()
                .and_then(Option::as_ref)
                .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        Some(
            self.rows
                .iter()
                .filter_map(statement)
                .collect::<Vec<_>>()
                .join("\n\n"),
        )
    }
}
