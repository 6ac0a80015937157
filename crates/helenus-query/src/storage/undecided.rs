//! Transactions over partitions of several owners that are in progress here: lock sessions and intents.
//!
//! A *lock session* holds the locks of a transaction's partitions on this node. It exists in memory only, and ends by itself if its
//! coordinator is silent. An *intent* replaces it: a durable row in the tablet of the partition, with the writes that take effect if the
//! transaction is committed. The protocol is that of [`crate::execution::transaction`].
//!
//! From the moment an intent is queued until its transaction is decided and applied, it is in the way of all reads and locks of its
//! partitions ([`super::obstruction`]). A tablet's intents are loaded before its first request.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use helenus_row::TableId;
use helenus_tablet::{Op, TokenRange};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use super::PartitionGuard;
use crate::cluster::LeaseTerm;

/// Time without a message of the coordinator after which a lock session ends.
pub(crate) const SESSION_SILENCE_MAX: Duration = Duration::from_secs(3);

/// The locks of a transaction on this node.
pub(crate) struct LockSession {
    pub guard: Arc<PartitionGuard>,
    /// Term of the node's stay in the cluster since before the locks were taken.
    pub term: LeaseTerm,
    pub used: Instant,
}

impl LockSession {
    fn ends(&self) -> Instant {
        self.used + SESSION_SILENCE_MAX
    }
}

/// The writes of a transaction to the partitions of one token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Intent {
    pub transaction: Uuid,
    pub token: i64,
    pub timestamp_us: i64,
    /// The tokens of all intents of the transaction, including this one.
    pub participants: Arc<[i64]>,
    /// The tables of the locked partitions.
    pub tables: Vec<TableId>,
    /// The operands of rows and partition headers. Empty if the partitions are only read.
    pub ops: Vec<Op>,
}

/// Progress of an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The intent may be durable, or may not be.
    Writing,
    /// The intent is durable.
    Pending,
    /// The transaction is known to be committed, or aborted. This is yet to be carried out.
    Decided { is_committed: bool },
    /// The intent is not in the way any more.
    Ended,
}

/// An intent that is not decided and applied yet.
pub(crate) struct UndecidedIntent {
    pub intent: Intent,
    /// The tables with rows that the intent writes.
    written: BTreeSet<TableId>,
    progress: watch::Sender<Progress>,
}

impl UndecidedIntent {
    pub fn new(intent: Intent, progress: Progress) -> Arc<UndecidedIntent> {
        let written = intent.ops.iter().filter_map(|op| super::hooks::table_of(&op.key));
        Arc::new(UndecidedIntent {
            written: written.collect(),
            intent,
            progress: watch::Sender::new(progress),
        })
    }

    fn key(&self) -> (i64, Uuid) {
        (self.intent.token, self.intent.transaction)
    }

    pub fn advance(&self, progress: Progress) {
        self.progress.send_replace(progress);
    }

    /// Records the decision, unless there is one or the intent is not durable yet.
    pub fn decide(&self, is_committed: bool) {
        self.progress.send_if_modified(|progress| {
            let is_pending = *progress == Progress::Pending;
            if is_pending {
                *progress = Progress::Decided { is_committed };
            }
            is_pending
        });
    }

    /// Waits until it is known whether the intent is durable.
    pub async fn await_written(&self) {
        self.wait_for(|progress| *progress != Progress::Writing).await;
    }

    /// Waits until the intent is not in the way any more.
    pub async fn await_end(&self) {
        self.wait_for(|progress| *progress == Progress::Ended).await;
    }

    /// Waits for the decision. `None` if the intent has ended.
    pub async fn await_decision(&self) -> Option<bool> {
        self.wait_for(|progress| matches!(progress, Progress::Decided { .. } | Progress::Ended))
            .await;
        match *self.progress.borrow() {
            Progress::Decided { is_committed } => Some(is_committed),
            _ => None,
        }
    }

    async fn wait_for(&self, is_reached: impl FnMut(&Progress) -> bool) {
        // Waiting cannot fail, because this intent holds the sender.
        let _ = self.progress.subscribe().wait_for(is_reached).await;
    }
}

/// An intent whose transaction is committed and applied here. It is kept until all other owners have applied the transaction too.
#[derive(Clone)]
pub(crate) struct CommittedIntent {
    pub transaction: Uuid,
    pub token: i64,
    pub participants: Arc<[i64]>,
    pub timestamp_us: i64,
}

#[derive(Default)]
struct State {
    sessions: HashMap<Uuid, LockSession>,
    intents: BTreeMap<(i64, Uuid), Arc<UndecidedIntent>>,
    committed: Vec<CommittedIntent>,
    /// True while a task forgets committed intents.
    is_forgetting: bool,
}

impl State {
    fn within(&self, tokens: TokenRange) -> impl Iterator<Item = &Arc<UndecidedIntent>> {
        let range = (tokens.first, Uuid::nil())..=(tokens.last, Uuid::max());
        self.intents.range(range).map(|(_, intent)| intent)
    }
}

/// The lock sessions and the intents of a node.
#[derive(Default)]
pub(crate) struct UndecidedTransactions {
    /// Number of intents that are in the way. Requests look at nothing else while it is 0.
    count: AtomicUsize,
    state: Mutex<State>,
    /// Changes when an intent is not in the way any more.
    ended: watch::Sender<()>,
}

impl UndecidedTransactions {
    /// Returns true if no intent is in the way of any request.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Returns a receiver that is notified when an intent is not in the way any more.
    pub fn ended(&self) -> watch::Receiver<()> {
        self.ended.subscribe()
    }

