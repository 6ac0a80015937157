//! Limits the rate of log lines that clients can cause. Escapes and shortens texts of clients in log lines.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Maximum number of lines in a window. Those beyond it are only counted.
const LINES_MAX: usize = 20;
const WINDOW: Duration = Duration::from_secs(5);
/// Maximum number of characters of a client's text that a line shows.
const SHOWN_MAX: usize = 200;

/// The lines of the current window.
#[derive(Debug)]
struct Window {
    began: Instant,
    lines: usize,
    suppressed: u64,
}

/// A rate limit for log lines of one kind.
#[derive(Debug)]
pub(crate) struct LogRateLimiter(Mutex<Window>);

impl Default for LogRateLimiter {
    fn default() -> LogRateLimiter {
        LogRateLimiter(Mutex::new(Window {
            began: Instant::now(),
            lines: 0,
            suppressed: 0,
        }))
    }
}

impl LogRateLimiter {
    /// Takes the right to write one line. Returns the number of lines suppressed since the last one. `None` if the line must not be
    /// written.
    pub fn take(&self) -> Option<u64> {
        self.take_at(Instant::now())
    }

    fn take_at(&self, now: Instant) -> Option<u64> {
        let mut window = self.0.lock();
        if now.saturating_duration_since(window.began) >= WINDOW {
            window.began = now;
            window.lines = 0;
        }
        if window.lines >= LINES_MAX {
            window.suppressed += 1;
            return None;
        }
        window.lines += 1;
        Some(std::mem::take(&mut window.suppressed))
    }
}

/// Returns a client's text for a log line: escaped, on one line, and shortened.
pub(crate) fn shown(text: &str) -> String {
    let cut = match text.char_indices().nth(SHOWN_MAX) {
        Some((at, _)) => text.get(..at).unwrap_or_default(),
        None => text,
    };
    let dots = if cut.len() < text.len() { "…" } else { "" };
    format!("{}{dots}", cut.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_lines_are_logged_in_a_while() {
        let limit = LogRateLimiter::default();
        let now = Instant::now();
        assert!((0..LINES_MAX).all(|_| limit.take_at(now) == Some(0)));
        assert_eq!(limit.take_at(now), None);
        assert_eq!(limit.take_at(now + WINDOW / 2), None);
        assert_eq!(limit.take_at(now + WINDOW), Some(2));
        assert_eq!(limit.take_at(now + WINDOW), Some(0));
    }

    #[test]
    fn a_strangers_text_is_one_short_line() {
        assert_eq!(
            shown("ann\n2026 WARN all is lost\x1b[31m"),
            "ann\\n2026 WARN all is lost\\u{1b}[31m"
        );
        assert_eq!(shown(&"ü".repeat(1000)), format!("{}…", "ü".repeat(200)));
    }
}
