//! Monitors other nodes' leases by the local clock.
//!
//! A look (a listing, or requests for the members' heartbeats) shows a stamp for each heartbeat. The first one to show a stamp proves that the heartbeat had that content by then; when the
//! content is the same for longer than the lease (and a margin for clocks of different rates), its node has stopped serving. To end the lease, the
//! version of that content must be known, and a look does not show it: so a heartbeat that is quiet for a while is read, and if a later look
//! still shows the same stamp, what was read is what was there from the beginning.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::environment::Expect;
use crate::ids::{Member, Version};

/// What reading a quiet heartbeat showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeartbeatRead {
    Live(Version),
    /// Another node has ended the lease.
    Expelled,
    /// It is not there, and its node can't bring it back.
    Absent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ObservedHeartbeat {
    /// `None` while no look shows the heartbeat.
    stamp: Option<String>,
    /// When the answer came that first showed the stamp.
    since: Duration,
    found: Option<HeartbeatRead>,
    /// A look that was begun after `found` was read still showed the stamp.
    confirmed: bool,
    /// How often the stamp was seen to change.
    changes: u32,
}

impl ObservedHeartbeat {
    fn begin_anew(&mut self, now: Duration) {
        self.since = now;
        self.found = None;
        self.confirmed = false;
    }
}

/// What one node knows of the others' leases.
#[derive(Debug, Default)]
pub(crate) struct LeaseMonitor {
    watched: BTreeMap<Member, ObservedHeartbeat>,
    last_look: Option<Duration>,
}

/// Which heartbeats a look would have shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    All,
    /// Those of the members.
    Members,
}

impl LeaseMonitor {
    /// A look whose answer came at `now` showed these heartbeats. After a `gap` without a look nothing is known about the time between (the
    /// store may have been away for everyone): all quiet times begin anew.
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
            self.watched
                .values_mut()
                .for_each(|watched| watched.begin_anew(now));
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

    /// Whether looks have shown the member to renew its lease. Its heartbeat changes once more when its lease is ended by another.
    pub fn renews(&self, member: Member) -> bool {
        self.watched
            .get(&member)
            .is_some_and(|watched| watched.changes > 1)
    }

    /// How long the member has been quiet.
    pub fn quiet_for(&self, member: Member, now: Duration) -> Option<Duration> {
        let watched = self.watched.get(&member)?;
        Some(now.saturating_sub(watched.since))
    }

    /// When the member will have been quiet for `limit`.
    pub fn quiet_until(&self, member: Member, limit: Duration) -> Option<Duration> {
        Some(self.watched.get(&member)?.since + limit)
    }

    /// Whether the member's heartbeat should be read now: it was quiet for `limit` and was not read since.
    pub fn should_read(&self, member: Member, now: Duration, limit: Duration) -> bool {
        self.watched
            .get(&member)
            .is_some_and(|watched| watched.found.is_none() && now >= watched.since + limit)
    }

    /// Reading the member's heartbeat showed this.
    pub fn found(&mut self, member: Member, found: HeartbeatRead) {
        if let Some(watched) = self.watched.get_mut(&member) {
            watched.found = Some(found);
            watched.confirmed = false;
        }
    }

    /// The heartbeat turned out to have changed: what was read of it is void.
    pub fn changed(&mut self, member: Member, now: Duration) {
        if let Some(watched) = self.watched.get_mut(&member) {
            watched.begin_anew(now);
        }
    }

    /// What to do about the member, if its lease lasts at most `expiry` by this clock.
    pub fn verdict(&self, member: Member, now: Duration, expiry: Duration) -> LeaseVerdict {
        let Some(watched) = self.watched.get(&member) else {
            return LeaseVerdict::Alive;
        };
        // A member that is known to have stopped has nothing to prove.
        let proven = watched.confirmed || expiry.is_zero();
        let expired = proven && now >= watched.since + expiry;
        match watched.found {
            Some(HeartbeatRead::Expelled) => LeaseVerdict::Dead,
            Some(HeartbeatRead::Absent) if expired => LeaseVerdict::Dead,
            Some(HeartbeatRead::Live(version)) if expired => LeaseVerdict::Expired(Expect::Version(version)),
            _ => LeaseVerdict::Alive,
        }
    }

    /// Heartbeats of which nobody has heard for `limit`, by members that are not in the cluster.
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
    /// It serves no more. Its lease ends when its heartbeat is overwritten at this version.
    Expired(Expect),
    /// Its lease has ended.
    Dead,
}

#[cfg(test)]
#[path = "lease_monitor_tests.rs"]
mod tests;