    /// Returns true if an intent writes to the table within these tokens.
    pub fn obstructs_reads(&self, table: TableId, tokens: TokenRange) -> bool {
        let state = self.state.lock();
        state.within(tokens).any(|intent| intent.written.contains(&table))
    }

    /// Returns true if an intent has this partition, also if the partition is only read.
    pub fn obstructs_lock(&self, table: TableId, token: i64) -> bool {
        let state = self.state.lock();
        state
            .within(TokenRange::of(token))
            .any(|intent| intent.intent.tables.contains(&table))
    }

    fn changed(&self, state: &State) {
        self.count.store(state.intents.len(), Ordering::Release);
    }

    /// Opens a lock session.
    pub fn open_session(&self, transaction: Uuid, session: LockSession) {
        self.state.lock().sessions.insert(transaction, session);
    }

    /// Ends a lock session and returns it. `None` if there is none any more.
    pub fn end_session(&self, transaction: Uuid) -> Option<LockSession> {
        self.state.lock().sessions.remove(&transaction)
    }

    /// Ends a lock session whose coordinator is silent. Returns the time at which it ends otherwise. `None` if there is none any more.
    pub fn expire_session(&self, transaction: Uuid) -> Option<Instant> {
        let mut state = self.state.lock();
        let ends = state.sessions.get(&transaction)?.ends();
        if ends > Instant::now() {
            return Some(ends);
        }
        let session = state.sessions.remove(&transaction);
        drop(state);
        drop(session);
        None
    }

    /// Replaces a lock session by intents that are about to be written. `None` if the session has ended. The intents are then not in the
    /// way, and must not be written.
    pub fn begin_intents(
        &self,
        transaction: Uuid,
        intents: &[Arc<UndecidedIntent>],
    ) -> Option<Arc<PartitionGuard>> {
        let mut state = self.state.lock();
        let session = state.sessions.remove(&transaction)?;
        state
            .intents
            .extend(intents.iter().map(|intent| (intent.key(), intent.clone())));
        self.changed(&state);
        Some(session.guard)
    }

    /// Returns an intent. If there is none, the transaction can write none any more, because its lock session is ended.
    pub fn find_or_forbid(&self, transaction: Uuid, token: i64) -> Option<Arc<UndecidedIntent>> {
        let mut state = self.state.lock();
        let session = state.sessions.remove(&transaction);
        let found = state.intents.get(&(token, transaction)).cloned();
        drop(state);
        drop(session);
        found
    }

    /// Returns an intent. `None` if it has ended.
    pub fn find(&self, transaction: Uuid, token: i64) -> Option<Arc<UndecidedIntent>> {
        self.state.lock().intents.get(&(token, transaction)).cloned()
    }

    /// Returns true if this intent is in the way. It is not any more if its tablet was closed and opened again.
    pub fn contains(&self, intent: &Arc<UndecidedIntent>) -> bool {
        let state = self.state.lock();
        let known = state.intents.get(&intent.key());
        known.is_some_and(|known| Arc::ptr_eq(known, intent))
    }

    /// Removes an intent that is decided and applied, or that the tablet's next owner has.
    pub fn end(&self, intent: &Arc<UndecidedIntent>) {
        let mut state = self.state.lock();
        if let Some(known) = state.intents.get(&intent.key())
            && Arc::ptr_eq(known, intent)
        {
            state.intents.remove(&intent.key());
            self.changed(&state);
        }
        drop(state);
        intent.advance(Progress::Ended);
        self.ended.send_replace(());
    }

    /// Replaces the intents of a tablet that is about to be served.
    pub fn load(
        &self,
        tokens: TokenRange,
        undecided: Vec<Arc<UndecidedIntent>>,
        committed: Vec<CommittedIntent>,
    ) {
        let mut state = self.state.lock();
        let former: Vec<Arc<UndecidedIntent>> = state.within(tokens).cloned().collect();
        for intent in &former {
            state.intents.remove(&intent.key());
        }
        let undecided = undecided.into_iter().map(|intent| (intent.key(), intent));
        state.intents.extend(undecided);
        state.committed.retain(|intent| !tokens.contains(intent.token));
        state.committed.extend(committed);
        self.changed(&state);
        drop(state);
        former.iter().for_each(|intent| intent.advance(Progress::Ended));
        self.ended.send_replace(());
    }

    /// Adds an intent whose transaction is applied here. Returns true if the caller must start the task that forgets such intents.
    pub fn add_committed(&self, intent: CommittedIntent) -> bool {
        let mut state = self.state.lock();
        state.committed.push(intent);
        !std::mem::replace(&mut state.is_forgetting, true)
    }

    /// Returns true if there are committed intents, and no task that forgets them. The caller must start it.
    pub fn begins_forgetting(&self) -> bool {
        let mut state = self.state.lock();
        !state.committed.is_empty() && !std::mem::replace(&mut state.is_forgetting, true)
    }

    /// Takes the committed intents of transactions up to this timestamp. `None` if there are no committed intents at all, which ends the task.
    pub fn take_committed(&self, until_us: i64) -> Option<Vec<CommittedIntent>> {
        let mut state = self.state.lock();
        if state.committed.is_empty() {
            state.is_forgetting = false;
            return None;
        }
        let is_old = |intent: &mut CommittedIntent| intent.timestamp_us <= until_us;
        Some(state.committed.extract_if(.., is_old).collect())
    }

    /// Keeps committed intents that cannot be forgotten yet.
    pub fn keep_committed(&self, committed: Vec<CommittedIntent>) {
        self.state.lock().committed.extend(committed);
    }
}
