//! The statements of CQL that write to a table, with write times and TTLs.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::identifier::quote_identifier;
use helenus_cql::types::CqlType;
use helenus_import::TableName;

use super::columns::{PlannedColumn, equations};

/// The statements of a table.
#[derive(Clone, Debug)]
pub struct CqlStatements {
    pub insert: Arc<str>,
    /// Writes regular columns of one cell, and static ones. Without such columns, they are never used.
    pub update: Arc<str>,
    pub update_static: Arc<str>,
    pub delete_row: Arc<str>,
    pub delete_partition: Arc<str>,
    /// Statements for columns with many cells, by the position of the column.
    pub many: BTreeMap<usize, ManyStatements>,
}

/// The statements for a column with many cells.
#[derive(Clone, Debug)]
pub struct ManyStatements {
    pub delete: Arc<str>,
    pub add: Arc<str>,
    pub remove: Arc<str>,
    /// Writes of the fields of a user type.
    pub fields: Vec<Arc<str>>,
}

impl CqlStatements {
    pub fn new(
        name: &TableName,
        partition_key: &[PlannedColumn],
        clustering: &[PlannedColumn],
        columns: &[PlannedColumn],
    ) -> CqlStatements {
        let partition = equations(partition_key.iter(), " AND ");
        let row = equations(partition_key.iter().chain(clustering), " AND ");
        let single = |is_static: bool| {
            columns
                .iter()
                .filter(move |column| column.is_static == is_static && !column.ty.is_multicell())
        };
        let inserted = partition_key.iter().chain(clustering).chain(single(false));
        let inserted: Vec<String> = inserted.map(|column| quote_identifier(&column.name)).collect();
        let using = "USING TIMESTAMP ? AND TTL ?";
        let many = columns
            .iter()
            .enumerate()
            .filter(|(_, column)| column.ty.is_multicell());
        let many = many.map(|(position, column)| {
            let key = if column.is_static { &partition } else { &row };
            let quoted = quote_identifier(&column.name);
            let fields = match &column.ty {
                CqlType::Udt { definition, .. } => definition.fields.as_slice(),
                _ => &[],
            };
            let statements = ManyStatements {
                delete: format!("DELETE {quoted} FROM {name} USING TIMESTAMP ? WHERE {key}").into(),
                add: format!("UPDATE {name} {using} SET {quoted} = {quoted} + ? WHERE {key}").into(),
                remove: format!("UPDATE {name} {using} SET {quoted} = {quoted} - ? WHERE {key}").into(),
                fields: fields
                    .iter()
                    .map(|field| {
                        let field = quote_identifier(&field.name);
                        format!("UPDATE {name} {using} SET {quoted}.{field} = ? WHERE {key}").into()
                    })
                    .collect(),
            };
            (position, statements)
        });
        CqlStatements {
            insert: format!(
                "INSERT INTO {name} ({}) VALUES ({}) {using}",
                inserted.join(", "),
                vec!["?"; inserted.len()].join(", ")
            )
            .into(),
            update: format!(
                "UPDATE {name} {using} SET {} WHERE {row}",
                equations(single(false), ", ")
            )
            .into(),
            update_static: format!(
                "UPDATE {name} {using} SET {} WHERE {partition}",
                equations(single(true), ", ")
            )
            .into(),
            delete_row: format!("DELETE FROM {name} USING TIMESTAMP ? WHERE {row}").into(),
            delete_partition: format!("DELETE FROM {name} USING TIMESTAMP ? WHERE {partition}").into(),
            many: many.collect(),
        }
    }
}
