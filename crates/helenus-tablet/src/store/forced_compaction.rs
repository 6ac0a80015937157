//! Compactions that an operator requests.

use std::sync::Arc;
use std::time::Duration;

use crate::boxed;
use crate::error::StoreError;
use crate::store::Store;
use crate::tablet::Tablet;

/// Time between two checks whether the compactions have ended.
const POLL: Duration = Duration::from_millis(100);

impl Store {
    /// Flushes all open tablets and compacts the files of each to one sorted run. Waits until that is done. Tablets that move to another
    /// node meanwhile are compacted there.
    ///
    /// # Errors
    /// The store is read-only, or a flush has failed.
    #[boxed]
    pub async fn compact(&self) -> Result<(), StoreError> {
        self.check_writable()?;
        let tablets = self.tablets();
        for tablet in tablets.iter() {
            tablet.flush().await?;
            tablet.compactions.force();
        }
        while tablets.iter().any(|tablet| self.is_compacting(tablet)) {
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    fn is_compacting(&self, tablet: &Arc<Tablet>) -> bool {
        let is_open = self.tablets().iter().any(|open| Arc::ptr_eq(open, tablet));
        is_open && tablet.compactions.is_forced()
    }
}
