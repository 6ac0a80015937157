//! A schema that statements change without a store, for tests of planning.

use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_cql::parser::parse_statement;

use super::{AccessControl, DdlContext, truncate};
use crate::analysis::definition_check;
use crate::limits::AutoSnapshot;
use crate::schema::{Index, Schema, Table};

/// Returns the schema of a new store, which contains only the system keyspaces.
pub(super) fn new_schema() -> Schema {
    let system = crate::engine::system::keyspaces(false).into_iter();
    Schema {
        version: uuid::Uuid::nil(),
        generation: 1,
        document_version: 0,
        next_table_number: 1,
        keyspaces: system
            .map(|keyspace| (keyspace.name.clone(), Arc::new(keyspace)))
            .collect(),
        access: Arc::default(),
        snapshots: Arc::default(),
        journal: Arc::default(),
    }
}

/// A schema and the keyspace in use.
pub(crate) struct InMemorySchema {
    pub schema: Schema,
    pub keyspace: Option<String>,
    pub auto_snapshot: AutoSnapshot,
    /// The current time, which statements do not advance.
    pub now_us: i64,
}

impl InMemorySchema {
    /// Creates a schema with the system keyspaces and one of the given name, which is in use.
    pub fn new(keyspace: &str) -> InMemorySchema {
        let mut this = InMemorySchema {
            schema: new_schema(),
            keyspace: None,
            auto_snapshot: AutoSnapshot {
                is_on: false,
                ttl: None,
            },
            now_us: 1_700_000_000_000_000,
        };
        let created = this.apply(&format!(
            "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        ));
        created.expect("the keyspace is made");
        this.keyspace = Some(keyspace.to_owned());
        this
    }

    /// Returns the context for statements.
    pub fn context(&self) -> DdlContext<'_> {
        DdlContext {
            schema: &self.schema,
            data_centers: vec!["datacenter1".to_owned()],
            keyspace: self.keyspace.as_deref(),
            user: None,
            control: AccessControl::default(),
            masks_columns: true,
            auto_snapshot: self.auto_snapshot,
            now_us: self.now_us,
        }
    }

    /// Applies a statement that changes the schema, or TRUNCATE. Indexes are complete at once.
    ///
    /// # Errors
    /// The statement is refused.
    pub fn apply(&mut self, text: &str) -> Result<(), CqlError> {
        let statement = parse_statement(text)?.statement;
        let ctx = self.context();
        if let ast::Statement::Truncate(name) = &statement {
            self.schema = truncate::truncate(&ctx, name)?;
            return Ok(());
        }
        definition_check::check(&statement, ctx.keyspace, false)?;
        if let super::Effect::Changed(change) = super::apply(&ctx, &statement)? {
            self.schema = change.schema;
        }
        if let ast::Statement::CreateIndex(_) = statement {
            self.complete_indexes();
        }
        Ok(())
    }

    fn complete_indexes(&mut self) {
        let keyspaces = self.schema.keyspaces.values();
        let tables: Vec<Table> = keyspaces
            .flat_map(|keyspace| keyspace.tables.values())
            .filter(|table| table.indexes.iter().any(|index| !index.is_complete))
            .map(|table| Table::clone(table))
            .collect();
        for mut table in tables {
            for index in &mut table.indexes {
                *index = Arc::new(Index {
                    is_complete: true,
                    ..Index::clone(index)
                });
            }
            self.schema = self.schema.with_table(table);
        }
    }
}
