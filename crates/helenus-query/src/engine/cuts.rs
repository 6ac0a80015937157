//! The consistent cuts that a node takes, opens and keeps.

use tokio::sync::Mutex;

use super::as_of::OpenHistory;
use super::consistent_cut::HeldCuts;
use super::history::History;

/// The cuts of a node: those that are being taken, those that are open, and the history. The locks are held by the tasks that use cuts.
pub(super) struct Cuts {
    /// Held while pinned tablets have no snapshot that names them yet, and while tablets that no snapshot names any more are unpinned.
    pub pinning: Mutex<()>,
    pub held_cuts: HeldCuts,
    pub history: History,
    pub open_history: OpenHistory,
    /// Held while the rows of a restored table are copied.
    pub adopting: Mutex<()>,
    /// Held while this node writes a backup.
    pub backing_up: Mutex<()>,
}

impl Cuts {
    pub fn new(history: History) -> Cuts {
        Cuts {
            pinning: Mutex::default(),
            held_cuts: HeldCuts::default(),
            history,
            open_history: OpenHistory::default(),
            adopting: Mutex::default(),
            backing_up: Mutex::default(),
        }
    }
}
