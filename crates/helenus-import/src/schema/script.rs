//! The statements of a schema.cql (`db.SchemaCQLHelper`; in 3.11 `db.ColumnFamilyStoreCQLHelper`).
//!
//! A snapshot's file has the user types of one table, CREATE TABLE WITH ID and options, the drops of columns, and the indexes. A column that
//! was dropped is in CREATE TABLE; `ALTER TABLE … DROP … USING TIMESTAMP` follows, and ADD if it exists again. Files of DESCRIBE have
//! keyspaces, functions and views as well.

use helenus_cql::ast::{QualifiedName, Statement};
use helenus_cql::lexer::{Kind, tokenize};
use helenus_cql::parser::parse_statement;

use crate::error::ImportError;
use crate::system_keyspaces::is_system_keyspace;
use crate::table_name::TableName;

/// Text of Cassandra's comment around a table of the Thrift protocol, which CQL can't create.
const OMITTED: &str = "omitted because it has constructs not compatible with CQL";

/// The options of an index as 3.11 writes them, without a sign that CQL requires, and as they should be.
const OPTIONS_OF_3_11: &str = " WITH OPTIONS { ";
const OPTIONS: &str = " WITH OPTIONS = { ";

/// Options of tables that Cassandra 4.0 removed, and now refuses.
const REMOVED_OPTIONS: [&str; 2] = ["dclocal_read_repair_chance", "read_repair_chance"];

/// A file with statements of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaText {
    /// The file's name for messages.
    pub path: String,
    pub text: String,
}

/// A parsed file.
#[derive(Clone, Debug)]
pub struct Script {
    pub path: String,
    pub statements: Vec<ScriptStatement>,
    /// True if Cassandra left out a table, because CQL can't create it.
    pub omits_table: bool,
}

/// A statement, and its text without the semicolon.
#[derive(Clone, Debug)]
pub struct ScriptStatement {
    pub text: String,
    pub statement: Statement,
}

impl Script {
    /// Parses a file.
    ///
    /// # Errors
    /// If a statement isn't CQL.
    pub fn parse(schema: &SchemaText) -> Result<Script, ImportError> {
        let mut statements = Vec::new();
        for (start, text) in split(&schema.text) {
            let text = text.replace(OPTIONS_OF_3_11, OPTIONS);
            let parsed = parse_statement(&text).map_err(|error| {
                let line = 1 + schema.text.get(..start).unwrap_or_default().matches('\n').count();
                ImportError::Refused(format!(
                    "{} line {line}: {error}. Correct the statement in a copy of the file, or create the table on the target and give --no-schema",
                    schema.path
                ))
            })?;
            let statement = parsed.statement;
            let text = match statement {
                Statement::CreateTable(_) | Statement::CreateView(_) => {
                    without_options(&text, &REMOVED_OPTIONS)
                }
                _ => text,
            };
            statements.push(ScriptStatement { text, statement });
        }
        Ok(Script {
            path: schema.path.clone(),
            statements,
            omits_table: schema.text.contains(OMITTED),
        })
    }

    /// Returns the names of the tables and views that the file creates.
    pub fn tables_and_views(&self) -> Vec<TableName> {
        let names = self.statements.iter().filter_map(|of| match &of.statement {
            Statement::CreateTable(create) => table_name(&create.table),
            Statement::CreateView(create) => table_name(&create.view),
            _ => None,
        });
        names.collect()
    }
}

impl ScriptStatement {
    /// Returns true if the statement makes or changes something in a keyspace of Cassandra itself.
    pub(super) fn is_of_system(&self) -> bool {
        let keyspace = match &self.statement {
            Statement::CreateKeyspace(create) => Some(&create.name),
            Statement::CreateType(create) => create.name.keyspace.as_ref(),
            Statement::CreateTable(create) => create.table.keyspace.as_ref(),
            Statement::AlterTable(alter) => alter.table.keyspace.as_ref(),
            Statement::CreateIndex(create) => create.table.keyspace.as_ref(),
            Statement::CreateView(create) => create.view.keyspace.as_ref(),
            Statement::CreateFunction(create) => create.name.keyspace.as_ref(),
            Statement::CreateAggregate(create) => create.name.keyspace.as_ref(),
            _ => None,
        };
        keyspace.is_some_and(|keyspace| is_system_keyspace(keyspace.as_str()))
    }
}

/// Returns the name as that of a table. `None` if the keyspace is missing, as in no file of Cassandra.
pub(super) fn table_name(name: &QualifiedName) -> Option<TableName> {
    let keyspace = name.keyspace.as_ref()?;
    Some(TableName::new(keyspace.as_str(), name.name.as_str()))
}

/// Returns the words for a name without a keyspace.
pub(super) fn no_keyspace(name: &str) -> String {
    format!("{name} has no keyspace; write it as <keyspace>.{name}")
}

/// Returns a statement without `AND option = value` of some options. A value is a constant or a map.
pub(super) fn without_options(text: &str, options: &[&str]) -> String {
    let tokens = tokenize(text).tokens;
    let word = |place: usize| {
        tokens
            .get(place)
            .and_then(|token| text.get(token.start as usize..token.end as usize))
    };
    let mut kept = String::with_capacity(text.len());
    let mut copied = 0;
    for place in 1..tokens.len() {
        let is_removed = word(place).is_some_and(|word| options.contains(&word))
            && word(place - 1).is_some_and(|word| word.eq_ignore_ascii_case("AND"))
            && word(place + 1) == Some("=");
        if !is_removed {
            continue;
        }
        let value = tokens.get(place + 2..).unwrap_or_default();
        let is_map = value.first().is_some_and(|token| token.kind == Kind::LeftBrace);
        let end = match is_map {
            true => value.iter().find(|token| token.kind == Kind::RightBrace),
            false => value.first(),
        };
        if let (Some(and), Some(end)) = (tokens.get(place - 1), end) {
            kept.push_str(text.get(copied..and.start as usize).unwrap_or_default());
            copied = end.end as usize;
        }
    }
    kept.push_str(text.get(copied..).unwrap_or_default());
    kept
}

/// Splits a text at its semicolons. Each statement has the offset of its first byte.
fn split(text: &str) -> Vec<(usize, &str)> {
    let tokens = tokenize(text);
    let mut statements = Vec::new();
    let mut start = None;
    let mut end = 0;
    for token in &tokens.tokens {
        if matches!(token.kind, Kind::Semicolon | Kind::Eof) {
            if let Some(start) = start.take()
                && let Some(statement) = text.get(start..end)
            {
                statements.push((start, statement));
            }
            continue;
        }
        start.get_or_insert(token.start as usize);
        end = token.end as usize;
    }
    statements
}
