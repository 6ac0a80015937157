//! A node that dies between any two steps of a write. Index entries, rows and views belong to different nodes, and reads of them must
//! agree.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_query::cluster::{
    Cluster, LeaseTerm, ListSearch, Owner, PartAnswer, Pin, PinnedCut, RemoteError, RemoteScan, RemoteWrite,
    ReportedNode, ReportedTablet, Request, ReturnAddress, ScanRange, Sent, StaleEntries, TransactionAnswer,
    TransactionStep, Versions,
};
use helenus_query::engine::Engine;
use helenus_query::response::Outcome;
use helenus_server::rpc::ClusterClient;
use helenus_tablet::TokenRange;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use crate::nodes::{NODES, Nodes};

/// The first node's connection to the other nodes, which fails after a number of writes.
pub struct Cut {
    members: Arc<ClusterClient>,
    /// Number of writes to other nodes that still succeed.
    left: AtomicUsize,
    /// True if the failing write reaches the other node, and only its response is lost.
    loses_answer: AtomicBool,
    pub reached: Notify,
    /// Lets the failing write continue after all.
    pub goes_on: Notify,
    /// Error of the next write or statement, which is not executed. `None` if it is executed.
    failure: Mutex<Option<CqlError>>,
    /// True if the first node has lost its lease. Other nodes may have owned its tablets since, so that its reads may be old.
    has_lost_lease: AtomicBool,
    /// True if another node than the owner is returned for the next token of another node.
    misleads: AtomicBool,
    /// Number of relayed requests.
    relayed: AtomicUsize,
}

impl Cut {
    pub fn new(members: Arc<ClusterClient>) -> Arc<Cut> {
        Arc::new(Cut {
            members,
            left: AtomicUsize::new(usize::MAX),
            loses_answer: AtomicBool::new(false),
            reached: Notify::new(),
            goes_on: Notify::new(),
            failure: Mutex::default(),
            has_lost_lease: AtomicBool::new(false),
            misleads: AtomicBool::new(false),
            relayed: AtomicUsize::new(0),
        })
    }

    /// Makes the next write or statement for another node fail with `error`.
    pub fn fail_next(&self, error: CqlError) {
        *self.failure.lock().unwrap() = Some(error);
    }

    /// Takes away the first node's lease, or returns it.
    pub fn lose_lease(&self, is_lost: bool) {
        self.has_lost_lease.store(is_lost, Ordering::SeqCst);
    }

    /// Makes the first node take another node than the owner for the owner of the next request, as after a move of the tablet.
    pub fn mislead(&self) {
        self.misleads.store(true, Ordering::SeqCst);
    }

    /// Returns true if a request has been misled since [`Cut::mislead`].
    pub fn has_misled(&self) -> bool {
        !self.misleads.swap(false, Ordering::SeqCst)
    }

    /// Returns the number of relayed requests.
    pub fn relayed(&self) -> usize {
        self.relayed.load(Ordering::SeqCst)
    }

    pub fn after(&self, writes: usize, loses_answer: bool) {
        self.loses_answer.store(loses_answer, Ordering::SeqCst);
        self.left.store(writes, Ordering::SeqCst);
    }
}

