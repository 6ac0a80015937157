//! The settings of the audit log and its filter (Cassandra's `AuditLogOptions` and `AuditLogFilter`).

use std::path::PathBuf;

use crate::logs::RollCycle;

/// The settings of the audit log. Lists are texts separated by commas, as in Cassandra. An empty list of included items includes all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditOptions {
    pub enabled: bool,
    /// Folder of the log (`audit_logs_dir`).
    pub folder: PathBuf,
    /// The folder of the store, in which no log may be. `None` if the store is in a bucket.
    pub store_folder: Option<PathBuf>,
    pub roll_cycle: RollCycle,
    /// True if requests wait when the file is too slow. Otherwise lines are lost.
    pub block: bool,
    /// Maximum number of files. Older ones are deleted.
    pub files_max: usize,
    pub included_keyspaces: String,
    pub excluded_keyspaces: String,
    pub included_categories: String,
    pub excluded_categories: String,
    pub included_users: String,
    pub excluded_users: String,
}

impl Default for AuditOptions {
    fn default() -> AuditOptions {
        AuditOptions {
            enabled: false,
            folder: PathBuf::from("./helenus-audit"),
            store_folder: None,
            roll_cycle: RollCycle::default(),
            block: true,
            files_max: 168,
            included_keyspaces: String::new(),
            excluded_keyspaces: "system,system_schema,system_virtual_schema".to_owned(),
            included_categories: String::new(),
            excluded_categories: String::new(),
            included_users: String::new(),
            excluded_users: String::new(),
        }
    }
}

impl AuditOptions {
    /// Returns true if the filter lets the entry through.
    pub(super) fn includes(&self, user: &str, category: &str, keyspace: Option<&str>) -> bool {
        let keyspaces = (&self.included_keyspaces, &self.excluded_keyspaces);
        is_included(keyspace.unwrap_or_default(), keyspaces.0, keyspaces.1)
            && is_included(category, &self.included_categories, &self.excluded_categories)
            && is_included(user, &self.included_users, &self.excluded_users)
    }

    /// Returns the options by name, in the order of Cassandra's `nodetool getauditlog`.
    pub fn by_name(&self) -> [(&'static str, String); 12] {
        [
            ("enabled", self.enabled.to_string()),
            ("logger", "FileAuditLogger".to_owned()),
            ("audit_logs_dir", self.folder.display().to_string()),
            ("roll_cycle", self.roll_cycle.name().to_owned()),
            ("block", self.block.to_string()),
            ("max_log_files", self.files_max.to_string()),
            ("included_keyspaces", self.included_keyspaces.clone()),
            ("excluded_keyspaces", self.excluded_keyspaces.clone()),
            ("included_categories", self.included_categories.clone()),
            ("excluded_categories", self.excluded_categories.clone()),
            ("included_users", self.included_users.clone()),
            ("excluded_users", self.excluded_users.clone()),
        ]
    }
}

/// Returns true if a value passes the filter, the opposite of Cassandra's `AuditLogFilter.isFiltered`. An empty value is in no list.
fn is_included(value: &str, included: &str, excluded: &str) -> bool {
    let has = |list: &str| {
        list.split(',')
            .any(|entry| entry.trim() == value && !entry.trim().is_empty())
    };
    !has(excluded) && (included.is_empty() || has(included))
}

/// Options of `nodetool enableauditlog` that replace those of the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditPatch(Vec<(String, String)>);

impl AuditPatch {
    /// Parses lines `name=value`.
    ///
    /// # Errors
    /// A line has another form, or the name or the value is unknown.
    pub fn parse(text: &str) -> Result<AuditPatch, String> {
        let mut given = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let (name, value) = line
                .split_once('=')
                .ok_or_else(|| format!("{line}: not name=value"))?;
            let (name, value) = (name.trim(), value.trim());
            set(&mut AuditOptions::default(), name, value)?;
            given.push((name.to_owned(), value.to_owned()));
        }
        Ok(AuditPatch(given))
    }

    pub(super) fn on(&self, mut options: AuditOptions) -> AuditOptions {
        for (name, value) in &self.0 {
            // This cannot fail, because `parse` has set each of them before.
            let _ = set(&mut options, name, value);
        }
        options.enabled = true;
        options
    }
}

fn set(options: &mut AuditOptions, name: &str, value: &str) -> Result<(), String> {
    match name {
        "roll_cycle" => options.roll_cycle = RollCycle::parse(value)?,
        "block" => options.block = value.parse().map_err(|_| format!("{value}: not true or false"))?,
        "included_keyspaces" => value.clone_into(&mut options.included_keyspaces),
        "excluded_keyspaces" => value.clone_into(&mut options.excluded_keyspaces),
        "included_categories" => options.included_categories = categories(value)?,
        "excluded_categories" => options.excluded_categories = categories(value)?,
        "included_users" => value.clone_into(&mut options.included_users),
        "excluded_users" => value.clone_into(&mut options.excluded_users),
        _ => return Err(format!("{name}: there is no such option of the audit log")),
    }
    Ok(())
}

/// Checks a list of categories separated by commas, and returns it in upper case. A misspelt category would exclude nothing or everything.
///
/// # Errors
/// A category is unknown.
pub fn categories(text: &str) -> Result<String, String> {
    const KNOWN: [&str; 8] = ["QUERY", "DML", "DDL", "DCL", "OTHER", "AUTH", "ERROR", "PREPARE"];
    let upper = text.to_ascii_uppercase();
    let mut given = upper.split(',').map(str::trim).filter(|name| !name.is_empty());
    match given.find(|name| !KNOWN.contains(name)) {
        Some(unknown) => Err(format!("{unknown}: not one of {}", KNOWN.join(", "))),
        None => Ok(upper),
    }
}
