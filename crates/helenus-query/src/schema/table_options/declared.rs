//! From a WITH clause to [`TableOptions`], validated as Cassandra does (`TableAttributes`, `TableParams.validate`).

use helenus_cql::ast::{Properties, PropertyValue};
use helenus_cql::error::CqlError;

use super::TableOptions;
use super::registry::{Declared, REGISTRY};
use crate::properties;

/// A chance of false positives that stands for the one that suits the compaction.
const FP_CHANCE_UNSET: f64 = -1.0;
/// The one that suits compaction by levels.
pub(super) const FP_CHANCE_LEVELED: f64 = 0.1;

/// Returns the options of what is created with a WITH clause.
pub fn of_new(properties: &Properties) -> Result<TableOptions, CqlError> {
    let unset = TableOptions {
        bloom_filter_fp_chance: FP_CHANCE_UNSET,
        ..TableOptions::default()
    };
    apply(properties, unset)
}

/// Returns the options that result from a WITH clause on top of those that were there.
pub fn apply(properties: &Properties, options: TableOptions) -> Result<TableOptions, CqlError> {
    let mut known: Vec<&str> = REGISTRY.iter().map(|option| option.name).collect();
    known.push("id");
    properties::check_known(properties, &known)?;
    let options = read(properties, options)?;
    REGISTRY.iter().try_for_each(|option| (option.check)(&options))?;
    Ok(options)
}

/// Refuses what does not read as an option's value, before anything else of a statement is looked at.
pub fn check_form(properties: &Properties) -> Result<(), CqlError> {
    let mut properties = properties.clone();
    for (name, value) in &mut properties.0 {
        // The strategies look at their own options later.
        if let (true, PropertyValue::Map(entries)) = (name == "compaction", value) {
            entries.retain(|(option, _)| option == "class");
        }
    }
    read(&properties, TableOptions::default()).map(drop)
}

/// Returns the options as declared on top of those that were there; what does not read as an option's value is refused, whether the options
/// make sense together is not asked.
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
