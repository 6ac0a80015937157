//! The speed of an import by the number of batches in flight. Pure, with times as arguments.
//!
//! Small requests of the import's own, *probes*, show what clients of the nodes see: they become slower when the import takes too much. The
//! number of batches falls then, also below one: a pause follows each batch.

use std::time::Duration;

/// Batches in flight at the start, and the least number.
const LIMIT_START: f64 = 0.25;
const LIMIT_MIN: f64 = 0.02;
/// Share of the limit that is left after slow probes, after a slow acknowledgement, and after an overload.
const AFTER_SLOW_PROBES: f64 = 0.75;
const AFTER_SLOW: f64 = 0.7;
const AFTER_OVERLOAD: f64 = 0.5;
/// Factor by which the limit grows while probes are fast.
const GROWTH: f64 = 1.05;
/// Time between two changes of the limit by probes.
const CHANGE_INTERVAL: Duration = Duration::from_millis(200);
/// Probes are slow if they take this many times as long as the fastest ones, and this time more.
const SLOW_PROBE_FACTOR: f64 = 1.5;
const SLOW_PROBE_MARGIN_S: f64 = 0.000_3;
/// Weight of the latest probe in the mean.
const PROBE_WEIGHT: f64 = 0.2;
/// An acknowledgement is slow if it takes this many times as long as the fastest ones, and this time more.
const SLOW_FACTOR: f64 = 3.0;
const SLOW_MARGIN_S: f64 = 0.02;
/// Part of the distance to a slower time by which the known fastest one rises, so that old times are forgotten.
const FORGET: f64 = 0.01;
const FORGET_PROBE: f64 = 0.000_5;

/// The fastest of the latest times, in seconds.
#[derive(Clone, Debug, Default)]
struct Fastest(Option<f64>);

impl Fastest {
    /// Notes a time, and returns the fastest one.
    fn note(&mut self, time_s: f64, forget: f64) -> f64 {
        let fastest_s = match self.0 {
            Some(fastest_s) if fastest_s <= time_s => fastest_s + (time_s - fastest_s) * forget,
            _ => time_s,
        };
        self.0 = Some(fastest_s);
        fastest_s
    }
}

/// The probes of one node.
#[derive(Clone, Debug, Default)]
struct Probes {
    fastest: Fastest,
    /// Mean of the latest times in seconds.
    mean_s: f64,
    is_slow: bool,
}

/// The number of batches in flight. It grows by a share while probes are fast, and falls by a share otherwise.
#[derive(Clone, Debug)]
pub struct Adaptive {
    limit: f64,
    max: f64,
    acknowledgements: Fastest,
    probes: Vec<Probes>,
    /// Time of the last fall, since the start.
    fell_at: Option<Duration>,
    /// Time of the last change by probes, since the start.
    changed_at: Duration,
}

impl Adaptive {
    /// Creates the pace of an import into that many nodes, with at most `max` batches in flight.
    pub fn new(max: usize, nodes: usize) -> Adaptive {
        Adaptive {
            limit: LIMIT_START,
            max: max.max(1) as f64,
            acknowledgements: Fastest::default(),
            probes: vec![Probes::default(); nodes],
            fell_at: None,
            changed_at: Duration::ZERO,
        }
    }

    /// Returns the number of batches that may be in flight.
    pub fn limit(&self) -> usize {
        (self.limit as usize).max(1)
    }

    /// Returns the pause after a batch that was acknowledged after `time`.
    pub fn pause(&self, time: Duration) -> Duration {
        match self.limit < 1.0 {
            true => time.mul_f64(1.0 / self.limit - 1.0),
            false => Duration::ZERO,
        }
    }

    /// Notes the time of a small request to a node. `now` is the time since the start.
    pub fn probed(&mut self, node: usize, time: Duration, now: Duration) {
        let Some(probes) = self.probes.get_mut(node) else {
            return;
        };
        let time_s = time.as_secs_f64();
        let fastest_s = probes.fastest.note(time_s, FORGET_PROBE);
        probes.mean_s += (time_s - probes.mean_s) * PROBE_WEIGHT;
        probes.is_slow = probes.mean_s > fastest_s * SLOW_PROBE_FACTOR + SLOW_PROBE_MARGIN_S;
        if now.saturating_sub(self.changed_at) < CHANGE_INTERVAL {
            return;
        }
        self.changed_at = now;
        match self.probes.iter().any(|probes| probes.is_slow) {
            true => self.fall(AFTER_SLOW_PROBES, now),
            false => self.limit = (self.limit * GROWTH).min(self.max),
        }
    }

    /// Notes an acknowledgement that took `time`.
    pub fn acknowledged(&mut self, time: Duration, now: Duration) {
        let time_s = time.as_secs_f64();
        let fastest_s = self.acknowledgements.note(time_s, FORGET);
        // Batches that were in flight together are slow together: they count once.
        if time_s > fastest_s * SLOW_FACTOR + SLOW_MARGIN_S
            && self.fell_at.is_none_or(|at| now.saturating_sub(at) >= time)
        {
            self.fall(AFTER_SLOW, now);
        }
    }

    /// Notes that the server was overloaded, or did not answer in time.
    pub fn overloaded(&mut self, now: Duration) {
        self.fall(AFTER_OVERLOAD, now);
    }

    fn fall(&mut self, share: f64, now: Duration) {
        self.limit = (self.limit * share).max(LIMIT_MIN);
        self.fell_at = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Returns a pace after 100 s of fast probes.
    fn grown(max: usize) -> Adaptive {
        let mut adaptive = Adaptive::new(max, 1);
        for round in 0..1000 {
            adaptive.probed(0, MS / 2, 100 * round * MS);
        }
        adaptive
    }

    #[test]
    fn limit_grows_with_fast_probes() {
        let adaptive = Adaptive::new(8, 1);
        assert_eq!((adaptive.limit(), adaptive.pause(10 * MS)), (1, 30 * MS));
        let adaptive = grown(8);
        assert_eq!((adaptive.limit(), adaptive.pause(10 * MS)), (8, Duration::ZERO));
    }

    #[test]
    fn slow_probes_lead_to_pauses() {
        let mut adaptive = grown(8);
        for round in 0..200 {
            adaptive.probed(0, 3 * MS, (100_000 + 100 * round) * MS);
        }
        assert_eq!(adaptive.limit(), 1);
        assert!(adaptive.pause(10 * MS) > 100 * MS);
    }

    #[test]
    fn slow_acknowledgements_of_one_round_count_once() {
        let mut adaptive = grown(10);
        for _ in 0..10 {
            adaptive.acknowledged(10 * MS, 200_000 * MS);
        }
        for _ in 0..10 {
            adaptive.acknowledged(500 * MS, 201_000 * MS);
        }
        assert_eq!(adaptive.limit(), 7);
        adaptive.acknowledged(500 * MS, 201_600 * MS);
        assert_eq!(adaptive.limit(), 4);
    }

    #[test]
    fn overloads_leave_one_with_pauses() {
        let mut adaptive = grown(10);
        for round in 0..20 {
            adaptive.overloaded(round * MS);
        }
        assert_eq!((adaptive.limit(), adaptive.pause(MS)), (1, 49 * MS));
    }
}
