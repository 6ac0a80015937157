//! The settings of the full query log: the options of `full_query_logging_options` in `cassandra.yaml`, with their names in
//! `system_views.settings` of Cassandra. `nodetool enablefullquerylog` switches the log on.

use helenus_server::logs::RollCycle;

use super::setting::{Setting, count, put, size};

const FLAG: &str = "true or false";
const SIZE: &str = "a number of bytes, also as 512KiB, 64MiB or 2GiB";

#[rustfmt::skip]
pub(super) const SETTINGS: &[Setting] = &[
    Setting { name: "full_query_logging_options_log_dir", about: "the folder of the full query log, unless nodetool enablefullquerylog names another; not within the store's; the packaged unit sets /var/log/helenus/queries", allowed: "a path", set: |c, v| { c.full_query_log.folder = v.into(); Ok(()) } },
    Setting { name: "full_query_logging_options_archive_command", about: "a command that is run for each complete file of the full query log, with the file in place of %path", allowed: "a program and its arguments", set: |c, v| { v.clone_into(&mut c.full_query_log.archive_command); Ok(()) } },
    Setting { name: "full_query_logging_options_allow_nodetool_archive_command", about: "whether nodetool enablefullquerylog may give another archive_command", allowed: FLAG, set: |c, v| put(&mut c.full_query_log.allow_nodetool_archive_command, flag(v)) },
    Setting { name: "full_query_logging_options_max_archive_retries", about: "how often an archive_command that fails is run again", allowed: "a whole number", set: |c, v| put(&mut c.full_query_log.archive_retries_max, v.parse().map_err(|_| "not a whole number".to_owned())) },
    Setting { name: "full_query_logging_options_roll_cycle", about: "how often a new file of the full query log is begun", allowed: "MINUTELY, HOURLY or DAILY", set: |c, v| put(&mut c.full_query_log.roll_cycle, RollCycle::parse(v)) },
    Setting { name: "full_query_logging_options_block", about: "whether requests wait while the queue of the full query log is full; otherwise entries are lost", allowed: FLAG, set: |c, v| put(&mut c.full_query_log.block, flag(v)) },
    Setting { name: "full_query_logging_options_max_queue_weight", about: "bytes of entries of the full query log that wait for the disk", allowed: SIZE, set: |c, v| put(&mut c.full_query_log.queue_bytes_max, queue_bytes(v)) },
    Setting { name: "full_query_logging_options_max_log_size", about: "the size of all files of the full query log; the oldest are deleted", allowed: SIZE, set: |c, v| put(&mut c.full_query_log.log_bytes_max, positive(v).map(|bytes| bytes as u64)) },
];

fn flag(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "neither".to_owned())
}

fn positive(text: &str) -> Result<usize, String> {
    let bytes = size(text)?;
    count(&bytes.to_string())
}

fn queue_bytes(text: &str) -> Result<u32, String> {
    let bytes = i32::try_from(positive(text)?).map_err(|_| "it must be less than 2GiB".to_owned())?;
    Ok(bytes.cast_unsigned())
}
