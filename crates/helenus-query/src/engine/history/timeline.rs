//! The history of the schema: documents `history/schema/<milliseconds>-<version>.<kind>`.
//!
//! Versions are ordered by the changes that lead from one to the next. Times only say where to stop, since a clock may have been set back.
//!
//! The node that makes a change writes it down as lines of the journal ([`crate::schema::documents::journal`]). From time to time the whole
//! schema is written. If a node ends before it has written a change, the next whole schema contains the change.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use helenus_cql::error::CqlError;
use helenus_tablet::{BackupSchemaChange, SetBack};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::SKEW_MS;
use super::base::Base;
use crate::analysis::restrictions::view_filter::link;
use crate::engine::Engine;
use crate::engine::ddl::schema_store::read_whole;
use crate::failure::store_error;
use crate::index::entries::hidden_table;
use crate::schema::documents::journal::{apply, damaged, difference, unwritable};
use crate::schema::{Schema, documents};

const FOLDER: &str = "schema";

/// Kind of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Whole,
    Change,
}

/// The name of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    time_ms: i64,
    /// Version of the schema from that time on.
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
    /// Version of the schema before the change.
    before: Uuid,
    next_table_number: u32,
    lines: Vec<String>,
}

impl Engine {
    /// Writes down a change of the schema, if history is kept. If that fails, the next whole schema contains the change.
    pub(in crate::engine) async fn note_schema(&self, before: &Schema, after: &Schema) {
        if !self.cuts.history.is_on() {
            return;
        }
        if let Err(error) = self.note_released(before, after).await {
            tracing::warn!(%error, "times at which a dropped branch existed may not be readable");
        }
        let is_first = !self.cuts.history.has_noted.swap(true, Ordering::AcqRel);
        if is_first && let Err(error) = self.note_change_before(before).await {
            tracing::warn!(%error, "a change of the schema that a killed node has made is not in the history of the schema");
        }
        if let Err(error) = self.write_change(before, after).await {
            tracing::warn!(%error, "a change of the schema is not in the history of the schema yet");
        }
    }

    /// Writes down the lost change before the first change of this process, if there is one.
    ///
    /// # Errors
    /// The store can't be read or written to.
    async fn note_change_before(&self, schema: &Schema) -> Result<(), CqlError> {
        let names = self.timeline().await?;
        self.note_lost_change(&names, schema).await
    }

