//! Renews the lease by rewriting the node's heartbeat, and knows exactly until when the node may serve.
//!
//! A renewal counts from before its request was sent. An unanswered renewal is looked up in the store, and counts from its own start if it
//! is there. If the store was unavailable to all nodes, a lease may run out unnoticed by other nodes. It continues when a renewal succeeds:
//! no node can have ended it in between, because then the renewal would have failed.

use std::collections::VecDeque;
use std::time::Duration;

use super::AgentContext;
use crate::environment::Expect;
use crate::error::DocumentError;
use crate::heartbeat::{FORMAT, Heartbeat, HeartbeatState, LoadRecord, name_of};
use crate::ids::{Member, Version};

/// Number of renewals that are remembered because they may still turn out to have succeeded.
const ATTEMPTS_REMEMBERED: usize = 16;

pub(super) struct LeaseRenewer {
    context: AgentContext,
    member: Member,
    /// The version that was written or seen last. `None` before the heartbeat exists.
    version: Option<Version>,
    counter: u64,
    /// Counters of renewals, and the times at which they began.
    attempts: VecDeque<(u64, Duration)>,
}

enum RenewalOutcome {
    Renewed,
    /// The outcome is not known: try again.
    Unknown,
    Lost(String),
}

impl LeaseRenewer {
    pub fn new(context: AgentContext, member: Member) -> Self {
        LeaseRenewer {
            context,
            member,
            version: None,
            counter: 0,
            attempts: VecDeque::new(),
        }
    }

    /// Renews the lease until it is lost. Returns the reason.
    pub async fn run(&mut self) -> String {
        let config = &self.context.config;
        let (interval, retry_interval) = (config.renewal_interval(), config.retry_interval());
        loop {
            let start = self.context.now();
            let pause = match self.renew(start).await {
                RenewalOutcome::Renewed => (start + interval).saturating_sub(self.context.now()),
                RenewalOutcome::Unknown => retry_interval / 2,
                RenewalOutcome::Lost(reason) => return reason,
            };
            self.context.clock.sleep(pause).await;
        }
    }

    async fn renew(&mut self, start: Duration) -> RenewalOutcome {
        self.counter += 1;
        self.attempts.push_back((self.counter, start));
        if self.attempts.len() > ATTEMPTS_REMEMBERED {
            self.attempts.pop_front();
        }
        let content = self.heartbeat().encode();
        let name = name_of(self.member);
        let expect = self.version.map_or(Expect::Absent, Expect::Version);
        let lease = self.context.config.lease;
        let put = self.context.documents.put(&name, &content, expect);
        match self
            .context
            .within(self.context.config.renewal_timeout(), put)
            .await
        {
            Ok(version) => {
                self.version = Some(version);
                self.context.shared.extend_lease(start, lease);
                RenewalOutcome::Renewed
            }
            Err(DocumentError::Conflict) => self.check_heartbeat(&name).await,
            Err(DocumentError::Unavailable(error)) => {
                if self.context.shared.note_renewal_error(error.clone()) {
                    tracing::info!(error, "the lease could not be renewed; trying again");
                }
                self.check_heartbeat(&name).await
            }
        }
    }

    /// Reads the heartbeat to find out which renewals succeeded, and whether the lease was ended.
    async fn check_heartbeat(&mut self, name: &str) -> RenewalOutcome {
        let lease = self.context.config.lease;
        let get = self.context.documents.get(name);
        let Ok(found) = self.context.within(lease / 2, get).await else {
            return RenewalOutcome::Unknown;
        };
        let Some(found) = found else {
            return match self.version {
                None => RenewalOutcome::Unknown,
                Some(_) => RenewalOutcome::Lost("its heartbeat was deleted".into()),
            };
        };
        match Heartbeat::decode(&found.content) {
            Ok(heartbeat) if heartbeat.state == HeartbeatState::Live => {
                self.version = Some(found.version);
                self.count(heartbeat.counter)
            }
            Ok(_) => RenewalOutcome::Lost(
                "another node expelled this one, which had not renewed its lease in time".into(),
            ),
            Err(error) => RenewalOutcome::Lost(error.to_string()),
        }
    }

    /// Counts the renewal with this counter, which the store has. It is this node's own, since no other node writes a live heartbeat for
    /// it.
    fn count(&mut self, counter: u64) -> RenewalOutcome {
        let lease = self.context.config.lease;
        if let Some((_, start)) = self.attempts.iter().find(|(attempt, _)| *attempt == counter) {
            self.context.shared.extend_lease(*start, lease);
        }
        match counter == self.counter {
            true => RenewalOutcome::Renewed,
            false => RenewalOutcome::Unknown,
        }
    }

    fn heartbeat(&self) -> Heartbeat {
        let config = &self.context.config;
        Heartbeat {
            format: FORMAT,
            store: config.store,
            host_id: self.member.host_id,
            incarnation: self.member.incarnation,
            state: HeartbeatState::Live,
            counter: self.counter,
            written_at_ms: self.context.clock.wall_ms(),
            lease_ms: config.lease.as_millis() as u64,
            cql_address: config.description.cql_address.to_string(),
            rpc_address: config.description.rpc_address.clone(),
            tablets: self
                .context
                .host
                .load()
                .into_iter()
                .map(LoadRecord::new)
                .collect(),
        }
    }
}
