//! The state of an import, from which the same command goes on.
//!
//! The file holds the tables that are done, and the token before which the current table's partitions are. It is replaced after
//! acknowledged batches, and removed at the end.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use helenus_import::TableName;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::args::ImportArgs;
use crate::replace_file::replace_file;

const FORMAT: u64 = 1;

/// The progress of an import.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    /// The options that determine the rows and their target.
    command: String,
    done: BTreeSet<String>,
    /// The current table, and the token before which its partitions are done.
    current: Option<(String, i64)>,
}

impl State {
    /// Reads the state of the same command. A new one is empty.
    pub fn open(args: &ImportArgs) -> Result<State> {
        let command = command(args);
        let path = args.state.clone().unwrap_or_else(|| default_path(&command));
        let mut state = State {
            path,
            command,
            done: BTreeSet::new(),
            current: None,
        };
        if !args.restart {
            state.read()?;
        }
        Ok(state)
    }

    fn read(&mut self) -> Result<()> {
        let shown = self.path.display().to_string();
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).with_context(|| shown),
        };
        let value: Value = serde_json::from_str(&text)
            .with_context(|| format!("{shown} is no state of an import; give --restart to begin again"))?;
        if value["format"].as_u64() != Some(FORMAT) {
            bail!("{shown} is the state of another version; give --restart to begin again");
        }
        if value["command"].as_str() != Some(&*self.command) {
            bail!(
                "{shown} belongs to an import with other options ({}); give another --state, or --restart to begin again",
                value["command"].as_str().unwrap_or_default()
            );
        }
        let done = value["done"].as_array().into_iter().flatten();
        self.done = done.filter_map(Value::as_str).map(str::to_owned).collect();
        if let (Some(table), Some(token)) = (value["table"].as_str(), value["token"].as_i64()) {
            self.current = Some((table.to_owned(), token));
        }
        Ok(())
    }

    pub fn is_done(&self, table: &TableName) -> bool {
        self.done.contains(&table.to_string())
    }

    /// Returns the token from which the table is to be read. `None` for all of it.
    pub fn resume_token(&self, table: &TableName) -> Option<i64> {
        let (current, token) = self.current.as_ref()?;
        (*current == table.to_string()).then_some(*token)
    }

    /// Notes that all partitions of lower tokens are acknowledged.
    pub fn reach(&mut self, table: &TableName, token: i64) -> Result<()> {
        self.current = Some((table.to_string(), token));
        self.write()
    }

    /// Notes that a table is done.
    pub fn finish(&mut self, table: &TableName) -> Result<()> {
        self.done.insert(table.to_string());
        self.current = None;
        self.write()
    }

    /// Returns true if there is something to go on from.
    pub fn is_begun(&self) -> bool {
        self.current.is_some() || !self.done.is_empty()
    }

    /// Returns the position in words.
    pub fn position(&self) -> String {
        let path = self.path.display();
        match &self.current {
            Some((table, token)) => format!("token {token} of {table} ({path})"),
            None => format!("{} tables ({path})", self.done.len()),
        }
    }

    /// Removes the file.
    pub fn remove(&self) -> Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error)
                .with_context(|| format!("can't remove {}; remove it yourself", self.path.display())),
            _ => Ok(()),
        }
    }

    fn write(&self) -> Result<()> {
        let mut value = json!({"format": FORMAT, "command": self.command, "done": self.done});
        if let Some((table, token)) = &self.current {
            value["table"] = json!(table);
            value["token"] = json!(token);
        }
        replace_file(&self.path, value.to_string().as_bytes())
            .with_context(|| format!("can't write {}; give --state FILE", self.path.display()))
    }
}

/// Returns the options that determine the rows and their target.
fn command(args: &ImportArgs) -> String {
    // URLs are no paths, and stay as they are.
    let full = |place: &String| match fs::canonicalize(place) {
        Ok(path) => path.display().to_string(),
        Err(_) => place.clone(),
    };
    let mut from: Vec<String> = args.from.iter().map(full).collect();
    from.sort();
    let mut to = args.to.clone();
    to.sort();
    let mut parts = vec![
        format!("from {}", from.join(", ")),
        format!("to {}", to.join(", ")),
    ];
    parts.extend(
        args.snapshot
            .as_ref()
            .map(|snapshot| format!("snapshot {snapshot}")),
    );
    parts.extend(args.backup.as_ref().map(|backup| format!("backup {backup}")));
    parts.extend(args.since.map(|since| format!("since {}", since.us)));
    for (name, given) in [("table", &args.tables.table), ("keyspace", &args.tables.keyspace)] {
        if !given.is_empty() {
            parts.push(format!("{name} {}", given.join(", ")));
        }
    }
    parts.join("; ")
}

/// Returns the path of a command's state in the current folder.
fn default_path(command: &str) -> PathBuf {
    let hash = Sha256::digest(command.as_bytes());
    let hash: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    PathBuf::from(format!("helenus-import-{hash}.state"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: ImportArgs,
    }

    fn args(given: &[&str]) -> ImportArgs {
        Cli::parse_from([&["import"], given].concat()).args
    }

    #[test]
    fn state_is_read_as_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s").display().to_string();
        let given = args(&["--from", "/a", "--to", "h", "--state", &file]);
        let (one, two) = (TableName::new("ks", "one"), TableName::new("ks", "Two"));
        let mut state = State::open(&given).unwrap();
        assert!(!state.is_begun());
        state.finish(&one).unwrap();
        state.reach(&two, -5).unwrap();

        let again = State::open(&given).unwrap();
        assert!(again.is_done(&one) && !again.is_done(&two));
        assert_eq!(
            (again.resume_token(&two), again.resume_token(&one)),
            (Some(-5), None)
        );
        assert!(again.position().contains("token -5 of ks.\"Two\""));

        let restarted = State::open(&args(&[
            "--from",
            "/a",
            "--to",
            "h",
            "--state",
            &file,
            "--restart",
        ]));
        assert!(!restarted.unwrap().is_begun());
        again.remove().unwrap();
        again.remove().unwrap();
        assert!(!State::open(&given).unwrap().is_begun());
    }

    #[test]
    fn state_of_other_options_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s").display().to_string();
        let mut state = State::open(&args(&["--from", "/a", "--to", "h", "--state", &file])).unwrap();
        state.finish(&TableName::new("ks", "t")).unwrap();
        let other = State::open(&args(&["--from", "/b", "--to", "h", "--state", &file]));
        assert!(format!("{:#}", other.unwrap_err()).contains("other options (from /a; to h)"));
        fs::write(&file, "{").unwrap();
        let torn = State::open(&args(&["--from", "/a", "--to", "h", "--state", &file]));
        assert!(format!("{:#}", torn.unwrap_err()).contains("--restart"));
    }

    #[test]
    fn order_of_sources_names_the_same_state() {
        let one = command(&args(&["--from", "/a", "--from", "/b", "--to", "h"]));
        assert_eq!(
            one,
            command(&args(&["--from", "/b", "--from", "/a", "--to", "h"]))
        );
        assert_ne!(
            default_path(&one),
            default_path(&command(&args(&["--from", "/a", "--to", "h"])))
        );
    }
}
