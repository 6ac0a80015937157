//! The format of the full query log, which a node writes and `helenus-stress fql` reads. This module does no I/O.
//!
//! The log is a folder of segment files. A segment is [`SEGMENT_HEADER`], followed by records. Numbers are big-endian, and `[string]`,
//! `[bytes]`, `[value]` and `[query parameters]` are as in the native protocol (spec v5, section 3 and 4.1.4):
//!
//! | bytes | of a record |
//! |---|---|
//! | 4 | length of the payload |
//! | 4 | CRC-32 (IEEE) of the four bytes of the length and of the payload |
//! | … | the payload: an [`Entry`] |
//!
//! | bytes | of an entry |
//! |---|---|
//! | 1 | 0 for a single query, 1 for a batch |
//! | 8 | time at which the request began, in milliseconds since 1970 |
//! | 1 | protocol version of the client |
//! | 8 | timestamp for writes of a request without one, in microseconds since 1970; the least number for none |
//! | 8 | time of the node at which the request began, in seconds since 1970 |
//! | `[bytes]` | keyspace in use; null for none |
//! | 4 | length of the query parameters |
//! | … | `[query parameters]` in the client's protocol version, without paging state |
//!
//! A single query continues with its text, a `[long string]`. Its values are in the query parameters. A batch continues with:
//!
//! | bytes | of a batch |
//! |---|---|
//! | 1 | 0 for LOGGED, 1 for UNLOGGED, 2 for COUNTER |
//! | 2 | number of texts; statements may share one |
//! | … | texts, each a `[long string]` |
//! | 2 | number of statements |
//! | … | statements: 2 bytes for the index of the text, 2 for the number of values, and a `[value]` for each |
//!
//! A killed process leaves a segment that ends within a record. The bytes behind a damaged record can't be split into records, so a reader
//! continues with the next segment.

mod entry;
mod record;

pub use entry::{Entry, LoggedStatement, Statements};
pub use record::{
    RECORD_LEN_MAX, SEGMENT_HEADER, SEGMENT_SUFFIX, UnreadableRecord, encode_record, take_header, take_record,
};

#[cfg(test)]
#[path = "query_log_tests.rs"]
mod tests;
