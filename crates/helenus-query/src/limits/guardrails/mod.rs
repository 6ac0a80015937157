//! Guardrails: limits on what clients may ask for and define, with the names, defaults and messages of Cassandra 5.0
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
    /// Returns true if nothing is guarded.
    pub fn is_empty(&self) -> bool {
        self.thresholds.is_empty()
            && self.disabled.is_empty()
            && self.warned.is_empty()
            && self.values.is_empty()
    }

    /// Refuses thresholds of warning that lie beyond those of failure.
    ///
    /// # Errors
    /// Cassandra's message for the first of them.
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

    /// Returns true if what the flag stands for is allowed.
    pub fn is_enabled(&self, flag: Flag) -> bool {
        !self.disabled.contains(&flag)
    }

    /// Allows what the flag stands for, or not.
    pub fn set_enabled(&mut self, flag: Flag, is_enabled: bool) {
        self.disabled.retain(|known| *known != flag);
        if !is_enabled {
            self.disabled.push(flag);
        }
    }

    /// Returns true if a client that uses what the flag stands for is warned.
    pub fn is_warned(&self, flag: Flag) -> bool {
        self.warned.contains(&flag)
    }

    /// Warns clients that use what the flag stands for, or not.
    pub fn set_warned(&mut self, flag: Flag, is_warned: bool) {
        self.warned.retain(|known| *known != flag);
        if is_warned {
            self.warned.push(flag);
        }
    }

    /// Returns the values that are warned of, ignored or disallowed.
    pub fn values(&self, kind: ValueKind, act: ValueAct) -> &[String] {
        let mut all = self.values.iter();
        let found = all.find(|(known, known_act, _)| (*known, *known_act) == (kind, act));
        found.map_or(&[], |(_, _, values)| values)
    }

    /// Sets the values that are warned of, ignored or disallowed.
    pub fn set_values(&mut self, kind: ValueKind, act: ValueAct, values: Vec<String>) {
        self.values
            .retain(|(known, known_act, _)| (*known, *known_act) != (kind, act));
        if !values.is_empty() {
            self.values.push((kind, act, values));
        }
    }
}

/// The checks of one request or statement, and what its client is warned of.
#[derive(Debug)]
pub struct Guard {
    pub guardrails: Arc<Guardrails>,
    pub warnings: Vec<String>,
}

impl Guard {
    /// Returns a guard that has checked nothing yet.
    pub fn new(guardrails: &Arc<Guardrails>) -> Guard {
        Guard {
            guardrails: guardrails.clone(),
            warnings: Vec::new(),
        }
    }

    /// Refuses what a flag disables (`EnableFlag.ensureEnabled`), or warns of it.
    ///
    /// # Errors
    /// It is disabled.
    pub fn require(&mut self, flag: Flag) -> Result<(), CqlError> {
        self.require_named(flag, flag.feature())
    }

    /// The same, where messages name what the flag stands for by other words.
    ///
    /// # Errors
    /// It is disabled.
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

    /// Checks a figure of `what` (`Threshold.guard`).
    ///
    /// # Errors
    /// It is beyond the threshold of failure.
    pub fn check(&mut self, kind: ThresholdKind, what: &str, value: i64) -> Result<(), CqlError> {
        self.check_against(kind, self.guardrails.threshold(kind), what, value)
    }

    /// Checks a figure of `what` against thresholds that were made of those that are set.
    ///
    /// # Errors
    /// It is beyond the threshold of failure.
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

    /// Checks values against those that are disallowed, ignored and warned of; the answer is those to be ignored (`Values.guard`).
    ///
    /// # Errors
    /// One of them is disallowed.
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

    /// Cassandra warns of a thing once a request.
    fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Returns the error of a request that is refused. Its message is a warning too, as in Cassandra.
    fn refusal(&mut self, message: String) -> CqlError {
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.push(message.clone());
        CqlError::invalid(message).warned(warnings)
    }
}

/// `Guardrail.decorateMessage`
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
