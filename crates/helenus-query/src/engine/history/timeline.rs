//! The schemas of the past: documents `history/schema/<milliseconds>-<version>.<kind>`.
//!
//! A change is written down by the node that makes it, as the lines of the journal that lead from one version of the schema to the next
//! ([`crate::schema::documents::journal`]). Now and then the schema is written whole. A change that a node could not write down, since it ended, is
//! in the next whole one.

use helenus_cql::error::CqlError;
use helenus_tablet::BackupSchemaChange;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::SKEW_MS;
use crate::analysis::restrictions::view_filter::link;
use crate::engine::Engine;
use crate::engine::ddl::schema_store::read_whole;
use crate::failure::store_error;
use crate::index::entries::hidden_table;
use crate::schema::documents::journal::{apply, damaged, difference, unwritable};
use crate::schema::{Schema, documents};

const FOLDER: &str = "schema";

/// What a document has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Whole,
    Change,
}

/// The name of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    time_ms: i64,
    /// The schema from then on.
    version: Uuid,
    kind: Kind,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind {
            Kind::Whole => "whole",
            Kind::Change => "change",
        };
        write!(f, "{:013}-{}.{kind}", self.time_ms.max(0), self.version)
    }
}

impl Name {
    fn parse(text: &str) -> Option<Name> {
        let (stem, kind) = text.split_once('.')?;
        let (time, version) = stem.split_once('-')?;
        Some(Name {
            time_ms: time.parse().ok()?,
            version: version.parse().ok()?,
            kind: match kind {
                "whole" => Kind::Whole,
                "change" => Kind::Change,
                _ => return None,
            },
        })
    }
}

#[derive(Serialize, Deserialize)]
struct ChangeDoc {
    /// The version of the schema before.
    before: Uuid,
    next_table_number: u32,
    lines: Vec<String>,
}

impl Engine {
    /// Writes down a change of the schema, if the past is kept. One that can't be written down is in the next schema that is written whole.
    pub(in crate::engine) async fn note_schema(&self, before: &Schema, after: &Schema) {
        if !self.history.is_on() {
            return;
        }
        if let Err(error) = self.write_change(before, after).await {
            tracing::warn!(%error, "a change of the schema is not in the history of the schema yet");
        }
    }

    async fn write_change(&self, before: &Schema, after: &Schema) -> Result<(), CqlError> {
        let lines = difference(before, after);
        let lines = lines
            .iter()
            .map(serde_json::to_string)
            .collect::<Result<Vec<_>, _>>();
        let document = ChangeDoc {
            before: before.version,
            next_table_number: after.next_table_number,
            lines: lines.map_err(|error| unwritable(&error))?,
        };
        let content = serde_json::to_vec(&document).map_err(|error| unwritable(&error))?;
        let name = Name {
            time_ms: self.now_ms(),
            version: after.version,
            kind: Kind::Change,
        };
        self.put(name, content).await
    }

    async fn timeline(&self) -> Result<Vec<Name>, CqlError> {
        let names = self
            .context
            .store
            .list_history(FOLDER)
            .await
            .map_err(store_error)?;
        Ok(names.iter().filter_map(|name| Name::parse(name)).collect())
    }

    /// Writes the schema whole, unless that was the last thing that was written down; also if it is not known at all, when `is_due` is false.
    ///
    /// # Errors
    /// The store can't be read or written to.
    pub(super) async fn note_whole_schema(&self, is_due: bool) -> Result<(), CqlError> {
        let schema = self.schema();
        let names = self.timeline().await?;
        let mut known = names.iter().filter(|name| name.version == schema.version);
        let is_known = match is_due {
            true => known.any(|name| name.kind == Kind::Whole),
            false => known.next().is_some(),
        };
        if is_known {
            return Ok(());
        }
        let name = Name {
            time_ms: self.now_ms(),
            version: schema.version,
            kind: Kind::Whole,
        };
        let content = documents::encode(&schema)?;
        self.put(name, content).await
    }

    /// The schema of a time, without the keyspaces that are computed.
    ///
    /// # Errors
    /// It is not known, or the store can't be read.
    pub(super) async fn schema_at(&self, time_ms: i64) -> Result<Schema, CqlError> {
        let names = self.timeline().await?;
        let whole = names
            .iter()
            .rev()
            .find(|name| name.kind == Kind::Whole && name.time_ms <= time_ms);
        let whole = whole.ok_or_else(|| CqlError::invalid("the schema of that time is not known"))?;
        let mut schema = read_whole(&self.read(*whole).await?)?;
        schema.version = whole.version;
        let changes = names.iter().filter(|name| {
            let is_near = name.time_ms >= whole.time_ms - SKEW_MS && name.time_ms <= time_ms;
            name.kind == Kind::Change && is_near
        });
        for name in changes {
            let change = serde_json::from_slice(&self.read(*name).await?).map_err(damaged)?;
            follow(&mut schema, name.version, &change)?;
        }
        link(&mut schema)?;
        Ok(schema)
    }

