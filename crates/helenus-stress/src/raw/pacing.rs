//! The times at which the requests of a connection are sent, and the start of their response times.

use std::io;
use std::time::{Duration, Instant};

use rand::Rng;
use rand::rngs::SmallRng;

use super::timer::Timer;

/// The pace of each connection of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// A closed loop: a request is sent as soon as a slot is free.
    Closed,
    /// An open loop: requests are due at this interval from the start, regardless of the server. All requests of a millisecond become due
    /// together, as if many users shared a client. A request that finds no free slot is sent late, and its response time includes the
    /// delay.
    Open {
        /// Time from one request to the next.
        interval: Duration,
    },
    /// Single requests, each at least an interval after the one before. The first is sent after a random part of the interval, so that
    /// connections do not stay in step. Delays are not made up for.
    Spaced {
        /// Time from one request to the next.
        interval: Duration,
    },
}

/// The schedule of one connection.
pub(super) struct Pacer {
    pace: Pace,
    begun: Instant,
    sent: u32,
    /// Earliest time of the next request of [`Pace::Spaced`].
    next: Instant,
    /// Timer of an open loop. Tokio's clock can be a millisecond late, which is more than the measured times.
    timer: Option<Timer>,
}

impl Pacer {
    pub(super) fn begin(pace: Pace, random: &mut SmallRng) -> io::Result<Pacer> {
        let begun = Instant::now();
        let next = match pace {
            Pace::Spaced { interval } => begun + interval.mul_f64(random.random()),
            Pace::Closed | Pace::Open { .. } => begun,
        };
        let timer = match pace {
            Pace::Open { .. } => Some(Timer::new()?),
            Pace::Closed | Pace::Spaced { .. } => None,
        };
        Ok(Pacer {
            pace,
            begun,
            sent: 0,
            next,
            timer,
        })
    }

    /// Returns the time when the next request is due. `None` in a closed loop.
    pub(super) fn next_due(&self) -> Option<Instant> {
        match self.pace {
            Pace::Closed => None,
            Pace::Open { interval } => {
                let due_ms = (interval * self.sent).as_micros().div_ceil(1000);
                Some(self.begun + Duration::from_millis(due_ms as u64))
            }
            Pace::Spaced { .. } => Some(self.next),
        }
    }

    /// Takes the turn of the next request, which must be due. Returns the start of its response time.
    pub(super) fn take(&mut self, now: Instant) -> Instant {
        let counts_from = match self.pace {
            Pace::Open { .. } => self.next_due().unwrap_or(now),
            Pace::Closed | Pace::Spaced { .. } => now,
        };
        self.sent += 1;
        if let Pace::Spaced { interval } = self.pace {
            self.next = (self.next + interval).max(now);
        }
        counts_from
    }

    /// Waits until `due`. May be cancelled, and called again with another time.
    pub(super) async fn wait_until(&self, due: Instant) -> io::Result<()> {
        match &self.timer {
            Some(timer) => timer.wait_until(due).await,
            None => {
                tokio::time::sleep_until(due.into()).await;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn pacer(pace: Pace) -> Pacer {
        Pacer::begin(pace, &mut SmallRng::seed_from_u64(1)).unwrap()
    }

    #[test]
    fn a_closed_loop_sends_at_once_and_counts_from_sending() {
        let mut pacer = pacer(Pace::Closed);
        let now = Instant::now();
        assert_eq!((pacer.next_due(), pacer.take(now)), (None, now));
    }

    #[tokio::test]
    async fn an_open_loop_counts_from_the_due_time_however_late_it_sends() {
        let mut pacer = pacer(Pace::Open { interval: MS / 4 });
        let begun = pacer.begun;
        let late = begun + 50 * MS;
        let due: Vec<Duration> = (0..6).map(|_| pacer.take(late) - begun).collect();
        assert_eq!(
            due,
            [0, 1, 1, 1, 1, 2].map(|ms| ms * MS),
            "those of a millisecond together"
        );
        pacer.wait_until(begun + 5 * MS).await.unwrap();
        assert!(begun.elapsed() >= 5 * MS);
    }

    #[test]
    fn spaced_requests_do_not_catch_up() {
        let mut pacer = pacer(Pace::Spaced { interval: 10 * MS });
        let first = pacer.next_due().unwrap();
        assert!(first - pacer.begun < 10 * MS);
        assert_eq!(pacer.take(first), first);
        assert_eq!(pacer.next_due(), Some(first + 10 * MS));
        let late = first + 75 * MS;
        assert_eq!(pacer.take(late), late);
        assert_eq!(pacer.next_due(), Some(late));
    }
}
