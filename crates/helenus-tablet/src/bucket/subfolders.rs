//! Lists the folders of a bucket that are named by a number or an id.

use std::str::FromStr;

use object_store::ObjectStore;
use object_store::path::Path;

use crate::error::{StoreError, chain};

/// Returns the names of the direct subfolders of `folder`. Names that cannot be parsed are left out.
pub(crate) async fn subfolders<T: FromStr>(
    store: &dyn ObjectStore,
    folder: &Path,
) -> Result<Vec<T>, StoreError> {
    let listed = store.list_with_delimiter(Some(folder)).await;
    let listed = listed.map_err(|error| StoreError::Unavailable(chain(&error)))?;
    let name = |path: &Path| path.parts().next_back()?.as_ref().parse().ok();
    Ok(listed.common_prefixes.iter().filter_map(name).collect())
}
