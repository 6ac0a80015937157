//! Checks a tablet's list of compactions, which lies beside its manifest, before the tablet is opened. The compactor reads the list only
//! afterwards, when it is too late to refuse to open the store.

use std::sync::Arc;

use object_store::ObjectStore;
use slatedb::admin::Admin;

use crate::error::{StoreError, from_slatedb};
use crate::metadata::slatedb_layout::tablet_path;

/// Checks that the newest list of compactions can be read, and that the newest manifest is at least as new.
///
/// # Errors
/// [`StoreError::Corrupt`] with the name of the damaged or missing document.
pub(crate) async fn check(store: Arc<dyn ObjectStore>, tablet: u32) -> Result<(), StoreError> {
    let path = tablet_path(tablet);
    let admin = Admin::builder(path.clone(), store).build();
    let read = |error| from_slatedb(&error);
    let Some(compactions) = admin.read_compactions(None).await.map_err(read)? else {
        return Ok(());
    };
    let manifest = admin.read_manifest(None).await.map_err(read)?;
    // A compactor enters its epoch into the manifest before it writes its first list.
    let known = manifest.map_or(0, |manifest| manifest.compactor_epoch());
    match compactions.compactor_epoch() > known {
        true => Err(StoreError::Corrupt {
            file: path.join("manifest").to_string(),
            detail: "the newest manifest is missing: the tablet's compactions were written by a later one"
                .into(),
        }),
        false => Ok(()),
    }
}
