//! Detects failed nodes: watches which heartbeats change, reads those that have not changed for long, and expels nodes whose lease has
//! ended.
//!
//! A check requests the stamps of the members' heartbeats by name while these are few, and lists them otherwise. In an object store, a
//! listing costs as much as twelve requests for one document. A listing is made from time to time anyway, because it also shows the
//! heartbeats of former members.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::join_all;

use super::AgentContext;
use crate::document::{ClusterDocument, NAME, NodeRecord};
use crate::environment::{Document, Expect, TabletLoad};
use crate::error::DocumentError;
use crate::heartbeat::{Heartbeat, HeartbeatState, member_of, name_of};
use crate::ids::{HostId, Member, TabletId};
use crate::lease_monitor::{HeartbeatRead, LeaseMonitor, LeaseVerdict, Seen};

/// Number of leases without a change after which the heartbeat of a former member is deleted. No write to it can be in flight by then.
const LEFTOVER_LEASES: u32 = 30;
/// Maximum number of heartbeats that are requested by name.
const NAMED_MAX: usize = 10;
/// Maximum time between two listings, in leases.
const LISTING_LEASES: u32 = 15;

pub(super) struct FailureDetector {
    context: AgentContext,
    me: Member,
    /// True if this node's earlier incarnations have stopped, so that their leases need not be waited for.
    previous_incarnation_stopped: bool,
    watch: LeaseMonitor,
    /// Members whose leases have ended.
    pub dead: BTreeSet<Member>,
    /// The stamp of the cluster document in the newest check.
    pub document_stamp: Option<String>,
    /// Time of the next listing of the heartbeats.
    next_listing: Duration,
}

impl FailureDetector {
    pub fn new(context: AgentContext, me: Member, previous_incarnation_stopped: bool) -> Self {
        FailureDetector {
            context,
            me,
            previous_incarnation_stopped,
            watch: LeaseMonitor::default(),
            dead: BTreeSet::new(),
            document_stamp: None,
            next_listing: Duration::ZERO,
        }
    }

    fn expiry(&self, node: &NodeRecord) -> Duration {
        if self.is_previous_incarnation(node) && self.previous_incarnation_stopped {
            return Duration::ZERO;
        }
        self.context.config.expiry(Duration::from_millis(node.lease_ms))
    }

    /// Returns the time without a change after which a node is suspected: it is given no tablets, and its heartbeat is read.
    fn suspicion(&self, node: &NodeRecord) -> Duration {
        self.expiry(node) * 2 / 3
    }

    fn is_previous_incarnation(&self, node: &NodeRecord) -> bool {
        node.host_id == self.me.host_id && node.incarnation != self.me.incarnation
    }

    fn others<'a>(&'a self, document: &'a ClusterDocument) -> impl Iterator<Item = &'a NodeRecord> {
        document.nodes.iter().filter(|node| node.member() != self.me)
    }

    /// Checks which nodes have renewed their leases, and whether the cluster document has changed.
    pub async fn check_heartbeats(
        &mut self,
        document: Option<&ClusterDocument>,
    ) -> Result<(), DocumentError> {
        let lease = self.context.config.lease;
        let members: BTreeSet<Member> = document
            .map(|document| self.others(document).map(NodeRecord::member).collect())
            .unwrap_or_default();
        let lists =
            document.is_none() || members.len() > NAMED_MAX || self.context.now() >= self.next_listing;
        let found = match lists {
            true => {
                let list = self.context.documents.list(NAME);
                let found = self.context.within(lease, list).await?;
                self.next_listing = self.context.now() + lease * LISTING_LEASES;
                found
            }
            false => {
                let names: Vec<_> = members
                    .iter()
                    .copied()
                    .map(name_of)
                    .chain([NAME.to_owned()])
                    .collect();
                let stamps = self.context.documents.stamps(&names);
                self.context.within(lease, stamps).await?
            }
        };
        let mut heartbeats = BTreeMap::new();
        for entry in found {
            match member_of(&entry.name) {
                Some(member) if member != self.me => {
                    heartbeats.insert(member, entry.stamp);
                }
                None if entry.name == NAME => self.document_stamp = Some(entry.stamp),
                _ => {}
            }
        }
        let seen = match lists {
            true => Seen::All,
            false => Seen::Members,
        };
        self.watch
            .observe(self.context.now(), lease, &heartbeats, &members, seen);
        Ok(())
    }

    /// Reads the heartbeats of quiet nodes, and ends the leases of those that were quiet for too long.
    pub async fn expire_leases(&mut self, document: &ClusterDocument) {
        self.dead.retain(|member| document.has(*member));
        let now = self.context.now();
        let quiet: Vec<_> = self
            .others(document)
            .filter(|node| self.watch.should_read(node.member(), now, self.suspicion(node)))
            .map(NodeRecord::member)
            .collect();
        for (member, found) in self.read_heartbeats(&quiet).await {
            let found = match found
                .as_ref()
                .map(|found| (found.version, Heartbeat::decode(&found.content)))
            {
                None => HeartbeatRead::Absent,
                Some((_, Ok(heartbeat))) if heartbeat.state == HeartbeatState::Expelled => {
                    HeartbeatRead::Expelled
                }
                // A heartbeat that cannot be decoded is overwritten like any other.
                Some((version, _)) => HeartbeatRead::Live(version),
            };
            self.watch.found(member, found);
        }
        let now = self.context.now();
        let judgements: Vec<_> = self
            .others(document)
            .filter(|node| !self.dead.contains(&node.member()))
            .map(|node| {
                (
                    node.clone(),
                    self.watch.verdict(node.member(), now, self.expiry(node)),
                )
            })
            .collect();
        for (node, judgement) in judgements {
            match judgement {
                LeaseVerdict::Alive => {}
                LeaseVerdict::Dead => {
                    self.dead.insert(node.member());
                }
                LeaseVerdict::Expired(expect) => self.end_lease(&node, expect).await,
            }
        }
    }

