//! Destination and format of the log's lines.

use std::io::IsTerminal;
use std::panic::PanicHookInfo;

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{Registry, fmt};

use super::config::{Config, LogFormat};
use super::log_filter::LogFilter;
use super::log_lines::KeepLines;

/// Starts logging to standard error. Returns the handle that changes the levels.
///
/// # Errors
/// Fails if the filter in the settings is invalid.
pub fn start(config: &Config) -> anyhow::Result<LogFilter> {
    let (filter, log_filter) = LogFilter::new(&config.log)?;
    let lines = fmt::layer::<Registry>().with_writer(std::io::stderr);
    let lines = match config.log_format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .boxed(),
    };
    tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .with(KeepLines.with_filter(LevelFilter::INFO))
        .init();
    if config.log_format == LogFormat::Json {
        std::panic::set_hook(Box::new(log_panic));
    }
    Ok(log_filter)
}

/// Logs a panic, which would not be JSON otherwise.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let reason = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    tracing::error!(place, thread = thread.name(), reason, "panicked");
}

/// Writes an error as JSON, for a node that ends before its log is started.
pub fn write_json_error(error: &anyhow::Error) {
    let subscriber = fmt::Subscriber::builder()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_writer(std::io::stderr)
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        tracing::error!(error = format!("{error:#}"), "the node has ended");
    });
}
