//! The entries of several logs in the order in which the requests began.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use helenus_cql::query_log::Entry;

use super::reader::LogReader;

/// Number of entries to read ahead of each log. A log has its entries in the order in which requests ended.
const AHEAD_MAX: usize = 1000;
/// Bytes to read ahead of each log, unless one entry is larger.
const AHEAD_BYTES_MAX: usize = 64 << 20;

/// The entries of several logs, ordered by the start of their requests.
pub struct OrderedEntries(Vec<ReadAhead>);

/// The next entries of a log.
struct ReadAhead {
    reader: LogReader,
    /// Entries and their sizes, by the start of the request and then by their order in the log.
    entries: BTreeMap<(i64, u64), (Entry, usize)>,
    bytes: usize,
    count: u64,
}

impl OrderedEntries {
    /// Opens several logs.
    ///
    /// # Errors
    /// Fails if a log cannot be read.
    pub fn open(logs: &[PathBuf]) -> Result<OrderedEntries> {
        let open = |path: &PathBuf| {
            Ok(ReadAhead {
                reader: LogReader::open(path)?,
                entries: BTreeMap::new(),
                bytes: 0,
                count: 0,
            })
        };
        Ok(OrderedEntries(logs.iter().map(open).collect::<Result<_>>()?))
    }

    /// Returns the next entry. `None` at the end of all logs.
    ///
    /// # Errors
    /// Fails if a log cannot be read.
    pub fn next(&mut self) -> Result<Option<Entry>> {
        for log in &mut self.0 {
            log.fill()?;
        }
        let first = |log: &&mut ReadAhead| Reverse(log.entries.keys().next().map(|(start_ms, _)| *start_ms));
        let with_entries = self.0.iter_mut().filter(|log| !log.entries.is_empty());
        Ok(with_entries.max_by_key(first).and_then(ReadAhead::pop))
    }

    /// Warns of logs that end within an entry.
    pub fn warn_of_rests(&self) {
        self.0.iter().for_each(|log| log.reader.warn_of_rest());
    }
}

impl ReadAhead {
    fn fill(&mut self) -> Result<()> {
        while self.entries.len() < AHEAD_MAX && (self.bytes < AHEAD_BYTES_MAX || self.entries.is_empty()) {
            let Some((entry, len)) = self.reader.next()? else {
                return Ok(());
            };
            self.bytes += len;
            self.count += 1;
            self.entries.insert((entry.start_ms, self.count), (entry, len));
        }
        Ok(())
    }

    fn pop(&mut self) -> Option<Entry> {
        let (_, (entry, len)) = self.entries.pop_first()?;
        self.bytes -= len;
        Some(entry)
    }
}
