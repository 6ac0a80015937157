//! The node's own threads, and the tasks that replace them in a simulation.
//!
//! A simulation runs whole nodes on one thread, so that a seed decides all of their steps. It marks that thread as *stepped*
//! ([`step_here`]). A node that is started on a stepped thread starts no threads: what would run on one becomes a task of the current
//! runtime, and work that would block a pool's thread runs when its task is polled. Waits in such work must be futures.
//!
//! The mark is read when threads are started and when work is given to them, never on the path of a request.
#![allow(
    clippy::disallowed_methods,
    reason = "starts the threads of nodes outside of simulations"
)]

use std::cell::Cell;
use std::marker::PhantomData;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::priority::set_latency_critical;

thread_local! {
    static IS_STEPPED: Cell<bool> = const { Cell::new(false) };
}

/// The mark of a stepped thread, which ends when this is dropped.
pub struct SteppedThread {
    /// The mark belongs to the thread on which it was set.
    _not_send: PhantomData<*const ()>,
}

impl Drop for SteppedThread {
    fn drop(&mut self) {
        IS_STEPPED.set(false);
    }
}

/// Marks the calling thread as stepped.
pub fn step_here() -> SteppedThread {
    IS_STEPPED.set(true);
    SteppedThread {
        _not_send: PhantomData,
    }
}

/// Returns true if nodes on the calling thread must not start threads.
pub fn is_stepped() -> bool {
    IS_STEPPED.get()
}

/// A running thread, or the task that replaces it.
pub enum NodeThread {
    Thread(std::thread::JoinHandle<()>),
    Task(JoinHandle<()>),
}

impl NodeThread {
    /// Waits until the thread has ended.
    pub async fn join(self) {
        match self {
            NodeThread::Thread(thread) => {
                let _ = tokio::task::spawn_blocking(move || thread.join()).await;
            }
            NodeThread::Task(task) => {
                let _ = task.await;
            }
        }
    }
}

/// Runs a future on a latency-critical thread of its own. Timers and requests of the future belong to the current runtime, if there is one.
/// The future may block the thread unless it runs on a stepped one.
pub(crate) fn spawn_critical(
    name: &str,
    work: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<NodeThread> {
    if is_stepped() {
        return Ok(NodeThread::Task(tokio::spawn(work)));
    }
    let runtime = Handle::try_current().ok();
    let run = move || {
        set_latency_critical();
        let _entered = runtime.as_ref().map(Handle::enter);
        futures::executor::block_on(work);
    };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
    Ok(NodeThread::Thread(thread))
}

/// Runs a future on a thread with a runtime of its own.
///
/// # Errors
/// The thread cannot be started.
pub fn spawn_with_runtime(
    name: &str,
    work: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<NodeThread> {
    if is_stepped() {
        return Ok(NodeThread::Task(tokio::spawn(work)));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let run = move || runtime.block_on(work);
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
    Ok(NodeThread::Thread(thread))
}

/// Runs work that blocks or computes for long on a thread of the current runtime's pool.
pub fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    match is_stepped() {
        true => tokio::spawn(async move { work() }),
        false => tokio::task::spawn_blocking(work),
    }
}

/// Runs a future that computes for long on a thread of the current runtime's pool.
pub(crate) fn spawn_computing<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    if is_stepped() {
        return tokio::spawn(work);
    }
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(work))
}

/// Pauses a thread of the node.
pub(crate) async fn pause(duration: Duration) {
    match is_stepped() {
        true => tokio::time::sleep(duration).await,
        false => std::thread::sleep(duration),
    }
}
