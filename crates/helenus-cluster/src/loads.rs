//! The loads of all tablets, from their owners' heartbeats.

use std::collections::BTreeMap;

use crate::environment::{Documents, TabletLoad};
use crate::error::DocumentError;
use crate::heartbeat::{Heartbeat, name_of};
use crate::ids::TabletId;
use crate::view::ClusterView;

/// Reads the heartbeats of all nodes, with a request to the store for each. Tablets that their owners do not show yet are left out.
///
/// # Errors
/// The store does not answer.
pub async fn loads(
    documents: &dyn Documents,
    view: &ClusterView,
) -> Result<BTreeMap<TabletId, TabletLoad>, DocumentError> {
    let mut loads = BTreeMap::new();
    for node in view.nodes() {
        let Some(found) = documents.get(&name_of(node.member())).await? else {
            continue;
        };
        let Ok(heartbeat) = Heartbeat::decode(&found.content) else {
            continue;
        };
        // A heartbeat may still show a tablet that has moved, so only the owner's figures count.
        let is_its_own = |id: TabletId| view.tablets_of(node.host_id).any(|tablet| tablet.id == id);
        let own = heartbeat.tablets.iter().map(|record| record.load());
        loads.extend(own.filter(|(id, _)| is_its_own(*id)));
    }
    Ok(loads)
}
