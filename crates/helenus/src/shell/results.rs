//! Rows of a result as text: a table, one value per line (EXPAND ON), CSV, or one JSON object per line.

use std::io::{self, Write};

use bytes::Bytes;
use clap::ValueEnum;
use helenus_cql::frame::Rows;
use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value;

use super::grid::{Grid, GridColumn};

/// Format of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns with a header
    #[default]
    Table,
    /// Comma-separated values with a header line
    Csv,
    /// A JSON object per line
    Json,
}

/// Writer of the pages of one result.
pub struct ResultWriter {
    format: Format,
    is_expanding: bool,
    /// True if each page has a header. It has one if the user is prompted for more between pages.
    has_header_per_page: bool,
    columns: Vec<(String, CqlType)>,
    grid: Option<Grid>,
    shown: usize,
    is_description: bool,
}

impl ResultWriter {
    pub fn new(format: Format, is_expanding: bool, has_header_per_page: bool) -> ResultWriter {
        ResultWriter {
            format,
            is_expanding,
            has_header_per_page,
            columns: Vec::new(),
            grid: None,
            shown: 0,
            is_description: false,
        }
    }

    /// Writes a page of rows.
    pub fn write_page(&mut self, page: &Rows, out: &mut dyn Write) -> io::Result<()> {
        let is_first = self.columns.is_empty();
        if is_first {
            let columns = page.metadata.columns.iter();
            self.columns = columns.map(|c| (c.name.to_string(), c.ty.clone())).collect();
            self.is_description = is_description(&self.columns);
        }
        let rows: Vec<Vec<Option<Bytes>>> = page.content.iter().collect();
        match self.format {
            Format::Csv => self.write_csv(&rows, is_first, out)?,
            Format::Json => self.write_json(&rows, out)?,
            Format::Table if self.is_description => write_description(&rows, out)?,
            Format::Table if self.is_expanding => self.write_lines(&rows, out)?,
            Format::Table => self.write_table(&rows, is_first, out)?,
        }
        self.shown += rows.len();
        Ok(())
    }

    /// Writes the number of rows after the last page of a table.
    pub fn finish(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.format {
            Format::Table if !self.is_description => writeln!(out, "\n({} rows)", self.shown),
            Format::Table | Format::Csv | Format::Json => Ok(()),
        }
    }

    fn text_rows(&self, rows: &[Vec<Option<Bytes>>]) -> Vec<Vec<String>> {
        let cells = |row: &Vec<Option<Bytes>>| {
            let cells = self.columns.iter().zip(row);
            cells.map(|((_, ty), cell)| show(ty, cell.as_ref())).collect()
        };
        rows.iter().map(cells).collect()
    }

    fn write_table(
        &mut self,
        rows: &[Vec<Option<Bytes>>],
        is_first: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let rows = self.text_rows(rows);
        let columns = self.columns.iter().map(|(name, ty)| GridColumn {
            name: name.clone(),
            leans_left: leans_left(ty),
        });
        let grid = self.grid.get_or_insert_with(|| Grid::new(columns.collect()));
        grid.fit(&rows);
        if is_first || self.has_header_per_page {
            grid.write_header(out)?;
        }
        grid.write_rows(&rows, out)
    }

    /// Writes each row as lines of `column | value`.
    fn write_lines(&self, rows: &[Vec<Option<Bytes>>], out: &mut dyn Write) -> io::Result<()> {
        let widths = self.columns.iter().map(|(name, _)| name.chars().count());
        let width = widths.max().unwrap_or(0);
        for (number, row) in self.text_rows(rows).iter().enumerate() {
            writeln!(out, "@ Row {}", self.shown + number + 1)?;
            for ((name, _), cell) in self.columns.iter().zip(row) {
                writeln!(out, " {name:<width$} | {cell}")?;
            }
        }
        Ok(())
    }

    /// Writes rows as CSV. A null is an empty field.
    fn write_csv(&self, rows: &[Vec<Option<Bytes>>], is_first: bool, out: &mut dyn Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        if is_first {
            csv.write_record(self.columns.iter().map(|(name, _)| name))?;
        }
        for row in rows {
            let cells = self.columns.iter().zip(row);
            csv.write_record(
                cells.map(|((_, ty), cell)| {
                    cell.as_ref().map_or(String::new(), |bytes| plain_text(ty, bytes))
                }),
            )?;
        }
        csv.flush()
    }

    fn write_json(&self, rows: &[Vec<Option<Bytes>>], out: &mut dyn Write) -> io::Result<()> {
        for row in rows {
            let fields = self.columns.iter().zip(row).map(|((name, ty), cell)| {
                let json = cell
                    .as_ref()
                    .map_or(Ok("null".to_owned()), |bytes| value::to_json(ty, bytes));
                let json = json.unwrap_or_else(|_| "null".to_owned());
                format!("{}: {json}", value::json::quote(name))
            });
            writeln!(out, "{{{}}}", fields.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}

/// Returns a value as text for a file. Single values are bare, collections are as in CQL.
pub fn plain_text(ty: &CqlType, bytes: &Bytes) -> String {
    use NativeType as N;
    match ty {
        CqlType::Native(N::Text | N::Ascii) => String::from_utf8_lossy(bytes).into_owned(),
        CqlType::Native(N::Timestamp) => timestamp_text(ty, bytes),
        CqlType::Native(N::Date | N::Time | N::Inet) => value::to_cql_literal(ty, bytes)
            .map_or_else(|_| value::hex(bytes), |text| text.trim_matches('\'').to_owned()),
        ty => value::to_cql_literal(ty, bytes).unwrap_or_else(|_| value::hex(bytes)),
    }
}

/// Returns a timestamp in cqlsh's format: `2024-02-29 12:34:56.789000+0000`.
fn timestamp_text(ty: &CqlType, bytes: &Bytes) -> String {
    let text = value::to_cql_literal(ty, bytes).unwrap_or_else(|_| value::hex(bytes));
    let text = text.trim_matches('\'');
    match text.strip_suffix('Z') {
        Some(text) => format!("{}000+0000", text.replacen('T', " ", 1)),
        None => text.to_owned(),
    }
}

/// Returns a value as text for a cell, on one line.
pub fn show(ty: &CqlType, cell: Option<&Bytes>) -> String {
    let Some(bytes) = cell else {
        return "null".to_owned();
    };
    plain_text(ty, bytes)
        .replace('\n', "\\n")
        .replace('\r', "\\r")
        .replace('\t', "\\t")
}

/// Returns true if a column is aligned to the left. Only numbers are aligned to the right.
fn leans_left(ty: &CqlType) -> bool {
    use NativeType as N;
    !matches!(
        ty,
        CqlType::Native(
            N::Bigint
                | N::Counter
                | N::Decimal
                | N::Double
                | N::Float
                | N::Int
                | N::Smallint
                | N::Tinyint
                | N::Varint
        )
    )
}

/// Returns true if the columns are those of an answer to DESCRIBE. Only its last column is shown.
fn is_description(columns: &[(String, CqlType)]) -> bool {
    let names = columns.iter().map(|(name, _)| name.as_str());
    names.eq(["keyspace_name", "type", "name", "create_statement"])
}

fn write_description(rows: &[Vec<Option<Bytes>>], out: &mut dyn Write) -> io::Result<()> {
    let statement = |row: &Vec<Option<Bytes>>| {
        let bytes = row.last().and_then(Option::as_ref);
        bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    let statements: Vec<String> = rows.iter().filter_map(statement).collect();
    writeln!(out, "{}", statements.join("\n\n"))
}
