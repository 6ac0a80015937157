//! The trace of a simulation: all log lines of all nodes, and the steps of the simulator.

use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::sync::{Arc, Mutex};

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use crate::machine::{self, OUTSIDE};

#[derive(Default)]
struct Lines {
    hasher: DefaultHasher,
    count: u64,
    /// Bytes of the lines. Empty if they are not kept.
    kept: Vec<u8>,
    keeps: bool,
}

/// A trace. Two runs that have the same one took the same steps.
#[derive(Clone, Default)]
pub struct Trace(Arc<Mutex<Lines>>);

impl Trace {
    /// Begins to record what this thread logs. With `keeps`, the lines are kept.
    pub fn begin(keeps: bool) -> (Trace, DefaultGuard) {
        let trace = Trace::default();
        trace.0.lock().unwrap().keeps = keeps;
        let writer = trace.clone();
        let filter = std::env::var("HELENUS_SIM_LOG").unwrap_or_else(|_| "debug".to_owned());
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::new(filter))
            .with_timer(NodeTime)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (trace, tracing::subscriber::set_default(subscriber))
    }

    /// Returns a number that differs between different traces.
    pub fn digest(&self) -> u64 {
        self.0.lock().unwrap().hasher.finish()
    }

    pub fn line_count(&self) -> u64 {
        self.0.lock().unwrap().count
    }

    /// Returns the lines, if they are kept.
    pub fn lines(&self) -> Vec<u8> {
        self.0.lock().unwrap().kept.clone()
    }
}

impl Write for Trace {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut lines = self.0.lock().unwrap();
        lines.hasher.write(bytes);
        lines.count += 1;
        if lines.keeps {
            lines.kept.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The time of a line and the node that wrote the line.
struct NodeTime;

impl FormatTime for NodeTime {
    fn format_time(&self, into: &mut Writer<'_>) -> fmt::Result {
        let ms = machine::elapsed().as_millis();
        match machine::node() {
            OUTSIDE => write!(into, "{:>4}.{:03} -", ms / 1000, ms % 1000),
            node => write!(into, "{:>4}.{:03} {node}", ms / 1000, ms % 1000),
        }
    }
}
