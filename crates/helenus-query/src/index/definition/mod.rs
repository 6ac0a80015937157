//! Checks of CREATE INDEX: the target, the kind and the options.

pub(crate) mod sai;
pub(crate) mod sasi;

use std::collections::BTreeMap;

use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_cql::identifier::quote_identifier;
use helenus_cql::types::CqlType;

use crate::index::kinds::sasi::is_sasi;
use crate::properties;
use crate::schema::names::{NAME_LEN_MAX, is_valid_name};
use crate::schema::{Column, ColumnKind, IndexKind, IndexTarget, IndexTargetKind, Keyspace, Table};

/// The class in a USING clause that stands for the index of a CREATE INDEX without USING.
pub(crate) const LEGACY_CLASS: &str = "legacy_local_table";

pub(crate) fn is_legacy(class: &str) -> bool {
    class.eq_ignore_ascii_case(LEGACY_CLASS)
}

/// Checks the WITH clause, as far as possible without the table.
pub(crate) fn check_options(statement: &ast::CreateIndex) -> Result<(), CqlError> {
    properties::check_known(&statement.properties, &["options"])?;
    let Some(declared) = properties::map(&statement.properties, "options")? else {
        return Ok(());
    };
    if !statement.custom && statement.using.as_deref().is_none_or(is_legacy) {
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
    let is_sai = statement.using.as_deref().is_some_and(sai::is_sai);
    let is_using_sasi = statement.using.as_deref().is_some_and(is_sasi);
    let targets = statement.targets.as_slice();
    let message = match targets {
        [target] => return check_target(table, target, is_sai),
        [] if is_sai => "Failed to retrieve target column for: ".to_owned(),
        [] if is_using_sasi => {
            return Err(CqlError::Config(
                "failed to retrieve target column for: ".to_owned(),
            ));
        }
        [] if statement.custom => return Err(no_class(statement)),
        [] => "Only CUSTOM indexes can be created without specifying a target column".to_owned(),
        several => {
            for target in several {
                existing(table, target)?;
            }
            let columns: Vec<String> = targets.iter().map(|target| target.column.to_string()).collect();
            if is_using_sasi {
                return Err(CqlError::Config(format!(
                    "failed to retrieve target column for: {}",
                    columns.join(", ")
                )));
            }
            if !is_sai && statement.custom {
                return Err(no_class(statement));
            }
            if !is_sai {
                return Err(CqlError::invalid("Only CUSTOM indexes support multiple columns"));
            }
            for (at, target) in several.iter().enumerate() {
                let (before, _) = several.split_at(at);
                if before.iter().any(|earlier| earlier.column == target.column) {
                    return Err(CqlError::invalid(format!(
                        "Duplicate column '{}' in index target list",
                        target.column
                    )));
                }
                check_target(table, target, is_sai)?;
            }
            format!(
                "A storage-attached index cannot be created over multiple columns: {}",
                columns.join(", ")
            )
        }
    };
    Err(CqlError::invalid(message))
}

/// Returns the kind of index that the USING clause names, with its options.
pub(crate) fn index_kind(
    statement: &ast::CreateIndex,
) -> Result<(IndexKind, BTreeMap<String, String>), CqlError> {
    let declared = properties::map(&statement.properties, "options")?;
    let class = statement.using.as_deref();
    match (statement.custom, class) {
        (_, Some(class)) if sai::is_sai(class) || is_sasi(class) => {
            let mut options = declared.unwrap_or_default();
            options.insert("class_name".to_owned(), class.to_owned());
            Ok((IndexKind::Custom, options))
        }
        (false, class) if class.is_none_or(is_legacy) => Ok((IndexKind::Composites, BTreeMap::new())),
        _ => Err(no_class(statement)),
    }
}

pub(crate) fn no_class(statement: &ast::CreateIndex) -> CqlError {
    let class = statement.using.as_deref().unwrap_or(LEGACY_CLASS);
    CqlError::Config(format!("Unable to find custom indexer class '{class}'"))
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
    is_sai: bool,
) -> Result<IndexTarget, CqlError> {
    let name = target.column.as_str();
    let column = existing(table, target)?;
    let ty = &column.ty;
    let invalid = |message: String| Err(CqlError::invalid(message));
    if is_sai && !is_valid_name(name, NAME_LEN_MAX) {
        return invalid(format!(
            "Column '{name}' is longer than the permissible name length of {NAME_LEN_MAX} characters or contains \
             non-alphanumeric-underscore characters"
        ));
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
