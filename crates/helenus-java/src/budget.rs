//! Time and memory of the call that runs on this thread.
//!
//! Code that creates or reads more than a few KiB checks the budget first: [`room`] before it allocates, and [`walk`] repeatedly while it
//! works. Both fail if the call's budget is used up. Code that cannot fail calls [`is_over`], and ends early with an arbitrary result. The
//! interpreter calls [`check`] after each operation, and so never uses such a result.

use std::cell::Cell;
use std::time::Instant;

use crate::error::Failure;

/// Maximum bytes that a call may allocate in all, including bytes that are free again.
const ALLOCATED_MAX: usize = 256 << 20;

/// Number of steps between two checks of the clock.
const STEPS: usize = 1024;

/// Bytes of a text that are processed in a step.
const STEP_BYTES: usize = 64;

/// Bytes that an element of a collection counts.
pub(crate) const ELEMENT: usize = 64;

#[derive(Debug)]
struct Budget {
    /// `None` while no call runs.
    deadline: Cell<Option<Instant>>,
    steps: Cell<usize>,
    allocated: Cell<usize>,
    is_over: Cell<bool>,
}

thread_local! {
    static BUDGET: Budget = const {
        Budget {
            deadline: Cell::new(None),
            steps: Cell::new(0),
            allocated: Cell::new(0),
            is_over: Cell::new(false),
        }
    };
}

/// A running call. Dropping it ends the call's budget.
#[derive(Debug)]
pub(crate) struct Running(());

impl Drop for Running {
    fn drop(&mut self) {
        BUDGET.with(|budget| budget.deadline.set(None));
    }
}

/// Begins a call, which must end by `deadline`.
pub(crate) fn begin(deadline: Instant) -> Running {
    BUDGET.with(|budget| {
        budget.deadline.set(Some(deadline));
        budget.steps.set(0);
        budget.allocated.set(0);
        budget.is_over.set(false);
    });
    Running(())
}

/// Sets the deadline of the running call to now.
#[cfg(test)]
pub(crate) fn expire() {
    BUDGET.with(|budget| budget.deadline.set(Some(Instant::now())));
}

/// Counts steps. Returns true if the call's time is over.
pub(crate) fn is_over(steps: usize) -> bool {
    BUDGET.with(|budget| {
        let walked = budget.steps.get().saturating_add(steps);
        if walked < STEPS {
            budget.steps.set(walked);
            return budget.is_over.get();
        }
        budget.steps.set(0);
        let deadline = budget.deadline.get();
        let is_over = budget.is_over.get() || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        budget.is_over.set(is_over);
        is_over
    })
}

/// Counts steps.
///
/// # Errors
/// The call's time is over.
pub(crate) fn walk(steps: usize) -> Result<(), Failure> {
    match is_over(steps) {
        true => Err(Failure::TimedOut),
        false => Ok(()),
    }
}

/// Counts the steps of processing so many bytes.
///
/// # Errors
/// The call's time is over.
pub(crate) fn walk_bytes(bytes: usize) -> Result<(), Failure> {
    walk(bytes / STEP_BYTES)
}

/// Checks the clock before an operation that takes long in one step.
///
/// # Errors
/// The call's time is over.
pub(crate) fn look() -> Result<(), Failure> {
    walk(STEPS)
}

/// Returns the number of steps of processing so many bytes.
pub(crate) fn steps_of(bytes: usize) -> usize {
    1 + bytes / STEP_BYTES
}

/// Checks that no operation ended early.
///
/// # Errors
/// The call's time is over.
pub(crate) fn check() -> Result<(), Failure> {
    walk(0)
}

/// Checks that so many bytes may be allocated. [`spend`] counts them once the operation has ended.
///
/// # Errors
/// `OutOfMemoryError`
pub(crate) fn room(bytes: usize) -> Result<(), Failure> {
    let allocated = BUDGET.with(|budget| budget.allocated.get());
    match allocated.saturating_add(bytes) <= ALLOCATED_MAX {
        true => Ok(()),
        false => Err(Failure::out_of_memory()),
    }
}

/// Checks that a collection of so many elements may be created, and counts the steps.
///
/// # Errors
/// `OutOfMemoryError`, or the call's time is over.
pub(crate) fn room_for(elements: usize) -> Result<(), Failure> {
    room(elements.saturating_mul(ELEMENT))?;
    walk(elements / 16)
}

/// Counts allocated bytes.
///
/// # Errors
/// `OutOfMemoryError`
pub(crate) fn spend(bytes: usize) -> Result<(), Failure> {
    room(bytes)?;
    BUDGET.with(|budget| budget.allocated.set(budget.allocated.get() + bytes));
    Ok(())
}
