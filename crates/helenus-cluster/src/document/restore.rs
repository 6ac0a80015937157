//! Turns the document of a copied store into that of a store of its own.

use uuid::Uuid;

use super::{ClusterDocument, FORMAT};
use crate::error::ClusterError;
use crate::ids::TabletId;

/// Returns the cluster document of a copy, as that of the store `identity`: the tablets stay, and have no owners; of the nodes, and of what
/// was under way between them, nothing does.
///
/// # Errors
/// The document makes no sense.
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
            // It is being reshaped, as the document says.
            let _ = self.undo_reshape(parent);
        }
        for tablet in &mut self.tablets {
            tablet.give(None);
        }
        self.nodes.clear();
        self.lost.clear();
    }
}
