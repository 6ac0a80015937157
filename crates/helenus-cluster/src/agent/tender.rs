//! Tends the cluster document and this node's tablets: looks, decides, writes, and has the worker do the rest.

mod reading;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::handle::{AgentState, Change, Mailbox, Request, Written};
use super::hosting::Hosting;
use super::watching::Watching;
use super::worker::{Command, Event};
use super::{Context, End};
use crate::calm::Calm;
use crate::decide::{Decision, Facts, decide, leads};
use crate::document::{self, ClusterDocument, NodeRecord};
use crate::effects::{Expect, TabletLoad, TabletSpec};
use crate::error::{ClusterError, DocumentError};
use crate::ids::{Epoch, TabletId, Version};
use crate::view::NodeState;

/// Documents written in a row before the agent looks around again.
const WRITES_IN_A_ROW_MAX: usize = 8;
/// How often a node that is about to be given a tablet looks whether it has been, should it not be told.
const EXPECTING_INTERVAL: Duration = Duration::from_millis(100);
/// How often a node that is about to join looks whether it has a lease.
const WANTING_LEASE_INTERVAL: Duration = Duration::from_millis(25);

/// The leading node looks through the store for what was left behind after so many leases, and then every so often.
const FIRST_SWEEP_LEASES: u32 = 30;
const SWEEP_LEASES: u32 = 300;

type Reply = oneshot::Sender<Result<(), ClusterError>>;

pub(super) struct Tender {
    context: Context,
    me: NodeRecord,
    watching: Watching,
    /// What this node hosts of the tablets.
    pub hosting: Hosting,
    events: mpsc::UnboundedReceiver<Event>,
    known: Option<(Version, Arc<ClusterDocument>)>,
    /// The listing's stamp of the document when it was last read.
    read_stamp: Option<String>,
    /// The document has shown this node in this incarnation.
    joined: bool,
    draining: bool,
    loads: BTreeMap<TabletId, TabletLoad>,
    calm: Calm,
    tend: bool,
    changes: Vec<(Change, Reply)>,
    next_listing: Duration,
    next_read: Option<Duration>,
    last_read: Duration,
    next_tend: Duration,
    /// When the store is looked through next for what was left behind.
    next_sweep: Duration,
}

impl Tender {
    pub fn new(
        context: Context,
        me: NodeRecord,
        former_self_is_gone: bool,
        commands: mpsc::UnboundedSender<Command>,
        events: mpsc::UnboundedReceiver<Event>,
    ) -> Self {
        let now = context.now();
        let watching = Watching::new(context.clone(), me.member(), former_self_is_gone);
        Tender {
            watching,
            hosting: Hosting::new(context.clone(), me.host_id, commands),
            events,
            known: None,
            read_stamp: None,
            joined: false,
            draining: false,
            loads: BTreeMap::new(),
            calm: Calm::default(),
            tend: false,
            changes: Vec::new(),
            next_listing: now,
            next_read: Some(now),
            last_read: Duration::ZERO,
            next_tend: now,
            next_sweep: now + context.config.lease * FIRST_SWEEP_LEASES,
            context,
            me,
        }
    }

    pub async fn run(&mut self, mailbox: &mut Mailbox) -> Result<End, ClusterError> {
        loop {
            self.look().await;
            loop {
                if let Some(end) = self.settle().await? {
                    // A node that has left still passes requests on, for a while.
                    self.publish();
                    return Ok(end);
                }
                if let Some(document) = self.document()
                    && self.joined
                {
                    self.hosting.act(&document);
                }
                self.publish();
                // Clients may be waiting for what has happened: it comes before a look around, but does not keep the node from one for long.
                let overdue = self.next_listing + self.context.config.renewal_interval();
                if !self.wait(mailbox).await || self.context.now() >= overdue {
                    break;
                }
            }
        }
    }

    fn document(&self) -> Option<Arc<ClusterDocument>> {
        self.known.as_ref().map(|(_, document)| document.clone())
    }

    /// Brings what this node knows up to date, as far as it is time to.
    async fn look(&mut self) {
        let document = self.document();
        if self.context.now() >= self.next_listing {
            match self.watching.list(document.as_deref()).await {
                Ok(()) if self.watching.document_stamp != self.read_stamp => self.read_now(),
                Ok(()) => {}
                Err(error) => tracing::info!(%error, "the cluster's documents could not be listed"),
            }
            self.next_listing = self.context.now() + self.context.config.renewal_interval();
        }
        if self.next_read.is_some_and(|time| self.context.now() >= time) {
            self.read().await;
        }
        if let Some(document) = self.document() {
            self.watching.judge(&document).await;
            self.look_around(&document).await;
        }
    }

