//! [`TableOptions`] from a WITH clause, validated like Cassandra does (`TableAttributes`, `TableParams.validate`).

use helenus_cql::ast::{Properties, PropertyValue};
use helenus_cql::error::CqlError;

use super::TableOptions;
use super::registry::{Declared, REGISTRY};
use super::transactional_mode;
use crate::properties;

/// Chance of false positives if none is declared: it is replaced by the default of the compaction strategy.
const FP_CHANCE_UNSET: f64 = -1.0;
/// Default chance of false positives with leveled compaction.
pub(super) const FP_CHANCE_LEVELED: f64 = 0.1;

/// Returns the options of a new table or view.
pub fn of_new(properties: &Properties) -> Result<TableOptions, CqlError> {
    let unset = TableOptions {
        bloom_filter_fp_chance: FP_CHANCE_UNSET,
        ..TableOptions::default()
    };
    apply(properties, unset)
}

/// Applies a WITH clause to existing options, with all checks.
pub fn apply(properties: &Properties, options: TableOptions) -> Result<TableOptions, CqlError> {
    let mut known: Vec<&str> = REGISTRY.iter().map(|option| option.name).collect();
    known.extend(["id", transactional_mode::YCQL_NAME]);
    properties::check_known(properties, &known)?;
    let options = read(properties, options)?;
    REGISTRY.iter().try_for_each(|option| (option.check)(&options))?;
    Ok(options)
}

/// Refuses values that cannot be parsed, before any other check of a statement.
pub fn check_form(properties: &Properties) -> Result<(), CqlError> {
    let mut properties = properties.clone();
    for (name, value) in &mut properties.0 {
        // The compaction strategies check their own options later.
        if let (true, PropertyValue::Map(entries)) = (name == "compaction", value) {
            entries.retain(|(option, _)| option == "class");
        }
    }
    read(&properties, TableOptions::default()).map(drop)
}

/// Applies a WITH clause to existing options. Values that cannot be parsed are refused. Ranges, and the options together, are not checked.
pub fn read(properties: &Properties, mut options: TableOptions) -> Result<TableOptions, CqlError> {
    for option in &REGISTRY {
        let name = option.name;
        (option.read)(Declared { properties, name }, &mut options)?;
    }
    if options.bloom_filter_fp_chance == FP_CHANCE_UNSET {
        options.bloom_filter_fp_chance = match options.is_leveled() {
            true => FP_CHANCE_LEVELED,
            false => 0.01,
        };
    }
    Ok(options)
}
