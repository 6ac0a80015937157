//! The signals that do not end a node: SIGHUP, SIGUSR1 and SIGUSR2, which would without a handler.

use std::io;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

/// From now on none of them ends the process. What is given is told of each SIGHUP, which asks daemons to read their files again.
///
/// # Errors
/// If a handler can't be installed.
pub fn take() -> io::Result<Arc<Notify>> {
    let hangup = Arc::new(Notify::new());
    handle_signal(SignalKind::hangup(), "SIGHUP", Some(hangup.clone()))?;
    handle_signal(SignalKind::user_defined1(), "SIGUSR1", None)?;
    handle_signal(SignalKind::user_defined2(), "SIGUSR2", None)?;
    Ok(hangup)
}

fn handle_signal(kind: SignalKind, name: &'static str, told: Option<Arc<Notify>>) -> io::Result<()> {
    let mut signals = signal(kind)?;
    tokio::spawn(async move {
        while signals.recv().await.is_some() {
            match &told {
                Some(told) => {
                    tracing::info!(signal = name, "SIGHUP: reading settings and certificates again");
                    told.notify_one();
                }
                None => tracing::info!(signal = name, "the signal is ignored"),
            }
        }
    });
    Ok(())
}