    /// What the leading node does now and then, and a joining one before it takes its share.
    async fn look_around(&mut self, document: &ClusterDocument) {
        let now = self.context.now();
        if now < self.next_tend {
            return;
        }
        self.next_tend = now + self.context.config.lease * 2;
        let no_tablets = BTreeMap::new();
        let leads = self.with_facts(document, &no_tablets, |facts| leads(document, facts));
        if !leads {
            self.calm = Calm::default();
        }
        if !leads && self.joined {
            return;
        }
        self.loads = self.watching.read_loads(document).await;
        if leads {
            self.tend = true;
            let suspected = self.watching.suspected(document);
            let limits = &self.context.config.limits;
            self.calm
                .observe(self.context.now(), document, &suspected, &self.loads, limits);
            self.watching.delete_leftovers(document).await;
            if now >= self.next_sweep {
                self.next_sweep = now + self.context.config.lease * SWEEP_LEASES;
                self.hosting.look_for_strays();
            }
            self.hosting.remove_retired(document);
        }
    }

    fn with_facts<T>(
        &self,
        document: &ClusterDocument,
        closed: &BTreeMap<TabletId, Epoch>,
        use_facts: impl FnOnce(&Facts) -> T,
    ) -> T {
        let config = &self.context.config;
        use_facts(&Facts {
            cluster_name: &config.cluster_name,
            store: config.store,
            initial_tablets: &config.initial_tablets,
            limits: &config.limits,
            me: &self.me,
            joined: self.joined,
            draining: self.draining,
            dead: &self.watching.dead,
            suspected: &self.watching.suspected(document),
            closed,
            reshaped: &self.hosting.reshaped,
            removed: &self.hosting.removed,
            loads: &self.loads,
            mergeable: &self.calm.mergeable(self.context.now(), &config.limits),
            tend: self.tend,
        })
    }

    /// Writes what there is to write. Returns how the stay ended, if it did.
    async fn settle(&mut self) -> Result<Option<End>, ClusterError> {
        // A node without a lease would join only to be expelled.
        if !self.joined && !self.draining && !self.context.shared.may_serve() {
            return Ok(None);
        }
        for _ in 0..WRITES_IN_A_ROW_MAX {
            let document = self.document();
            let empty = ClusterDocument::create(&self.context.config.cluster_name, &TabletSpec::ring(1));
            let closed = self.hosting.closed();
            let decision = self.with_facts(document.as_deref().unwrap_or(&empty), &closed, |facts| {
                decide(document.as_deref(), facts)
            });
            let written = match decision.unwrap_or_else(|error| Decision::Wait(error.to_string())) {
                Decision::Keep => match self.changes.pop() {
                    Some((change, reply)) => self.change(change, reply).await,
                    None => break,
                },
                Decision::Write(next) => self.write(*next).await,
                Decision::Wait(reason) => {
                    self.report_obstacle(reason);
                    break;
                }
                Decision::Stranger(member, error) => {
                    // One that has ended need not be understood.
                    if self.watching.renews(member) {
                        return Err(error);
                    }
                    self.report_obstacle(error.to_string());
                    break;
                }
                Decision::Expelled => {
                    return Ok(Some(End::LostLease("another node expelled this one".into())));
                }
                Decision::Left => return Ok(Some(End::Left)),
            };
            match written {
                Ok(()) => {}
                // Who was faster may have told of it.
                Err(DocumentError::Conflict) if self.hear() => {}
                Err(DocumentError::Conflict) => self.read().await,
                Err(DocumentError::Unavailable(reason)) => {
                    tracing::info!(%reason, "the cluster document could not be written");
                    self.next_read = Some(self.context.now() + self.context.config.renewal_interval() / 4);
                    break;
                }
            }
        }
        self.tend = false;
        Ok(None)
    }

    /// Says why this node can't write what it should; once for each reason.
    fn report_obstacle(&self, reason: String) {
        if self.joined {
            tracing::error!(%reason, "the cluster document can't be changed");
            return;
        }
        self.context.shared.state.send_if_modified(|state| {
            let next = AgentState::Joining(reason);
            let changed = *state != next;
            if changed {
                tracing::info!(state = ?next, "this node can't join yet");
                *state = next;
            }
            changed
        });
    }

