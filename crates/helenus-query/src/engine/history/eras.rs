//! Finds a time among the bases, whose order is that of their numbers and not that of any clock.
//!
//! Each base says what clocks have shown since the one before, as runs without a step ([`Run`]). A time that one run has shows where to cut the
//! logs. A time that two runs have, one of which a clock that was set wrong has shown, is refused with the times that are uncertain.

use helenus_tablet::SetBack;

use super::clock_watch::Run;

/// Certainty of the times of a base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BaseTimes {
    /// Time before its moment. `None` if an older binary has taken it.
    pub began_ms: Option<i64>,
    /// Time after its moment.
    pub taken_ms: i64,
    /// Runs of the clocks since the previous base. Empty if an older binary has taken it.
    pub shown: Vec<Run>,
}

/// Position of a time among the bases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The index of the last base before it.
    pub base: usize,
    pub set_back: SetBack,
    /// The index of a base whose positions are later. `None` if none is known to be.
    pub before: Option<usize>,
}

/// Why a time has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// The time is before all bases.
    TooOld,
    /// These times were shown more than once.
    Uncertain(Run),
}

/// A run, and the base that it follows.
struct Piece {
    base: usize,
    /// The index of the run among those that follow that base.
    at: usize,
    run: Run,
    /// True if the clock goes on from the piece before.
    goes_on: bool,
}

/// Returns the runs that follow each base; `current` are those after the last one.
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

/// Returns true if the clock was set back between some of these runs, which follow each other.
fn has_step_back(runs: &[Run]) -> bool {
    runs.windows(2)
        .any(|pair| matches!(pair, [run, next] if next.first_ms < run.last_ms))
}

/// Finds a time among bases, which are in the order of their numbers.
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
        (true, false) => SetBack::Before {
            from_ms: earlier_from(runs, piece.at, time_ms),
        },
        (false, true) => SetBack::After,
        (true, true) => return Err(NoPlace::Uncertain(piece.run)),
    };
    Ok(Place {
        base: piece.base,
        set_back,
        before: later_base(bases, &segments, piece.base, set_back, time_ms),
    })
}

/// Returns the first time that is later than the given one and was shown before the run at that index.
fn earlier_from(runs: &[Run], at: usize, time_ms: i64) -> i64 {
    let earlier = runs.iter().take(at).map(|run| run.first_ms);
    earlier
        .filter(|first_ms| *first_ms > time_ms)
        .min()
        .unwrap_or(i64::MAX)
}

/// Returns the run that has shown a time, the newest if the clock went on from one to the next; `None` if none has.
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

/// Returns the run before which a time lies that no clock has shown: no node was up, or the clock was set forward.
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

/// Returns the index of a base all of whose later commits are later than the time.
fn later_base(
    bases: &[BaseTimes],
    segments: &[Vec<Run>],
    base: usize,
    set_back: SetBack,
    time_ms: i64,
) -> Option<usize> {
    for at in base + 1..bases.len() {
        let began_ms = bases.get(at)?.began_ms;
        let is_later = began_ms.is_some_and(|began_ms| began_ms > time_ms);
        let is_set_back_next = segments.get(at).is_some_and(|runs| has_step_back(runs));
        if is_later || set_back == SetBack::After || is_set_back_next {
            return Some(at);
        }
    }
    None
}

/// Returns the index of the first base that times from `cutoff_ms` on need, the bases being in the order of their numbers.
///
/// A base is no older than those before it, whatever the clock said. A time that is still to come is that of a wrong clock, and says nothing.
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
