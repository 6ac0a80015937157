//! Limits of a running request: how long it computes before other requests have their turn, its deadline, the bytes of its answer, and
//! whether its client still waits.
//!
//! A request's [`Scope`] is in a thread-local variable while the request is polled, so that loops over rows, elements and statements reach
//! it. They call [`checkpoint`], which yields after a [`SLICE`] and fails when the request must end. Work without a scope (for another
//! node, or in the background) only yields.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use helenus_cql::error::{Consistency, CqlError, WriteType};
use tokio::task::{coop, yield_now};

use super::answers::{Reservation, ResultMemory};
use crate::failure::{read_timeout, write_timeout};

/// Time that a request computes before other requests have their turn.
pub const SLICE: Duration = Duration::from_millis(1);
/// Bytes of a row whose processing takes about a slice.
pub const LONG_ROW_BYTES: usize = 64 << 10;
/// Checkpoints between two reads of the clock. A row takes a microsecond or two.
const STEPS: u32 = 8;
/// Maximum time that an answer waits for memory.
const MEMORY_WAIT: Duration = Duration::from_secs(10);

/// The time at which a request must have ended.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    at: Instant,
    /// True if the timeout is that of a write.
    is_write: bool,
}

/// The state of a running request that its loops can reach.
#[derive(Debug, Default)]
pub struct Scope {
    /// Time at which the current poll began. `None` outside of clients' requests.
    polled_at: Option<Instant>,
    /// True if the request yielded and has more to compute.
    has_more: bool,
    /// True if the request runs on a thread that serves no sockets.
    is_aside: bool,
    steps: u32,
    deadline: Option<Deadline>,
    /// True once no client waits for the answer any more.
    is_left: Option<Arc<AtomicBool>>,
    /// Memory that is reserved for the answer.
    reserved: Option<Reservation>,
}

thread_local! {
    static CURRENT: RefCell<Scope> = const { RefCell::new(Scope::NONE) };
}

impl Scope {
    const NONE: Scope = Scope {
        polled_at: None,
        has_more: false,
        is_aside: false,
        steps: 0,
        deadline: None,
        is_left: None,
        reserved: None,
    };

    /// Returns the scope of a request that ends when the caller sets `is_left`.
    pub fn left_by(is_left: Arc<AtomicBool>) -> Scope {
        Scope {
            is_left: Some(is_left),
            ..Scope::NONE
        }
    }

    /// Records that a poll of the request begins now.
    pub fn polled_at(&mut self, now: Instant) {
        self.polled_at = Some(now);
        self.has_more = false;
    }

    /// Swaps this scope with that of the thread: before a poll to set it, after the poll to remove it.
    pub fn swap(&mut self) {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, self));
    }

    /// Returns true if the request yielded and has more to compute. It must then move to a thread that serves no sockets.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Returns true if the request runs on a thread that serves no sockets.
    pub fn is_aside(&self) -> bool {
        self.is_aside
    }

    /// Records that the request moves to a thread that serves no sockets.
    pub fn go_aside(&mut self) {
        self.is_aside = true;
    }

    /// Returns a flag that ends the request when it is set.
    pub fn left(&mut self) -> Arc<AtomicBool> {
        self.is_left.get_or_insert_default().clone()
    }

    /// Takes the memory that is reserved for the answer. The caller keeps it until the answer has been sent.
    pub fn take_reservation(&mut self) -> Option<Reservation> {
        self.reserved.take()
    }

    /// Checks whether the request may go on.
    ///
    /// # Errors
    /// The client has gone, or the deadline has passed.
    fn check(&self, now: Instant) -> Result<(), CqlError> {
        if self
            .is_left
            .as_ref()
            .is_some_and(|left| left.load(Ordering::Relaxed))
        {
            return Err(CqlError::Server("the client has gone".to_owned()));
        }
        match self.deadline {
            // Callers that know the consistency insert it later.
            Some(deadline) if now >= deadline.at && deadline.is_write => {
                Err(write_timeout(Consistency::One, WriteType::Simple))
            }
            Some(deadline) if now >= deadline.at => Err(read_timeout(Consistency::One)),
            _ => Ok(()),
        }
    }

    /// Returns what a checkpoint does next.
    fn step(&mut self) -> Result<Step, CqlError> {
        let Some(polled_at) = self.polled_at else {
            return Ok(Step::Unknown);
        };
        self.steps += 1;
        if self.steps < STEPS {
            return Ok(Step::GoOn);
        }
        self.steps = 0;
        let now = Instant::now();
        self.check(now)?;
        Ok(match now.duration_since(polled_at) < SLICE {
            true => Step::GoOn,
            false => {
                self.has_more = true;
                Step::GiveWay
            }
        })
    }
}

