//! The warning for options that are stored and shown, but whose missing effect users would notice. Most options without an effect lose
//! nothing. Storage is shared by all tables of a tablet, so its settings are the node's. There are no replicas to repair or to read
//! speculatively. Every application's schema sets some of these options, so they get no warning.

use helenus_cql::ast::Properties;

use super::TableOptions;

/// An option whose effect is missing.
struct MissedOption {
    name: &'static str,
    is_wanted: fn(&TableOptions) -> bool,
    loss: &'static str,
}

const MISSED: [MissedOption; 1] = [MissedOption {
    name: "cdc",
    is_wanted: |options| options.cdc,
    loss: "changes of the table are not captured",
}];

/// Returns the warning for a WITH clause with an option whose effect is missing here. `None` if there is none.
pub fn warning(table: &str, properties: &Properties, options: &TableOptions) -> Option<String> {
    let mut missed = MISSED.iter();
    let missed =
        missed.find(|option| properties.get(option.name).is_some() && (option.is_wanted)(options))?;
    Some(format!(
        "The option {} of {table} has no effect in Helenus: {}",
        missed.name, missed.loss
    ))
}

#[cfg(test)]
#[path = "without_effect_tests.rs"]
mod tests;
