//! `nodetool getauditlog`, `enableauditlog` and `disableauditlog`, with the options and the format of Cassandra's.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::client::{NodeClient, TIMEOUT, option_lines};

const AUDIT_LOG: &str = "/node/audit_log";

/// The options of `enableauditlog`. The node's settings apply to those that are not given.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AuditLogArgs {
    /// Keyspaces to log, separated by commas; all if empty
    #[arg(long, value_name = "NAMES")]
    included_keyspaces: Option<String>,
    /// Keyspaces not to log, separated by commas
    #[arg(long, value_name = "NAMES")]
    excluded_keyspaces: Option<String>,
    /// Categories to log: QUERY, DML, DDL, DCL, OTHER, AUTH, ERROR, PREPARE
    #[arg(long, value_name = "NAMES")]
    included_categories: Option<String>,
    /// Categories not to log
    #[arg(long, value_name = "NAMES")]
    excluded_categories: Option<String>,
    /// Users to log
    #[arg(long, value_name = "NAMES")]
    included_users: Option<String>,
    /// Users not to log
    #[arg(long, value_name = "NAMES")]
    excluded_users: Option<String>,
    /// Interval at which a new file begins: MINUTELY, HOURLY, DAILY
    #[arg(long, value_name = "CYCLE")]
    roll_cycle: Option<String>,
    /// True if requests wait when the file is slower than they are
    #[arg(long, value_name = "BOOL")]
    blocking: Option<String>,
}

impl AuditLogArgs {
    fn body(&self) -> String {
        option_lines([
            ("included_keyspaces", &self.included_keyspaces),
            ("excluded_keyspaces", &self.excluded_keyspaces),
            ("included_categories", &self.included_categories),
            ("excluded_categories", &self.excluded_categories),
            ("included_users", &self.included_users),
            ("excluded_users", &self.excluded_users),
            ("roll_cycle", &self.roll_cycle),
            ("block", &self.blocking),
        ])
    }
}

pub(super) fn show(node: &NodeClient) -> anyhow::Result<ExitCode> {
    let options = node.request(AUDIT_LOG)?;
    for option in options.as_array().map_or(&[][..], Vec::as_slice) {
        let text = |name: &str| option.get(name).and_then(Value::as_str).unwrap_or_default();
        println!("{}", format!("{:<20}{}", text("name"), text("value")).trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn enable(node: &NodeClient, args: &AuditLogArgs) -> anyhow::Result<ExitCode> {
    node.command("/node/audit_log/enable", &args.body(), "/node/challenge", TIMEOUT)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn disable(node: &NodeClient) -> anyhow::Result<ExitCode> {
    node.command("/node/audit_log/disable", "", "/node/challenge", TIMEOUT)?;
    Ok(ExitCode::SUCCESS)
}
