//! Runs requests of other nodes within a [`Scope`]. A request begins on the thread that received it, and moves to the pool of long requests
//! once it has computed for a slice. It ends at a checkpoint when its time is over or its caller has given it up.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use helenus_query::limits::answers::Reservation;
use helenus_query::limits::scope::{self, Scope};

use super::failure::Failure;
use crate::threads::long_requests::LongRequestPool;
use crate::threads::stall;

/// Maximum time for which a request without a deadline of its own may compute.
pub(super) const LONGEST: Duration = Duration::from_secs(600);

/// The result of a request, and the memory that its response takes until it has been sent.
pub(super) type Outcome<T> = Result<(T, Option<Reservation>), Failure>;

/// Runs `work` for at most `limit`. Setting `is_left` ends it earlier.
///
/// # Errors
/// `work` panicked in the pool of long requests.
pub(super) async fn run<T: Send + 'static>(
    long_requests: &LongRequestPool,
    is_left: Arc<AtomicBool>,
    limit: Duration,
    work: impl Future<Output = T> + Send + 'static,
) -> Outcome<T> {
    let scoped = Scoped(Some(Running {
        scope: Scope::left_by(is_left),
        work: Box::pin(async move {
            scope::limit_time(limit, false);
            work.await
        }),
    }));
    match scoped.await {
        Stretch::Done(value, reserved) => Ok((value, reserved)),
        Stretch::HasMore(mut running) => {
            running.scope.go_aside();
            match long_requests.spawn(Scoped(Some(running))).await {
                Ok(Stretch::Done(value, reserved)) => Ok((value, reserved)),
                // Work in the pool never leaves it, so this is a panic. The panic hook has logged it.
                Ok(Stretch::HasMore(_)) | Err(_) => Err(Failure::broken()),
            }
        }
    }
}

struct Running<T> {
    scope: Scope,
    work: BoxFuture<'static, T>,
}

/// The end of a stretch of computing.
enum Stretch<T> {
    Done(T, Option<Reservation>),
    /// The work must move to the pool of long requests.
    HasMore(Running<T>),
}

/// Work that is polled within its scope. `None` once it has ended.
struct Scoped<T>(Option<Running<T>>);

impl<T> Future for Scoped<T> {
    type Output = Stretch<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Stretch<T>> {
        let Some(mut running) = self.0.take() else {
            return Poll::Pending;
        };
        let is_aside = running.scope.is_aside();
        running.scope.polled_at(Instant::now());
        running.scope.swap();
        let mut poll = || running.work.as_mut().poll(cx);
        let polled = match is_aside {
            true => poll(),
            false => stall::watch(poll),
        };
        running.scope.swap();
        match polled {
            Poll::Ready(value) => {
                let reserved = running.scope.take_reservation();
                Poll::Ready(Stretch::Done(value, reserved))
            }
            Poll::Pending if running.scope.has_more() && !running.scope.is_aside() => {
                Poll::Ready(Stretch::HasMore(running))
            }
            Poll::Pending => {
                self.0 = Some(running);
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    fn thread() -> String {
        std::thread::current().name().unwrap_or_default().to_owned()
    }

    /// Computes for `time`, and returns the name of the thread on which it ended.
    async fn compute(time: Duration) -> Result<String, helenus_cql::error::CqlError> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            scope::hurry();
            scope::checkpoint().await?;
        }
        Ok(thread())
    }

    async fn run_for(time: Duration, limit: Duration) -> Result<String, helenus_cql::error::CqlError> {
        let long_requests = LongRequestPool::start().unwrap();
        let outcome = run(&long_requests, Arc::default(), limit, compute(time)).await;
        outcome.unwrap().0
    }

    #[tokio::test]
    async fn what_is_short_stays_and_what_is_long_goes_aside() {
        assert_eq!(run_for(Duration::ZERO, LONGEST).await.unwrap(), thread());
        let long = run_for(Duration::from_millis(50), LONGEST).await.unwrap();
        assert_eq!(long, "helenus-aside");
    }

    #[tokio::test]
    async fn it_ends_when_its_time_is_over() {
        assert!(
            run_for(Duration::from_secs(60), Duration::from_millis(20))
                .await
                .is_err()
        );
    }

    #[tokio::test]
    async fn it_ends_when_its_asker_has_gone() {
        let long_requests = LongRequestPool::start().unwrap();
        let is_left = Arc::<AtomicBool>::default();
        let work = run(
            &long_requests,
            is_left.clone(),
            LONGEST,
            compute(Duration::from_secs(60)),
        );
        let (ended, ()) = tokio::join!(work, async { is_left.store(true, Ordering::Relaxed) });
        assert!(ended.unwrap().0.is_err());
    }
}