    async fn write(&mut self, next: ClusterDocument) -> Result<(), DocumentError> {
        let expect = match &self.known {
            Some((version, _)) => Expect::Version(*version),
            None => Expect::Absent,
        };
        let content = next.encode();
        let put = self.context.documents.put(document::NAME, &content, expect);
        let version = self.context.within(self.context.config.lease, put).await?;
        self.learn(version, next);
        self.context.shared.written.send_replace(Written {
            version,
            content: content.into(),
        });
        Ok(())
    }

    /// Does what an operator asked for.
    async fn change(&mut self, change: Change, reply: Reply) -> Result<(), DocumentError> {
        let Some(document) = self.document() else {
            let _ = reply.send(Err(ClusterError::Refused("this node has not joined yet".into())));
            return Ok(());
        };
        let mut next = ClusterDocument::clone(&document);
        let result = match change {
            Change::Move { tablet, to } => next.begin_move(tablet, to),
            Change::Split { tablet } => next.tablet(tablet).cloned().and_then(|record| {
                let middle = record.tokens.middle();
                next.begin_split(tablet, middle.unwrap_or(record.tokens.first))
            }),
            Change::Merge { left } => next.begin_merge(left),
        };
        let result = match result {
            Ok(()) => match self.write(next).await {
                Err(DocumentError::Conflict) => {
                    self.changes.push((change, reply));
                    return Err(DocumentError::Conflict);
                }
                written => written.map_err(ClusterError::from),
            },
            refused => refused,
        };
        // Who no longer waits need not be told.
        let _ = reply.send(result);
        Ok(())
    }

    fn handle_request(&mut self, request: Request) {
        match request {
            Request::Drain => self.draining = true,
            Request::Change(change, reply) => self.changes.insert(0, (change, reply)),
            Request::TabletLost(tablet) => {
                if self.hosting.lost(tablet) {
                    self.read_now();
                }
            }
        }
    }

    /// Shows the rest of the node what is known now.
    fn publish(&mut self) {
        let Some((version, document)) = &self.known else {
            return;
        };
        let view = document.view(*version, |node| self.watching.alive(node));
        self.context.shared.view.send_if_modified(|current| {
            let changed = **current != *view;
            *current = view;
            changed
        });
        let state = match document.node(self.me.host_id) {
            Some(me) if self.joined && me.state == NodeState::Leaving => AgentState::Leaving,
            Some(_) if self.joined && self.hosting.has_opened_all(document) => AgentState::Serving,
            _ => return,
        };
        self.context.shared.state.send_if_modified(|current| {
            let changed = *current != state;
            *current = state;
            changed
        });
    }

    /// Waits for something to happen, or for the time to look again; true if something has happened.
    async fn wait(&mut self, mailbox: &mut Mailbox) -> bool {
        let now = self.context.now();
        let pause = self.next_time().saturating_sub(now);
        let shared = self.context.shared.clone();
        let mut is_news = true;
        tokio::select! {
            biased;
            Some(event) = self.events.recv() => self.hosting.handle_event(event),
            Some(request) = mailbox.requests.recv() => self.handle_request(request),
            () = shared.refresh.notified() => is_news = self.refresh(now),
            () = self.context.clock.sleep(pause) => is_news = false,
        }
        while let Ok(event) = self.events.try_recv() {
            self.hosting.handle_event(event);
        }
        while let Ok(request) = mailbox.requests.try_recv() {
            self.handle_request(request);
        }
        // Whatever is written next should build on it.
        self.hear() || is_news
    }

    fn next_time(&mut self) -> Duration {
        let mut time = self.next_listing;
        if let Some(document) = self.document() {
            if self.expects_tablets(&document) && self.next_read.is_none() {
                self.next_read = Some(self.last_read + EXPECTING_INTERVAL);
            }
            time = time.min(self.watching.next_look(&document).unwrap_or(time));
        }
        let waits_for_lease = !self.joined && !self.context.shared.may_serve();
        let wanting_lease = waits_for_lease.then(|| self.context.now() + WANTING_LEASE_INTERVAL);
        let times = self.hosting.next_time().into_iter().chain(self.next_read);
        times.chain(wanting_lease).fold(time, Duration::min)
    }

    fn expects_tablets(&self, document: &ClusterDocument) -> bool {
        let me = Some(self.me.host_id);
        self.joined && document.tablets.iter().any(|tablet| tablet.moving_to == me)
    }
}
