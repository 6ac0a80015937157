//! The origins of a store's tables; see [`crate::tablet::origins`].

use std::sync::{Arc, Weak};

use futures::FutureExt;

use super::Store;
use crate::error::StoreError;
use crate::tablet::origins::{OpenPinned, Origins, TableOrigin};
use crate::tablet::pin::PinnedTablet;

impl Store {
    /// Has the rows of tables, which are given by their numbers, lie over those of their origins from now on. Other tables have none. The
    /// origins' tablets are opened when they are first read.
    pub fn set_origins(self: &Arc<Self>, tables: Vec<(u32, Arc<TableOrigin>)>) {
        self.origins.set(tables, &self.opener());
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
        let origins = Arc::<Origins>::default();
        origins.set(tables, &self.opener());
        self.open_pinned_over(pinned, origins).await
    }

    fn opener(self: &Arc<Self>) -> OpenPinned {
        let store: Weak<Store> = Arc::downgrade(self);
        Arc::new(move |pinned, origins| {
            let store = store.clone();
            let opening = async move {
                let store = store.upgrade().ok_or(StoreError::Closed)?;
                let opened = store.open_pinned_over(&pinned, origins).await?;
                Ok(opened.tablets())
            };
            opening.boxed()
        })
    }
}
