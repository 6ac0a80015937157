//! The settings of the full query log (Cassandra's `FullQueryLoggerOptions`).

use std::path::PathBuf;

use crate::logs::RollCycle;

/// The settings of the full query log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryLogOptions {
    /// Folder of the log (`log_dir`). Empty if each command must name a folder.
    pub folder: PathBuf,
    /// The folder of the store, in which no log may be. `None` if the store is in a bucket.
    pub store_folder: Option<PathBuf>,
    /// Command that is run for each complete segment, with the path in place of `%path`. Empty if there is none.
    pub archive_command: String,
    /// True if a command of nodetool may replace `archive_command`.
    pub allow_nodetool_archive_command: bool,
    pub roll_cycle: RollCycle,
    /// True if requests wait while the queue is full. Otherwise entries are dropped.
    pub block: bool,
    /// Maximum bytes of entries that wait to be written (`max_queue_weight`).
    pub queue_bytes_max: u32,
    /// Maximum bytes of all segments (`max_log_size`). The oldest are deleted.
    pub log_bytes_max: u64,
    /// Maximum number of retries of the archive command for a segment (`max_archive_retries`).
    pub archive_retries_max: u32,
}

impl Default for QueryLogOptions {
    fn default() -> QueryLogOptions {
        QueryLogOptions {
            folder: PathBuf::new(),
            store_folder: None,
            archive_command: String::new(),
            allow_nodetool_archive_command: false,
            roll_cycle: RollCycle::default(),
            block: true,
            queue_bytes_max: 256 << 20,
            log_bytes_max: 16 << 30,
            archive_retries_max: 10,
        }
    }
}

impl QueryLogOptions {
    /// Returns the options by name, in the order of Cassandra's `nodetool getfullquerylog`.
    pub fn by_name(&self) -> [(&'static str, String); 7] {
        [
            ("log_dir", self.folder.display().to_string()),
            ("archive_command", self.archive_command.clone()),
            ("roll_cycle", self.roll_cycle.name().to_owned()),
            ("block", self.block.to_string()),
            ("max_log_size", self.log_bytes_max.to_string()),
            ("max_queue_weight", self.queue_bytes_max.to_string()),
            ("max_archive_retries", self.archive_retries_max.to_string()),
        ]
    }
}

/// Options of `nodetool enablefullquerylog` that replace those of the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryLogPatch(Vec<(String, String)>);

impl QueryLogPatch {
    /// Parses lines `name=value`.
    ///
    /// # Errors
    /// A line has another form, or the name or the value is unknown.
    pub fn parse(text: &str) -> Result<QueryLogPatch, String> {
        let mut given = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let (name, value) = line
                .split_once('=')
                .ok_or_else(|| format!("{line}: not name=value"))?;
            given.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        let patch = QueryLogPatch(given);
        let anything = QueryLogOptions {
            allow_nodetool_archive_command: true,
            ..QueryLogOptions::default()
        };
        patch.on(anything)?;
        Ok(patch)
    }

    /// Returns `options` with the given values in place of their own.
    pub(super) fn on(&self, mut options: QueryLogOptions) -> Result<QueryLogOptions, String> {
        for (name, value) in &self.0 {
            set(&mut options, name, value)?;
        }
        Ok(options)
    }
}

fn set(options: &mut QueryLogOptions, name: &str, value: &str) -> Result<(), String> {
    match name {
        "path" => options.folder = value.into(),
        "roll_cycle" => options.roll_cycle = RollCycle::parse(value)?,
        "block" => options.block = flag(value)?,
        "max_queue_weight" => options.queue_bytes_max = queue_bytes(value)?,
        "max_log_size" => options.log_bytes_max = log_bytes(value)?,
        "archive_command" if !options.allow_nodetool_archive_command => {
            return Err(
                "Can't enable full query log archiving via nodetool unless full_query_logging_options.allow_nodetool_archive_command is set to true"
                    .to_owned(),
            );
        }
        "archive_command" => value.clone_into(&mut options.archive_command),
        "max_archive_retries" => options.archive_retries_max = retries(value)?,
        _ => return Err(format!("{name}: there is no such option of the full query log")),
    }
    Ok(())
}

fn flag(text: &str) -> Result<bool, String> {
    let known = text.to_ascii_lowercase().parse();
    known.map_err(|_| format!("Invalid [{text}]. Blocking only accepts 'true' or 'false'."))
}

fn queue_bytes(text: &str) -> Result<u32, String> {
    let bytes = text.parse::<i32>().ok().filter(|bytes| *bytes > 0);
    bytes.map(i32::cast_unsigned).ok_or_else(|| {
        format!(
            "{text}: max_queue_weight must be a number of bytes from 1 to {}",
            i32::MAX
        )
    })
}

fn log_bytes(text: &str) -> Result<u64, String> {
    let bytes = text.parse::<i64>().ok().filter(|bytes| *bytes > 0);
    bytes
        .map(i64::cast_unsigned)
        .ok_or_else(|| format!("{text}: max_log_size must be a number of bytes from 1"))
}

fn retries(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("{text}: max_archive_retries must be a whole number"))
}
