//! How often logs of requests begin new files.

/// How often a new file is begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RollCycle {
    Minutely,
    #[default]
    Hourly,
    Daily,
}

impl RollCycle {
    /// Returns the cycle of that name, in Cassandra's words.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn parse(text: &str) -> Result<RollCycle, String> {
        match text.to_ascii_uppercase().as_str() {
            "MINUTELY" => Ok(RollCycle::Minutely),
            "HOURLY" => Ok(RollCycle::Hourly),
            "DAILY" => Ok(RollCycle::Daily),
            _ => Err(format!("{text}: not MINUTELY, HOURLY or DAILY")),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            RollCycle::Minutely => "MINUTELY",
            RollCycle::Hourly => "HOURLY",
            RollCycle::Daily => "DAILY",
        }
    }

    /// Its length.
    pub(crate) fn seconds(self) -> u64 {
        match self {
            RollCycle::Minutely => 60,
            RollCycle::Hourly => 3600,
            RollCycle::Daily => 86_400,
        }
    }
}
