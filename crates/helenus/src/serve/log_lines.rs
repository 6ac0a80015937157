//! Keeps lines of the log for `system_views.system_logs`: those of Helenus itself with level INFO and above. The filter of the log has no
//! effect on them.

use std::fmt::{Debug, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use helenus_query::metrics::log_lines::{LogLine, keep};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// A layer that keeps lines.
pub struct KeepLines;

impl<S: Subscriber> Layer<S> for KeepLines {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let metadata = event.metadata();
        // Lines of libraries are left out. Helenus itself logs the events that matter to operators.
        if !metadata.target().starts_with("helenus") {
            return;
        }
        let mut text = Text::default();
        event.record(&mut text);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        keep(LogLine {
            at_ms: i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
            level: metadata.level().as_str(),
            logger: metadata.target(),
            message: text.message + &text.fields,
        });
    }
}

/// The message of an event, and its fields as the log shows them.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
