//! Keeps the past as long as the window is: takes bases, and removes what is older. One node of a cluster does it.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use helenus_cql::error::CqlError;
use helenus_tablet::FailureStreak;
use uuid::Uuid;

use super::{PastFigures, SKEW_MS};
use crate::engine::Engine;
use crate::failure::store_error;

/// How often the keeper looks whether something is due.
const INTERVAL: Duration = Duration::from_secs(1);
/// How often it looks for what is too old: in this part of the window, within these bounds.
const TRIM_PART: u32 = 200;
const TRIM_INTERVAL_MIN: Duration = Duration::from_secs(5);
const TRIM_INTERVAL_MAX: Duration = Duration::from_secs(300);
/// What is read of logs for a time of the past lies in memory: so much log is there between two bases, about.
const LOG_BYTES: u64 = 128 << 20;
/// The bases of a window, if little is written.
const BASES: u32 = 100;
/// However much is written, the newest bases stay, since most mistakes are undone soon, and about so many older ones. Each is a checkpoint in the
/// manifests of all tablets.
const NEWEST_BASES: usize = 100;
const OLDER_BASES: i64 = 1000;
const BASE_INTERVAL_MIN: Duration = Duration::from_secs(10);
const BASE_INTERVAL_MAX: Duration = Duration::from_secs(3600);

/// What the keeper remembers.
struct Keeper {
    window: Duration,
    /// When the last base was taken, and how much this node's log had been written then.
    last: Option<(Instant, u64)>,
    trimmed: Instant,
    /// The version of the schema that is known to be written down.
    noted: Option<Uuid>,
}

/// Keeps the past, as long as the engine is there; or removes what is kept, if none is to be.
pub(in crate::engine) fn begin(engine: &Arc<Engine>) {
    let engine: Weak<Engine> = Arc::downgrade(engine);
    tokio::spawn(async move {
        let Some(window) = engine.upgrade().map(|engine| engine.history.window) else {
            return;
        };
        let Some(window) = window else {
            remove_all(&engine).await;
            return;
        };
        let mut keeper = Keeper {
            window,
            last: None,
            trimmed: Instant::now(),
            noted: None,
        };
        let mut keeping = FailureStreak::new(
            "the past could not be kept; trying again",
            "the past is kept again",
        );
        loop {
            let Some(engine) = engine.upgrade() else { return };
            match engine.is_housekeeper() {
                true => {
                    let kept = keeper.run(&engine).await;
                    keeping.note(&kept);
                    *engine.history.failure.lock() = kept.err().map(|error| error.to_string());
                }
                false => {
                    keeper.last = None;
                    *engine.history.figures.lock() = PastFigures::default();
                    *engine.history.failure.lock() = None;
                }
            }
            drop(engine);
            tokio::time::sleep(INTERVAL).await;
        }
    });
}

impl Keeper {
    async fn run(&mut self, engine: &Engine) -> Result<(), CqlError> {
        let written = engine.store_stats().log.bytes;
        if self.is_due(engine, written) {
            engine.note_whole_schema(true).await?;
            // Before it is taken, so that one that fails is not tried at once.
            self.last = Some((Instant::now(), written));
            engine.take_base().await?;
        }
        let version = engine.schema().version;
        if self.noted != Some(version) {
            engine.note_whole_schema(false).await?;
            self.noted = Some(version);
        }
        let interval = (self.window / TRIM_PART).clamp(TRIM_INTERVAL_MIN, TRIM_INTERVAL_MAX);
        if self.trimmed.elapsed() >= interval {
            self.trimmed = Instant::now();
            trim(engine, self.window).await?;
        }
        Ok(())
    }

    fn is_due(&self, engine: &Engine, written: u64) -> bool {
        let Some((at, before)) = self.last else {
            return true;
        };
        let nodes = engine.cluster().map_or(1, |cluster| {
            let nodes = cluster.nodes().into_iter();
            nodes.filter(|node| node.is_alive).count().max(1)
        });
        let more = written.saturating_sub(before);
        // Of what other nodes write nothing is known here.
        let is_idle = more == 0 && nodes == 1;
        let interval = (self.window / BASES).clamp(BASE_INTERVAL_MIN, BASE_INTERVAL_MAX);
        more.saturating_mul(nodes as u64) >= LOG_BYTES || (at.elapsed() >= interval && !is_idle)
    }
}

