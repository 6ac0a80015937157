//! Keeps history for the length of the window: takes bases, and removes what is older. One node of a cluster does this.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use helenus_cql::error::CqlError;
use helenus_tablet::FailureStreak;
use uuid::Uuid;

use super::HistoryFigures;
use super::eras::first_needed;
use crate::engine::Engine;
use crate::failure::store_error;

/// Interval at which the keeper checks whether a base is due.
const INTERVAL: Duration = Duration::from_secs(1);
/// Part of the window that is the interval at which old history is removed, and the bounds of the interval.
const TRIM_PART: u32 = 200;
const TRIM_INTERVAL_MIN: Duration = Duration::from_secs(5);
const TRIM_INTERVAL_MAX: Duration = Duration::from_secs(300);
/// Approximate bytes of logs between two bases. A read of a time holds the logs since its base in memory.
const LOG_BYTES: u64 = 128 << 20;
/// Number of bases in a window if little is written.
const BASES: u32 = 100;
/// Number of newest bases that always stay, since most mistakes are undone soon, and approximate maximum number of older ones. Each base is
/// a checkpoint in the manifests of all tablets, so their number must be bounded.
const NEWEST_BASES: usize = 100;
const OLDER_BASES: i64 = 1000;
const BASE_INTERVAL_MIN: Duration = Duration::from_secs(10);
const BASE_INTERVAL_MAX: Duration = Duration::from_secs(3600);
/// Time for which the clock must have been stable before history is removed: this part of the window, but at most the maximum. It begins
/// when the clock is set forward or the node starts.
const SETTLED_PART: u32 = 4;
const SETTLED_MAX: Duration = Duration::from_secs(600);

/// State of the keeper.
struct Keeper {
    window: Duration,
    /// Time of the last base, and bytes that this node had written to its log by then. `None` if a base is due at once.
    last: Option<(Instant, u64)>,
    trimmed: Instant,
    /// The last version of the schema that is known to be written down.
    noted: Option<Uuid>,
}

/// Keeps history in the background, as long as the engine exists. Removes kept history if no window is set.
pub(in crate::engine) fn begin(engine: &Arc<Engine>) {
    let engine: Weak<Engine> = Arc::downgrade(engine);
    tokio::spawn(async move {
        let Some(window) = engine.upgrade().map(|engine| engine.cuts.history.window) else {
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
        let mut keeping =
            FailureStreak::new("history could not be kept; trying again", "history is kept again");
        loop {
            let Some(engine) = engine.upgrade() else { return };
            let was_set_back = engine.watch_clock();
            let kept = match engine.is_housekeeper() {
                true => keeper.run(&engine, was_set_back).await,
                false => {
                    keeper.last = None;
                    *engine.cuts.history.figures.lock() = HistoryFigures::default();
                    match was_set_back {
                        // No other node knows about the steps of this node's clock.
                        true => engine.take_base().await,
                        false => Ok(()),
                    }
                }
            };
            keeping.note(&kept);
            *engine.cuts.history.failure.lock() = kept.err().map(|error| error.to_string());
            drop(engine);
            tokio::time::sleep(INTERVAL).await;
        }
    });
}

impl Keeper {
    async fn run(&mut self, engine: &Engine, was_set_back: bool) -> Result<(), CqlError> {
        let written = engine.store_stats().log.bytes;
        if was_set_back || self.is_due(engine, written) {
            // The attempt is noted first, so that a failed one is not repeated at once.
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
            let lasting = (self.window / SETTLED_PART).min(SETTLED_MAX);
            let settled_ms = engine.cuts.history.clock.lock().settled_ms(lasting);
            if let Some(now_ms) = settled_ms {
                trim(engine, self.window, now_ms).await?;
            }
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
        // Writes of other nodes are unknown here, so that a cluster never counts as idle.
        let is_idle = more == 0 && nodes == 1;
        let interval = (self.window / BASES).clamp(BASE_INTERVAL_MIN, BASE_INTERVAL_MAX);
        more.saturating_mul(nodes as u64) >= LOG_BYTES || (at.elapsed() >= interval && !is_idle)
    }
}

/// Removes history that no time within the window before `now_ms` needs, and bases that are close to others.
///
/// # Errors
/// The store can't be read or written to.
pub(in crate::engine) async fn trim(engine: &Engine, window: Duration, now_ms: i64) -> Result<(), CqlError> {
    let window_ms = i64::try_from(window.as_millis()).unwrap_or(i64::MAX);
    let cutoff_ms = now_ms.saturating_sub(window_ms);
    let mut bases = engine.bases().await?;
    let times: Vec<i64> = bases.iter().map(|base| base.taken_ms).collect();
    let near = too_near(&times, window_ms / OLDER_BASES);
    // Close bases are removed first, so that the last base before the window is one that stays.
    for base in bases.extract_if(.., |base| near.contains(&base.taken_ms)) {
        engine.remove_base(&base).await?;
    }
    let times: Vec<i64> = bases.iter().map(|base| base.taken_ms).collect();
    let old = first_needed(&times, cutoff_ms, now_ms);
    for base in bases.drain(..old) {
        engine.remove_base(&base).await?;
    }
    let Some(first) = bases.first() else { return Ok(()) };
    engine.trim_timeline(&bases).await?;
    let earliest_ms = bases.iter().map(|base| base.taken_ms).min();
    engine
        .trim_released(earliest_ms.unwrap_or(i64::MIN), None)
        .await?;
    engine.cuts.open_history.close_times_before(first.taken_ms);
    let trimmed = engine.context.store.trim_history(&first.positions).await;
    *engine.cuts.history.figures.lock() = HistoryFigures {
        cuts: bases.len(),
        earliest_ms: Some(first.taken_ms),
        log_bytes: trimmed.map_err(store_error)?.kept_bytes,
        ..HistoryFigures::default()
    };
    Ok(())
}

/// Returns the times of the bases that are too close to others. The given times are in the order of the bases. Of those before the newest
/// ones, the remaining bases are at least `interval_ms` apart. The first one stays, and so do bases between which a clock was set back.
fn too_near(times: &[i64], interval_ms: i64) -> Vec<i64> {
    let older = &times[..times.len().saturating_sub(NEWEST_BASES)];
    let mut last_ms: Option<i64> = None;
    let mut near = Vec::new();
    for &at in older {
        match last_ms {
            Some(last_ms) if (0..interval_ms).contains(&at.saturating_sub(last_ms)) => near.push(at),
            _ => last_ms = Some(at),
        }
    }
    near
}

/// Removes all history that was kept while a window was set. Tries until it succeeds.
async fn remove_all(engine: &Weak<Engine>) {
    loop {
        let Some(engine) = engine.upgrade() else { return };
        if engine.is_housekeeper() {
            match remove(&engine).await {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, "history could not be removed"),
            }
        }
        drop(engine);
        tokio::time::sleep(TRIM_INTERVAL_MIN).await;
    }
}

/// Removes all history.
///
/// # Errors
/// The store can't be read or written to.
pub(in crate::engine) async fn remove(engine: &Engine) -> Result<(), CqlError> {
    for base in engine.bases().await? {
        engine.remove_base(&base).await?;
    }
    engine.remove_timeline().await?;
    engine.trim_released(i64::MAX, None).await?;
    let trimmed = engine.context.store.remove_history().await.map_err(store_error)?;
    if trimmed.deleted > 0 {
        tracing::info!(
            parts = trimmed.deleted,
            "history was removed: point_in_time_window is off"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the times of the bases that remain after three windows, if one is taken every `every_ms` and close ones are removed at once.
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
    fn bases_are_thinned_for_fast_writers_only() {
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
