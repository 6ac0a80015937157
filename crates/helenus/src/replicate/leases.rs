//! Sharing of the work. The work is divided into a fixed number of slots. Each process holds leases of some, which end if it dies.
//!
//! A process that loses a lease may go on for a moment: two processes then send the same changes, which alters nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use helenus_cql::frame::BoundValue;
use helenus_row::murmur3_token;

use super::state::{State, int, text, to_int};
use crate::node_session::NodeSession;

/// Shares of the work. More processes than that have nothing to do.
const SLOTS: i32 = 32;

/// Returns the slot of a stream, or of a range of a copy.
pub fn slot_of(bytes: &[u8]) -> i32 {
    let slot = murmur3_token(bytes).rem_euclid(i64::from(SLOTS));
    i32::try_from(slot).unwrap_or(0)
}

/// The leases of this process.
pub struct Leases {
    state: State,
    /// The name of this process, which no other one has.
    worker: String,
    time: Duration,
    held: BTreeSet<i32>,
}

impl Leases {
    pub fn new(state: State, worker: String, time: Duration) -> Leases {
        Leases {
            state,
            worker,
            time,
            held: BTreeSet::new(),
        }
    }

    /// Returns true if this process does the work of a slot.
    pub fn has(&self, slot: i32) -> bool {
        self.held.contains(&slot)
    }

    /// Returns the time after which the leases must be renewed.
    pub fn interval(&self) -> Duration {
        self.time / 3
    }

    /// Renews the leases, takes free ones, and releases those above this process's share.
    pub fn renew(&mut self, session: &mut NodeSession) -> Result<()> {
        session.execute(
            "INSERT INTO helenus_replication.workers (name, worker) VALUES (?, ?) USING TTL ?",
            &values([text(&self.state.name), text(&self.worker), self.ttl()]),
        )?;
        let name = [text(&self.state.name)];
        let workers = session.rows(
            "SELECT worker FROM helenus_replication.workers WHERE name = ?",
            &name,
        )?;
        let taken: BTreeMap<i32, Bytes> = session
            .rows(
                "SELECT slot, owner FROM helenus_replication.leases WHERE name = ?",
                &name,
            )?
            .iter()
            .filter_map(|row| match row.as_slice() {
                [Some(slot), Some(owner)] => Some((to_int(slot)?, owner.clone())),
                _ => None,
            })
            .collect();
        let share = share_of(workers.len());
        for slot in self.held.clone() {
            let is_kept = match self.held.len() <= share {
                true => self.keep(session, slot)?,
                false => {
                    self.release(session, slot)?;
                    false
                }
            };
            if !is_kept {
                self.held.remove(&slot);
            }
        }
        for slot in (0..SLOTS).filter(|slot| !taken.contains_key(slot)) {
            if self.held.len() >= share {
                break;
            }
            if self.take(session, slot)? {
                self.held.insert(slot);
            }
        }
        Ok(())
    }

    /// Releases all leases, so that other processes need not wait for their end.
    pub fn release_all(&mut self, session: &mut NodeSession) -> Result<()> {
        for slot in std::mem::take(&mut self.held) {
            self.release(session, slot)?;
        }
        session.execute(
            "DELETE FROM helenus_replication.workers WHERE name = ? AND worker = ?",
            &values([text(&self.state.name), text(&self.worker)]),
        )?;
        Ok(())
    }

    fn keep(&self, session: &mut NodeSession, slot: i32) -> Result<bool> {
        let owner = text(&self.worker);
        let rows = session.execute(
            "UPDATE helenus_replication.leases USING TTL ? SET owner = ? WHERE name = ? AND slot = ? IF owner = ?",
            &values([self.ttl(), owner.clone(), text(&self.state.name), int(slot), owner]),
        )?;
        Ok(is_applied(&rows))
    }

    fn take(&self, session: &mut NodeSession, slot: i32) -> Result<bool> {
        let rows = session.execute(
            "INSERT INTO helenus_replication.leases (name, slot, owner) VALUES (?, ?, ?) IF NOT EXISTS USING TTL ?",
            &values([text(&self.state.name), int(slot), text(&self.worker), self.ttl()]),
        )?;
        Ok(is_applied(&rows))
    }

    fn release(&self, session: &mut NodeSession, slot: i32) -> Result<()> {
        session.execute(
            "DELETE FROM helenus_replication.leases WHERE name = ? AND slot = ? IF owner = ?",
            &values([text(&self.state.name), int(slot), text(&self.worker)]),
        )?;
        Ok(())
    }

    fn ttl(&self) -> Bytes {
        int(i32::try_from(self.time.as_secs()).unwrap_or(i32::MAX))
    }
}

/// Returns the slots of each of a number of processes, at most.
fn share_of(workers: usize) -> usize {
    (SLOTS as usize).div_ceil(workers.max(1))
}

fn values<const N: usize>(values: [Bytes; N]) -> [BoundValue; N] {
    values.map(BoundValue::Set)
}

/// Returns true if a conditional statement was applied.
fn is_applied(rows: &[Vec<Option<Bytes>>]) -> bool {
    let first = rows.first().and_then(|row| row.first());
    matches!(first, Some(Some(applied)) if applied.as_ref() == [1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_all_slots() {
        for workers in 1..=40 {
            assert!(share_of(workers) * workers >= SLOTS as usize);
        }
        assert_eq!(share_of(0), SLOTS as usize);
        assert_eq!(share_of(2), 16);
    }

    #[test]
    fn slots_are_in_range() {
        for number in 0..1000_u32 {
            assert!((0..SLOTS).contains(&slot_of(&number.to_be_bytes())));
        }
    }
}
