//! Documents for snapshots.

use helenus_tablet::PinnedTablet;
use serde::{Deserialize, Serialize};

use super::pinned::PinnedDoc;
use super::{KeyspaceDoc, keyspace_doc, read_keyspace};
use crate::schema::{EntryTable, Snapshot};

#[derive(Serialize, Deserialize)]
pub(crate) struct SnapshotDoc {
    tag: String,
    taken_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pinned: Option<Vec<PinnedDoc>>,
    /// The keyspace, with the snapshot's tables.
    keyspace: KeyspaceDoc,
}

impl From<&Snapshot> for SnapshotDoc {
    fn from(snapshot: &Snapshot) -> SnapshotDoc {
        SnapshotDoc {
            tag: snapshot.tag.clone(),
            taken_ms: snapshot.taken_ms,
            expires_ms: snapshot.expires_ms,
            pinned: snapshot
                .pinned
                .as_ref()
                .map(|pinned| pinned.iter().map(PinnedDoc::from).collect()),
            keyspace: keyspace_doc(&snapshot.keyspace),
        }
    }
}

pub(crate) fn read_snapshot(document: SnapshotDoc, entry_table: EntryTable) -> Result<Snapshot, String> {
    Ok(Snapshot {
        tag: document.tag,
        taken_ms: document.taken_ms,
        expires_ms: document.expires_ms,
        pinned: document
            .pinned
            .map(|pinned| pinned.into_iter().map(PinnedTablet::from).collect()),
        keyspace: read_keyspace(document.keyspace, entry_table)?.into(),
    })
}
