//! The warning for options that are stored and shown, and whose effect users would miss. Most options have no effect without any loss: storage is
//! shared by all tables of a tablet, so its settings are the node's, and there are no replicas to repair or to ask twice. Every application's
//! schema sets some of these, so they get no warning.

use helenus_cql::ast::Properties;

use super::TableOptions;

/// An option whose effect is missed.
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

/// Returns the warning for a WITH clause that asks for an effect which is missing here.
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
