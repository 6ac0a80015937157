//! The origins of a store's tables; see [`crate::tablet::origins`].

use std::sync::{Arc, Weak};

use futures::FutureExt;

use super::Store;
use super::pinned::TabletFiles;
use crate::error::StoreError;
use crate::tablet::origins::{OpenPinned, Origins, TableOrigin};
use crate::tablet::pin::PinnedTablet;

impl Store {
    /// Has the rows of tables, which are given by their numbers, lie over those of their origins from now on. Other tables have none. The
    /// origins' tablets are opened when they are first read.
    pub fn set_origins(self: &Arc<Self>, tables: Vec<(u32, Arc<TableOrigin>)>) {
        self.origins.set(tables, &opener(self, None));
    }

    /// Pinned tablets as a store, which can only be read, with the origins that its tables had.
    ///
    /// # Errors
    /// Those of [`Store::open_pinned`].
    pub async fn open_pinned_with(
        self: &Arc<Self>,
        pinned: &[PinnedTablet],
        tables: Vec<(u32, Arc<TableOrigin>)>,
    ) -> Result<Arc<Store>, StoreError> {
        self.open_pinned_from(self.files()?, pinned, tables).await
    }

    /// Returns the same where all files lie elsewhere, those of the origins too.
    ///
    /// # Errors
    /// Those of [`Store::open_pinned`].
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

/// Opens pinned tablets, whose files lie with those of the store unless it is said where.
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
