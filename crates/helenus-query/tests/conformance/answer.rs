//! Answers as lines of text, in the format of `tests/conformance/runner.py`.

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_query::response::{ChangeKind, ColumnSpec, Outcome, Response, Rows, SchemaChange, SchemaTarget};

use crate::case_file::Step;
use crate::shown::show;
use crate::text::{abbreviated, one_line};
use crate::types::Type;

/// An answer as a client of a given protocol version sees it.
pub struct Answer {
    pub lines: Vec<String>,
    /// Start of the next page. `None` if this page is the last.
    pub paging_state: Option<Bytes>,
    pub row_count: usize,
    pub is_error: bool,
}

/// Properties of a request that influence how its answer is shown.
#[derive(Clone, Copy)]
pub struct Shown<'s> {
    pub step: &'s Step,
    pub protocol_version: u8,
    /// True if the answer omits the columns of rows, because the client knows them.
    pub skips_metadata: bool,
    pub is_first_page: bool,
}

impl Shown<'_> {
    /// Returns the answer's lines.
    pub fn answer(&self, result: Result<Outcome, CqlError>) -> Answer {
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(error) => return self.error(error),
        };
        let warnings = self.warnings(&outcome.warnings);
        let (paging_state, row_count) = match &outcome.response {
            Response::Rows(rows) => (rows.paging_state.clone(), rows.content.row_count()),
            _ => (None, 0),
        };
        let lines = match &outcome.response {
            Response::Void => with("void".to_owned(), warnings),
            Response::Encoded(_) => panic!("the engine encodes results for clients only"),
            Response::SetKeyspace(keyspace) => with(format!("set_keyspace {keyspace}"), warnings),
            Response::SchemaChange(change) => {
                with(format!("schema_change {}", self.change(change)), warnings)
            }
            Response::Rows(rows) => self.rows(rows, warnings),
        };
        Answer {
            lines,
            paging_state,
            row_count,
            is_error: false,
        }
    }

    /// Returns an error's lines.
    pub fn error(&self, error: CqlError) -> Answer {
        let (error, warnings) = error.split();
        let line = format!(
            "error {}{}: {}",
            code(&error),
            detail(&error),
            one_line(&error.to_string())
        );
        Answer {
            lines: with(line, self.warnings(&warnings)),
            paging_state: None,
            row_count: 0,
            is_error: true,
        }
    }

    /// Returns the warnings as lines. Three kinds are omitted: the warning of the first request after USE, which depends on other clients'
    /// statements; the one about table options without an effect here; and Cassandra's that views are experimental.
    pub fn warnings(&self, warnings: &[String]) -> Vec<String> {
        let is_compared = |warning: &&String| {
            !warning.starts_with("`USE <keyspace>`")
                && !warning.starts_with("Materialized views are experimental")
                && !warning.contains(" no effect in Helenus: ")
        };
        let reported = warnings
            .iter()
            .filter(|warning| self.protocol_version > 3 && is_compared(warning));
        reported
            .map(|warning| format!("warning: {}", one_line(warning)))
            .collect()
    }

    fn rows(&self, rows: &Rows, warnings: Vec<String>) -> Vec<String> {
        let columns: Vec<(&str, Type)> = reported_columns(&rows.metadata.columns);
        let mut lines = Vec::new();
        if self.is_first_page && self.skips_metadata {
            lines.push("rows (no metadata)".to_owned());
        } else if self.is_first_page {
            let named: String = columns
                .iter()
                .map(|(name, ty)| format!(" | {name} {ty}"))
                .collect();
            lines.push(format!("rows {}{named}", tables(&rows.metadata.columns)));
        }
        lines.extend(warnings);
        lines.extend(rows.content.iter().map(|row| self.row(&columns, &row)));
        lines
    }

    fn row(&self, columns: &[(&str, Type)], row: &[Option<Bytes>]) -> String {
        let cells = columns.iter().zip(row);
        let texts: Vec<String> = cells
            .map(|((name, ty), value)| self.cell(name, show(ty, value.as_deref())))
            .collect();
        format!("| {}", texts.join(" | "))
    }

    /// Returns a value's text, or a placeholder if its exact value is not compared.
    fn cell(&self, column: &str, text: String) -> String {
        let is_listed = |directive: &str| {
            let names = self.step.all(directive).last().map_or("", String::as_str);
            names.split(',').any(|name| name.trim() == column)
        };
        let is_masked = self.step.has("mask") && (self.step.get("mask").is_none() || is_listed("mask"));
        if is_masked && text != "null" {
            return "<masked>".to_owned();
        }
        match text.parse::<u64>() {
            Ok(number) if is_listed("approx") => format!("<= {}", number.div_ceil(100) * 100),
            _ => abbreviated(text),
        }
    }

    fn change(&self, change: &SchemaChange) -> String {
        let kind = match change.change {
            ChangeKind::Created => "CREATED",
            ChangeKind::Updated => "UPDATED",
            ChangeKind::Dropped => "DROPPED",
        };
        let keyspace = &change.keyspace;
        match &change.target {
            SchemaTarget::Keyspace => format!("{kind} KEYSPACE {keyspace}"),
            SchemaTarget::Table(name) => format!("{kind} TABLE {keyspace} {name}"),
            SchemaTarget::Type(name) => format!("{kind} TYPE {keyspace} {name}"),
            // Protocol version 3 has no functions.
            _ if self.protocol_version < 4 => format!("UPDATED KEYSPACE {keyspace}"),
            SchemaTarget::Function { name, arg_types } => {
                format!("{kind} FUNCTION {keyspace} {name} ({})", arg_types.join(", "))
            }
            SchemaTarget::Aggregate { name, arg_types } => {
                format!("{kind} AGGREGATE {keyspace} {name} ({})", arg_types.join(", "))
            }
        }
    }
}