#[async_trait]
impl Cluster for Cut {
    fn owner(&self, token: i64) -> Owner {
        let owner = self.members.owner(token);
        let is_other =
            |node: &Uuid| ![owner, Owner::Here].contains(&Owner::Peer(*node)) && *node != self.here();
        match owner {
            Owner::Peer(_) if self.misleads.swap(false, Ordering::SeqCst) => {
                let nodes = self.nodes().into_iter().map(|node| node.host_id);
                nodes.filter(is_other).map(Owner::Peer).next().unwrap_or(owner)
            }
            owner => owner,
        }
    }
    fn tablet(&self, token: i64) -> TokenRange {
        self.members.tablet(token)
    }
    fn nodes(&self) -> Vec<ReportedNode> {
        self.members.nodes()
    }
    fn tablets(&self) -> Vec<ReportedTablet> {
        self.members.tablets()
    }
    fn here(&self) -> Uuid {
        self.members.here()
    }
    fn lease_term(&self) -> LeaseTerm {
        self.members.lease_term()
    }
    fn may_serve_since(&self, term: LeaseTerm) -> bool {
        !self.has_lost_lease.load(Ordering::SeqCst) && self.members.may_serve_since(term)
    }
    fn changes(&self) -> u64 {
        self.members.changes()
    }
    fn has_left(&self) -> bool {
        self.members.has_left()
    }
    async fn changed(&self, since: u64, at_most: Duration) -> bool {
        self.members.changed(since, at_most).await
    }
    async fn refresh(&self) {
        self.members.refresh().await;
    }
    async fn execute(
        &self,
        node: Uuid,
        request: &Request<'_>,
        deadline: Instant,
    ) -> Result<Outcome, RemoteError> {
        if let Some(error) = self.failure.lock().unwrap().take() {
            return Err(RemoteError::Failed(error));
        }
        self.members.execute(node, request, deadline).await
    }
    fn relay(
        &self,
        node: Uuid,
        request: &Request<'_>,
        deadline: Instant,
        back: ReturnAddress,
    ) -> Option<Sent> {
        let sent = self.members.relay(node, request, deadline, back)?;
        self.relayed.fetch_add(1, Ordering::SeqCst);
        Some(sent)
    }
    async fn read_part(
        &self,
        node: Uuid,
        request: &Request<'_>,
        tokens: TokenRange,
        deadline: Instant,
    ) -> Result<PartAnswer, RemoteError> {
        self.members.read_part(node, request, tokens, deadline).await
    }
    async fn get(
        &self,
        node: Uuid,
        keys: &[(i64, Bytes)],
        deadline: Instant,
    ) -> Result<Vec<Option<Bytes>>, RemoteError> {
        self.members.get(node, keys, deadline).await
    }
    async fn scan(
        &self,
        node: Uuid,
        range: &ScanRange,
        deadline: Instant,
    ) -> Result<Box<dyn RemoteScan>, RemoteError> {
        self.members.scan(node, range, deadline).await
    }
    async fn search_lists(
        &self,
        node: Uuid,
        search: &ListSearch,
        deadline: Instant,
    ) -> Result<Vec<Bytes>, RemoteError> {
        self.members.search_lists(node, search, deadline).await
    }
    async fn transact(
        &self,
        _: Uuid,
        _: &TransactionStep,
        _: Instant,
    ) -> Result<TransactionAnswer, RemoteError> {
        Err(RemoteError::Unreachable("not in these tests".to_owned()))
    }

    async fn write(&self, node: Uuid, write: &RemoteWrite, deadline: Instant) -> Result<(), RemoteError> {
        if let Some(error) = self.failure.lock().unwrap().take() {
            return Err(RemoteError::Failed(error));
        }
        let one_less = |left: usize| (left != usize::MAX).then(|| left.saturating_sub(1));
        let left = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
        if left != Ok(0) {
            return self.members.write(node, write, deadline).await;
        }
        if self.loses_answer.load(Ordering::SeqCst) {
            let _ = self.members.write(node, write, deadline).await;
        }
        self.reached.notify_one();
        self.goes_on.notified().await;
        Ok(())
    }
    async fn remove_stale(
        &self,
        node: Uuid,
        stale: &StaleEntries,
        deadline: Instant,
    ) -> Result<u64, RemoteError> {
        self.members.remove_stale(node, stale, deadline).await
    }
    async fn hold(&self, node: Uuid, cut: Uuid, deadline: Instant) -> Result<Vec<TokenRange>, RemoteError> {
        self.members.hold(node, cut, deadline).await
    }
    async fn pin(&self, node: Uuid, pin: Pin, deadline: Instant) -> Result<PinnedCut, RemoteError> {
        self.members.pin(node, pin, deadline).await
    }
    async fn load(
        &self,
        node: Uuid,
        versions: Versions,
        is_settled: bool,
        deadline: Instant,
    ) -> Result<(), RemoteError> {
        self.members.load(node, versions, is_settled, deadline).await
    }
}

