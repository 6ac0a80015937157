//! The option `transactional_mode` of Cassandra 6, and YCQL's `transactions`, which means the same.

use helenus_cql::ast::Properties;
use helenus_cql::error::CqlError;
use serde::{Deserialize, Serialize};

use super::values::config;
use crate::properties;

/// The option's name.
pub(crate) const NAME: &str = "transactional_mode";
/// YCQL's option: `transactions = {'enabled': true}`.
pub(super) const YCQL_NAME: &str = "transactions";
const YCQL_ENABLED: &str = "enabled";

/// The transactions that may use a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransactionalMode {
    /// No transaction may use the table.
    #[default]
    Off,
    /// As `Full`. The modes differ in Cassandra, where a transaction reads several replicas in this one.
    MixedReads,
    Full,
}

impl TransactionalMode {
    const ALL: [TransactionalMode; 3] = [
        TransactionalMode::Off,
        TransactionalMode::MixedReads,
        TransactionalMode::Full,
    ];

    /// Returns the mode as in a WITH clause, without quotes.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TransactionalMode::Off => "off",
            TransactionalMode::MixedReads => "mixed_reads",
            TransactionalMode::Full => "full",
        }
    }

    pub(crate) fn is_off(&self) -> bool {
        *self == TransactionalMode::Off
    }

    fn parse(text: &str) -> Result<TransactionalMode, CqlError> {
        let named = |mode: &TransactionalMode| mode.name().eq_ignore_ascii_case(text);
        match TransactionalMode::ALL.into_iter().find(named) {
            Some(mode) => Ok(mode),
            None => config(format!(
                "Invalid value '{text}' for option '{NAME}': it is 'off', 'mixed_reads' or 'full'"
            )),
        }
    }
}

/// Replaces the mode by the declared one, if there is one.
///
/// # Errors
/// The declared mode is unknown, or both options are declared.
pub(super) fn read(properties: &Properties, mode: &mut TransactionalMode) -> Result<(), CqlError> {
    let named = properties::text(properties, NAME)?;
    let entries = properties::map(properties, YCQL_NAME)?;
    match (named, entries) {
        (None, None) => Ok(()),
        (Some(name), None) => {
            *mode = TransactionalMode::parse(name)?;
            Ok(())
        }
        (None, Some(entries)) => {
            *mode = of_ycql(&entries)?;
            Ok(())
        }
        (Some(_), Some(_)) => config(format!(
            "'{NAME}' and '{YCQL_NAME}' set the same option: declare one of them"
        )),
    }
}

fn of_ycql(entries: &properties::Options) -> Result<TransactionalMode, CqlError> {
    if let Some(unknown) = entries.keys().find(|name| *name != YCQL_ENABLED) {
        return config(format!(
            "Unknown sub-option '{unknown}' of '{YCQL_NAME}': only '{YCQL_ENABLED}' is allowed"
        ));
    }
    match entries.get(YCQL_ENABLED).map(String::as_str) {
        Some("true") => Ok(TransactionalMode::Full),
        Some("false") | None => Ok(TransactionalMode::Off),
        Some(other) => config(format!(
            "Invalid value '{other}' for sub-option '{YCQL_ENABLED}' of '{YCQL_NAME}': it is true or false"
        )),
    }
}

#[cfg(test)]
#[path = "transactional_mode_tests.rs"]
mod tests;
