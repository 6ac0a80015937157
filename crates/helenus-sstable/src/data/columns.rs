//! The columns that a row has, as a subset of the header's (`db.Columns.Serializer.deserializeSubset`).

use crate::cursor::Cursor;
use crate::error::SstableError;

/// Number of columns from which on a subset is a list of positions.
const LARGE: usize = 64;
const WORD_BITS: usize = 64;

/// A set of positions in the header's list of columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subset {
    All,
    /// Bits of the columns that are absent, of fewer than 64.
    Absent(u64),
    /// Bits of the columns that are present, in words of 64.
    Present(Vec<u64>),
}

impl Subset {
    pub(super) fn contains(&self, position: usize) -> bool {
        match self {
            Subset::All => true,
            Subset::Absent(bits) => bits >> (position % WORD_BITS) & 1 == 0,
            Subset::Present(words) => {
                let word = words.get(position / WORD_BITS).copied().unwrap_or(0);
                word >> (position % WORD_BITS) & 1 == 1
            }
        }
    }

    /// Reads the subset of `columns` columns.
    pub(super) fn read(cursor: &mut Cursor<'_>, columns: usize) -> Result<Subset, SstableError> {
        let place = cursor.clone();
        let encoded = cursor.vint("columns of a row")?;
        if encoded == 0 {
            return Ok(Subset::All);
        }
        if columns < LARGE {
            return if encoded >> columns == 0 {
                Ok(Subset::Absent(encoded))
            } else {
                Err(place.corrupt(format!(
                    "a row lacks columns {encoded:#x}; the header has {columns} columns"
                )))
            };
        }
        let absent = usize::try_from(encoded).ok().filter(|absent| *absent <= columns);
        let Some(absent) = absent else {
            return Err(place.corrupt(format!(
                "a row lacks {encoded} columns; the header has {columns} columns"
            )));
        };
        read_large(cursor, columns, absent)
    }
}

/// Reads a list of positions: of the present columns if they are less than half, of the absent ones otherwise.
fn read_large(cursor: &mut Cursor<'_>, columns: usize, absent: usize) -> Result<Subset, SstableError> {
    let present = columns - absent;
    let lists_present = present < columns / 2;
    let mut words = vec![0_u64; columns.div_ceil(WORD_BITS)];
    for _ in 0..(if lists_present { present } else { absent }) {
        let place = cursor.clone();
        let position = cursor.vint("position of a column")?;
        let word = usize::try_from(position)
            .ok()
            .filter(|position| *position < columns)
            .and_then(|position| words.get_mut(position / WORD_BITS));
        let Some(word) = word else {
            return Err(place.corrupt(format!(
                "a row has column {position}; the header has {columns} columns"
            )));
        };
        *word |= 1 << (position % WORD_BITS as u64);
    }
    if !lists_present {
        for word in &mut words {
            *word = !*word;
        }
    }
    Ok(Subset::Present(words))
}

#[cfg(test)]
#[path = "columns_tests.rs"]
mod tests;
