//! Converts the document of a copied store into that of an independent store.

use uuid::Uuid;

use super::{ClusterDocument, FORMAT};
use crate::error::ClusterError;
use crate::ids::TabletId;

/// Converts the cluster document of a copy into that of the store `identity`. The tablets stay, without owners. The nodes are removed, and
/// so is everything in progress between them.
///
/// # Errors
/// The document is invalid.
pub fn adopt(content: &[u8], identity: Uuid) -> Result<Vec<u8>, ClusterError> {
    let mut document = ClusterDocument::decode(content)?;
    document.clear_owners(identity);
    document.validate()?;
    Ok(document.encode())
}

impl ClusterDocument {
    fn clear_owners(&mut self, identity: Uuid) {
        self.format = FORMAT;
        self.store = Some(identity);
        let parents: Vec<TabletId> = self
            .reshapes
            .iter()
            .filter_map(|reshape| reshape.parents.first().copied())
            .collect();
        for parent in parents {
            // The document shows that the parent is being reshaped, so this cannot fail.
            let _ = self.undo_reshape(parent);
        }
        for tablet in &mut self.tablets {
            tablet.give(None);
        }
        self.nodes.clear();
        self.lost.clear();
    }
}
