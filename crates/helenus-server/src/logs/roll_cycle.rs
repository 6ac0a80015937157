//! Intervals at which logs of requests begin new files.

/// Interval at which a log begins a new file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RollCycle {
    Minutely,
    #[default]
    Hourly,
    Daily,
}

impl RollCycle {
    /// Returns the cycle with Cassandra's name `text`.
    ///
    /// # Errors
    /// There is no cycle of this name.
    pub fn parse(text: &str) -> Result<RollCycle, String> {
        match text.to_ascii_uppercase().as_str() {
            "MINUTELY" => Ok(RollCycle::Minutely),
            "HOURLY" => Ok(RollCycle::Hourly),
            "DAILY" => Ok(RollCycle::Daily),
            _ => Err(format!("{text}: not MINUTELY, HOURLY or DAILY")),
        }
    }

    /// Returns Cassandra's name of the cycle.
    pub fn name(self) -> &'static str {
        match self {
            RollCycle::Minutely => "MINUTELY",
            RollCycle::Hourly => "HOURLY",
            RollCycle::Daily => "DAILY",
        }
    }

    /// Returns the length of the cycle in seconds.
    pub(crate) fn seconds(self) -> u64 {
        match self {
            RollCycle::Minutely => 60,
            RollCycle::Hourly => 3600,
            RollCycle::Daily => 86_400,
        }
    }
}
