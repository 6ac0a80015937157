//! Messages of a transaction over partitions of several owners, from its coordinator to the owners ([`crate::execution::transaction`]).

use bytes::Bytes;
use helenus_row::TableId;
use uuid::Uuid;

/// A request about a transaction to an owner of some of its partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionStep {
    /// Locks partitions alone, and opens the transaction's lock session.
    Lock {
        id: Uuid,
        /// Tables and tokens of partitions that the node owns.
        partitions: Vec<(TableId, i64)>,
        /// Version of the schema of the plan. The owner's schema must not be older.
        schema_version: u64,
    },
    /// Checks that the lock session has lasted until now, and ends it. Nothing is written.
    Confirm { id: Uuid },
    /// Writes intents durably. They replace the lock session.
    Intend {
        id: Uuid,
        /// Encoded intents, one for each token.
        intents: Vec<Bytes>,
        schema_version: u64,
    },
    /// Ends the lock session and the intents of these tokens.
    End {
        id: Uuid,
        tokens: Vec<i64>,
        is_committed: bool,
        /// True if the answer is to wait until the writes are visible.
        is_awaited: bool,
    },
    /// Requests the states of intents, each by transaction and token.
    States { intents: Vec<(Uuid, i64)> },
}

/// The answer to a [`TransactionStep`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionAnswer {
    Done,
    Locked {
        /// The owner's clock of write timestamps. All writes to the partitions have lower ones.
        clock_us: i64,
        /// True if another write was in the way.
        has_waited: bool,
    },
    /// The states in the order of the request. `None` if a state could not be found.
    States(Vec<Option<IntentState>>),
}

/// The state of an intent, as its owner has it durably.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntentState {
    /// There is no intent, and there will be none.
    Absent,
    Pending,
    /// The transaction is committed, and its writes to these partitions have been applied.
    Committed,
}