    /// All changes that are written down, for a backup.
    ///
    /// # Errors
    /// The store can't be read.
    pub(in crate::engine) async fn schema_changes(&self) -> Result<Vec<BackupSchemaChange>, CqlError> {
        let mut changes = Vec::new();
        for name in self.timeline().await? {
            if name.kind == Kind::Change {
                changes.push(BackupSchemaChange {
                    time_ms: name.time_ms,
                    version: name.version,
                    change: serde_json::from_slice(&self.read(name).await?).map_err(damaged)?,
                });
            }
        }
        Ok(changes)
    }

    async fn put(&self, name: Name, content: Vec<u8>) -> Result<(), CqlError> {
        let name = name.to_string();
        let put = self.context.store.put_history(FOLDER, &name, content).await;
        put.map_err(store_error)
    }

    async fn read(&self, name: Name) -> Result<Vec<u8>, CqlError> {
        let name = name.to_string();
        let found = self
            .context
            .store
            .get_history(FOLDER, &name)
            .await
            .map_err(store_error)?;
        found.ok_or_else(|| damaged(format!("history/{FOLDER}/{name} is gone")))
    }

    /// Removes what no time from that one on needs.
    ///
    /// # Errors
    /// The store can't be read or written to.
    pub(super) async fn trim_timeline(&self, from_ms: i64) -> Result<(), CqlError> {
        let names = self.timeline().await?;
        let needed = names
            .iter()
            .rposition(|name| name.kind == Kind::Whole && name.time_ms <= from_ms);
        let Some(first_ms) = needed.and_then(|at| names.get(at)).map(|name| name.time_ms) else {
            return Ok(());
        };
        for name in names.iter().filter(|name| name.time_ms < first_ms - SKEW_MS) {
            let deleted = self.context.store.delete_history(FOLDER, &name.to_string()).await;
            deleted.map_err(store_error)?;
        }
        Ok(())
    }

    /// Removes the whole timeline.
    ///
    /// # Errors
    /// The store can't be read or written to.
    pub(super) async fn remove_timeline(&self) -> Result<(), CqlError> {
        for name in self.timeline().await? {
            let deleted = self.context.store.delete_history(FOLDER, &name.to_string()).await;
            deleted.map_err(store_error)?;
        }
        Ok(())
    }
}

/// Does to a schema what led from it to another version; nothing if the change is of another schema.
fn follow(schema: &mut Schema, version: Uuid, change: &ChangeDoc) -> Result<(), CqlError> {
    if change.before != schema.version {
        return Ok(());
    }
    for line in &change.lines {
        apply(schema, line, hidden_table)?;
    }
    schema.version = version;
    schema.next_table_number = change.next_table_number;
    Ok(())
}

/// The schema of a time after a backup, whose schema is given, by the changes that later backups have.
///
/// # Errors
/// A change is damaged, or a newer binary has written it.
pub(in crate::engine) fn schema_after<'c>(
    mut schema: Schema,
    version: Uuid,
    changes: impl Iterator<Item = &'c BackupSchemaChange>,
    time_ms: i64,
) -> Result<Schema, CqlError> {
    schema.version = version;
    for change in changes.filter(|change| change.time_ms <= time_ms) {
        let document: ChangeDoc = serde_json::from_value(change.change.clone()).map_err(damaged)?;
        follow(&mut schema, change.version, &document)?;
    }
    link(&mut schema)?;
    Ok(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_documents_read_back_and_stand_in_the_order_of_time() {
        let name = |time_ms, kind| Name {
            time_ms,
            version: Uuid::from_u128(7),
            kind,
        };
        for kind in [Kind::Whole, Kind::Change] {
            let name = name(1_764_000_000_000, kind);
            assert_eq!(Name::parse(&name.to_string()), Some(name));
        }
        assert!(
            name(999_999_999_999, Kind::Whole).to_string()
                < name(1_000_000_000_000, Kind::Change).to_string()
        );
        for other in [
            "",
            "5.whole",
            "5-x.whole",
            "5-00000000-0000-0000-0000-000000000007.other",
        ] {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }
}
