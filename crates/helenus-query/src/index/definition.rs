//! Checks of CREATE INDEX: the target, the kind and the options.

use std::collections::BTreeMap;

use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_cql::identifier::quote_identifier;
use helenus_cql::types::CqlType;

use super::kinds::equality::{EQUALITY, LEGACY_CLASS};
use super::kinds::{self, Registered};
use crate::properties;
use crate::schema::{Column, ColumnKind, IndexTarget, IndexTargetKind, Keyspace, Table};

/// Checks the WITH clause, as far as possible without the table.
pub(crate) fn check_options(statement: &ast::CreateIndex) -> Result<(), CqlError> {
    properties::check_known(&statement.properties, &["options"])?;
    let Some(declared) = properties::map(&statement.properties, "options")? else {
        return Ok(());
    };
    if !statement.custom && declared_kind(statement).is_some_and(|kind| !kind.is_custom()) {
        return Err(CqlError::invalid("Cannot specify options for a non-CUSTOM index"));
    }
    match ["class_name", "target"]
        .into_iter()
        .find(|name| declared.contains_key(*name))
    {
        Some(name) => Err(CqlError::invalid(format!(
            "Cannot specify {name} as a CUSTOM option"
        ))),
        None => Ok(()),
    }
}

/// Returns the target of the index, which must be one.
pub(crate) fn target(table: &Table, statement: &ast::CreateIndex) -> Result<IndexTarget, CqlError> {
    let declared = declared_kind(statement);
    let targets = statement.targets.as_slice();
    if let [target] = targets {
        return check_target(table, target, declared);
    }
    for target in targets {
        existing(table, target)?;
    }
    let kind = match declared {
        Some(kind) if kind.is_custom() => kind,
        _ if statement.custom => return Err(no_class(statement)),
        _ => &EQUALITY,
    };
    if kind.checks_each_target {
        for (at, target) in targets.iter().enumerate() {
            let (before, _) = targets.split_at(at);
            if before.iter().any(|earlier| earlier.column == target.column) {
                return Err(CqlError::invalid(format!(
                    "Duplicate column '{}' in index target list",
                    target.column
                )));
            }
            check_target(table, target, Some(kind))?;
        }
    }
    let columns: Vec<String> = targets.iter().map(|target| target.column.to_string()).collect();
    Err(kind.rules.not_one_target(&columns))
}

/// Returns the kind of index that the USING clause names, with its options.
pub(crate) fn index_kind(
    statement: &ast::CreateIndex,
) -> Result<(&'static Registered, BTreeMap<String, String>), CqlError> {
    let declared = properties::map(&statement.properties, "options")?;
    match declared_kind(statement) {
        Some(kind) if kind.is_custom() => {
            let mut options = declared.unwrap_or_default();
            options.insert("class_name".to_owned(), class(statement).to_owned());
            Ok((kind, options))
        }
        Some(kind) if !statement.custom => Ok((kind, BTreeMap::new())),
        _ => Err(no_class(statement)),
    }
}

/// Returns the class in the USING clause, or the class that its absence stands for.
fn class(statement: &ast::CreateIndex) -> &str {
    statement.using.as_deref().unwrap_or(LEGACY_CLASS)
}

/// Returns the kind that the statement declares. `None` if its class is unknown.
fn declared_kind(statement: &ast::CreateIndex) -> Option<&'static Registered> {
    kinds::named(class(statement))
}

pub(crate) fn no_class(statement: &ast::CreateIndex) -> CqlError {
    CqlError::Config(format!(
        "Unable to find custom indexer class '{}'",
        class(statement)
    ))
}

/// Returns the column that a target names.
pub(crate) fn existing<'t>(table: &'t Table, target: &ast::IndexTarget) -> Result<&'t Column, CqlError> {
    let name = target.column.as_str();
    let column = table.visible_column(name).map(|(_, column)| column.as_ref());
    column.ok_or_else(|| {
        CqlError::invalid(format!(
            "Undefined column name {} in table {}",
            quote_identifier(name),
            table.cql_name()
        ))
    })
}

