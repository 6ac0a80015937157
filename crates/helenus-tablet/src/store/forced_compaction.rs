//! Compactions that an operator asks for.

use std::sync::Arc;
use std::time::Duration;

use crate::boxed;
use crate::error::StoreError;
use crate::store::Store;
use crate::tablet::Tablet;

/// How often the end of the compactions is looked for.
const POLL: Duration = Duration::from_millis(100);

impl Store {
    /// Flushes all open tablets and makes one sorted run of the files of each. Returns when that is done, or left to the nodes that have
    /// taken tablets meanwhile.
    ///
    /// # Errors
    /// The store is only read, or a flush has failed.
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