    /// Writes down the change that leads from the last known version to this schema, if the version is not among the documents. A node that
    /// was killed may have changed the schema without writing the change down.
    ///
    /// # Errors
    /// The store can't be read or written to.
    async fn note_lost_change(&self, names: &[Name], schema: &Schema) -> Result<(), CqlError> {
        if names.iter().any(|name| name.version == schema.version) {
            return Ok(());
        }
        let bases = self.bases().await?;
        let Some(last) = bases.last() else { return Ok(()) };
        let known = self.schema_at(last, i64::MAX, SetBack::Nowhere).await?;
        self.write_change(&known, schema).await
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

    /// Writes the whole schema, unless it is written down already. If `is_due`, only a whole schema counts as such, and otherwise a change
    /// too. Returns the version.
    ///
    /// # Errors
    /// The store can't be read or written to.
    pub(super) async fn note_whole_schema(&self, is_due: bool) -> Result<Uuid, CqlError> {
        let schema = self.schema();
        let names = self.timeline().await?;
        let mut known = names.iter().filter(|name| name.version == schema.version);
        let is_known = match is_due {
            true => known.any(|name| name.kind == Kind::Whole),
            false => known.next().is_some(),
        };
        if is_known {
            return Ok(schema.version);
        }
        self.note_lost_change(&names, &schema).await?;
        let name = Name {
            time_ms: self.now_ms(),
            version: schema.version,
            kind: Kind::Whole,
        };
        let content = documents::encode(&schema)?;
        self.put(name, content).await?;
        Ok(schema.version)
    }

    /// Returns the schema of a time after a base, without virtual keyspaces.
    ///
    /// # Errors
    /// The schema is unknown, or the store can't be read.
    pub(super) async fn schema_at(
        &self,
        base: &Base,
        time_ms: i64,
        set_back: SetBack,
    ) -> Result<Schema, CqlError> {
        let names = self.timeline().await?;
        let mut wholes = names.iter().rev().filter(|name| name.kind == Kind::Whole);
        let whole = match base.schema {
            Some(version) => wholes.find(|name| name.version == version),
            None => wholes.find(|name| name.time_ms <= time_ms),
        };
        let whole = whole.ok_or_else(|| CqlError::invalid("the schema of that time is not known"))?;
        let mut schema = read_whole(&self.read(*whole).await?)?;
        schema.version = whole.version;
        let since_ms = base.schema.map_or(whole.time_ms, |_| base.taken_ms) - SKEW_MS;
        let is_wanted = |name: &&Name| {
            let is_near = name.time_ms >= since_ms && name.time_ms <= time_ms;
            name.kind == Kind::Change && (is_near || matches!(set_back, SetBack::Before { .. }))
        };
        let mut changes = HashMap::new();
        for name in names.iter().filter(is_wanted) {
            let document: ChangeDoc = serde_json::from_slice(&self.read(*name).await?).map_err(damaged)?;
            let change = Change {
                time_ms: name.time_ms,
                version: name.version,
                document,
            };
            add_change(&mut changes, change);
        }
        let mut chain = in_order(schema.version, &mut changes);
        let known: BTreeSet<Uuid> = chain.iter().map(|change| change.version).collect();
        let known_ms = chain
            .iter()
            .map(|change| change.time_ms)
            .max()
            .unwrap_or(i64::MIN);
        // A change that a node could not write down is contained in the next whole schema.
        let is_beyond = |name: &&Name| {
            let is_later = name.time_ms > known_ms.max(base.taken_ms) && name.time_ms <= time_ms;
            is_later && name.version != whole.version && !known.contains(&name.version)
        };
        let mut next = names.iter().filter(|name| name.kind == Kind::Whole);
        match next.rfind(|name| is_beyond(name)) {
            Some(next) if set_back == SetBack::Nowhere => {
                schema = read_whole(&self.read(*next).await?)?;
                schema.version = next.version;
                chain = in_order(next.version, &mut changes);
            }
            _ => {}
        }
        apply_until(&mut schema, &chain, time_ms, set_back)?;
        link(&mut schema)?;
        Ok(schema)
    }

    /// Returns all changes of the schema that are written down, for a backup.
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

    /// Removes the documents that no time after one of these bases needs.
    ///
    /// # Errors
    /// The store can't be read or written to.
    pub(super) async fn trim_timeline(&self, bases: &[Arc<Base>]) -> Result<(), CqlError> {
        let names = self.timeline().await?;
        let Some(from_ms) = bases.iter().map(|base| base.taken_ms).min() else {
            return Ok(());
        };
        let named: BTreeSet<Uuid> = bases.iter().filter_map(|base| base.schema).collect();
        let is_whole = |name: &&Name| name.kind == Kind::Whole;
        // A base of an older binary names no version. It needs the last whole schema before it, and all later documents.
        let first_ms = match bases.iter().all(|base| base.schema.is_some()) {
            true => Some(from_ms),
            false => names
                .iter()
                .filter(is_whole)
                .map(|name| name.time_ms)
                .rfind(|time_ms| *time_ms <= from_ms),
        };
        let Some(first_ms) = first_ms else {
            return Ok(());
        };
        let is_needed = |name: &&Name| {
            name.time_ms >= first_ms - SKEW_MS || (is_whole(name) && named.contains(&name.version))
        };
        for name in names.iter().filter(|name| !is_needed(name)) {
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

/// A change of the schema, with its time.
struct Change {
    time_ms: i64,
    /// Version of the schema after the change.
    version: Uuid,
    document: ChangeDoc,
}

/// Adds a change to a map by the versions before the changes. The earliest of several changes of one version counts: a later one was only
/// written down for the case that the earlier one is lost.
fn add_change(changes: &mut HashMap<Uuid, Change>, change: Change) {
    match changes.entry(change.document.before) {
        Entry::Occupied(mut known) if change.time_ms < known.get().time_ms => {
            known.insert(change);
        }
        Entry::Occupied(_) => {}
        Entry::Vacant(free) => {
            free.insert(change);
        }
    }
}

/// Takes the consecutive changes that begin at `version` out of the map, and returns them in order. Keys of the map are the versions before
/// the changes.
fn in_order(mut version: Uuid, changes: &mut HashMap<Uuid, Change>) -> Vec<Change> {
    let mut chain = Vec::new();
    while let Some(change) = changes.remove(&version) {
        version = change.version;
        chain.push(change);
    }
    chain
}

fn apply_change(schema: &mut Schema, change: &Change) -> Result<(), CqlError> {
    for line in &change.document.lines {
        apply(schema, line, hidden_table)?;
    }
    schema.version = change.version;
    schema.next_table_number = change.document.next_table_number;
    Ok(())
}

/// Applies the changes up to the last one that was made by `time_ms`.
fn apply_until(
    schema: &mut Schema,
    chain: &[Change],
    time_ms: i64,
    set_back: SetBack,
) -> Result<(), CqlError> {
    for change in chain.iter().take(made_by(chain, time_ms, set_back)) {
        apply_change(schema, change)?;
    }
    Ok(())
}

/// Returns the number of changes that were made by `time_ms`. The changes are in order.
fn made_by(chain: &[Change], time_ms: i64, set_back: SetBack) -> usize {
    let is_made = |change: &Change| change.time_ms <= time_ms;
    let first_later = match set_back {
        SetBack::Nowhere => return chain.iter().rposition(is_made).map_or(0, |last| last + 1),
        SetBack::Before { from_ms } => chain
            .iter()
            .position(|change| change.time_ms > time_ms && change.time_ms < from_ms),
        SetBack::After => {
            let mut latest_ms = i64::MIN;
            chain.iter().position(|change| {
                let is_step = change.time_ms < latest_ms;
                latest_ms = latest_ms.max(change.time_ms);
                is_step || !is_made(change)
            })
        }
    };
    first_later.unwrap_or(chain.len())
}

/// The changes of the schema in backups, in the order in which they lead from one version to the next.
pub(in crate::engine) struct ChangesOfBackups {
    chain: Vec<Change>,
    /// True if the changes lead to the version of the last backup.
    pub are_complete: bool,
}

impl ChangesOfBackups {
    /// Returns the changes from one version to another.
    ///
    /// # Errors
    /// A change is damaged.
    pub fn between<'c>(
        from: Uuid,
        changes: impl Iterator<Item = &'c BackupSchemaChange>,
        to: Uuid,
    ) -> Result<ChangesOfBackups, CqlError> {
        let mut read = HashMap::new();
        for change in changes {
            let document = serde_json::from_value(change.change.clone()).map_err(damaged)?;
            let (time_ms, version) = (change.time_ms, change.version);
            let change = Change {
                time_ms,
                version,
                document,
            };
            add_change(&mut read, change);
        }
        let mut changes = read;
        let mut chain = in_order(from, &mut changes);
        // Changes after `to` may have been written down while the last backup was written.
        let end = chain.iter().position(|change| change.version == to);
        chain.truncate(end.map_or(chain.len(), |end| end + 1));
        Ok(ChangesOfBackups {
            chain,
            are_complete: from == to || end.is_some(),
        })
    }

    /// Applies the changes that were made by `time_ms` to the schema of the first version. Returns false if a change may be missing.
    ///
    /// # Errors
    /// A change is damaged, or was written by a newer binary.
    pub fn apply_until(self, schema: &mut Schema, time_ms: i64) -> Result<bool, CqlError> {
        let is_known = self.are_complete || self.chain.iter().any(|change| change.time_ms > time_ms);
        apply_until(schema, &self.chain, time_ms, SetBack::Nowhere)?;
        link(schema)?;
        Ok(is_known)
    }

    /// Calls `look` with each version of the schema, from the first on.
    ///
    /// # Errors
    /// A change is damaged, or was written by a newer binary.
    pub fn walk(self, schema: &mut Schema, mut look: impl FnMut(&Schema)) -> Result<(), CqlError> {
        look(schema);
        for change in self.chain {
            apply_change(schema, &change)?;
            look(schema);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_after_clock_step_follow_version_order() {
        let chain: Vec<Change> = [(10, 1), (5_000, 2), (20, 3), (30, 4)]
            .map(|(time_ms, version)| Change {
                time_ms,
                version: Uuid::from_u128(version),
                document: ChangeDoc {
                    before: Uuid::from_u128(version - 1),
                    next_table_number: 0,
                    lines: Vec::new(),
                },
            })
            .into();
        let before = |time_ms| made_by(&chain, time_ms, SetBack::Before { from_ms: 4_000 });
        assert_eq!([before(15), before(25), before(40)], [2, 3, 4]);
        let after = |time_ms| made_by(&chain, time_ms, SetBack::After);
        assert_eq!([after(5), after(15), after(5_000)], [0, 1, 2]);
        let mut by_version = chain
            .into_iter()
            .rev()
            .map(|change| (change.document.before, change))
            .collect();
        let order = in_order(Uuid::from_u128(1), &mut by_version);
        let times: Vec<i64> = order.iter().map(|change| change.time_ms).collect();
        assert_eq!(times, [5_000, 20, 30]);
    }

    #[test]
    fn earliest_change_of_a_version_counts() {
        let change = |time_ms, version| Change {
            time_ms,
            version: Uuid::from_u128(version),
            document: ChangeDoc {
                before: Uuid::from_u128(1),
                next_table_number: 0,
                lines: Vec::new(),
            },
        };
        let mut changes = HashMap::new();
        for (time_ms, version) in [(20, 3), (10, 2), (30, 4)] {
            add_change(&mut changes, change(time_ms, version));
        }
        let chain = in_order(Uuid::from_u128(1), &mut changes);
        assert_eq!(
            chain.iter().map(|change| change.time_ms).collect::<Vec<_>>(),
            [10]
        );
    }

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