enum Step {
    GoOn,
    GiveWay,
    /// The start of the poll is not known.
    Unknown,
}

/// Returns a scope for a part of the current request that runs as another task, on a thread that serves no sockets. It ends when the
/// request must end or its client leaves.
pub fn part() -> Scope {
    CURRENT.with_borrow_mut(|scope| Scope {
        is_aside: true,
        deadline: scope.deadline,
        is_left: Some(scope.left()),
        ..Scope::NONE
    })
}

/// Runs a part of a request within a scope.
pub async fn within<F: Future>(mut scope: Scope, work: F) -> F::Output {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(move |cx| {
        scope.polled_at(Instant::now());
        scope.swap();
        let polled = work.as_mut().poll(cx);
        scope.swap();
        polled
    })
    .await
}

/// Yields to other requests if this one has used its time slice. Loops call it between two rows, elements or statements.
///
/// # Errors
/// The request must end, because its time is over or its client has gone.
pub async fn checkpoint() -> Result<(), CqlError> {
    match CURRENT.with_borrow_mut(Scope::step)? {
        Step::GoOn => {}
        Step::GiveWay => yield_now().await,
        Step::Unknown => coop::consume_budget().await,
    }
    Ok(())
}

/// Makes the next checkpoint read the clock, after something that took long.
pub fn hurry() {
    CURRENT.with_borrow_mut(|scope| scope.steps = STEPS);
}

/// Returns true if no client waits for the request's answer any more.
pub fn is_left() -> bool {
    let is_set = |left: &Arc<AtomicBool>| left.load(Ordering::Relaxed);
    CURRENT.with_borrow(|scope| scope.is_left.as_ref().is_some_and(is_set))
}

/// Returns a flag that is set once no client waits for the request's answer any more.
pub fn left() -> Arc<AtomicBool> {
    CURRENT.with_borrow_mut(Scope::left)
}

/// Moves a client's request to a thread that serves no sockets. Called before work that takes longer than a slice without yielding.
pub async fn step_aside() {
    let moves = CURRENT.with_borrow_mut(|scope| {
        let moves = scope.polled_at.is_some() && !scope.is_aside;
        scope.has_more |= moves;
        moves
    });
    if moves {
        yield_now().await;
    }
}

/// Sets the request's deadline to `limit` after the poll began, unless it is earlier already. The error is a write timeout if `is_write`,
/// else a read timeout.
pub fn limit_time(limit: Duration, is_write: bool) {
    CURRENT.with_borrow_mut(|scope| {
        let at = scope.polled_at.map(|now| now + limit);
        let known = scope.deadline.map(|deadline| deadline.at);
        scope.deadline = match (at, known) {
            (Some(at), known) if known.is_none_or(|known| at < known) => Some(Deadline { at, is_write }),
            _ => scope.deadline,
        };
    });
}

/// Returns the time at which the current request must have ended. `None` if its time is not limited.
pub fn deadline() -> Option<Instant> {
    CURRENT.with_borrow(|scope| scope.deadline.map(|deadline| deadline.at))
}

/// Restarts the request's time. Cassandra does so for each page that it reads for an aggregate.
pub fn renew_time(limit: Duration) {
    CURRENT.with_borrow_mut(|scope| {
        if let Some(deadline) = &mut scope.deadline {
            deadline.at = Instant::now() + limit;
        }
    });
}

/// Reserves more memory for the answer. A request without a reservation waits until other answers have been sent.
///
/// # Errors
/// There is no memory for the answer, or the request must end.
pub async fn reserve(answers: &Arc<ResultMemory>, bytes: usize) -> Result<(), CqlError> {
    let Some(waits_until) = CURRENT.with_borrow(|scope| {
        scope.polled_at?;
        let longest = Instant::now() + MEMORY_WAIT;
        Some(
            scope
                .deadline
                .map_or(longest, |deadline| deadline.at.min(longest)),
        )
    }) else {
        return Ok(());
    };
    let holds = CURRENT.with_borrow(|scope| scope.reserved.is_some());
    let more = match answers.try_reserve(bytes) {
        Some(more) => more,
        // A request that already holds memory does not wait: two such requests could wait for each other.
        None if holds => return Err(answers.exhausted()),
        None => answers.reserve(bytes, waits_until).await?,
    };
    CURRENT.with_borrow_mut(|scope| {
        scope.check(Instant::now())?;
        match &mut scope.reserved {
            Some(reserved) => reserved.add(more),
            none => *none = Some(more),
        }
        Ok(())
    })
}

#[cfg(test)]
#[path = "scope_tests.rs"]
mod tests;
