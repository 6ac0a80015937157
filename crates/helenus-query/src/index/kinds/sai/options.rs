//! Storage-attached indexes: Cassandra's checks of their options (`StorageAttachedIndex.validateOptions`), and its warning.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};

use super::is_storage_attached;
use crate::schema::{Index, IndexTarget, Table, is_text};

/// Cassandra's warning about indexes on vectors.
pub const VECTOR_WARNING: &str = "\
SAI ANN indexes on vector columns are experimental and are not recommended for production use.
They don't yet support SELECT queries with:
 * Consistency level higher than ONE/LOCAL_ONE.
 * Paging.
 * No LIMIT clauses.
 * PER PARTITION LIMIT clauses.
 * GROUP BY clauses.
 * Aggregation functions.
 * Filters on columns without a SAI index.";

/// Options for the comparison of text.
const ANALYSIS: [&str; 3] = ["ascii", "case_sensitive", "normalize"];
/// Options for the comparison of vectors.
const VECTOR: [&str; 4] = [
    "construction_beam_width",
    "maximum_node_connections",
    "optimize_for",
    "similarity_function",
];

/// Returns the position of the table's storage-attached index on the same target. `None` if there is none.
pub fn twin(table: &Table, target: &IndexTarget) -> Option<usize> {
    let is_twin = |index: &Arc<Index>| is_storage_attached(index) && index.target == *target;
    table.indexes.iter().position(is_twin)
}

/// Refuses targets and options that a storage-attached index does not support.
pub fn check(
    table: &Table,
    target: &IndexTarget,
    options: &BTreeMap<String, String>,
) -> Result<(), CqlError> {
    if twin(table, target).is_some() {
        return Err(CqlError::invalid(format!(
            "Cannot create more than one storage-attached index on the same column: {}",
            target.column
        )));
    }
    let known = |name: &str| ANALYSIS.contains(&name) || VECTOR.contains(&name);
    let unknown: Vec<&str> = options
        .keys()
        .map(String::as_str)
        .filter(|name| !known(name) && !["class_name", "target"].contains(name))
        .collect();
    if !unknown.is_empty() {
        return Err(CqlError::Config(format!(
            "Properties specified [{}] are not understood by StorageAttachedIndex",
            unknown.join(", ")
        )));
    }
    let Some((_, column)) = table.column(&target.column) else {
        return Ok(());
    };
    if column.is_primary_key() {
        refuse_analysis(options)?;
    }
    let ty = target.kind.indexed_type(&column.ty);
    check_analysis(ty, options)?;
    check_vector(ty, options)?;
    match ty {
        CqlType::Native(native) if !is_supported(*native) => {
            Err(CqlError::invalid(format!("Unsupported type: {ty}")))
        }
        CqlType::Vector { element, .. } if **element != CqlType::Native(NativeType::Float) => Err(
            CqlError::invalid("SAI ANN indexes are only allowed on vector columns with float elements"),
        ),
        CqlType::Vector { dimension: 1, .. } if measures_cosine(options) => Err(CqlError::invalid(
            "Cosine similarity is not supported for single-dimension vectors",
        )),
        _ => Ok(()),
    }
}

/// Returns true if the measure is cosine, which is the default.
fn measures_cosine(options: &BTreeMap<String, String>) -> bool {
    options
        .get("similarity_function")
        .is_none_or(|name| name.eq_ignore_ascii_case("cosine"))
}

fn is_supported(ty: NativeType) -> bool {
    !matches!(
        ty,
        NativeType::Blob | NativeType::Counter | NativeType::Duration | NativeType::Empty
    )
}

/// Refuses options for text on key columns, which are compared as they are.
fn refuse_analysis(options: &BTreeMap<String, String>) -> Result<(), CqlError> {
    let given: Vec<String> = options
        .iter()
        .filter(|(name, _)| ANALYSIS.contains(&name.as_str()))
        .map(|(name, value)| format!("'{name}': '{value}'"))
        .collect();
    match given.is_empty() {
        true => Ok(()),
        false => Err(CqlError::invalid(format!(
            "Analysis options are not supported on primary key columns, but found {{{}}}",
            given.join(", ")
        ))),
    }
}

fn check_analysis(ty: &CqlType, options: &BTreeMap<String, String>) -> Result<(), CqlError> {
    for name in ANALYSIS {
        let Some(value) = options.get(name) else {
            continue;
        };
        if !is_text(ty) {
            return Err(CqlError::invalid(format!("CQL type {ty} cannot be analyzed.")));
        }
        if !["true", "false"]
            .iter()
            .any(|word| value.eq_ignore_ascii_case(word))
        {
            return Err(CqlError::invalid(format!(
                "Illegal value for boolean option '{name}': {value}"
            )));
        }
    }
    Ok(())
}

fn check_vector(ty: &CqlType, options: &BTreeMap<String, String>) -> Result<(), CqlError> {
    let given = |name: &str| options.get(name);
    if VECTOR.iter().any(|name| given(name).is_some()) && !matches!(ty, CqlType::Vector { .. }) {
        return Err(CqlError::invalid(format!(
            "CQL type {ty} cannot have vector options"
        )));
    }
    for (name, shown) in [
        ("maximum_node_connections", "Maximum node connections"),
        ("construction_beam_width", "Construction beam width"),
    ] {
        if given(name).is_some() {
            return Err(CqlError::invalid(format!(
                "{shown} cannot be set without enabling SAI_VECTOR_ALLOW_CUSTOM_PARAMETERS"
            )));
        }
    }
    let function = given("similarity_function").map(|text| text.to_uppercase());
    if let Some(function) = function
        && !["EUCLIDEAN", "DOT_PRODUCT", "COSINE"].contains(&function.as_str())
    {
        return Err(CqlError::invalid(format!(
            "Similarity function {function} was not recognized for index null. Valid values are: EUCLIDEAN, DOT_PRODUCT, \
             COSINE"
        )));
    }
    match given("optimize_for").map(|text| text.to_uppercase()) {
        Some(goal) if !["LATENCY", "RECALL"].contains(&goal.as_str()) => Err(CqlError::invalid(format!(
            "optimize_for '{goal}' was not recognized for index null. Valid values are: LATENCY, RECALL"
        ))),
        _ => Ok(()),
    }
}
