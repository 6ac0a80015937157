//! Signals: SIGTERM and SIGINT end a node. SIGHUP, SIGUSR1 and SIGUSR2 have handlers because they would end the process otherwise.

use std::io;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};

/// SIGTERM and SIGINT. Clones see the same signals.
#[derive(Clone)]
pub struct StopSignals(watch::Receiver<(u64, &'static str)>);

impl StopSignals {
    /// Ignores the signals received so far.
    pub fn forget(&mut self) {
        self.0.mark_unchanged();
    }

    /// Waits for a signal that this clone has not returned yet, and returns its name.
    pub async fn next(&mut self) -> &'static str {
        match self.0.changed().await {
            Ok(()) => self.0.borrow_and_update().1,
            // The tasks that count signals run as long as the process.
            Err(_) => std::future::pending().await,
        }
    }
}

/// Starts to count SIGTERM and SIGINT, so that no signal is lost while the store is opened.
///
/// # Errors
/// Fails if a handler cannot be installed.
pub fn stop_signals() -> io::Result<StopSignals> {
    let sender = Arc::new(watch::Sender::new((0, "")));
    let received = sender.subscribe();
    for (kind, name) in [
        (SignalKind::terminate(), "SIGTERM"),
        (SignalKind::interrupt(), "SIGINT"),
    ] {
        let mut signals = signal(kind)?;
        let sender = sender.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                sender.send_modify(|seen| *seen = (seen.0 + 1, name));
            }
        });
    }
    Ok(StopSignals(received))
}

/// Installs handlers for SIGHUP, SIGUSR1 and SIGUSR2, so that they do not end the process. The returned value is notified of each SIGHUP,
/// which has daemons read their files again.
///
/// # Errors
/// Fails if a handler cannot be installed.
pub fn take() -> io::Result<Arc<Notify>> {
    let hangup = Arc::new(Notify::new());
    handle_signal(SignalKind::hangup(), "SIGHUP", Some(hangup.clone()))?;
    handle_signal(SignalKind::user_defined1(), "SIGUSR1", None)?;
    handle_signal(SignalKind::user_defined2(), "SIGUSR2", None)?;
    Ok(hangup)
}

fn handle_signal(kind: SignalKind, name: &'static str, notify: Option<Arc<Notify>>) -> io::Result<()> {
    let mut signals = signal(kind)?;
    tokio::spawn(async move {
        while signals.recv().await.is_some() {
            match &notify {
                Some(notify) => {
                    tracing::info!(signal = name, "SIGHUP: reading settings and certificates again");
                    notify.notify_one();
                }
                None => tracing::info!(signal = name, "the signal is ignored"),
            }
        }
    });
    Ok(())
}
