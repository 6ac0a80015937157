//! The state of replications, in tables of the source: what is copied, and the time up to which each stream was sent.
//!
//! The tables are never replicated. All writes may be repeated, and an older time may replace a newer one: changes are then sent again, which
//! alters nothing.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use bytes::Bytes;
use helenus_cql::frame::BoundValue;
use helenus_cql::types::CqlType;
use helenus_cql::value::{pack_set, read_elements};
use helenus_import::TableName;

use crate::import::target::Target;
use crate::node_session::NodeSession;

/// The keyspace of the state.
pub const KEYSPACE: &str = "helenus_replication";

const SCHEMA: [&str; 5] = [
    "CREATE KEYSPACE IF NOT EXISTS helenus_replication WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
    "CREATE TABLE IF NOT EXISTS helenus_replication.tables (name text, table_name text, start_us bigint, ranges int, copied set<int>, \
     stopped text, PRIMARY KEY (name, table_name)) WITH comment = 'tables of a replication, and the copied ranges of tokens'",
    "CREATE TABLE IF NOT EXISTS helenus_replication.streams (name text, table_name text, stream blob, sent_until_us bigint, lag_s double, \
     rows_per_s double, rows bigint, PRIMARY KEY (name, table_name, stream)) WITH comment = 'streams of changes: sent_until_us is where another process goes on'",
    "CREATE TABLE IF NOT EXISTS helenus_replication.workers (name text, worker text, PRIMARY KEY (name, worker)) \
     WITH comment = 'processes that are alive'",
    "CREATE TABLE IF NOT EXISTS helenus_replication.leases (name text, slot int, owner text, PRIMARY KEY (name, slot)) \
     WITH comment = 'shares of the work, and the process that does each'",
];

/// The state of one replication.
#[derive(Clone, Debug)]
pub struct State {
    /// The name of the replication.
    pub name: String,
}

/// The state of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableState {
    /// Time from which changes are sent, in µs since 1970.
    pub start_us: i64,
    /// Number of ranges of tokens that are copied. 0 if no rows are copied.
    pub ranges: i32,
    /// Ranges that are copied.
    pub copied: BTreeSet<i32>,
}

/// The progress of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Reached {
    /// Time up to which all changes were sent, in µs since 1970.
    pub until_us: i64,
    /// Greatest lag in seconds since the last note.
    pub lag_s: f64,
    /// Rows of the log a second, when they were sent last.
    pub rows_per_s: f64,
    /// Rows of the log that this process has sent.
    pub rows: u64,
}

impl State {
    /// Creates the tables, unless all are there. A role without the permission to create them may then run the command.
    pub fn create(source: &mut Target) -> Result<()> {
        let known = source.select(
            "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'helenus_replication'",
        )?;
        if known.len() >= SCHEMA.len() - 1 {
            return Ok(());
        }
        SCHEMA.iter().try_for_each(|statement| {
            source
                .execute(statement)
                .with_context(|| format!("can't create the tables of the state: {statement}"))
        })
    }

    /// Returns the state of a table, which begins at `start_us` if it is new.
    pub fn begin(
        &self,
        session: &mut NodeSession,
        table: &TableName,
        start_us: i64,
        ranges: i32,
    ) -> Result<TableState> {
        let key = [text(&self.name), text(&table.to_string())];
        let [name, table_name] = key.clone();
        let values = [name, table_name, bigint(start_us), int(ranges)].map(BoundValue::Set);
        session.execute(
            "INSERT INTO helenus_replication.tables (name, table_name, start_us, ranges) VALUES (?, ?, ?, ?) IF NOT EXISTS",
            &values,
        )?;
        let rows = session.rows(
            "SELECT start_us, ranges, copied FROM helenus_replication.tables WHERE name = ? AND table_name = ?",
            &key,
        )?;
        let Some([start, ranges_found, copied]) = rows.first().map(Vec::as_slice) else {
            return Ok(TableState {
                start_us,
                ranges,
                copied: BTreeSet::new(),
            });
        };
        Ok(TableState {
            start_us: start.as_deref().and_then(to_bigint).unwrap_or(start_us),
            ranges: ranges_found.as_deref().and_then(to_int).unwrap_or(ranges),
            copied: to_ranges(copied.as_ref()),
        })
    }

