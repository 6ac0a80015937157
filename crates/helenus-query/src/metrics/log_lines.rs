//! The last lines of the log of this process, for `system_views.system_logs`.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// Maximum number of lines kept; older ones are dropped (Cassandra's `LogMessagesTable` keeps as many by default).
const KEPT_MAX: usize = 50_000;
/// Maximum number of bytes of messages kept.
const BYTES_MAX: usize = 8 << 20;

/// A line of the log.
#[derive(Clone, Debug)]
pub struct LogLine {
    /// Time in milliseconds since the Unix epoch.
    pub at_ms: i64,
    pub level: &'static str,
    /// The module that logged the line.
    pub logger: &'static str,
    pub message: String,
}

struct Kept {
    lines: VecDeque<LogLine>,
    bytes: usize,
}

static KEPT: Mutex<Kept> = Mutex::new(Kept {
    lines: VecDeque::new(),
    bytes: 0,
});

/// Keeps a logged line.
pub fn keep(line: LogLine) {
    let mut kept = KEPT.lock();
    kept.bytes += line.message.len();
    kept.lines.push_back(line);
    while kept.lines.len() > KEPT_MAX || kept.bytes > BYTES_MAX {
        let oldest = kept.lines.pop_front();
        kept.bytes -= oldest.map_or(kept.bytes, |line| line.message.len());
    }
}

/// Returns the kept lines, oldest first.
pub fn kept() -> Vec<LogLine> {
    KEPT.lock().lines.iter().cloned().collect()
}
