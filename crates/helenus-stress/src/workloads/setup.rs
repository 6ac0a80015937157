//! The settings of a workload from the command line.

use anyhow::{Context, Result, bail};

use super::Info;
use crate::cli::options::RateArgs;
use crate::data::fields::Generator;
use crate::data::keys::{KeyPicker, KeySpace, Picking};
use crate::numbers;

/// A workload's settings.
#[derive(Clone, Debug)]
pub struct Setup {
    pub keys: KeySpace,
    info: &'static Info,
    parameters: Vec<(String, String)>,
    fields: Vec<(String, String)>,
}

impl Setup {
    /// Returns the settings of the command line. Fails if the workload has no such parameter or field.
    pub fn new(info: &'static Info, args: &RateArgs) -> Result<Self> {
        for (name, _) in &args.workload_parameter {
            if !info.parameters.iter().any(|known| is_parameter(known, name)) {
                bail!(
                    "workload {} has no parameter {name:?}; see `helenus-stress info {0}`",
                    info.name
                );
            }
        }
        for (name, generator) in &args.field_generator {
            if !info
                .fields
                .iter()
                .any(|known| known.name.eq_ignore_ascii_case(name))
            {
                bail!(
                    "workload {} has no field {name:?}; see `helenus-stress info {0}`",
                    info.name
                );
            }
            Generator::parse(generator).map_err(anyhow::Error::msg)?;
        }
        let keys = KeySpace {
            id: args.id.clone(),
            threads: if info.shared_keys { 1 } else { args.threads.into() },
            partitions: args.partitions.unwrap_or(info.partitions).max(1),
        };
        Ok(Self {
            keys,
            info,
            parameters: args.workload_parameter.clone(),
            fields: args.field_generator.clone(),
        })
    }

    /// Returns the key picker of a thread.
    pub fn picker(&self, picking: Picking, thread: u64) -> KeyPicker {
        let thread = thread % self.keys.threads;
        KeyPicker::new(picking, thread * self.keys.partitions, self.keys.partitions)
    }

    /// Returns the text of a parameter, as given or by default.
    pub fn text(&self, name: &str) -> &str {
        let known = self.info.parameters.iter().find(|known| known.name == name);
        let given = self
            .parameters
            .iter()
            .rev()
            .find(|(given, _)| known.is_some_and(|known| is_parameter(known, given)));
        match given {
            Some((_, value)) => value,
            None => known.map_or("", |known| known.default),
        }
    }

    /// Returns a parameter that is a whole number.
    pub fn number(&self, name: &str) -> Result<u64> {
        numbers::count(self.text(name))
            .map_err(anyhow::Error::msg)
            .with_context(|| format!("--workload.{name}"))
    }

    /// Returns a parameter that is a whole number, at least 1.
    pub fn count(&self, name: &str) -> Result<u64> {
        let count = self.number(name)?;
        if count == 0 {
            bail!("--workload.{name} must be 1 or more");
        }
        Ok(count)
    }

    /// Returns a parameter that is true or false.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.text(name).to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" => Ok(true),
            "false" | "no" | "0" => Ok(false),
            other => bail!("--workload.{name} must be true or false, not {other:?}"),
        }
    }

    /// Returns the generator of a field, as given or by default.
    pub fn generator(&self, name: &str) -> Result<Generator> {
        let given = self
            .fields
            .iter()
            .rev()
            .find(|(given, _)| given.eq_ignore_ascii_case(name));
        let known = || self.info.fields.iter().find(|known| known.name == name);
        let text = match given {
            Some((_, text)) => text,
            None => known().with_context(|| format!("no field {name}"))?.default,
        };
        Generator::parse(text).map_err(anyhow::Error::msg)
    }
}

fn is_parameter(known: &super::Parameter, name: &str) -> bool {
    known.name.eq_ignore_ascii_case(name) || known.alias.is_some_and(|alias| alias.eq_ignore_ascii_case(name))
}