/// Removes what no time within the window needs, and bases that are near to others.
///
/// # Errors
/// The store can't be read or written to.
pub(in crate::engine) async fn trim(engine: &Engine, window: Duration) -> Result<(), CqlError> {
    let window_ms = i64::try_from(window.as_millis()).unwrap_or(i64::MAX);
    let cutoff_ms = engine.now_ms().saturating_sub(window_ms);
    let mut bases = engine.bases().await?;
    let times: Vec<i64> = bases.keys().copied().collect();
    for at in too_near(&times, window_ms / OLDER_BASES) {
        // What is gone is not the last one before the window either.
        if let Some(base) = bases.remove(&at) {
            engine.remove_base(&base).await?;
        }
    }
    // The last one before is needed. Without one nothing is too old.
    let first_ms = bases.range(..=cutoff_ms).next_back().map(|(at, _)| *at);
    if let Some(first_ms) = first_ms {
        let needed = bases.split_off(&first_ms);
        for base in bases.values() {
            engine.remove_base(base).await?;
        }
        bases = needed;
        engine.trim_timeline(first_ms).await?;
        engine.pasts.forget_times_before(first_ms);
    }
    let before_ms = first_ms.map_or(i64::MIN, |first_ms| first_ms.saturating_sub(SKEW_MS));
    let trimmed = engine.context.store.trim_history(before_ms).await;
    *engine.history.figures.lock() = PastFigures {
        moments: bases.len(),
        earliest_ms: bases.keys().next().copied(),
        log_bytes: trimmed.map_err(store_error)?.kept_bytes,
    };
    Ok(())
}

/// Of the times of bases, in their order, those that can go: what remains before the newest is an interval apart at least. The first
/// remains.
fn too_near(times: &[i64], interval_ms: i64) -> Vec<i64> {
    let older = &times[..times.len().saturating_sub(NEWEST_BASES)];
    let mut last_ms: Option<i64> = None;
    let mut near = Vec::new();
    for &at in older {
        match last_ms {
            Some(last_ms) if at.saturating_sub(last_ms) < interval_ms => near.push(at),
            _ => last_ms = Some(at),
        }
    }
    near
}

/// Removes all that was kept while there was a window.
async fn remove_all(engine: &Weak<Engine>) {
    loop {
        let Some(engine) = engine.upgrade() else { return };
        if engine.is_housekeeper() {
            match remove(&engine).await {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, "what was kept of the past could not be removed"),
            }
        }
        drop(engine);
        tokio::time::sleep(TRIM_INTERVAL_MIN).await;
    }
}

/// Removes all that is kept.
///
/// # Errors
/// The store can't be read or written to.
pub(in crate::engine) async fn remove(engine: &Engine) -> Result<(), CqlError> {
    for base in engine.bases().await?.values() {
        engine.remove_base(base).await?;
    }
    engine.remove_timeline().await?;
    let trimmed = engine
        .context
        .store
        .trim_history(i64::MAX)
        .await
        .map_err(store_error)?;
    if trimmed.deleted > 0 {
        tracing::info!(
            parts = trimmed.deleted,
            "what was kept of the past was removed: point_in_time_window is off"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What remains of bases that are taken every so many ms for some windows, thinned as they come.
    fn kept(window_ms: i64, every_ms: i64) -> Vec<i64> {
        let mut times = Vec::new();
        for at in (0..3 * window_ms).step_by(every_ms as usize) {
            times.push(at);
            let near = too_near(&times, window_ms / OLDER_BASES);
            times.retain(|at| !near.contains(at));
            let first = times.iter().rposition(|time| *time <= at - window_ms);
            times.drain(..first.unwrap_or(0));
        }
        times
    }

    #[test]
    fn bases_of_fast_writers_are_thinned_and_those_of_slow_ones_stay() {
        let window_ms = 100_000;
        let interval_ms = window_ms / OLDER_BASES;
        let often = kept(window_ms, interval_ms / 10);
        let (older, newest) = often.split_at(often.len() - NEWEST_BASES);
        let are_apart = |times: &[i64], ms: i64| times.windows(2).all(|pair| pair[1] - pair[0] == ms);
        assert!(
            are_apart(newest, interval_ms / 10) && are_apart(older, interval_ms),
            "{often:?}"
        );
        assert!(older.len() as i64 <= OLDER_BASES && often[0] <= newest[NEWEST_BASES - 1] - window_ms);

        let seldom = kept(window_ms, interval_ms);
        assert_eq!(seldom.len() as i64, OLDER_BASES + 1);
    }
}
