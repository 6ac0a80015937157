//! The last lines of the log of this process, for `system_views.system_logs`.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// Lines that are kept; older ones are forgotten (Cassandra's `LogMessagesTable` keeps as many by default).
const KEPT_MAX: usize = 50_000;
/// Bytes of messages that are kept.
const BYTES_MAX: usize = 8 << 20;

/// A line of the log.
#[derive(Clone, Debug)]
pub struct LogLine {
    /// Milliseconds since the Unix epoch.
    pub at_ms: i64,
    pub level: &'static str,
    /// The module.
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

/// Keeps a line that is logged.
pub fn keep(line: LogLine) {
    let mut kept = KEPT.lock();
    kept.bytes += line.message.len();
    kept.lines.push_back(line);
    while kept.lines.len() > KEPT_MAX || kept.bytes > BYTES_MAX {
        let oldest = kept.lines.pop_front();
        kept.bytes -= oldest.map_or(kept.bytes, |line| line.message.len());
    }
}

/// Returns the lines that are kept, oldest first.
pub fn kept() -> Vec<LogLine> {
    KEPT.lock().lines.iter().cloned().collect()
}