/// Returns the column and the part of it to be indexed, with the checks of `CreateIndexStatement.validateIndexTarget`.
pub(crate) fn check_target(
    table: &Table,
    target: &ast::IndexTarget,
    kind: Option<&Registered>,
) -> Result<IndexTarget, CqlError> {
    let name = target.column.as_str();
    let column = existing(table, target)?;
    let ty = &column.ty;
    let invalid = |message: String| Err(CqlError::invalid(message));
    if let Some(kind) = kind {
        kind.rules.check_column_name(name)?;
    }
    if ty.references_duration() {
        return invalid(if *ty == CqlType::DURATION {
            "Secondary indexes are not supported on duration columns".to_owned()
        } else if ty.is_collection() {
            "Secondary indexes are not supported on collections containing durations".to_owned()
        } else if matches!(ty, CqlType::Tuple(_)) {
            "Secondary indexes are not supported on tuples containing durations".to_owned()
        } else {
            "Secondary indexes are not supported on UDTs containing durations".to_owned()
        });
    }
    if table.compact.is_some() && !column.is_static() {
        return invalid(if column.is_primary_key() {
            "Secondary indexes are not supported on PRIMARY KEY columns in COMPACT STORAGE tables".to_owned()
        } else {
            "Secondary indexes are not supported on compact value column of COMPACT STORAGE tables".to_owned()
        });
    }
    if column.kind == ColumnKind::PartitionKey && table.partition_key_count == 1 {
        return invalid(format!(
            "Cannot create secondary index on the only partition key column {name}"
        ));
    }
    let is_frozen_collection = ty.is_collection() && !ty.is_multicell();
    let kind = match target.kind {
        // The name of a collection column alone means its values.
        ast::IndexTargetKind::Simple if ty.is_collection() && !column.is_reversed() => {
            ast::IndexTargetKind::Values
        }
        kind => kind,
    };
    let shown = match kind {
        ast::IndexTargetKind::Simple => "",
        ast::IndexTargetKind::Values => "values",
        ast::IndexTargetKind::Keys => "keys",
        ast::IndexTargetKind::Entries => "entries",
        ast::IndexTargetKind::Full => "full",
    };
    if kind == ast::IndexTargetKind::Full {
        if !is_frozen_collection {
            return invalid("full() indexes can only be created on frozen collections".to_owned());
        }
    } else if is_frozen_collection {
        return invalid(format!(
            "Cannot create {shown}() index on frozen column {name}. Frozen collections are immutable and must be fully \
             indexed by using the 'full({})' modifier",
            target.column.to_cql()
        ));
    } else if !ty.is_collection() && kind != ast::IndexTargetKind::Simple {
        return invalid(format!(
            "Cannot create {shown}() index on {name}. Non-collection columns only support simple indexes"
        ));
    }
    let is_map = matches!(ty, CqlType::Map { .. });
    match kind {
        ast::IndexTargetKind::Keys if !is_map => {
            return invalid(format!(
                "Cannot create index on keys of column {name} with non-map type"
            ));
        }
        ast::IndexTargetKind::Entries if !is_map => {
            return invalid(format!(
                "Cannot create index on entries of column {name} with non-map type"
            ));
        }
        _ => {}
    }
    if matches!(ty, CqlType::Udt { frozen: false, .. }) {
        return invalid(format!("Cannot create index on non-frozen UDT column {name}"));
    }
    Ok(IndexTarget {
        column: column.name.clone(),
        kind: match kind {
            ast::IndexTargetKind::Simple => IndexTargetKind::Simple,
            ast::IndexTargetKind::Values => IndexTargetKind::Values,
            ast::IndexTargetKind::Keys => IndexTargetKind::Keys,
            ast::IndexTargetKind::Entries => IndexTargetKind::KeysAndValues,
            ast::IndexTargetKind::Full => IndexTargetKind::Full,
        },
    })
}

/// Returns the `target` option: the column, within its modifier if it has one.
pub(crate) fn target_option(target: &IndexTarget) -> String {
    let column = quote_identifier(&target.column);
    match target.kind.name() {
        "" => column,
        modifier => format!("{modifier}({column})"),
    }
}

/// Returns `table_column_idx`, with a number if that name is taken.
pub(crate) fn default_name(keyspace: &Keyspace, table: &Table, column: &str) -> String {
    let word = |text: &str| -> String {
        text.chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect()
    };
    let base = format!("{}_{}_idx", word(&table.name), word(column));
    let numbered = (1..).map(|number| format!("{base}_{number}"));
    std::iter::once(base.clone())
        .chain(numbered)
        .find(|name| keyspace.index(name).is_none())
        .unwrap_or(base)
}
