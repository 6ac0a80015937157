//! User types that the sources use and no schema.cql has.
//!
//! The schema.cql of a snapshot (4.0 to 5.0) has the types of columns, and leaves out types that only occur within collections, tuples and vectors
//! (`TableMetadata.addUserTypes`). The SSTables have all types, with their fields.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use helenus_cql::ast::{QualifiedName, Statement, TableChange, TypeName};
use helenus_cql::identifier::{quote_identifier, quote_qualified};
use helenus_cql::types::{CqlType, UserType};

use super::script::{SchemaText, Script};
use crate::error::ImportError;

/// Keyspace and name of a type.
pub type TypeId = (String, String);

/// Returns the types that are used and not created.
///
/// # Errors
/// If a statement isn't CQL.
pub fn missing_types(schemas: &[SchemaText]) -> Result<BTreeSet<TypeId>, ImportError> {
    let mut used = BTreeSet::new();
    let mut created = BTreeSet::new();
    for schema in schemas {
        let statements = Script::parse(schema)?.statements;
        for statement in statements.into_iter().filter(|of| !of.is_of_system()) {
            match &statement.statement {
                Statement::CreateType(create) => {
                    created.extend(id(&create.name, None));
                    let types = create.fields.iter().map(|(_, ty)| ty);
                    add_used(types, &create.name, &mut used);
                }
                Statement::CreateTable(create) => {
                    let types = create.columns.iter().map(|column| &column.ty);
                    add_used(types, &create.table, &mut used);
                }
                Statement::AlterTable(alter) => {
                    if let TableChange::Add { columns, .. } = &alter.change {
                        add_used(columns.iter().map(|column| &column.ty), &alter.table, &mut used);
                    }
                }
                _ => {}
            }
        }
    }
    Ok(used.difference(&created).cloned().collect())
}

/// Returns CREATE TYPE of the missing types that occur in other types, such as those of SSTables, and of the types of their fields. `None` if there are
/// none. Of several definitions, that with the most fields is used.
pub fn statements_of<'a>(
    missing: &BTreeSet<TypeId>,
    types: impl Iterator<Item = &'a CqlType>,
) -> Option<SchemaText> {
    let mut found = BTreeMap::new();
    types.for_each(|ty| add_definitions(ty, &mut found));
    let mut wanted: Vec<TypeId> = missing.iter().cloned().collect();
    let mut written = BTreeSet::new();
    let mut text = String::new();
    while let Some(id) = wanted.pop() {
        let Some(definition) = found.get(&id) else {
            continue;
        };
        if !written.insert(id) {
            continue;
        }
        let mut inner = BTreeMap::new();
        for field in &definition.fields {
            add_definitions(&field.ty, &mut inner);
        }
        wanted.extend(inner.into_keys());
        let fields: Vec<String> = definition
            .fields
            .iter()
            .map(|field| format!("{} {}", quote_identifier(&field.name), field.ty))
            .collect();
        let name = quote_qualified(&definition.keyspace, &definition.name);
        let _ = writeln!(text, "CREATE TYPE {name} ({});", fields.join(", "));
    }
    let path = "the types of the SSTables".to_owned();
    (!text.is_empty()).then_some(SchemaText { path, text })
}

fn id(name: &QualifiedName, keyspace: Option<&str>) -> Option<TypeId> {
    let keyspace = name.keyspace.as_ref().map(|of| of.as_str()).or(keyspace)?;
    Some((keyspace.to_owned(), name.name.as_str().to_owned()))
}

/// Adds the user types within types of a table or a type, in whose keyspace they are.
fn add_used<'a>(types: impl Iterator<Item = &'a TypeName>, of: &QualifiedName, used: &mut BTreeSet<TypeId>) {
    let keyspace = of.keyspace.as_ref().map(|of| of.as_str());
    let mut left: Vec<&TypeName> = types.collect();
    while let Some(ty) = left.pop() {
        match ty {
            TypeName::Native(_) | TypeName::Custom(_) => {}
            TypeName::List(inner) | TypeName::Set(inner) | TypeName::Frozen(inner) => left.push(inner),
            TypeName::Vector { element, .. } => left.push(element),
            TypeName::Map(key, value) => left.extend([&**key, &**value]),
            TypeName::Tuple(elements) => left.extend(elements),
            TypeName::UserType(name) => used.extend(id(name, keyspace)),
        }
    }
}

/// Adds the definitions within a type, unless there is one with as many fields.
fn add_definitions<'a>(ty: &'a CqlType, found: &mut BTreeMap<TypeId, &'a UserType>) {
    let mut left = vec![ty];
    while let Some(ty) = left.pop() {
        match ty {
            CqlType::Native(_) | CqlType::Custom(_) => {}
            CqlType::List { element, .. }
            | CqlType::Set { element, .. }
            | CqlType::Vector { element, .. } => left.push(element),
            CqlType::Map { key, value, .. } => left.extend([&**key, &**value]),
            CqlType::Tuple(elements) => left.extend(elements.iter()),
            CqlType::Udt { definition, .. } => {
                let id = (definition.keyspace.clone(), definition.name.clone());
                let known = found.entry(id).or_insert(definition);
                if known.fields.len() < definition.fields.len() {
                    *known = definition;
                }
                left.extend(definition.fields.iter().map(|field| &field.ty));
            }
        }
    }
}
