//! The inputs of planning, and the notes that planning takes.

use std::cell::RefCell;
use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;

use crate::clock::Clock;
use crate::request::{BoundValue, Markers, no_keyspace};
use crate::response::ColumnSpec;
use crate::schema::roles::Resource;
use crate::schema::{Schema, Table};

/// The inputs of planning, and the markers that it finds.
pub struct PlanContext<'a> {
    pub schema: &'a Schema,
    /// The keyspace of unqualified names.
    pub keyspace: Option<&'a str>,
    pub markers: Markers,
    /// True if the statement calls a function whose result depends on more than its arguments.
    pub is_volatile: bool,
    /// True if masked columns are selected masked.
    pub masks: bool,
    /// The references in the written values of a transaction. `None` outside of a transaction.
    pub(crate) written_references: Option<WrittenReferences>,
    /// User-defined functions that the statement calls.
    pub(crate) executed: RefCell<Vec<Resource>>,
}

/// References in the written values of a transaction. Each stands for a marker behind those of the client.
pub(crate) struct WrittenReferences {
    /// Number of the client's markers.
    pub marker_count: usize,
    /// The references in the order of their markers, each with the receiver of its value.
    pub found: Vec<(ast::RowReference, ColumnSpec)>,
}

impl<'a> PlanContext<'a> {
    /// Records a reference in a written value. Returns the index of its marker.
    ///
    /// # Errors
    /// The statement is not part of a transaction.
    pub(crate) fn add_reference(
        &mut self,
        reference: &ast::RowReference,
        receiver: &ColumnSpec,
    ) -> Result<usize, CqlError> {
        let Some(written) = &mut self.written_references else {
            return Err(CqlError::Syntax(format!(
                "The reference {reference} to a row is allowed within a transaction only"
            )));
        };
        written.found.push((reference.clone(), receiver.clone()));
        Ok(written.marker_count + written.found.len() - 1)
    }

    /// Returns true if the statement is part of a transaction.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.written_references.is_some()
    }

    pub fn new(schema: &'a Schema, keyspace: Option<&'a str>, markers: Markers) -> PlanContext<'a> {
        PlanContext {
            schema,
            keyspace,
            markers,
            is_volatile: false,
            masks: false,
            written_references: None,
            executed: RefCell::default(),
        }
    }

    /// Plans a part of a statement without masks, so that this part uses the stored values.
    pub(crate) fn unmasked<T>(&mut self, plan: impl FnOnce(&mut PlanContext<'a>) -> T) -> T {
        let masks = std::mem::replace(&mut self.masks, false);
        let planned = plan(self);
        self.masks = masks;
        planned
    }

    /// Notes user-defined functions that will be called.
    pub fn executes(&self, functions: Vec<Resource>) {
        self.executed.borrow_mut().extend(functions);
    }

    /// Returns the table of a qualified or bare name.
    pub fn table(&self, name: &ast::QualifiedName) -> Result<&'a Arc<Table>, CqlError> {
        let keyspace = self.keyspace_of(name)?;
        self.schema.require_table(keyspace, name.name.as_str())
    }

    /// Returns the keyspace of a name: the one that qualifies it, or else the keyspace in use.
    pub fn keyspace_of<'b>(&'b self, name: &'b ast::QualifiedName) -> Result<&'b str, CqlError> {
        match &name.keyspace {
            Some(keyspace) => Ok(keyspace.as_str()),
            None => self.keyspace.ok_or_else(no_keyspace),
        }
    }
}

/// Returns a receiver for a value of a column, as Cassandra names it in messages.
pub fn column_spec(table: &Table, column: &crate::schema::Column) -> ColumnSpec {
    ColumnSpec::new(
        table.keyspace.as_str(),
        table.name.as_str(),
        column.name.as_str(),
        column.ty.clone(),
    )
}

/// Inputs that functions use while a statement runs.
#[derive(Clone, Copy)]
pub struct EvalContext<'a> {
    /// The values bound to the statement's markers.
    pub values: &'a [BoundValue],
    pub clock: &'a dyn Clock,
    pub protocol_version: u8,
}
