//! The filter of the log, which can change while the node runs.

use anyhow::anyhow;
use helenus_server::settings::{LogLevel, LogLevels};
use parking_lot::Mutex;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::{EnvFilter, Registry, reload};

/// The levels of the log by target.
pub struct LogFilter {
    handle: reload::Handle<EnvFilter, Registry>,
    initial: Mutex<String>,
    current: Mutex<String>,
}

impl LogFilter {
    /// Returns a filter for a layer of `tracing`, and the handle that changes it.
    ///
    /// # Errors
    /// Fails if the text is not a filter of `tracing`.
    pub fn new(text: &str) -> anyhow::Result<(reload::Layer<EnvFilter, Registry>, LogFilter)> {
        let filter = EnvFilter::try_new(text).map_err(|error| {
            anyhow!("log = \"{text}\": {error}; allowed are filters like info or info,slatedb=warn")
        })?;
        let (layer, handle) = reload::Layer::new(filter);
        let filter = LogFilter {
            handle,
            initial: Mutex::new(text.to_owned()),
            current: Mutex::new(text.to_owned()),
        };
        Ok((layer, filter))
    }

    /// Sets the filter, also as the initial one.
    ///
    /// # Errors
    /// Fails if the text is not a filter of `tracing`. The filter is unchanged then.
    pub fn restart_with(&self, text: &str) -> Result<(), String> {
        let mut current = self.current.lock();
        let filter = EnvFilter::try_new(text).map_err(|error| format!("log = \"{text}\": {error}"))?;
        self.handle.reload(filter).map_err(|error| error.to_string())?;
        text.clone_into(&mut current);
        text.clone_into(&mut self.initial.lock());
        Ok(())
    }
}

impl LogLevels for LogFilter {
    fn levels(&self) -> Vec<LogLevel> {
        let current = self.current.lock();
        let mut levels: Vec<LogLevel> = current.split(',').map(directive).collect();
        levels.sort_by(|left, right| left.target.cmp(&right.target));
        levels
    }

    fn set(&self, level: Option<LogLevel>) -> Result<(), String> {
        let mut current = self.current.lock();
        let changed = match level {
            None => self.initial.lock().clone(),
            Some(level) => with(&current, level)?,
        };
        let filter = EnvFilter::try_new(&changed).map_err(|error| error.to_string())?;
        self.handle.reload(filter).map_err(|error| error.to_string())?;
        *current = changed;
        Ok(())
    }
}

/// Parses one directive of a filter. Directives are separated by commas.
fn directive(text: &str) -> LogLevel {
    match text.trim().split_once('=') {
        Some((target, level)) => LogLevel {
            target: Some(target.to_owned()),
            level: level.to_owned(),
        },
        None => LogLevel {
            target: None,
            level: text.trim().to_owned(),
        },
    }
}

/// Returns the filter with another level for a target. ROOT is Cassandra's name for all targets.
fn with(filter: &str, level: LogLevel) -> Result<String, String> {
    let name = level.level.to_lowercase();
    name.parse::<LevelFilter>().map_err(|_| {
        format!(
            "{} is no level; there are trace, debug, info, warn, error and off",
            level.level
        )
    })?;
    let target = level.target.filter(|target| !target.eq_ignore_ascii_case("root"));
    let others = filter.split(',').filter(|part| directive(part).target != target);
    let own = match &target {
        Some(target) => format!("{target}={name}"),
        None => name,
    };
    Ok(others.chain([own.as_str()]).collect::<Vec<&str>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(target: Option<&str>, level: &str) -> Result<String, String> {
        let target = target.map(str::to_owned);
        let level = level.to_owned();
        with("info,slatedb=warn", LogLevel { target, level })
    }

    #[test]
    fn a_level_replaces_that_of_its_target() {
        assert_eq!(changed(Some("slatedb"), "DEBUG").unwrap(), "info,slatedb=debug");
        assert_eq!(
            changed(Some("helenus_server"), "trace").unwrap(),
            "info,slatedb=warn,helenus_server=trace"
        );
        assert_eq!(changed(None, "warn").unwrap(), "slatedb=warn,warn");
        assert_eq!(changed(Some("ROOT"), "WARN").unwrap(), "slatedb=warn,warn");
        assert!(changed(None, "loud").unwrap_err().contains("loud is no level"));
    }

    #[test]
    fn levels_are_listed_with_the_root_first_and_restored() {
        let (_layer, filter) = LogFilter::new("slatedb=warn,info").unwrap();
        let level = |target: Option<&str>, level: &str| LogLevel {
            target: target.map(str::to_owned),
            level: level.to_owned(),
        };
        assert_eq!(
            filter.levels(),
            [level(None, "info"), level(Some("slatedb"), "warn")]
        );
        filter.set(Some(level(None, "debug"))).unwrap();
        assert_eq!(filter.levels()[0], level(None, "debug"));
        filter.set(None).unwrap();
        assert_eq!(filter.levels()[0], level(None, "info"));
    }
}