fn with(first: String, rest: Vec<String>) -> Vec<String> {
    std::iter::once(first).chain(rest).collect()
}

fn reported_columns(columns: &[ColumnSpec]) -> Vec<(&str, Type)> {
    columns
        .iter()
        .map(|column| (&*column.name, Type::reported(&column.ty, false)))
        .collect()
}

/// Returns the tables that the columns belong to.
pub fn tables(columns: &[ColumnSpec]) -> String {
    let mut tables: Vec<String> = columns
        .iter()
        .map(|column| format!("{}.{}", column.keyspace, column.table))
        .collect();
    tables.sort();
    tables.dedup();
    tables.join(" ")
}

/// Returns the names and types of columns or markers.
pub fn named(columns: &[ColumnSpec]) -> String {
    let named = reported_columns(columns);
    let texts: Vec<String> = named.iter().map(|(name, ty)| format!("{name} {ty}")).collect();
    texts.join(", ")
}

fn code(error: &CqlError) -> &'static str {
    match error {
        CqlError::Server(_) => "ServerError",
        CqlError::Protocol(_) => "ProtocolError",
        CqlError::BadCredentials(_) => "BadCredentials",
        CqlError::Unavailable { .. } => "Unavailable",
        CqlError::Overloaded(_) => "Overloaded",
        CqlError::IsBootstrapping(_) => "IsBootstrapping",
        CqlError::Truncate(_) => "TruncateError",
        CqlError::WriteTimeout { .. } => "WriteTimeout",
        CqlError::ReadTimeout { .. } => "ReadTimeout",
        CqlError::ReadFailure { .. } => "ReadFailure",
        CqlError::FunctionFailure { .. } => "FunctionFailure",
        CqlError::WriteFailure { .. } => "WriteFailure",
        CqlError::CasWriteUnknown { .. } => "CASWriteUnknown",
        CqlError::RateLimited { .. } => "RateLimited",
        CqlError::Syntax(_) => "SyntaxError",
        CqlError::Unauthorized(_) => "Unauthorized",
        CqlError::Invalid(_) => "Invalid",
        CqlError::Config(_) => "ConfigError",
        CqlError::AlreadyExists { .. } => "AlreadyExists",
        CqlError::Unprepared(_) => "Unprepared",
        CqlError::Warned { error, .. } => code(error),
    }
}

/// Returns the fields that an error's code adds.
fn detail(error: &CqlError) -> String {
    match error {
        CqlError::AlreadyExists { keyspace, table, .. } => format!(" [ks={keyspace} table={table}]"),
        CqlError::Unavailable {
            consistency,
            required,
            alive,
            ..
        } => format!(" [cl={consistency} required={required} alive={alive}]"),
        CqlError::FunctionFailure {
            keyspace,
            function,
            arg_types,
            ..
        } => {
            let types: Vec<String> = arg_types.iter().map(|ty| format!("'{ty}'")).collect();
            format!(" [function={keyspace}.{function} args=[{}]]", types.join(", "))
        }
        CqlError::Unprepared(id) => format!(" [id={}]", crate::text::hex(id)),
        _ => String::new(),
    }
}
