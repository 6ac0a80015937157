//! The comparison of a source with the rows of a target: cell by cell, with write times and times of expiry.
//!
//! - [`cells`]: the cells of a merged row, and of a row that the target returned;
//! - [`compare`]: the differences of one row;
//! - [`join`]: both streams side by side, in order of tokens, keys and clusterings.
//!
//! Both streams are read once, so a row that differs is only a [`Suspect`]: clients may have written between the two reads. The caller
//! reads it again and compares it with [`Suspect::compare`].

pub mod cells;
pub mod compare;
pub mod join;

#[cfg(test)]
mod verify_tests;

pub use cells::{Place, SourceCell, SourceCells, TargetCell, TargetCells};
pub use compare::{Difference, Kind, Outcome, compare_row};
pub use join::{Counts, Join, Suspect, TargetRow, TargetRows};
