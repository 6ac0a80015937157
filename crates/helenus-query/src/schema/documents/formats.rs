//! Formats of the schema document and of its bases. A schema is written in the lowest format that supports all of its features. Older
//! binaries can then read schemas whose features they know, and refuse all others.

use crate::schema::Schema;

/// The newest format of the document `schema`. It is raised with each change that older binaries could not understand.
pub(crate) const JOURNAL: u32 = 16;
/// The format of a document with none of the [`FEATURES`]. Documents in older formats consist of a base alone.
pub(crate) const JOURNAL_LEAST: u32 = 3;
/// The newest format of a base.
pub(crate) const BASE: u32 = 14;
const BASE_LEAST: u32 = 1;

/// A feature of schemas, with the first formats that support it.
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
    // The features within a snapshot need no check, because the newest format supports them all.
    Feature { is_used: |schema| !schema.snapshots.is_empty(), journal: 11, base: 9 },
    Feature { is_used: |schema| schema.snapshots.values().any(|snapshot| snapshot.pinned.is_some()), journal: 12, base: 10 },
    Feature { is_used: Schema::has_origins, journal: 13, base: 11 },
    Feature { is_used: Schema::has_indexes_without_trailing_nulls, journal: 14, base: 12 },
    Feature { is_used: Schema::has_wide_vectors, journal: 14, base: 12 },
    Feature { is_used: Schema::has_cdc, journal: 15, base: 13 },
    Feature { is_used: Schema::has_constraints, journal: 16, base: 14 },
    Feature { is_used: Schema::has_transactional_tables, journal: 16, base: 14 },
];

fn used(schema: &Schema) -> impl Iterator<Item = &'static Feature> {
    FEATURES.iter().filter(|feature| (feature.is_used)(schema))
}

/// Returns the format for a document with this schema.
pub(crate) fn of_journal(schema: &Schema) -> u32 {
    used(schema).fold(JOURNAL_LEAST, |format, feature| format.max(feature.journal))
}

/// Returns the format for a base with this schema.
pub(crate) fn of_base(schema: &Schema) -> u32 {
    used(schema).fold(BASE_LEAST, |format, feature| format.max(feature.base))
}

/// Beginnings of journal lines, each with the first format that supports such lines.
const LINES: [(&str, u32); 5] = [
    (r#"{"service_levels":"#, 10),
    (r#"{"snapshot":"#, 11),
    (r#"{"drop_snapshot":"#, 11),
    (r#"{"pinned_snapshot":"#, 12),
    (r#"{"drop_pinned_snapshot":"#, 12),
];

/// Text anywhere in journal lines, with the first format that supports such lines.
const WITHIN_LINES: [(&str, u32); 5] = [
    (r#""wide_vector":"#, 14),
    (r#""cdc":{"#, 15),
    (r#""cdc_log_of":"#, 15),
    (r#""constraints":["#, 16),
    (r#""transactional_mode":"#, 16),
];

/// Returns the first format that supports a line of the journal. The schema may no longer contain the object of the line.
pub(crate) fn of_line(line: &str) -> u32 {
    let by_begin = LINES.iter().filter(|(begin, _)| line.starts_with(begin));
    let by_part = WITHIN_LINES.iter().filter(|(part, _)| line.contains(part));
    let formats = by_begin.chain(by_part).map(|(_, format)| *format);
    formats.fold(JOURNAL_LEAST, u32::max)
}
