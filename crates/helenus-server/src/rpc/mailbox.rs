//! A queue that many tasks fill and one task empties. The emptying task is woken only if it sleeps.

use std::task::{Context, Waker};

use futures::task::AtomicWaker;
use parking_lot::Mutex;

/// A queue and the task that empties it.
pub(crate) struct Mailbox<Q> {
    state: Mutex<MailboxState<Q>>,
    task: AtomicWaker,
}

struct MailboxState<Q> {
    queue: Q,
    /// True if the task will look at the queue again before it sleeps.
    is_awake: bool,
}

impl<Q> Mailbox<Q> {
    pub fn new(queue: Q) -> Mailbox<Q> {
        Mailbox {
            state: Mutex::new(MailboxState {
                queue,
                is_awake: true,
            }),
            task: AtomicWaker::new(),
        }
    }

    /// Changes the queue, and wakes the task if it sleeps.
    pub fn put<T>(&self, change: impl FnOnce(&mut Q) -> T) -> T {
        let (changed, waker) = self.put_quietly(change);
        if let Some(waker) = waker {
            waker.wake();
        }
        changed
    }

    /// Changes the queue. Also returns the waker of the task, if it sleeps: the caller must wake it.
    pub fn put_quietly<T>(&self, change: impl FnOnce(&mut Q) -> T) -> (T, Option<Waker>) {
        let (changed, was_awake) = {
            let mut state = self.state.lock();
            let changed = change(&mut state.queue);
            (changed, std::mem::replace(&mut state.is_awake, true))
        };
        let waker = if was_awake { None } else { self.task.take() };
        (changed, waker)
    }

    /// Looks at the queue, or changes it, without waking the task.
    pub fn look<T>(&self, look: impl FnOnce(&mut Q) -> T) -> T {
        look(&mut self.state.lock().queue)
    }

    /// Looks at the queue on behalf of its task, which looks again before it sleeps.
    pub fn take<T>(&self, take: impl FnOnce(&mut Q) -> T) -> T {
        let mut state = self.state.lock();
        state.is_awake = true;
        take(&mut state.queue)
    }

    /// Lets the task sleep until the next [`Mailbox::put`]. Returns false if the queue is not empty.
    pub fn fall_asleep(&self, cx: &Context<'_>, is_empty: impl FnOnce(&Q) -> bool) -> bool {
        self.task.register(cx.waker());
        let mut state = self.state.lock();
        let is_empty = is_empty(&state.queue);
        state.is_awake = !is_empty;
        is_empty
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Count>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_task_is_woken_once_and_only_if_it_sleeps() {
        let wakes = Arc::new(Count(AtomicUsize::new(0)));
        let waker = wakes.clone().into();
        let cx = Context::from_waker(&waker);
        let mailbox = Mailbox::new(Vec::new());
        mailbox.put(|queue| queue.push(1));
        assert!(!mailbox.fall_asleep(&cx, Vec::is_empty), "something is there");
        assert_eq!(mailbox.take(std::mem::take), [1]);
        assert!(mailbox.fall_asleep(&cx, Vec::is_empty));
        assert_eq!(wakes.0.load(Ordering::SeqCst), 0);
        mailbox.put(|queue| queue.push(2));
        mailbox.put(|queue| queue.push(3));
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
        assert_eq!(mailbox.take(std::mem::take), [2, 3]);
    }
}
