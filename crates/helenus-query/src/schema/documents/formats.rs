//! The formats of the schema document and of its bases. A schema is written in the lowest format that knows all that is in it, so that
//! older binaries read what they understand, and refuse the rest.

use crate::schema::Schema;

/// The newest format of the document `schema`; raised when an older binary could not understand it.
pub(crate) const JOURNAL: u32 = 14;
/// The format of a document with none of the [`FEATURES`]. Older ones are a base alone.
pub(crate) const JOURNAL_LEAST: u32 = 3;
/// The newest format of a base.
pub(crate) const BASE: u32 = 12;
const BASE_LEAST: u32 = 1;

/// A part of a schema that not every format knows.
struct Feature {
    is_used: fn(&Schema) -> bool,
    journal: u32,
    base: u32,
}

#[rustfmt::skip]
const FEATURES: &[Feature] = &[
    Feature { is_used: |schema| schema.stored_tables().any(|table| table.has_been_compact()), journal: 4, base: 1 },
    Feature { is_used: |schema| schema.stored_tables().any(|table| table.is_view()), journal: 3, base: 2 },
    Feature { is_used: Schema::has_functions, journal: 5, base: 3 },
    Feature { is_used: |schema| !schema.access.is_empty(), journal: 6, base: 4 },
    Feature { is_used: Schema::has_ordered_indexes, journal: 7, base: 5 },
    Feature { is_used: Schema::has_posting_lists, journal: 8, base: 6 },
    Feature { is_used: Schema::has_masks, journal: 9, base: 7 },
    Feature { is_used: |schema| !schema.access.service_levels.is_empty(), journal: 10, base: 8 },
    // What is in a snapshot is not looked at: the newest format has it.
    Feature { is_used: |schema| !schema.snapshots.is_empty(), journal: 11, base: 9 },
    Feature { is_used: |schema| schema.snapshots.values().any(|snapshot| snapshot.pinned.is_some()), journal: 12, base: 10 },
    Feature { is_used: Schema::has_origins, journal: 13, base: 11 },
    Feature { is_used: Schema::has_indexes_without_trailing_nulls, journal: 14, base: 12 },
    Feature { is_used: Schema::has_wide_vectors, journal: 14, base: 12 },
];

fn used(schema: &Schema) -> impl Iterator<Item = &'static Feature> {
    FEATURES.iter().filter(|feature| (feature.is_used)(schema))
}

/// Returns the format in which a document with this schema is written.
pub(crate) fn of_journal(schema: &Schema) -> u32 {
    used(schema).fold(JOURNAL_LEAST, |format, feature| format.max(feature.journal))
}

/// Returns the format in which a base with this schema is written.
pub(crate) fn of_base(schema: &Schema) -> u32 {
    used(schema).fold(BASE_LEAST, |format, feature| format.max(feature.base))
}

/// What a line of the journal begins with that formats before this one do not know.
const LINES: [(&str, u32); 5] = [
    (r#"{"service_levels":"#, 10),
    (r#"{"snapshot":"#, 11),
    (r#"{"drop_snapshot":"#, 11),
    (r#"{"pinned_snapshot":"#, 12),
    (r#"{"drop_pinned_snapshot":"#, 12),
];

/// What a line may hold anywhere that formats before this one do not know.
const WITHIN_LINES: [(&str, u32); 1] = [(r#""wide_vector":"#, 14)];

/// Returns the first format whose binaries can read a line of the journal. What the line speaks of may be gone.
pub(crate) fn of_line(line: &str) -> u32 {
    let by_begin = LINES.iter().filter(|(begin, _)| line.starts_with(begin));
    let by_part = WITHIN_LINES.iter().filter(|(part, _)| line.contains(part));
    let formats = by_begin.chain(by_part).map(|(_, format)| *format);
    formats.fold(JOURNAL_LEAST, u32::max)
}
