//! The keys of a table: types and order of its rows.

use helenus_cql::identifier::quote_identifier;
use helenus_cql::types::{CqlType, CustomType};
use helenus_row::{KeyLayout, Order};
use helenus_sstable::SsTable;

use crate::error::ImportError;
use crate::schema::TableShape;
use crate::schema::compare::fits;
use crate::table_name::TableName;

/// Returns the order of the table's rows. All SSTables must have the same. Without SSTables, that of the schema is returned.
pub(super) fn key_layout(
    name: &TableName,
    sstables: &[SsTable],
    shape: Option<&TableShape>,
) -> Result<KeyLayout, ImportError> {
    let mut layout: Option<KeyLayout> = None;
    for sstable in sstables {
        let refused = |problem: String| {
            ImportError::Refused(format!(
                "{} of {name}: {problem}. Make the target's table with the key of the source, or leave it out",
                sstable.descriptor()
            ))
        };
        if let Some(shape) = shape {
            check_partition_key(sstable, shape).map_err(refused)?;
            check_clustering(sstable, shape).map_err(refused)?;
        }
        let types = &sstable.header().clustering_types;
        let of_file = types
            .iter()
            .map(|column| order_of(&column.ty, column.is_reversed));
        let of_file = KeyLayout::new(of_file.collect());
        match &layout {
            None => layout = Some(of_file),
            Some(known) if has_same_order(known, &of_file) => {}
            Some(_) => {
                return Err(refused(
                    "the clustering columns differ from those of another SSTable".to_owned(),
                ));
            }
        }
    }
    Ok(layout.unwrap_or_else(|| {
        let columns = shape.map(|shape| shape.key_columns(true)).unwrap_or_default();
        KeyLayout::new(
            columns
                .into_iter()
                .map(|(_, column)| order_of(&column.ty, column.is_descending))
                .collect(),
        )
    }))
}

fn order_of(ty: &CqlType, is_descending: bool) -> (CqlType, Order) {
    match is_descending {
        true => (ty.clone(), Order::Desc),
        false => (ty.clone(), Order::Asc),
    }
}

fn has_same_order(left: &KeyLayout, right: &KeyLayout) -> bool {
    left.clustering.len() == right.clustering.len()
        && left
            .clustering
            .iter()
            .zip(&right.clustering)
            .all(|((left, left_order), (right, right_order))| {
                left_order == right_order && (fits(left, right) || fits(right, left))
            })
}

fn check_partition_key(sstable: &SsTable, shape: &TableShape) -> Result<(), String> {
    let wanted = shape.key_columns(false);
    let key_type = &sstable.header().key_type.ty;
    let single = [key_type.clone()];
    let found: &[CqlType] = match key_type {
        CqlType::Custom(custom) if wanted.len() > 1 => match &**custom {
            CustomType::Composite(types) => types,
            _ => &single,
        },
        _ => &single,
    };
    let is_equal = found.len() == wanted.len()
        && found
            .iter()
            .zip(&wanted)
            .all(|(found, (_, wanted))| fits(&found.freeze(), &wanted.ty.freeze()));
    if is_equal {
        return Ok(());
    }
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    let wanted: Vec<String> = wanted
        .iter()
        .map(|(name, column)| format!("{} {}", quote_identifier(name), column.ty))
        .collect();
    Err(format!(
        "the partition key is ({}) in the SSTable, and ({}) in the schema",
        found.join(", "),
        wanted.join(", ")
    ))
}

fn check_clustering(sstable: &SsTable, shape: &TableShape) -> Result<(), String> {
    let wanted = shape.key_columns(true);
    let found = &sstable.header().clustering_types;
    // CREATE TABLE of a compact table may leave out the clustering column that Thrift's column names are.
    if shape.is_compact && wanted.is_empty() && found.len() == 1 {
        return Ok(());
    }
    if found.len() != wanted.len() {
        return Err(format!(
            "{} clustering columns are in the SSTable, and {} in the schema",
            found.len(),
            wanted.len()
        ));
    }
    for (found, (name, wanted)) in found.iter().zip(&wanted) {
        if !fits(&found.ty.freeze(), &wanted.ty.freeze()) {
            return Err(format!(
                "clustering column {} has the type {} in the SSTable, and {} in the schema",
                quote_identifier(name),
                found.ty,
                wanted.ty
            ));
        }
        if found.is_reversed != wanted.is_descending {
            return Err(format!(
                "clustering column {} is {} in the SSTable, and the opposite in the schema",
                quote_identifier(name),
                if found.is_reversed {
                    "descending"
                } else {
                    "ascending"
                }
            ));
        }
    }
    Ok(())
}
