//! Encodes and decodes the messages between nodes about index entries.

use helenus_query::cluster::{ListSearch, StaleEntries, StaleEntry};

use super::proto::{self, RemoveStaleRequest, SearchListsRequest};

/// Encodes stale index entries for the owner of their rows.
pub(super) fn stale_request(stale: &StaleEntries) -> RemoveStaleRequest {
    let entry = |entry: &StaleEntry| proto::StaleEntry {
        partition_key: entry.partition_key().clone(),
        clustering: entry.clustering.clone(),
        written_us: entry.written_us,
    };
    RemoveStaleRequest {
        index: stale.index,
        value: stale.value.clone(),
        entries: stale.entries.iter().map(entry).collect(),
    }
}

/// Decodes stale index entries.
pub(super) fn stale_entries(request: RemoveStaleRequest) -> StaleEntries {
    let entry =
        |entry: proto::StaleEntry| StaleEntry::new(entry.partition_key, entry.clustering, entry.written_us);
    StaleEntries {
        index: request.index,
        value: request.value,
        entries: request.entries.into_iter().map(entry).collect(),
    }
}

/// Encodes a search of posting lists for their owner.
pub(super) fn list_search_request(search: &ListSearch) -> SearchListsRequest {
    SearchListsRequest {
        index: search.index,
        lists: search.lists.clone(),
        vector: search
            .vector
            .iter()
            .flat_map(|component| component.to_le_bytes())
            .collect(),
        schema_version: search.schema_version,
    }
}

/// Decodes a search of posting lists.
pub(super) fn list_search(request: SearchListsRequest) -> ListSearch {
    let (components, _) = request.vector.as_chunks();
    ListSearch {
        index: request.index,
        lists: request.lists,
        vector: components
            .iter()
            .map(|component| f32::from_le_bytes(*component))
            .collect(),
        schema_version: request.schema_version,
    }
}
