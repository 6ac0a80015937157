//! Transactions over partitions of several owners.
//!
//! The node that got the statement is the *coordinator* ([`coordinator`]). The owners of the partitions are *participants* ([`participant`]).
//!
//! 1. **Lock.** One owner after another, in ascending order of their ids, locks its partitions and opens a lock session. It answers once
//!    all earlier writes to them are durable. The coordinator then reads rows, tests conditions, and computes all writes with a timestamp
//!    that is newer than all clocks of the owners.
//! 2. **Confirm**, if nothing is to be written: all sessions must have lasted until the reads had ended. So all locks were held at one time.
//! 3. **Intend** otherwise: each owner writes an *intent* for each token durably, also for partitions that are only read. An intent is
//!    accepted only by a lock session of the same incarnation of the owner. **The transaction is committed if and only if all its intents are
//!    durable.** The client then gets its answer.
//! 4. **End.** Each owner applies the writes, and marks its intent as committed in the same record.
//!
//! From the moment an intent is queued until its transaction has been applied there, reads and locks of the partition wait
//! ([`crate::storage::undecided`]). So no reader sees a part of a transaction, and no lock is released before all intents are durable.
//!
//! **Recovery** ([`resolution`]). An owner with an intent and no word of the coordinator queries the owners of all other tokens. A committed
//! intent, or only pending ones: the transaction is committed. An absent one: it is aborted. An owner answers *absent* only after it has
//! ended the transaction's lock session, so that no intent can be written later. Committed intents are removed once no other intent of the
//! transaction is pending ([`forgetting`]). So the decision follows from durable state alone, on every
//! node and at any time.
//!
//! A token has an intent of its own, because a tablet can be split between two tokens, but never within one.

pub(crate) mod at_cut;
mod coordinator;
mod decision;
mod forgetting;
mod intents;
mod participant;
mod preparation;
mod resolution;
mod states;

pub(super) use coordinator::{execute, owned_partitions};
pub(crate) use intents::TABLE;
pub(crate) use participant::serve;
pub(crate) use resolution::load;
