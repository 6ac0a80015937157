//! Lets readers see the files of a tablet as its manifest changes.

use std::sync::Arc;

use super::Tablet;

impl Tablet {
    /// Lets reads see which files the tablet has by now; true if those are others than before.
    pub(crate) fn see_files(&self) -> bool {
        let has_changed = self
            .tables
            .refresh_files(&self.db, |files| self.stage.see_files(files));
        self.compactions.manifest_visible(self.tables.manifest());
        has_changed
    }
}

/// Lets reads see a tablet's files as they change, until the tablet is closed.
pub(crate) fn track_manifest(tablet: &Arc<Tablet>) -> impl Future<Output = ()> + use<> {
    let mut status = tablet.db.subscribe();
    let tablet = Arc::downgrade(tablet);
    async move {
        while status.changed().await.is_ok() {
            let Some(tablet) = tablet.upgrade() else {
                return;
            };
            tablet.see_files();
            if status.borrow_and_update().close_reason.is_some() {
                return;
            }
        }
    }
}
