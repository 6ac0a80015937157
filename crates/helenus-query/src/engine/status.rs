//! Facts about this node for operators.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use futures::future::BoxFuture;
use helenus_cql::error::CqlError;
use helenus_cql::value::text::from_string;
use helenus_row::murmur3_token;

use super::system::local;
use super::{Engine, LocalNode};
use crate::cluster::Source;
use crate::request::{ClientFrame, ClientState, QueryParameters};
use crate::response::Response;
use crate::schema::Table;

/// Virtual tables without secrets, which operators read without a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedTable {
    ThreadPools,
    SstableTasks,
    CompactionHistory,
    ViewBuildStatus,
    Keyspaces,
    Snapshots,
}

impl ReportedTable {
    /// All tables, with the names by which operators request them.
    pub const ALL: [(&'static str, ReportedTable); 6] = [
        ("thread_pools", ReportedTable::ThreadPools),
        ("sstable_tasks", ReportedTable::SstableTasks),
        ("compaction_history", ReportedTable::CompactionHistory),
        ("view_build_status", ReportedTable::ViewBuildStatus),
        ("keyspaces", ReportedTable::Keyspaces),
        ("snapshots", ReportedTable::Snapshots),
    ];

    fn full_name(self) -> &'static str {
        match self {
            ReportedTable::ThreadPools => "system_views.thread_pools",
            ReportedTable::SstableTasks => "system_views.sstable_tasks",
            ReportedTable::CompactionHistory => "system.compaction_history",
            ReportedTable::ViewBuildStatus => "system_distributed.view_build_status",
            ReportedTable::Keyspaces => "system_schema.keyspaces",
            ReportedTable::Snapshots => "system_views.snapshots",
        }
    }
}

impl Engine {
    /// Returns the node's description of itself in `system.local`.
    pub fn node(&self) -> &LocalNode {
        &self.node
    }

    /// Returns `gossip_generation` of `system.local`: the time at which the engine was opened, in seconds since the Unix epoch.
    pub fn generation_s(&self) -> i32 {
        self.generation_s
    }

    /// Returns the last tokens of the ranges that this node owns. Empty if the node has left its cluster.
    pub fn tokens(&self) -> Vec<i64> {
        local::tokens(self)
    }

    /// Returns the rows of a virtual table, each in the form of `SELECT JSON`. No permissions are needed.
    ///
    /// # Errors
    /// The statement is refused.
    pub fn reported_rows(
        self: &Arc<Self>,
        table: ReportedTable,
    ) -> BoxFuture<'_, Result<Vec<String>, CqlError>> {
        // The type of the future that runs any statement is too deep for the callers' compilation.
        Box::pin(async move {
            let text = format!("SELECT JSON * FROM {}", table.full_name());
            let planned = Arc::new(self.plan(None, &self.parse(&text)?)?);
            let (client, parameters) = (ClientState::default(), QueryParameters::default());
            let frame = ClientFrame::from(&parameters);
            let run = self.run(&client, None, Source::Text(&text), &planned, frame);
            let Response::Rows(rows) = run.await?.response else {
                return Ok(Vec::new());
            };
            let cells = rows
                .content
                .iter()
                .filter_map(|row| row.into_iter().next().flatten());
            Ok(cells
                .map(|json| String::from_utf8_lossy(&json).into_owned())
                .collect())
        })
    }

    /// Returns the token of a partition whose key is given as text (Cassandra's `StorageService.getNaturalEndpoints`). Components of a
    /// composite key are separated by colons. A colon within a component is written `\:`.
    ///
    /// # Errors
    /// A message: there is no such table, or the text is not a key of the table.
    pub fn token_of_key(&self, keyspace: &str, table: &str, key: &str) -> Result<i64, String> {
        let schema = self.schema();
        if schema.keyspace(keyspace).is_none() {
            return Err(format!("Unknown keyspace '{keyspace}'"));
        }
        let found = schema.table(keyspace, table);
        let table = found.ok_or_else(|| format!("Unknown table '{table}' in keyspace '{keyspace}'"))?;
        Ok(murmur3_token(&key_of_text(table, key)?))
    }
}

fn key_of_text(table: &Table, text: &str) -> Result<Bytes, String> {
    let columns = table.partition_key();
    if let [column] = columns {
        return from_string(&column.ty, text);
    }
    let parts = components(text);
    if parts.len() != columns.len() {
        return Err(format!(
            "the key of {} has {} components, and {} are given",
            table.full_name(),
            columns.len(),
            parts.len()
        ));
    }
    let mut key = BytesMut::new();
    for (column, part) in columns.iter().zip(&parts) {
        let value = from_string(&column.ty, part)?;
        let length = u16::try_from(value.len()).map_err(|_| "a component is too long".to_owned())?;
        key.put_u16(length);
        key.put_slice(&value);
        key.put_u8(0);
    }
    Ok(key.freeze())
}

/// Returns the parts of a text that are separated by colons without a backslash before them.
fn components(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.next_if_eq(&':').is_some() => push(&mut parts, ':'),
            ':' => parts.push(String::new()),
            other => push(&mut parts, other),
        }
    }
    parts
}

fn push(parts: &mut [String], character: char) {
    if let Some(last) = parts.last_mut() {
        last.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::components;

    #[test]
    fn colons_part_components_unless_they_are_escaped() {
        assert_eq!(components("a:b"), ["a", "b"]);
        assert_eq!(components(r"a\:b:c\d:"), ["a:b", r"c\d", ""]);
    }
}
