//! The connections whose callers are not authenticated yet. Their number is limited: a further one closes the oldest. So processes that
//! connect and say nothing do not keep nodes from connecting.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The unauthenticated connections, the oldest first.
pub(super) struct Strangers {
    max: usize,
    state: Mutex<StrangersState>,
}

#[derive(Default)]
struct StrangersState {
    next_id: u64,
    waiting: VecDeque<(u64, Arc<Notify>)>,
}

impl Strangers {
    pub fn new(max: usize) -> Arc<Strangers> {
        Arc::new(Strangers {
            max,
            state: Mutex::default(),
        })
    }

    /// Adds a connection until the result is dropped. Evicts the oldest one if there are too many.
    pub fn enter(self: &Arc<Self>) -> Stranger {
        let evicted = Arc::<Notify>::default();
        let mut state = self.state.lock();
        let id = state.next_id;
        state.next_id += 1;
        state.waiting.push_back((id, evicted.clone()));
        if state.waiting.len() > self.max
            && let Some((_, oldest)) = state.waiting.pop_front()
        {
            oldest.notify_one();
        }
        Stranger {
            id,
            evicted,
            strangers: self.clone(),
        }
    }
}

/// A connection whose caller is not authenticated yet.
pub(super) struct Stranger {
    id: u64,
    evicted: Arc<Notify>,
    strangers: Arc<Strangers>,
}

impl Stranger {
    /// Waits until the connection must be closed in favour of a newer one.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let mut state = self.strangers.state.lock();
        state.waiting.retain(|(id, _)| *id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn the_oldest_of_too_many_is_evicted() {
        let strangers = Strangers::new(2);
        let (first, second) = (strangers.enter(), strangers.enter());
        let is_evicted = |stranger: &Stranger| stranger.evicted().now_or_never().is_some();
        assert!(!is_evicted(&first));
        let third = strangers.enter();
        assert!(is_evicted(&first) && !is_evicted(&second) && !is_evicted(&third));
        drop(second);
        let fourth = strangers.enter();
        assert!(!is_evicted(&third) && !is_evicted(&fourth));
        drop((first, third, fourth));
        assert!(strangers.state.lock().waiting.is_empty());
    }
}
