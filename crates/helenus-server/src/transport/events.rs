//! Broadcasts events to the connections that registered for them.

use helenus_cql::frame::response::Event;
use parking_lot::Mutex;
use tokio::sync::mpsc;

/// Maximum number of events that wait for one connection. Further events for a connection with a full queue are dropped.
const QUEUE_LEN: usize = 1024;

/// The connections that receive events.
#[derive(Default)]
pub(crate) struct EventBroadcaster {
    listeners: Mutex<Vec<mpsc::Sender<Event>>>,
}

impl EventBroadcaster {
    pub fn listen(&self) -> mpsc::Receiver<Event> {
        let (sender, receiver) = mpsc::channel(QUEUE_LEN);
        self.listeners.lock().push(sender);
        receiver
    }

    pub fn send(&self, event: &Event) {
        self.listeners
            .lock()
            .retain(|listener| match listener.try_send(event.clone()) {
                Ok(()) => true,
                Err(mpsc::error::TrySendError::Full(_)) => {
                    tracing::warn!(?event, "event dropped: the connection does not read its events");
                    true
                }
                Err(mpsc::error::TrySendError::Closed(_)) => false,
            });
    }
}