    /// Returns the copied ranges of a table.
    pub fn copied(&self, session: &mut NodeSession, table: &TableName) -> Result<BTreeSet<i32>> {
        let rows = session.rows(
            "SELECT copied FROM helenus_replication.tables WHERE name = ? AND table_name = ?",
            &[text(&self.name), text(&table.to_string())],
        )?;
        let copied = rows.first().and_then(|row| row.first());
        Ok(to_ranges(copied.and_then(Option::as_ref)))
    }

    /// Notes that a range of tokens is copied.
    pub fn finish_range(&self, session: &mut NodeSession, table: &TableName, range: i32) -> Result<()> {
        let ranges = pack_set(&CqlType::INT, [range.to_be_bytes()]);
        let values = [ranges, text(&self.name), text(&table.to_string())].map(BoundValue::Set);
        session.execute(
            "UPDATE helenus_replication.tables SET copied = copied + ? WHERE name = ? AND table_name = ?",
            &values,
        )?;
        Ok(())
    }

    /// Notes the reason why a table has stopped. `None` if it goes on.
    pub fn set_stopped(
        &self,
        session: &mut NodeSession,
        table: &TableName,
        reason: Option<&str>,
    ) -> Result<()> {
        let reason = reason.map_or(BoundValue::Null, |reason| BoundValue::Set(text(reason)));
        let key = [text(&self.name), text(&table.to_string())].map(BoundValue::Set);
        let [name, table] = key;
        session.execute(
            "UPDATE helenus_replication.tables SET stopped = ? WHERE name = ? AND table_name = ?",
            &[reason, name, table],
        )?;
        Ok(())
    }

    /// Forgets a table.
    pub fn forget(&self, session: &mut NodeSession, table: &TableName) -> Result<()> {
        for from in ["tables", "streams"] {
            let values = [text(&self.name), text(&table.to_string())].map(BoundValue::Set);
            session.execute(
                &format!("DELETE FROM helenus_replication.{from} WHERE name = ? AND table_name = ?"),
                &values,
            )?;
        }
        Ok(())
    }

    /// Returns the times up to which the streams of a table were sent, in µs since 1970.
    pub fn streams(&self, session: &mut NodeSession, table: &TableName) -> Result<BTreeMap<Bytes, i64>> {
        let rows = session.rows(
            "SELECT stream, sent_until_us FROM helenus_replication.streams WHERE name = ? AND table_name = ?",
            &[text(&self.name), text(&table.to_string())],
        )?;
        let stream = |row: &Vec<Option<Bytes>>| match row.as_slice() {
            [Some(stream), Some(until)] => Some((stream.clone(), to_bigint(until)?)),
            _ => None,
        };
        Ok(rows.iter().filter_map(stream).collect())
    }

    /// Notes how far a stream was sent.
    pub fn reach(
        &self,
        session: &mut NodeSession,
        table: &TableName,
        stream: &Bytes,
        reached: &Reached,
    ) -> Result<()> {
        let values = [
            text(&self.name),
            text(&table.to_string()),
            stream.clone(),
            bigint(reached.until_us),
            double(reached.lag_s),
            double(reached.rows_per_s),
            bigint(i64::try_from(reached.rows).unwrap_or(i64::MAX)),
        ];
        session.execute(
            "INSERT INTO helenus_replication.streams (name, table_name, stream, sent_until_us, lag_s, rows_per_s, rows) \
             VALUES (?, ?, ?, ?, ?, ?, ?)",
            &values.map(BoundValue::Set),
        )?;
        Ok(())
    }
}

/// Returns the numbers of a serialized set. `None` is the empty one.
fn to_ranges(set: Option<&Bytes>) -> BTreeSet<i32> {
    let ty = CqlType::set(CqlType::INT, false);
    let elements = set
        .and_then(|set| read_elements(&ty, set).ok())
        .unwrap_or_default();
    elements.into_iter().filter_map(to_int).collect()
}

/// Returns a serialized text.
pub fn text(value: &str) -> Bytes {
    Bytes::copy_from_slice(value.as_bytes())
}

/// Returns a serialized int.
pub fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

/// Returns a serialized bigint.
pub fn bigint(value: i64) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

/// Returns a serialized double.
fn double(value: f64) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

/// Returns the value of a serialized int. `None` if the bytes are none.
pub fn to_int(bytes: &[u8]) -> Option<i32> {
    bytes.try_into().ok().map(i32::from_be_bytes)
}

/// Returns the value of a serialized bigint or timestamp. `None` if the bytes are none.
pub fn to_bigint(bytes: &[u8]) -> Option<i64> {
    bytes.try_into().ok().map(i64::from_be_bytes)
}