    /// Ends the lease of a node by overwriting its heartbeat. A node whose own lease has run out must not judge other nodes.
    async fn end_lease(&mut self, node: &NodeRecord, expect: Expect) {
        if !self.context.shared.may_serve() {
            return;
        }
        let member = node.member();
        let expelled = Heartbeat {
            format: crate::heartbeat::FORMAT,
            store: self.context.config.store,
            host_id: member.host_id,
            incarnation: member.incarnation,
            state: HeartbeatState::Expelled,
            counter: 0,
            written_at_ms: self.context.clock.wall_ms(),
            lease_ms: node.lease_ms,
            cql_address: node.description.cql_address.to_string(),
            rpc_address: node.description.rpc_address.clone(),
            tablets: Vec::new(),
        };
        let (name, content) = (name_of(member), expelled.encode());
        let put = self.context.documents.put(&name, &content, expect);
        match self.context.within(self.context.config.lease, put).await {
            Ok(_) => {
                tracing::warn!(node = %node.description.name, %member, "the node's lease has ended: it is expelled");
                super::handle::count(&self.context.shared.counters.expulsions);
                self.dead.insert(member);
            }
            // The node has renewed its lease after all, another node was faster, or the outcome is unknown. The next check finds out.
            Err(_) => self.watch.changed(member, self.context.now()),
        }
    }

    async fn read_heartbeats(&self, members: &[Member]) -> Vec<(Member, Option<Document>)> {
        let reads = members.iter().map(|member| async move {
            let name = name_of(*member);
            let get = self.context.documents.get(&name);
            let found = self.context.within(self.context.config.lease, get).await;
            found.ok().map(|found| (*member, found))
        });
        join_all(reads).await.into_iter().flatten().collect()
    }

    /// Reads the loads of tablets from the heartbeats of all nodes.
    pub async fn read_loads(&self, document: &ClusterDocument) -> BTreeMap<TabletId, TabletLoad> {
        let members: Vec<_> = document.nodes.iter().map(NodeRecord::member).collect();
        let mut loads = BTreeMap::new();
        for (member, found) in self.read_heartbeats(&members).await {
            let Some(Ok(heartbeat)) = found.map(|found| Heartbeat::decode(&found.content)) else {
                continue;
            };
            if heartbeat.store.is_some() && heartbeat.store != self.context.config.store {
                tracing::warn!(%member, store = ?heartbeat.store, "a heartbeat of another store lies in this one's bucket");
                continue;
            }
            // A heartbeat may still show a tablet that has moved, so only the owner's figures count.
            let own = heartbeat
                .tablets
                .iter()
                .map(|record| record.load())
                .filter(|(id, _)| {
                    document
                        .tablet(*id)
                        .is_ok_and(|tablet| tablet.owner == Some(member.host_id))
                });
            loads.extend(own);
        }
        loads
    }

    /// Returns true if the member was seen to renew its lease.
    pub fn renews(&self, member: Member) -> bool {
        self.watch.renews(member)
    }

    pub fn alive(&self, node: &NodeRecord) -> bool {
        if node.member() == self.me {
            return true;
        }
        let quiet = self.watch.quiet_for(node.member(), self.context.now());
        !self.dead.contains(&node.member()) && quiet.is_none_or(|quiet| quiet < self.suspicion(node))
    }

    pub fn suspected(&self, document: &ClusterDocument) -> BTreeSet<HostId> {
        let suspects = self.others(document).filter(|node| !self.alive(node));
        suspects.map(|node| node.host_id).collect()
    }

    /// Returns the next time at which the silence of a node reaches a limit. `None` if there is no such time.
    pub fn next_look(&self, document: &ClusterDocument) -> Option<Duration> {
        let now = self.context.now();
        self.others(document)
            .flat_map(|node| {
                [self.suspicion(node), self.expiry(node)]
                    .map(|limit| self.watch.quiet_until(node.member(), limit))
            })
            .flatten()
            .filter(|time| *time > now)
            .min()
    }

    /// Deletes the heartbeats of nodes that left long ago.
    pub async fn delete_leftovers(&self, document: &ClusterDocument) {
        let members = document.nodes.iter().map(NodeRecord::member).collect();
        let limit = self.context.config.lease * LEFTOVER_LEASES;
        for member in self.watch.leftovers(&members, self.context.now(), limit) {
            let name = name_of(member);
            let delete = self.context.documents.delete(&name);
            if let Err(error) = self.context.within(self.context.config.lease, delete).await {
                tracing::info!(%member, %error, "the heartbeat of a node that is gone could not be deleted");
                return;
            }
        }
    }
}
