//! The differences of one row.

use super::cells::{Place, SourceCell, SourceCells, TargetCell, TargetCells};

/// Difference in s between two times of expiry that counts as none. The server returns whole seconds that are left.
pub const EXPIRY_TOLERANCE_S: i64 = 5;

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The source has a live row, the target has none.
    MissingRow,
    /// The source has a live cell, the target has none.
    Missing,
    /// Values differ, and that of the target isn't newer.
    Value,
    /// The target's write time is older, with the same value.
    WriteTime,
    /// The times of expiry differ.
    Expiry,
    /// The source has deleted what the target has.
    Resurrected,
    /// A list has the same elements in another order.
    Order,
}

impl Kind {
    /// Returns the kind in words.
    pub fn words(self) -> &'static str {
        match self {
            Kind::MissingRow => "the row is missing on the target",
            Kind::Missing => "the cell is missing on the target",
            Kind::Value => "the values differ",
            Kind::WriteTime => "the target's write time is older",
            Kind::Expiry => "the times of expiry differ",
            Kind::Resurrected => "the source deleted the cell, and the target has it",
            Kind::Order => "the elements are in another order",
        }
    }
}

/// A difference between source and target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub kind: Kind,
    /// `None` for a row.
    pub place: Option<Place>,
    pub source: Option<SourceCell>,
    pub target: Option<TargetCell>,
    /// Time in µs of the source's deletion. `None` if nothing was deleted.
    pub deleted_us: Option<i64>,
}

/// The result of a row's comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub differences: Vec<Difference>,
    /// Live cells of the source that were compared.
    pub cells: u64,
    /// Cells that are newer on the target.
    pub newer: u64,
    /// Cells that only the target has, and that no known deletion covers.
    pub only_in_target: u64,
    /// The oldest write time in µs of those cells. `None` if there are none, or they have no write times.
    pub oldest_extra_us: Option<i64>,
}

/// Compares a row. `target` is `None` if the target has no such row; a static row without cells is an empty one.
pub fn compare_row(source: &SourceCells, target: Option<&TargetCells>, now_s: i64) -> Outcome {
    let mut outcome = Outcome::default();
    let live = || source.cells.iter().filter(|(_, cell)| cell.is_live(now_s));
    let Some(target) = target else {
        let lasts = |until_s: i64| until_s > now_s + EXPIRY_TOLERANCE_S;
        outcome.cells = live().count() as u64;
        let is_expected = source.alive_until_s.is_some_and(lasts)
            || live().any(|(_, cell)| cell.expires_at_s.is_none_or(lasts));
        if is_expected {
            outcome.differences.push(Difference {
                kind: Kind::MissingRow,
                place: None,
                source: None,
                target: None,
                deleted_us: None,
            });
        }
        return outcome;
    };
    for (place, cell) in live() {
        outcome.cells += 1;
        let found = target.cells.get(place);
        let kind = match found {
            Some(found) if is_newer(cell, found) => {
                outcome.newer += 1;
                None
            }
            Some(found) => differ(cell, found),
            None if is_replaced(place, cell, target) => {
                outcome.newer += 1;
                None
            }
            None => {
                let lasts = |until_s: i64| until_s > now_s + EXPIRY_TOLERANCE_S;
                cell.expires_at_s.is_none_or(lasts).then_some(Kind::Missing)
            }
        };
        outcome.differences.extend(kind.map(|kind| Difference {
            kind,
            place: Some(place.clone()),
            source: Some(cell.clone()),
            target: found.cloned(),
            deleted_us: None,
        }));
    }
    outcome.extras(source, target, now_s);
    outcome.orders(source, target);
    outcome
}

impl Outcome {
    /// Looks at the cells that only the target has.
    fn extras(&mut self, source: &SourceCells, target: &TargetCells, now_s: i64) {
        for (place, found) in &target.cells {
            let known = source.cells.get(place);
            if known.is_some_and(|cell| cell.is_live(now_s)) {
                continue;
            }
            // The clocks of source and target differ a little, so one side may see a cell that the other sees as expired.
            let expiries = (known.and_then(|cell| cell.expires_at_s), found.expires_at_s);
            if let (Some(source_s), Some(target_s)) = expiries
                && is_close(source_s, target_s)
            {
                continue;
            }
            let deleted_us = source.deleted_us(place);
            match found.written_us {
                Some(written_us) if deleted_us.is_some_and(|deleted_us| written_us <= deleted_us) => {
                    self.differences.push(Difference {
                        kind: Kind::Resurrected,
                        place: Some(place.clone()),
                        source: None,
                        target: Some(found.clone()),
                        deleted_us,
                    });
                }
                written_us => {
                    self.only_in_target += 1;
                    let known = self.oldest_extra_us.unwrap_or(i64::MAX);
                    self.oldest_extra_us = written_us.map(|us| us.min(known)).or(self.oldest_extra_us);
                }
            }
        }
    }

    /// Compares the order of lists, by the elements that both sides have.
    fn orders(&mut self, source: &SourceCells, target: &TargetCells) {
        for (column, places) in &source.list_order {
            let found = target.list_order.get(column).into_iter().flatten();
            let found = found.filter(|place| source.cells.contains_key(place));
            let expected = places.iter().filter(|place| target.cells.contains_key(place));
            if !expected.eq(found) {
                self.differences.push(Difference {
                    kind: Kind::Order,
                    place: Some(Place {
                        column: *column,
                        path: None,
                    }),
                    source: None,
                    target: None,
                    deleted_us: None,
                });
            }
        }
    }
}

fn is_newer(source: &SourceCell, target: &TargetCell) -> bool {
    target
        .written_us
        .is_some_and(|written_us| written_us > source.written_us)
}

fn differ(source: &SourceCell, target: &TargetCell) -> Option<Kind> {
    if source.value != target.value {
        return Some(Kind::Value);
    }
    // Counters have no write times.
    let written_us = target.written_us?;
    if written_us < source.written_us {
        return Some(Kind::WriteTime);
    }
    let is_equal = match (source.expires_at_s, target.expires_at_s) {
        (Some(source_s), Some(target_s)) => is_close(source_s, target_s),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    (!is_equal).then_some(Kind::Expiry)
}

fn is_close(source_s: i64, target_s: i64) -> bool {
    (source_s - target_s).abs() <= EXPIRY_TOLERANCE_S
}

/// Returns true if a newer collection has replaced the element: all elements of the target are newer.
fn is_replaced(place: &Place, cell: &SourceCell, target: &TargetCells) -> bool {
    let mut others = target
        .cells
        .iter()
        .filter(|(other, _)| other.column == place.column)
        .map(|(_, other)| is_newer(cell, other))
        .peekable();
    place.path.is_some() && others.peek().is_some() && others.all(|is_newer| is_newer)
}
