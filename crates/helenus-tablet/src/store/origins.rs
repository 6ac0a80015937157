//! The origins of a store's tables; see [`crate::tablet::origins`].

use std::sync::{Arc, Weak};

use futures::FutureExt;

use super::Store;
use super::pinned::TabletFiles;
use crate::error::StoreError;
use crate::tablet::origins::{OpenPinned, Origins, TableOrigin};
use crate::tablet::pin::PinnedTablet;

impl Store {
    /// Sets the origins of tables, which are given by their numbers. All other tables have no origin from now on. The origins' tablets are
    /// opened when they are first read.
    pub fn set_origins(self: &Arc<Self>, tables: Vec<(u32, Arc<TableOrigin>)>) {
        self.origins.set(tables, &opener(self, None));
    }

    /// Opens pinned tablets as a read-only store, with the origins that its tables had.
    ///
    /// # Errors
    /// See [`Store::open_pinned`].
    pub async fn open_pinned_with(
        self: &Arc<Self>,
        pinned: &[PinnedTablet],
        tables: Vec<(u32, Arc<TableOrigin>)>,
    ) -> Result<Arc<Store>, StoreError> {
        self.open_pinned_from(self.files()?, pinned, tables).await
    }

    /// Opens pinned tablets like [`Store::open_pinned_with`], with all files, also those of the origins, in another place.
    ///
    /// # Errors
    /// See [`Store::open_pinned`].
    pub(crate) async fn open_pinned_from(
        self: &Arc<Self>,
        files: TabletFiles,
        pinned: &[PinnedTablet],
        tables: Vec<(u32, Arc<TableOrigin>)>,
    ) -> Result<Arc<Store>, StoreError> {
        let origins = Arc::<Origins>::default();
        origins.set(tables, &opener(self, Some(files.clone())));
        self.open_pinned_in(&files, pinned, origins).await
    }
}

/// Returns the function that opens pinned tablets. `files` is the place of their files. `None` if they are with those of the store.
fn opener(store: &Arc<Store>, files: Option<TabletFiles>) -> OpenPinned {
    let store: Weak<Store> = Arc::downgrade(store);
    Arc::new(move |pinned, origins| {
        let (store, files) = (store.clone(), files.clone());
        let opening = async move {
            let store = store.upgrade().ok_or(StoreError::Closed)?;
            let files = match files {
                Some(files) => files,
                None => store.files()?,
            };
            let opened = store.open_pinned_in(&files, &pinned, origins).await?;
            Ok(opened.tablets())
        };
        opening.boxed()
    })
}
