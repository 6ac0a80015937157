//! The option `cdc`: Cassandra's boolean, or ScyllaDB's map (`cdc::options`).

use helenus_cql::ast::{Properties, PropertyValue};
use helenus_cql::error::CqlError;
use serde::{Deserialize, Deserializer, Serialize};

use super::values::{TTL_MAX_S, config, map_literal};
use crate::properties::{self, Options};

const ENABLED: &str = "enabled";
const PREIMAGE: &str = "preimage";
const POSTIMAGE: &str = "postimage";
const DELTA: &str = "delta";
const TTL: &str = "ttl";

/// Default time for which changes are kept: a day.
const TTL_DEFAULT_S: i32 = 86_400;

/// The capture of a table's changes in its log table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CdcOptions {
    pub enabled: bool,
    /// The row as it was before each change.
    pub preimage: Preimage,
    /// True if each change is followed by the row as it is afterwards.
    pub postimage: bool,
    /// Content of the changes themselves.
    pub delta: Delta,
    /// Time for which changes are kept, in seconds. 0 if they are kept forever.
    pub ttl_s: i32,
    /// Time since which changes are captured, in µs since 1970. 0 if they never were.
    pub since_us: i64,
}

/// The row before a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preimage {
    Off,
    /// The columns that the change writes.
    Changed,
    /// All columns.
    Full,
}

/// The content of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Delta {
    Full,
    /// The key alone.
    Keys,
}

impl Default for CdcOptions {
    fn default() -> CdcOptions {
        CdcOptions {
            enabled: false,
            preimage: Preimage::Off,
            postimage: false,
            delta: Delta::Full,
            ttl_s: TTL_DEFAULT_S,
            since_us: 0,
        }
    }
}

/// Reads the stored option. Before changes could be captured, it was a boolean without an effect.
pub(super) fn stored<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CdcOptions, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        WithoutEffect(#[allow(dead_code)] bool),
        Options(CdcOptions),
    }
    Ok(match Stored::deserialize(deserializer)? {
        Stored::WithoutEffect(_) => CdcOptions::default(),
        Stored::Options(options) => options,
    })
}

impl CdcOptions {
    /// Returns true if writes must read the row that they change.
    pub fn has_images(&self) -> bool {
        self.enabled && (self.preimage != Preimage::Off || self.postimage)
    }

    /// Returns true if nothing differs from the default, so that documents omit the option.
    pub(super) fn is_default(&self) -> bool {
        *self == CdcOptions::default()
    }

    /// Returns the option as ScyllaDB's extension `cdc` in `system_schema.tables`, from which readers take the time for which changes are
    /// kept: the number of entries, and each text behind its length, all as 32 bits, little-endian.
    pub(super) fn extension(&self) -> Vec<u8> {
        let entries = self.entries();
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
        let mut bytes = number(entries.len()).to_vec();
        for text in entries.iter().flat_map(|(name, value)| [*name, value.as_str()]) {
            bytes.extend(number(text.len()));
            bytes.extend(text.as_bytes());
        }
        bytes
    }

    /// Returns the option as in a WITH clause: `true` or `false` if everything else has its default, and otherwise a map.
    pub(super) fn literal(&self) -> String {
        let plain = CdcOptions {
            enabled: self.enabled,
            since_us: self.since_us,
            ..CdcOptions::default()
        };
        if *self == plain {
            return self.enabled.to_string();
        }
        map_literal(
            &self
                .entries()
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
        )
    }

    fn entries(&self) -> [(&'static str, String); 5] {
        let preimage = match self.preimage {
            Preimage::Off => "false",
            Preimage::Changed => "true",
            Preimage::Full => "full",
        };
        let delta = match self.delta {
            Delta::Full => "full",
            Delta::Keys => "keys",
        };
        [
            (DELTA, delta.to_owned()),
            (ENABLED, self.enabled.to_string()),
            (POSTIMAGE, self.postimage.to_string()),
            (PREIMAGE, preimage.to_owned()),
            (TTL, self.ttl_s.to_string()),
        ]
    }
}

/// Replaces the option by the declared value, if there is one. A map replaces all parts: those that it lacks have their defaults.
pub(super) fn read(properties: &Properties, name: &str, option: &mut CdcOptions) -> Result<(), CqlError> {
    let since_us = option.since_us;
    match properties.get(name) {
        None => return Ok(()),
        Some(PropertyValue::Text(_)) => {
            option.enabled = properties::boolean(properties, name)?.unwrap_or(option.enabled);
        }
        Some(PropertyValue::Map(_)) => {
            let map = properties::map(properties, name)?.unwrap_or_default();
            let known = [ENABLED, PREIMAGE, POSTIMAGE, DELTA, TTL];
            if !map
                .keys()
                .any(|name| known.contains(&name.to_ascii_lowercase().as_str()))
            {
                // Cassandra's error for a map, as it was not meant for ScyllaDB.
                properties::text(properties, name)?;
            }
            *option = CdcOptions {
                since_us,
                ..parse(&map)?
            };
        }
    }
    Ok(())
}

fn parse(map: &Options) -> Result<CdcOptions, CqlError> {
    let mut options = CdcOptions::default();
    for (name, value) in map {
        let invalid = || config(format!("Invalid value for CDC option \"{name}\": {value}"));
        let lower = value.to_ascii_lowercase();
        let truth = match lower.as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        };
        match (name.to_ascii_lowercase().as_str(), truth) {
            (ENABLED, Some(enabled)) => options.enabled = enabled,
            (PREIMAGE, Some(true)) => options.preimage = Preimage::Changed,
            (PREIMAGE, Some(false)) => options.preimage = Preimage::Off,
            (PREIMAGE, None) if lower == "full" => options.preimage = Preimage::Full,
            (POSTIMAGE, Some(postimage)) => options.postimage = postimage,
            (DELTA, None) if lower == "full" => options.delta = Delta::Full,
            (DELTA, None) if lower == "keys" => options.delta = Delta::Keys,
            (TTL, _) => match value.parse::<i64>() {
                Ok(ttl_s) if ttl_s < 0 => return config("Invalid CDC option: ttl must be >= 0".to_owned()),
                Ok(ttl_s) => match i32::try_from(ttl_s) {
                    Ok(ttl_s) if ttl_s <= TTL_MAX_S => options.ttl_s = ttl_s,
                    _ => return config("Invalid CDC option: ttl too large".to_owned()),
                },
                Err(_) => return invalid(),
            },
            (ENABLED | PREIMAGE | POSTIMAGE | DELTA, _) => return invalid(),
            _ => return config(format!("Invalid CDC option: {name}")),
        }
    }
    Ok(options)
}

#[cfg(test)]
#[path = "cdc_tests.rs"]
mod tests;
