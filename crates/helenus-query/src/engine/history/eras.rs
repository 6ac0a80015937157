//! Finds a time among the bases. The order of bases is that of their numbers, not that of any clock.
//!
//! Each base contains the times that clocks have shown since the previous base, as runs without a step ([`Run`]). A time in one run shows
//! where to cut the logs. A time in two runs is refused, with the range of uncertain times: one of the clocks was set wrong.

use helenus_tablet::SetBack;

use super::clock_watch::Run;

/// Times that a base covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BaseTimes {
    /// Time before the cut. `None` if an older binary has taken the base.
    pub began_ms: Option<i64>,
    /// Time after the cut.
    pub taken_ms: i64,
    /// Runs of the clocks since the previous base. Empty if an older binary has taken the base.
    pub shown: Vec<Run>,
}

/// Position of a time among the bases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Index of the last base before the time.
    pub base: usize,
    pub set_back: SetBack,
    /// Index of a base whose log positions are after the time. `None` if no such base is known.
    pub before: Option<usize>,
}

/// The reason why a time has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// The time is before all bases.
    TooOld,
    /// Clocks have shown these times more than once.
    Uncertain(Run),
}

/// A run, and the base that it follows.
struct Piece {
    base: usize,
    /// Index of the run among those that follow the base.
    at: usize,
    run: Run,
    /// True if the clock went on from the previous piece without a step.
    goes_on: bool,
}

/// Returns the runs that follow each base. `current` are the runs after the last base.
fn segments(bases: &[BaseTimes], current: &[Run]) -> Vec<Vec<Run>> {
    let pairs = bases.iter().zip(bases.iter().skip(1));
    let between = pairs.map(|(base, next)| match next.shown.is_empty() {
        true => vec![Run::new(base.taken_ms, next.taken_ms)],
        false => next.shown.clone(),
    });
    between.chain([current.to_vec()]).collect()
}

fn pieces(segments: &[Vec<Run>]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for (base, runs) in segments.iter().enumerate() {
        for (at, &run) in runs.iter().enumerate() {
            let goes_on = pieces.last().is_some_and(|last| last.run.last_ms == run.first_ms);
            pieces.push(Piece {
                base,
                at,
                run,
                goes_on,
            });
        }
    }
    pieces
}

/// Returns true if the clock was set back between two of these consecutive runs.
fn has_step_back(runs: &[Run]) -> bool {
    runs.windows(2)
        .any(|pair| matches!(pair, [run, next] if next.first_ms < run.last_ms))
}

/// Finds the place of a time. The bases are in the order of their numbers.
pub(super) fn locate(bases: &[BaseTimes], current: &[Run], time_ms: i64) -> Result<Place, NoPlace> {
    let segments = segments(bases, current);
    let pieces = pieces(&segments);
    let piece = match found(&pieces, time_ms)? {
        Some(piece) => piece,
        None => gap(&pieces, time_ms)?,
    };
    let runs = segments.get(piece.base).map_or(&[][..], Vec::as_slice);
    let is_back_before = has_step_back(runs.get(..=piece.at).unwrap_or_default());
    let is_back_after = has_step_back(runs.get(piece.at..).unwrap_or_default());
    let set_back = match (is_back_before, is_back_after) {
        (false, false) => SetBack::Nowhere,
        (true, false) => {
            // Commits between the beginning of the base and its end may follow its positions.
            let began_ms = bases.get(piece.base).and_then(|base| base.began_ms);
            SetBack::Before {
                from_ms: earlier_from(began_ms, runs, piece.at, time_ms),
            }
        }
        (false, true) => SetBack::After,
        (true, true) => return Err(NoPlace::Uncertain(piece.run)),
    };
    let (set_back, before) = later_base(bases, &segments, piece.base, set_back, time_ms);
    Ok(Place {
        base: piece.base,
        set_back,
        before,
    })
}

