//! Delays responses by a fixed time with a precision of a tenth of a millisecond. Tokio's timer rounds up to whole milliseconds.
//!
//! One thread wakes all waiting responses, which is cheaper than a kernel timer for each.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

struct Pending {
    at: Instant,
    number: u64,
    sender: oneshot::Sender<()>,
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Pending {}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

#[derive(Default)]
struct Queue {
    waiting: BinaryHeap<Reverse<Pending>>,
    number: u64,
}

/// A thread that wakes responses at their time.
#[derive(Clone)]
pub struct ResponseDelay {
    shared: Arc<(Mutex<Queue>, Condvar)>,
    delay: Duration,
}

impl ResponseDelay {
    /// Creates a delay that is the same for all responses. Zero means no delay.
    pub fn new(delay: Duration) -> ResponseDelay {
        let response_delay = ResponseDelay {
            shared: Arc::default(),
            delay,
        };
        if !delay.is_zero() {
            let shared = response_delay.shared.clone();
            std::thread::spawn(move || wake(&shared));
        }
        response_delay
    }

    /// Waits until the delay has passed since `since`.
    pub async fn wait(&self, since: Instant) {
        if self.delay.is_zero() {
            return;
        }
        let (sender, receiver) = oneshot::channel();
        {
            let mut queue = self.shared.0.lock();
            queue.number += 1;
            let number = queue.number;
            let at = since + self.delay;
            queue.waiting.push(Reverse(Pending { at, number, sender }));
        }
        self.shared.1.notify_one();
        let _ = receiver.await;
    }
}

fn wake((queue, changed): &(Mutex<Queue>, Condvar)) {
    let mut queue = queue.lock();
    loop {
        let now = Instant::now();
        while queue.waiting.peek().is_some_and(|Reverse(first)| first.at <= now) {
            if let Some(Reverse(first)) = queue.waiting.pop() {
                // An error is ignored, because the client may have disconnected.
                let _ = first.sender.send(());
            }
        }
        match queue.waiting.peek().map(|Reverse(first)| first.at) {
            Some(at) => {
                changed.wait_until(&mut queue, at);
            }
            None => changed.wait(&mut queue),
        }
    }
}
