//! The options that choose tables.

use anyhow::{Result, bail};
use clap::Args;
use helenus_import::TableName;

/// Tables that a command works on: all, or those that are given.
#[derive(Args, Clone, Debug, Default)]
pub struct TableFilter {
    /// Only the tables of this keyspace; may be given several times
    #[arg(long, value_name = "KEYSPACE")]
    pub keyspace: Vec<String>,
    /// Only this table, as KEYSPACE.TABLE; may be given several times
    #[arg(long, value_name = "TABLE")]
    pub table: Vec<String>,
    /// Leave out this table or view, as KEYSPACE.TABLE; may be given several times
    #[arg(long, value_name = "TABLE")]
    pub exclude: Vec<String>,
}

impl TableFilter {
    /// Returns true if neither tables nor keyspaces are given.
    pub fn is_open(&self) -> bool {
        self.table.is_empty() && self.keyspace.is_empty()
    }

    /// Returns true for a table that `--table` or `--keyspace` names, or if neither is given. False for those of `--exclude`.
    pub fn is_wanted(&self, name: &TableName) -> bool {
        if self.exclude.iter().any(|given| name.is_given_as(given)) {
            return false;
        }
        self.is_open()
            || self.keyspace.contains(&name.keyspace)
            || self.table.iter().any(|given| name.is_given_as(given))
    }

    /// Refuses names that no known table has. `nowhere` begins the reason, such as "the sources have no".
    pub fn check_names<'a>(
        &self,
        known: impl Iterator<Item = &'a TableName> + Clone,
        nowhere: &str,
    ) -> Result<()> {
        for keyspace in &self.keyspace {
            if !known.clone().any(|name| name.keyspace == *keyspace) {
                bail!("--keyspace {keyspace}: {nowhere} table in such a keyspace");
            }
        }
        for (option, tables) in [("--table", &self.table), ("--exclude", &self.exclude)] {
            for table in tables {
                if !known.clone().any(|name| name.is_given_as(table)) {
                    bail!("{option} {table}: {nowhere} such table; give KEYSPACE.TABLE");
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(keyspace: &[&str], table: &[&str], exclude: &[&str]) -> TableFilter {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        TableFilter {
            keyspace: owned(keyspace),
            table: owned(table),
            exclude: owned(exclude),
        }
    }

    #[test]
    fn tables_are_chosen_by_name() {
        let (one, two, other) = (
            TableName::new("ks", "one"),
            TableName::new("ks", "Two"),
            TableName::new("other", "t"),
        );
        let wanted = |filter: &TableFilter| {
            [&one, &two, &other]
                .into_iter()
                .map(|name| filter.is_wanted(name))
                .collect::<Vec<_>>()
        };
        assert_eq!(wanted(&TableFilter::default()), [true, true, true]);
        assert_eq!(
            wanted(&filter(&["ks"], &[], &["ks.\"Two\""])),
            [true, false, false]
        );
        assert_eq!(
            wanted(&filter(&[], &["ks.Two", "other.t"], &[])),
            [false, true, true]
        );
        let known = [&one, &two];
        let check = |filter: TableFilter| {
            let checked = filter.check_names(known.into_iter(), "the sources have no");
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(check(filter(&["ks"], &["ks.one"], &["ks.Two"])), Ok(()));
        for (filter, words) in [
            (
                filter(&["none"], &[], &[]),
                "--keyspace none: the sources have no table in such a keyspace",
            ),
            (
                filter(&[], &["one"], &[]),
                "--table one: the sources have no such table; give KEYSPACE.TABLE",
            ),
            (
                filter(&[], &[], &["ks.x"]),
                "--exclude ks.x: the sources have no such table; give KEYSPACE.TABLE",
            ),
        ] {
            assert_eq!(check(filter), Err(words.to_owned()));
        }
    }
}
