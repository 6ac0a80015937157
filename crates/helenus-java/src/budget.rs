//! Time and memory of the call that runs on this thread.
//!
//! Code that makes or walks more than a few KiB asks here first: [`room`] before it allocates, [`walk`] as it goes on. Both fail when
//! the call may take no more. Code that cannot fail asks [`is_over`] and ends early with any result: the interpreter looks at
//! [`check`] after each operation and never uses such a result.

use std::cell::Cell;
use std::time::Instant;

use crate::error::Failure;

/// Bytes that a call may allocate in all, whether they are still in use or not.
const ALLOCATED_MAX: usize = 256 << 20;

/// Steps between two looks at the clock.
const STEPS: usize = 1024;

/// Bytes of a text that are walked in a step.
const STEP_BYTES: usize = 64;

/// Bytes of an element of a collection.
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

/// A call that runs. The budget ends with it.
#[derive(Debug)]
pub(crate) struct Running(());

impl Drop for Running {
    fn drop(&mut self) {
        BUDGET.with(|budget| budget.deadline.set(None));
    }
}

/// Begins a call, which must have ended by then.
pub(crate) fn begin(deadline: Instant) -> Running {
    BUDGET.with(|budget| {
        budget.deadline.set(Some(deadline));
        budget.steps.set(0);
        budget.allocated.set(0);
        budget.is_over.set(false);
    });
    Running(())
}

/// Ends the time of the call that runs.
#[cfg(test)]
pub(crate) fn expire() {
    BUDGET.with(|budget| budget.deadline.set(Some(Instant::now())));
}

/// Counts steps. True if the call's time is over.
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

/// Counts the steps of going through so many bytes.
///
/// # Errors
/// The call's time is over.
pub(crate) fn walk_bytes(bytes: usize) -> Result<(), Failure> {
    walk(bytes / STEP_BYTES)
}

/// Looks at the clock before work that takes long as a whole.
///
/// # Errors
/// The call's time is over.
pub(crate) fn look() -> Result<(), Failure> {
    walk(STEPS)
}

/// Steps of going through so many bytes.
pub(crate) fn steps_of(bytes: usize) -> usize {
    1 + bytes / STEP_BYTES
}

/// Checks that nothing was cut short.
///
/// # Errors
/// The call's time is over.
pub(crate) fn check() -> Result<(), Failure> {
    walk(0)
}

/// Checks that so many bytes may be allocated. They are counted when the operation that needs them has ended.
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

/// Checks that a collection of so many elements may be made, and counts the steps.
///
/// # Errors
/// `OutOfMemoryError`, or the call's time is over.
pub(crate) fn room_for(elements: usize) -> Result<(), Failure> {
    room(elements.saturating_mul(ELEMENT))?;
    walk(elements / 16)
}

/// Counts bytes that are allocated.
///
/// # Errors
/// `OutOfMemoryError`
pub(crate) fn spend(bytes: usize) -> Result<(), Failure> {
    room(bytes)?;
    BUDGET.with(|budget| budget.allocated.set(budget.allocated.get() + bytes));
    Ok(())
}
