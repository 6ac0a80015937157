//! Guardrails: limits on what clients may request and define, with the names, defaults and messages of Cassandra 5.0
//! (`org.apache.cassandra.db.guardrails`).
//!
//! A guardrail warns the client or refuses its request as invalid. All are off by default. [`Guardrails`] holds those that are set, and
//! [`Guard`] checks one request or statement against them and collects the warnings.

mod flag;
mod threshold;
mod values;

pub use flag::Flag;
pub use threshold::{Threshold, ThresholdKind, Unit};
pub use values::{ValueAct, ValueKind};

use std::sync::Arc;

use helenus_cql::error::CqlError;

/// The guardrails that are set.
#[derive(Clone, Debug, Default)]
pub struct Guardrails {
    thresholds: Vec<(ThresholdKind, Threshold)>,
    disabled: Vec<Flag>,
    warned: Vec<Flag>,
    values: Vec<(ValueKind, ValueAct, Vec<String>)>,
}

impl Guardrails {
    /// Returns true if no guardrail is set.
    pub fn is_empty(&self) -> bool {
        self.thresholds.is_empty()
            && self.disabled.is_empty()
            && self.warned.is_empty()
            && self.values.is_empty()
    }

    /// Checks that no warning threshold lies beyond its failure threshold.
    ///
    /// # Errors
    /// Cassandra's message for the first wrong pair.
    pub fn check_order(&self) -> Result<(), String> {
        let mut thresholds = self.thresholds.iter();
        thresholds.try_for_each(|(kind, threshold)| kind.check_order(*threshold))
    }

    /// Returns true if a kind has a threshold.
    pub fn guards(&self, kind: ThresholdKind) -> bool {
        self.thresholds.iter().any(|(known, _)| *known == kind)
    }

    /// Returns the thresholds of a kind.
    pub fn threshold(&self, kind: ThresholdKind) -> Threshold {
        let found = self.thresholds.iter().find(|(known, _)| *known == kind);
        found.map_or(Threshold::default(), |(_, threshold)| *threshold)
    }

    /// Sets the thresholds of a kind.
    pub fn set_threshold(&mut self, kind: ThresholdKind, threshold: Threshold) {
        self.thresholds.retain(|(known, _)| *known != kind);
        if threshold != Threshold::default() {
            self.thresholds.push((kind, threshold));
        }
    }

    /// Returns true if the flag's feature is allowed.
    pub fn is_enabled(&self, flag: Flag) -> bool {
        !self.disabled.contains(&flag)
    }

    /// Allows or forbids the flag's feature.
    pub fn set_enabled(&mut self, flag: Flag, is_enabled: bool) {
        self.disabled.retain(|known| *known != flag);
        if !is_enabled {
            self.disabled.push(flag);
        }
    }

    /// Returns true if clients that use the flag's feature are warned.
    pub fn is_warned(&self, flag: Flag) -> bool {
        self.warned.contains(&flag)
    }

    /// Turns warnings about the flag's feature on or off.
    pub fn set_warned(&mut self, flag: Flag, is_warned: bool) {
        self.warned.retain(|known| *known != flag);
        if is_warned {
            self.warned.push(flag);
        }
    }

    /// Returns the values for which `act` happens.
    pub fn values(&self, kind: ValueKind, act: ValueAct) -> &[String] {
        let mut all = self.values.iter();
        let found = all.find(|(known, known_act, _)| (*known, *known_act) == (kind, act));
        found.map_or(&[], |(_, _, values)| values)
    }

    /// Sets the values for which `act` happens.
    pub fn set_values(&mut self, kind: ValueKind, act: ValueAct, values: Vec<String>) {
        self.values
            .retain(|(known, known_act, _)| (*known, *known_act) != (kind, act));
        if !values.is_empty() {
            self.values.push((kind, act, values));
        }
    }
}

/// The checks of one request or statement, and the warnings for its client.
#[derive(Debug)]
pub struct Guard {
    pub guardrails: Arc<Guardrails>,
    pub warnings: Vec<String>,
}

impl Guard {
    /// Returns a guard without warnings.
    pub fn new(guardrails: &Arc<Guardrails>) -> Guard {
        Guard {
            guardrails: guardrails.clone(),
            warnings: Vec::new(),
        }
    }

    /// Refuses the flag's feature if it is disabled (`EnableFlag.ensureEnabled`), or warns of it.
    ///
    /// # Errors
    /// The feature is disabled.
    pub fn require(&mut self, flag: Flag) -> Result<(), CqlError> {
        self.require_named(flag, flag.feature())
    }

