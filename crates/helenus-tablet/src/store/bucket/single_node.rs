//! Opens all tablets of a bucket in one process, and reopens those that fail.

use std::sync::{Arc, Weak};
use std::time::Duration;

use helenus_row::TokenRange;
use tokio::sync::broadcast;

use super::TabletEvent;
use crate::error::StoreError;
use crate::store::Store;

/// Time before a tablet that has failed is opened again.
const PAUSE: Duration = Duration::from_secs(1);

/// Opens all tablets, and opens those that fail again. A tablet that another process has opened is left to that process.
pub(super) async fn open_all(store: &Arc<Store>) -> Result<(), StoreError> {
    let tablets = store.initial_tablets();
    let events = store.tablet_events();
    let keeper = tokio::spawn(keep(Arc::downgrade(store), events, tablets.clone()));
    store.remote()?.tasks.lock().push(keeper);
    let opening = tablets
        .into_iter()
        .map(|(id, tokens)| store.open_tablet(id, tokens));
    for opened in futures::future::join_all(opening).await {
        opened?;
    }
    Ok(())
}

async fn keep(
    store: Weak<Store>,
    mut events: broadcast::Receiver<TabletEvent>,
    tablets: Vec<(u32, TokenRange)>,
) {
    loop {
        let TabletEvent::Lost { id, error } = match events.recv().await {
            Ok(event) => event,
            Err(broadcast::error::RecvError::Lagged(_)) => continue,
            Err(broadcast::error::RecvError::Closed) => return,
        };
        if matches!(error, StoreError::Fenced) {
            continue;
        }
        let Some((_, tokens)) = tablets.iter().find(|(other, _)| *other == id) else {
            continue;
        };
        let tokens = *tokens;
        loop {
            tokio::time::sleep(PAUSE).await;
            let Some(store) = store.upgrade() else { return };
            match store.open_tablet(id, tokens).await {
                Ok(_) => {
                    tracing::info!(tablet = id, "the tablet is open again");
                    break;
                }
                Err(StoreError::Closed) => return,
                Err(error) => tracing::warn!(tablet = id, %error, "the tablet could not be opened again"),
            }
        }
    }
}
