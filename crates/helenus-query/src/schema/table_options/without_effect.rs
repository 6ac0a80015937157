//! The warning for options that are stored and shown, and have no effect here: storage is shared by all tables of a tablet, so its settings
//! are the node's, and there are no replicas to repair or to ask twice.

use helenus_cql::ast::Properties;

use super::registry::REGISTRY;
use super::{TableOptions, partition_rate_limit};

/// The options that act, whatever their values are.
const WITH_EFFECT: [&str; 6] = [
    "allow_auto_snapshot",
    "comment",
    "default_time_to_live",
    "gc_grace_seconds",
    "memtable_flush_period_in_ms",
    partition_rate_limit::NAME,
];

/// Warns of the options that a WITH clause sets to something else than Cassandra's default, and that have no effect. A schema that was
/// written down by DESCRIBE names every option, nearly all with its default, so defaults are not worth a warning.
pub fn warning(table: &str, properties: &Properties, options: &TableOptions) -> Option<String> {
    let mut defaults = TableOptions::default();
    if options.is_leveled() {
        defaults.bloom_filter_fp_chance = super::declared::FP_CHANCE_LEVELED;
    }
    let idle: Vec<&str> = REGISTRY
        .iter()
        .filter(|option| properties.get(option.name).is_some() && !WITH_EFFECT.contains(&option.name))
        .filter(|option| (option.literal)(options) != (option.literal)(&defaults))
        // Of caching one value acts.
        .filter(|option| option.name != "caching" || options.is_cached())
        .map(|option| option.name)
        .collect();
    let (noun, verb) = match idle.len() {
        0 => return None,
        1 => ("option", "has"),
        _ => ("options", "have"),
    };
    Some(format!(
        "The {noun} {} of {table} {verb} no effect in Helenus: stored and shown by DESCRIBE only, because \
         storage is set for the whole node",
        idle.join(", ")
    ))
}

#[cfg(test)]
#[path = "without_effect_tests.rs"]
mod tests;