/// Returns the least time after `time_ms` at which a run before index `at` begins, or the base began. `i64::MAX` if there is none.
fn earlier_from(began_ms: Option<i64>, runs: &[Run], at: usize, time_ms: i64) -> i64 {
    let earlier = began_ms
        .into_iter()
        .chain(runs.iter().take(at).map(|run| run.first_ms));
    earlier
        .filter(|first_ms| *first_ms > time_ms)
        .min()
        .unwrap_or(i64::MAX)
}

/// Returns the run that contains a time. `None` if there is none. If a clock went on from one run to the next, the newest one counts. Runs
/// with a step between them make the time uncertain.
fn found(pieces: &[Piece], time_ms: i64) -> Result<Option<&Piece>, NoPlace> {
    let mut found: Option<(usize, &Piece)> = None;
    for (at, piece) in pieces.iter().enumerate() {
        if !piece.run.contains(time_ms) {
            continue;
        }
        if let Some((before, other)) = found
            && !pieces[before + 1..=at].iter().all(|piece| piece.goes_on)
        {
            return Err(NoPlace::Uncertain(Run::new(
                piece.run.first_ms.max(other.run.first_ms),
                piece.run.last_ms.min(other.run.last_ms),
            )));
        }
        found = Some((at, piece));
    }
    Ok(found.map(|(_, piece)| piece))
}

/// Returns the run that follows a time which no clock has shown. No node was up at that time, or the clock was set forward.
fn gap(pieces: &[Piece], time_ms: i64) -> Result<&Piece, NoPlace> {
    let around = |pair: &&[Piece]| matches!(pair, [run, next] if run.run.last_ms < time_ms && time_ms < next.run.first_ms);
    let mut gaps = pieces.windows(2).filter(around);
    let gap_of = |pair: &[Piece]| match pair {
        [run, next] => Run::new(run.run.last_ms, next.run.first_ms),
        _ => Run::new(time_ms, time_ms),
    };
    match (gaps.next(), gaps.next()) {
        (Some([_, next]), None) => Ok(next),
        (Some(pair), _) => Err(NoPlace::Uncertain(gap_of(pair))),
        (None, _) if pieces.iter().all(|piece| piece.run.first_ms > time_ms) => Err(NoPlace::TooOld),
        (None, _) => Err(NoPlace::Uncertain(Run::new(time_ms, time_ms))),
    }
}

/// Returns the index of the first base whose later commits are all later than the time. `None` if none is known. Also returns where the clock
/// was set back before that base.
fn later_base(
    bases: &[BaseTimes],
    segments: &[Vec<Run>],
    base: usize,
    set_back: SetBack,
    time_ms: i64,
) -> (SetBack, Option<usize>) {
    for (at, later) in bases.iter().enumerate().skip(base + 1) {
        let is_later = later.began_ms.is_some_and(|began_ms| began_ms > time_ms);
        if is_later || set_back == SetBack::After {
            return (set_back, Some(at));
        }
        if segments.get(at).is_some_and(|runs| has_step_back(runs)) {
            // The base was being taken at that time: commits after its positions may be earlier.
            let next = Some(at + 1).filter(|next| *next < bases.len());
            return match set_back {
                SetBack::Nowhere => (SetBack::After, next),
                _ => (set_back, Some(at)),
            };
        }
    }
    (set_back, None)
}

/// Returns the index of the first base that times from `cutoff_ms` on need. The bases are in the order of their numbers.
///
/// A base counts as no older than those before it, whatever its clock said. A base with a time in the future is ignored, because its clock
/// was wrong.
pub(super) fn first_needed(taken_ms: &[i64], cutoff_ms: i64, now_ms: i64) -> usize {
    let mut latest_ms = i64::MIN;
    let mut needed = 0;
    for (at, &taken_ms) in taken_ms.iter().enumerate() {
        if taken_ms <= now_ms {
            latest_ms = latest_ms.max(taken_ms);
        }
        if latest_ms != i64::MIN && latest_ms <= cutoff_ms {
            needed = at;
        }
    }
    needed
}

#[cfg(test)]
#[path = "eras_tests.rs"]
mod tests;
