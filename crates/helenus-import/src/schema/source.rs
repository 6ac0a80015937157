//! The schema of all sources: the statements of all files, by what they create.

use std::collections::{BTreeMap, BTreeSet};

use helenus_cql::ast::{CreateKeyspace, CreateTable, Properties, Statement, TableChange};

use super::resolve::UserTypes;
use super::script::{SchemaText, Script, ScriptStatement, no_keyspace, table_name, without_options};
use super::shape::TableShape;
use super::type_scripts::{TypeScript, defined_types};
use crate::error::ImportError;
use crate::table_name::TableName;

/// The statements of all schema.cql.
#[derive(Clone, Debug, Default)]
pub struct SourceSchema {
    pub keyspaces: BTreeMap<String, CreateKeyspace>,
    /// CREATE TYPE in an order in which they can run.
    pub types: Vec<TypeScript>,
    pub user_types: UserTypes,
    pub tables: BTreeMap<TableName, TableScript>,
    pub views: BTreeMap<TableName, ViewScript>,
    /// CREATE FUNCTION and CREATE AGGREGATE, in the order of the files.
    pub functions: Vec<FunctionScript>,
    /// Files in which Cassandra left out a table that CQL can't create.
    pub omitted: Vec<String>,
    /// Facts for the report.
    pub notes: BTreeSet<String>,
}

/// The statements of a table.
#[derive(Clone, Debug)]
pub struct TableScript {
    pub path: String,
    pub create: CreateTable,
    pub text: String,
    /// ALTER TABLE, in the order of the file.
    pub changes: Vec<(TableChange, String)>,
    pub indexes: Vec<IndexScript>,
}

/// CREATE INDEX.
#[derive(Clone, Debug)]
pub struct IndexScript {
    /// `None` if the server chooses the name.
    pub name: Option<String>,
    pub text: String,
}

/// CREATE MATERIALIZED VIEW.
#[derive(Clone, Debug)]
pub struct ViewScript {
    pub base: TableName,
    pub text: String,
}

/// CREATE FUNCTION or CREATE AGGREGATE.
#[derive(Clone, Debug)]
pub struct FunctionScript {
    pub keyspace: String,
    pub name: String,
    pub is_aggregate: bool,
    pub text: String,
}

impl SourceSchema {
    /// Reads all files. If files differ in a table, that with the most columns and changes is used. Statements for keyspaces of Cassandra
    /// itself, which DESCRIBE and backups contain, are left out.
    ///
    /// # Errors
    /// If a statement isn't CQL, or a user type is unknown.
    pub fn read(schemas: &[SchemaText]) -> Result<SourceSchema, ImportError> {
        let mut schema = SourceSchema::default();
        let scripts: Vec<Script> = schemas.iter().map(Script::parse).collect::<Result<_, _>>()?;
        (schema.types, schema.user_types) = defined_types(&scripts)?;
        let omitted = scripts.iter().filter(|script| script.omits_table);
        schema.omitted = omitted.map(|script| script.path.clone()).collect();
        for script in scripts {
            let mut tables = BTreeMap::new();
            for statement in script.statements.into_iter().filter(|of| !of.is_of_system()) {
                schema.add(&script.path, statement, &mut tables)?;
            }
            for (name, table) in tables {
                schema.add_table(name, table);
            }
        }
        Ok(schema)
    }

    /// Returns the columns of a table. `None` if no file has it.
    ///
    /// # Errors
    /// If a type is unknown.
    pub fn shape(&self, name: &TableName) -> Result<Option<TableShape>, ImportError> {
        let Some(script) = self.tables.get(name) else {
            return Ok(None);
        };
        let changes = script.changes.iter().map(|(change, _)| change);
        TableShape::of_statements(&name.keyspace, &script.create, changes, &self.user_types)
            .map(Some)
            .map_err(|problem| ImportError::Refused(format!("{}: {name}: {problem}", script.path)))
    }

    /// Removes an option from the statements that create tables, for targets that do not have it.
    pub fn remove_option(&mut self, option: &str) {
        for script in self.tables.values_mut() {
            script.text = without_options(&script.text, &[option]);
        }
    }

    fn add(
        &mut self,
        path: &str,
        statement: ScriptStatement,
        tables: &mut BTreeMap<TableName, TableScript>,
    ) -> Result<(), ImportError> {
        let refused = |problem: String| ImportError::Refused(format!("{path}: {problem}"));
        let text = statement.text;
        match statement.statement {
            Statement::CreateKeyspace(create) => {
                self.keyspaces.insert(create.name.as_str().to_owned(), create);
            }
            Statement::CreateTable(create) => {
                let name = table_name(&create.table)
                    .ok_or_else(|| refused(no_keyspace(&create.table.to_string())))?;
                let script = TableScript {
                    path: path.to_owned(),
                    create: *create,
                    text,
                    changes: Vec::new(),
                    indexes: Vec::new(),
                };
                tables.insert(name, script);
            }
            Statement::AlterTable(alter) => {
                if let Some(table) = table_name(&alter.table).and_then(|name| tables.get_mut(&name)) {
                    table.changes.push((alter.change, text));
                }
            }
            Statement::CreateIndex(create) => {
                if let Some(table) = table_name(&create.table).and_then(|name| tables.get_mut(&name)) {
                    let name = create.name.map(|name| name.as_str().to_owned());
                    table.indexes.push(IndexScript { name, text });
                }
            }
            Statement::CreateView(create) => {
                let name =
                    table_name(&create.view).ok_or_else(|| refused(no_keyspace(&create.view.to_string())))?;
                let base = create.base.name.as_str();
                let keyspace = create.base.keyspace.as_ref();
                let base = TableName::new(keyspace.map_or(&*name.keyspace, |of| of.as_str()), base);
                self.views.insert(name, ViewScript { base, text });
            }
            Statement::CreateFunction(create) => self.add_function(
                create.name.keyspace.as_ref().map(|of| of.as_str()),
                create.name.name.as_str(),
                false,
                text,
            ),
            Statement::CreateAggregate(create) => self.add_function(
                create.name.keyspace.as_ref().map(|of| of.as_str()),
                create.name.name.as_str(),
                true,
                text,
            ),
            Statement::CreateType(_) | Statement::Use(_) => {}
            _ => {
                let first = text.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
                self.notes.insert(format!("{path}: {first} is ignored"));
            }
        }
        Ok(())
    }

    fn add_function(&mut self, keyspace: Option<&str>, name: &str, is_aggregate: bool, text: String) {
        if self.functions.iter().any(|known| known.text == text) {
            return;
        }
        self.functions.push(FunctionScript {
            keyspace: keyspace.unwrap_or_default().to_owned(),
            name: name.to_owned(),
            is_aggregate,
            text,
        });
    }

    fn add_table(&mut self, name: TableName, script: TableScript) {
        let size = |script: &TableScript| script.create.columns.len() + script.changes.len();
        let Some(known) = self.tables.get_mut(&name) else {
            self.tables.insert(name, script);
            return;
        };
        let is_better = size(&script) > size(known);
        if script.create.columns != known.create.columns || script.changes.len() != known.changes.len() {
            let (used, other) = match is_better {
                true => (&script.path, &known.path),
                false => (&known.path, &script.path),
            };
            self.notes
                .insert(format!("{name}: {used} and {other} differ; the first is used"));
        }
        if is_better {
            *known = script;
        }
    }
}

impl TableScript {
    /// Returns the options of the table.
    pub fn properties(&self) -> &Properties {
        &self.create.properties
    }
}
