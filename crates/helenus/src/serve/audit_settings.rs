//! The settings of the audit log: the options of `audit_logging_options` in `cassandra.yaml`, with their names in `system_views.settings`
//! of Cassandra.

use helenus_server::logs::RollCycle;
use helenus_server::logs::audit::categories;

use super::setting::{Setting, count, put};

const FLAG: &str = "true or false";
const NAMES: &str = "names, separated by commas";
const CATEGORIES: &str = "QUERY, DML, DDL, DCL, OTHER, AUTH, ERROR, PREPARE, separated by commas";

#[rustfmt::skip]
pub(super) const SETTINGS: &[Setting] = &[
    Setting { name: "audit_logging_options_enabled", about: "whether the requests and log-ins of clients are noted in a file", allowed: FLAG, set: |c, v| put(&mut c.audit.enabled, flag(v)) },
    Setting { name: "audit_logging_options_audit_logs_dir", about: "the folder of the audit log, not within the store's; the packaged unit sets /var/log/helenus/audit", allowed: "a path", set: |c, v| { c.audit.folder = v.into(); Ok(()) } },
    Setting { name: "audit_logging_options_roll_cycle", about: "how often a new file of the audit log is begun", allowed: "MINUTELY, HOURLY or DAILY", set: |c, v| put(&mut c.audit.roll_cycle, RollCycle::parse(v)) },
    Setting { name: "audit_logging_options_max_log_files", about: "files of the audit log that are kept; older ones are deleted", allowed: "a whole number from 1", set: |c, v| put(&mut c.audit.files_max, count(v)) },
    Setting { name: "audit_logging_options_block", about: "whether requests wait when the file is slower than they are; otherwise lines are lost", allowed: FLAG, set: |c, v| put(&mut c.audit.block, flag(v)) },
    Setting { name: "audit_logging_options_included_keyspaces", about: "keyspaces of which requests are noted; by default all", allowed: NAMES, set: |c, v| { v.clone_into(&mut c.audit.included_keyspaces); Ok(()) } },
    Setting { name: "audit_logging_options_excluded_keyspaces", about: "keyspaces of which requests are not noted", allowed: NAMES, set: |c, v| { v.clone_into(&mut c.audit.excluded_keyspaces); Ok(()) } },
    Setting { name: "audit_logging_options_included_categories", about: "categories of requests that are noted; by default all", allowed: CATEGORIES, set: |c, v| put(&mut c.audit.included_categories, categories(v)) },
    Setting { name: "audit_logging_options_excluded_categories", about: "categories of requests that are not noted", allowed: CATEGORIES, set: |c, v| put(&mut c.audit.excluded_categories, categories(v)) },
    Setting { name: "audit_logging_options_included_users", about: "users whose requests are noted; by default all", allowed: NAMES, set: |c, v| { v.clone_into(&mut c.audit.included_users); Ok(()) } },
    Setting { name: "audit_logging_options_excluded_users", about: "users whose requests are not noted", allowed: NAMES, set: |c, v| { v.clone_into(&mut c.audit.excluded_users); Ok(()) } },
];

fn flag(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "neither".to_owned())
}
