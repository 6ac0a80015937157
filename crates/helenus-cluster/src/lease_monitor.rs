//! Monitors other nodes' leases by the local clock.
//!
//! A check (a listing, or requests for the members' heartbeats) shows a stamp for each heartbeat. The first check that shows a stamp proves
//! that the heartbeat had that content by then. If the content stays the same for longer than the lease, and a margin for clocks of
//! different rates, its node has stopped serving.
//!
//! To end the lease, the version of that content must be known, and a check does not show it. So a heartbeat that is quiet for a while is
//! read. If a later check still shows the same stamp, the version that was read was there from the beginning.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::environment::Expect;
use crate::ids::{Member, Version};

/// The result of reading a quiet heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeartbeatRead {
    Live(Version),
    /// Another node has ended the lease.
    Expelled,
    /// The heartbeat does not exist, and its node cannot create it again.
    Absent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ObservedHeartbeat {
    /// The stamp of the heartbeat. `None` if no check has shown the heartbeat.
    stamp: Option<String>,
    /// Time at which the answer came that first showed the stamp.
    since: Duration,
    found: Option<HeartbeatRead>,
    /// True if a check that began after `found` was read still showed the stamp.
    confirmed: bool,
    /// Number of times that the stamp was seen to change.
    changes: u32,
}

impl ObservedHeartbeat {
    fn restart(&mut self, now: Duration) {
        self.since = now;
        self.found = None;
        self.confirmed = false;
    }
}

/// The knowledge of one node about the leases of other nodes.
#[derive(Debug, Default)]
pub(crate) struct LeaseMonitor {
    watched: BTreeMap<Member, ObservedHeartbeat>,
    last_look: Option<Duration>,
}

/// The heartbeats that a check would have shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    All,
    /// The heartbeats of the members.
    Members,
}

impl LeaseMonitor {
    /// Records the heartbeats in a check whose answer came at `now`. After a `gap` without a check, the time between is unknown, since the
    /// store may have been unavailable to all nodes. All quiet times then begin again.
    pub fn observe(
        &mut self,
        now: Duration,
        gap: Duration,
        listed: &BTreeMap<Member, String>,
        members: &BTreeSet<Member>,
        seen: Seen,
    ) {
        let blind = self
            .last_look
            .replace(now)
            .is_none_or(|last| now.saturating_sub(last) > gap);
        if blind {
            self.watched.values_mut().for_each(|watched| watched.restart(now));
        }
        if seen == Seen::All {
            self.watched
                .retain(|member, _| listed.contains_key(member) || members.contains(member));
        }
        for member in members.iter().chain(listed.keys()) {
            let stamp = listed.get(member);
            match self.watched.get_mut(member) {
                Some(watched) if watched.stamp.as_ref() == stamp => {
                    watched.confirmed = watched.found.is_some();
                }
                known => {
                    let has_changed =
                        |known: &ObservedHeartbeat| known.stamp.is_some() && known.stamp.as_ref() != stamp;
                    let changes = known.map_or(0, |known| known.changes + u32::from(has_changed(known)));
                    let watched = ObservedHeartbeat {
                        stamp: stamp.cloned(),
                        since: now,
                        found: None,
                        confirmed: false,
                        changes,
                    };
                    self.watched.insert(*member, watched);
                }
            }
        }
    }

    /// Returns true if checks have shown that the member renews its lease. One change is not enough, because the heartbeat also changes
    /// when another node ends the lease.
    pub fn renews(&self, member: Member) -> bool {
        self.watched
            .get(&member)
            .is_some_and(|watched| watched.changes > 1)
    }

    /// Returns the time for which the member has been quiet. `None` if it is not monitored.
    pub fn quiet_for(&self, member: Member, now: Duration) -> Option<Duration> {
        let watched = self.watched.get(&member)?;
        Some(now.saturating_sub(watched.since))
    }

    /// Returns the time at which the member will have been quiet for `limit`. `None` if it is not monitored.
    pub fn quiet_until(&self, member: Member, limit: Duration) -> Option<Duration> {
        Some(self.watched.get(&member)?.since + limit)
    }

    /// Returns true if the member's heartbeat should be read now: it was quiet for `limit`, and was not read since.
    pub fn should_read(&self, member: Member, now: Duration, limit: Duration) -> bool {
        self.watched
            .get(&member)
            .is_some_and(|watched| watched.found.is_none() && now >= watched.since + limit)
    }

    /// Records the result of reading the member's heartbeat.
    pub fn found(&mut self, member: Member, found: HeartbeatRead) {
        if let Some(watched) = self.watched.get_mut(&member) {
            watched.found = Some(found);
            watched.confirmed = false;
        }
    }

    /// Records that the heartbeat has changed. The result of reading it is void.
    pub fn changed(&mut self, member: Member, now: Duration) {
        if let Some(watched) = self.watched.get_mut(&member) {
            watched.restart(now);
        }
    }

    /// Returns the judgement about the member, if its lease lasts at most `expiry` by this clock.
    pub fn verdict(&self, member: Member, now: Duration, expiry: Duration) -> LeaseVerdict {
        let Some(watched) = self.watched.get(&member) else {
            return LeaseVerdict::Alive;
        };
        // No proof is needed for a member that is known to have stopped.
        let proven = watched.confirmed || expiry.is_zero();
        let expired = proven && now >= watched.since + expiry;
        match watched.found {
            Some(HeartbeatRead::Expelled) => LeaseVerdict::Dead,
            Some(HeartbeatRead::Absent) if expired => LeaseVerdict::Dead,
            Some(HeartbeatRead::Live(version)) if expired => LeaseVerdict::Expired(Expect::Version(version)),
            _ => LeaseVerdict::Alive,
        }
    }

    /// Returns the members outside the cluster whose heartbeats have not changed for `limit`.
    pub fn leftovers(&self, members: &BTreeSet<Member>, now: Duration, limit: Duration) -> Vec<Member> {
        self.watched
            .iter()
            .filter(|(member, watched)| !members.contains(member) && now >= watched.since + limit)
            .map(|(member, _)| *member)
            .collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseVerdict {
    Alive,
    /// The node serves no more. Its lease ends when its heartbeat is overwritten at this version.
    Expired(Expect),
    /// The lease has ended.
    Dead,
}

#[cfg(test)]
#[path = "lease_monitor_tests.rs"]
mod tests;