    /// Does the same as [`Guard::require`], with another name for the feature in messages.
    ///
    /// # Errors
    /// The feature is disabled.
    pub fn require_named(&mut self, flag: Flag, feature: &str) -> Result<(), CqlError> {
        if !self.guardrails.is_enabled(flag) {
            let message = format!("{feature} is not allowed");
            return Err(self.refusal(decorated(flag.name(), &message, flag.reason())));
        }
        if self.guardrails.is_warned(flag) {
            let message = format!("{feature} is not recommended");
            self.warn(decorated(flag.name(), &message, flag.reason()));
        }
        Ok(())
    }

    /// Checks the value of `what` against its thresholds (`Threshold.guard`).
    ///
    /// # Errors
    /// The value is beyond the failure threshold.
    pub fn check(&mut self, kind: ThresholdKind, what: &str, value: i64) -> Result<(), CqlError> {
        self.check_against(kind, self.guardrails.threshold(kind), what, value)
    }

    /// Checks the value of `what` against the given thresholds. The caller derived them from the configured ones.
    ///
    /// # Errors
    /// The value is beyond the failure threshold.
    pub fn check_against(
        &mut self,
        kind: ThresholdKind,
        threshold: Threshold,
        what: &str,
        value: i64,
    ) -> Result<(), CqlError> {
        let Threshold { warn, fail } = threshold;
        let beyond = |threshold: Option<i64>| threshold.filter(|threshold| kind.is_beyond(value, *threshold));
        if let Some(threshold) = beyond(fail) {
            let message = kind.message(false, what, value, threshold);
            return Err(self.refusal(decorated(kind.guardrail(), &message, kind.reason())));
        }
        if let Some(threshold) = beyond(warn) {
            let message = kind.message(true, what, value, threshold);
            self.warn(decorated(kind.guardrail(), &message, kind.reason()));
        }
        Ok(())
    }

    /// Checks values against the disallowed, ignored and warned ones (`Values.guard`). Returns the values to be ignored.
    ///
    /// # Errors
    /// A value is disallowed.
    pub fn check_values(&mut self, kind: ValueKind, given: &[&str]) -> Result<Vec<String>, CqlError> {
        let guardrails = self.guardrails.clone();
        let met = |act| {
            let of_act = guardrails.values(kind, act);
            let mut met: Vec<&str> = given
                .iter()
                .copied()
                .filter(|value| of_act.iter().any(|known| known == value))
                .collect();
            met.sort_unstable();
            met.dedup();
            (!met.is_empty()).then_some((met, of_act))
        };
        if let Some((met, all)) = met(ValueAct::Disallowed) {
            let message = format!(
                "Provided values [{}] are not allowed for {} (disallowed values are: [{}])",
                met.join(", "),
                kind.feature(),
                all.join(", ")
            );
            return Err(self.refusal(decorated(kind.name(), &message, None)));
        }
        let mut ignored = Vec::new();
        let mut warnings = Vec::new();
        if let Some((met, all)) = met(ValueAct::Ignored) {
            warnings.push(format!(
                "Ignoring provided values [{}] as they are not supported for {} (ignored values are: [{}])",
                met.join(", "),
                kind.feature(),
                all.join(", ")
            ));
            ignored = met.into_iter().map(str::to_owned).collect();
        }
        if let Some((met, all)) = met(ValueAct::Warned) {
            warnings.push(format!(
                "Provided values [{}] are not recommended for {} (warned values are: [{}])",
                met.join(", "),
                kind.feature(),
                all.join(", ")
            ));
        }
        for message in warnings {
            self.warn(decorated(kind.name(), &message, None));
        }
        Ok(ignored)
    }

    /// Adds a warning. As in Cassandra, a request has each warning only once.
    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Returns the error of a refused request. As in Cassandra, its message is also a warning.
    fn refusal(&mut self, message: String) -> CqlError {
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.push(message.clone());
        CqlError::invalid(message).warned(warnings)
    }
}

/// Returns the message with the guardrail's name and reason (`Guardrail.decorateMessage`).
fn decorated(name: &str, message: &str, reason: Option<&str>) -> String {
    let end = if message.ends_with('.') { " " } else { ". " };
    match reason {
        Some(reason) => format!("Guardrail {name} violated: {message}{end}{reason}"),
        None => format!("Guardrail {name} violated: {message}"),
    }
}

#[cfg(test)]
#[path = "guardrails_tests.rs"]
mod tests;
