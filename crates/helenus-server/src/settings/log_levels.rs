//! Levels of the process's log, as commands show and change them.

/// Level of log lines, for one target (a module) or as the default. `target` is `None` for the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLevel {
    pub target: Option<String>,
    pub level: String,
}

/// The levels at which the process logs.
pub trait LogLevels: Send + Sync {
    /// Returns the levels, the default first.
    fn levels(&self) -> Vec<LogLevel>;

    /// Sets a level. `None` restores the levels at the start of the process.
    ///
    /// # Errors
    /// The level or the target is invalid.
    fn set(&self, level: Option<LogLevel>) -> Result<(), String>;
}