/// Returns the keys of rows that the first node owns.
pub async fn own_keys(nodes: &Nodes, cut: &Cut) -> Vec<i32> {
    let mut own = Vec::new();
    for k in 0..60 {
        let token = nodes
            .run(0, &format!("SELECT token(k) FROM t WHERE k = {k}"))
            .await;
        if cut.owner(token.parse().unwrap()) == Owner::Here {
            own.push(k);
        }
    }
    own
}

fn sorted(answer: &str) -> Vec<String> {
    let mut rows: Vec<String> = answer.split("; ").map(str::to_owned).collect();
    rows.sort();
    rows
}

/// Asserts that reads by the index agree with the table on each node.
async fn assert_index_is_right(nodes: &Nodes, what: &str) {
    for v in 0..4 {
        let filtered = format!("SELECT k, w FROM t WHERE v = {v}");
        let all = nodes.run(0, "SELECT k, w, v FROM t").await;
        let ends = format!(", {v}");
        let expected: Vec<String> = sorted(&all)
            .iter()
            .filter_map(|row| row.strip_suffix(&ends).map(str::to_owned))
            .collect();
        for node in 0..NODES {
            let found: Vec<String> = sorted(&nodes.run(node, &filtered).await)
                .into_iter()
                .filter(|row| !row.is_empty())
                .collect();
            assert_eq!(found, expected, "{what}: node {node}, v = {v}");
        }
    }
}

/// Waits until the view agrees with the table.
async fn view_comes_right(nodes: &Nodes, what: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let base = sorted(&nodes.run(1, "SELECT v, k, w FROM t").await);
        let view = sorted(&nodes.run(2, "SELECT v, k, w FROM by_v").await);
        if base == view {
            return;
        }
        assert!(Instant::now() < until, "{what}: base {base:?}, view {view:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Recovers the first node's tablets, as the node that opens them after a crash does.
async fn recover(engine: &Arc<Engine>, cut: &Cut) {
    for tablet in cut.tablets() {
        if cut.owner(tablet.tokens.first) == Owner::Here {
            engine.recover_batches(tablet.tokens).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_dies_at_any_step_leaves_indexes_and_views_right() {
    let (nodes, cut) = Nodes::start_cut().await;
    for statement in [
        "CREATE TABLE t (k int PRIMARY KEY, v int, w int)",
        "CREATE TABLE barrier (k int PRIMARY KEY)",
        "CREATE INDEX ON t (v)",
        "CREATE MATERIALIZED VIEW by_v AS SELECT * FROM t WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)",
    ] {
        assert_eq!(nodes.run(0, statement).await, "", "{statement}");
    }
    for k in 0..60 {
        nodes
            .run(k, &format!("INSERT INTO t (k, v, w) VALUES ({k}, {}, 0)", k % 4))
            .await;
    }
    let keys = own_keys(&nodes, &cut).await;
    let mut cuts = 0;
    // Runs three statements at each of four steps, with and without the last response, twice.
    for number in 0..48 {
        let (step, loses_answer) = (number / 3 % 4, number / 12 % 2 == 0);
        let k = keys[number % keys.len()];
        let statement = match number % 3 {
            0 => format!("UPDATE t SET v = {}, w = {number} WHERE k = {k}", number % 4),
            1 => format!("DELETE FROM t WHERE k = {k}"),
            _ => format!(
                "INSERT INTO t (k, v, w) VALUES ({k}, {}, {number})",
                (number + 1) % 4
            ),
        };
        let what = format!("{statement}, cut after {step} writes, answer lost: {loses_answer}");
        cut.after(step, loses_answer);
        tokio::select! {
            _ = nodes.run(0, &statement) => {}
            () = cut.reached.notified() => cuts += 1,
        }
        cut.after(usize::MAX, false);
        // Writes that the store has already received are applied before this one. After that, a dead node writes nothing more.
        assert_eq!(
            nodes
                .run(0, &format!("INSERT INTO barrier (k) VALUES ({k})"))
                .await,
            ""
        );
        recover(&nodes.engines[0], &cut).await;
        assert_index_is_right(&nodes, &what).await;
        view_comes_right(&nodes, &what).await;
    }
    assert!(cuts > 10, "only {cuts} writes were cut short");
}
