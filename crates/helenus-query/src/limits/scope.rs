//! What a request may take of the node: how long it computes before others have their turn, when it must have ended, how many bytes
//! its answer may have, and whether anybody still waits for it.
//!
//! A request's [`Scope`] lies in the thread while the request is polled, so that loops over rows, elements and statements reach it:
//! they ask [`checkpoint`], which gives way after a [`SLICE`] and fails when the request shall end. What runs without a scope (for
//! another node, or in the background) only gives way.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use helenus_cql::error::{Consistency, CqlError, WriteType};
use tokio::task::{coop, yield_now};

use super::answers::{Reservation, ResultMemory};
use crate::failure::{read_timeout, write_timeout};

/// How long a request computes before others have their turn.
pub const SLICE: Duration = Duration::from_millis(1);
/// What a row has, in bytes, that takes about a slice to go through.
pub const LONG_ROW_BYTES: usize = 64 << 10;
/// Checkpoints between two looks at the clock: a row takes a microsecond or two.
const STEPS: u32 = 8;
/// How long an answer waits for memory if nothing else ends it.
const MEMORY_WAIT: Duration = Duration::from_secs(10);

/// When a request must have ended.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    at: Instant,
    /// It fails as a write does.
    is_write: bool,
}

/// What is known of a running request by those who do its work.
#[derive(Debug, Default)]
pub struct Scope {
    /// When it began to compute; none outside of requests of clients.
    polled_at: Option<Instant>,
    /// It gave way though it has more to compute.
    has_more: bool,
    /// It runs where no socket is served.
    is_aside: bool,
    steps: u32,
    deadline: Option<Deadline>,
    /// Set when nobody waits for the answer any more.
    is_left: Option<Arc<AtomicBool>>,
    /// Of the memory for answers.
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

    /// Of a request that is ended by whoever sets `is_left`.
    pub fn left_by(is_left: Arc<AtomicBool>) -> Scope {
        Scope {
            is_left: Some(is_left),
            ..Scope::NONE
        }
    }

    /// Notes that the request begins to compute now.
    pub fn polled_at(&mut self, now: Instant) {
        self.polled_at = Some(now);
        self.has_more = false;
    }

    /// Puts this scope into the thread, or takes it out again.
    pub fn swap(&mut self) {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, self));
    }

    /// Returns true if the request gave way with more to compute: that shall not be done where sockets are served.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Returns true if it runs where no socket is served.
    pub fn is_aside(&self) -> bool {
        self.is_aside
    }

    /// From now on it runs there.
    pub fn go_aside(&mut self) {
        self.is_aside = true;
    }

    /// Whoever sets this ends the request.
    pub fn left(&mut self) -> Arc<AtomicBool> {
        self.is_left.get_or_insert_default().clone()
    }

    /// What the request has reserved for its answer, to be kept until that has been sent.
    pub fn take_reservation(&mut self) -> Option<Reservation> {
        self.reserved.take()
    }

    /// # Errors
    /// If the request shall end.
    fn check(&self, now: Instant) -> Result<(), CqlError> {
        if self
            .is_left
            .as_ref()
            .is_some_and(|left| left.load(Ordering::Relaxed))
        {
            return Err(CqlError::Server("the client has gone".to_owned()));
        }
        match self.deadline {
            // The consistency is put in by whoever knows it.
            Some(deadline) if now >= deadline.at && deadline.is_write => {
                Err(write_timeout(Consistency::One, WriteType::Simple))
            }
            Some(deadline) if now >= deadline.at => Err(read_timeout(Consistency::One)),
            _ => Ok(()),
        }
    }

    /// What is to be done at a checkpoint.
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
    /// Nobody has said since when it computes.
    Unknown,
}

/// Returns the scope of a part of the request that computes here, for another task where no socket is served: it ends when the request
/// must, or when the request is left.
pub fn part() -> Scope {
    CURRENT.with_borrow_mut(|scope| Scope {
        is_aside: true,
        deadline: scope.deadline,
        is_left: Some(scope.left()),
        ..Scope::NONE
    })
}

/// Runs a part of a request within its scope.
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

/// Between two rows, elements or statements: others have their turn if this request has had its own.
///
/// # Errors
/// When the request shall end: its time is over, or its client has gone.
pub async fn checkpoint() -> Result<(), CqlError> {
    match CURRENT.with_borrow_mut(Scope::step)? {
        Step::GoOn => {}
        Step::GiveWay => yield_now().await,
        Step::Unknown => coop::consume_budget().await,
    }
    Ok(())
}

/// Has the next checkpoint look at the clock: what was done took long.
pub fn hurry() {
    CURRENT.with_borrow_mut(|scope| scope.steps = STEPS);
}

/// Returns true if nobody waits for the request's answer any more.
pub fn is_left() -> bool {
    let is_set = |left: &Arc<AtomicBool>| left.load(Ordering::Relaxed);
    CURRENT.with_borrow(|scope| scope.is_left.as_ref().is_some_and(is_set))
}

/// Set once nobody waits for the request's answer any more.
pub fn left() -> Arc<AtomicBool> {
    CURRENT.with_borrow_mut(Scope::left)
}

/// Before something that takes longer than a slice and gives no way: a client's request goes on where no socket is served.
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

/// The request must have ended that long after it began to compute, unless it must sooner. It fails as a read or as a write.
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

/// The request's time begins anew, as that of each page does that Cassandra reads for an aggregate.
pub fn renew_time(limit: Duration) {
    CURRENT.with_borrow_mut(|scope| {
        if let Some(deadline) = &mut scope.deadline {
            deadline.at = Instant::now() + limit;
        }
    });
}

/// Reserves more memory for the answer. One that has none yet waits for others' to be sent.
///
/// # Errors
/// When there is no memory for it, or the request shall end.
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
        // Two that wait with something in their hands could wait for each other.
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
