//! Tests of reads some of whose rows another node owns. The cluster has one store, and another node seems to own half of the tokens.

use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use async_trait::async_trait;
use helenus_cql::error::Consistency;
use helenus_tablet::Scan;
use tokio::time::Instant;

use super::*;
use crate::cluster::{
    LeaseTerm, ListSearch, PartRows, Pin, PinnedCut, RemoteScan, RemoteWrite, ReportedNode, ReportedTablet,
    ScanRange, Source, StaleEntries, TransactionAnswer, TransactionStep, Versions,
};
use crate::engine::{Engine, EngineConfig};
use crate::failure::{read_timeout, unavailable};
use crate::request::ClientState;
use crate::response::{Outcome, Response};
use crate::storage::key_reads;

const HERE: Uuid = Uuid::from_u128(1);
const PEER: Uuid = Uuid::from_u128(2);

tokio::task_local! {
    /// Set in tasks of the other node.
    static IS_PEER: ();
}

/// The other node's reply to each part.
type Reply = Box<dyn Fn(Result<PartAnswer, RemoteError>) -> Result<PartAnswer, RemoteError> + Send + Sync>;

/// Another node with the same store, which owns the tokens from 0 on.
struct Halves {
    engine: OnceLock<Arc<Engine>>,
    reply: Reply,
    parts: AtomicUsize,
    scans: AtomicUsize,
    /// Number of further reads at whose end this node has lost its lease.
    lost_leases: AtomicUsize,
}

impl Halves {
    fn engine(&self) -> &Arc<Engine> {
        self.engine.get().expect("the engine is there before it asks")
    }

    /// Reads the part as its owner would.
    async fn read(&self, request: &Request<'_>, tokens: TokenRange) -> Result<PartAnswer, RemoteError> {
        let engine = self.engine();
        let Source::Text(text) = request.source else {
            return Err(RemoteError::NoAnswer("only text is known".to_owned()));
        };
        let planned = engine
            .parse(text)
            .and_then(|parsed| engine.plan(request.keyspace, &parsed));
        let planned = Arc::new(planned.map_err(RemoteError::Failed)?);
        let served = serve(&engine.context, &planned, &[], request.frame.parameters, tokens);
        let served = IS_PEER.scope((), served).await;
        served.map_err(|error| match error {
            ExecutionError::NotOwned => RemoteError::NotOwned,
            ExecutionError::Failed(error) => RemoteError::Failed(error),
        })
    }
}

struct Scanned(Scan);

#[async_trait]
impl RemoteScan for Scanned {
    async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, RemoteError> {
        let next = self.0.next().await;
        next.map_err(|error| RemoteError::NoAnswer(error.to_string()))
    }
}

fn not_here<T>() -> Result<T, RemoteError> {
    Err(RemoteError::Unreachable("not in this test".to_owned()))
}

#[async_trait]
impl Cluster for Halves {
    fn owner(&self, token: i64) -> Owner {
        match (token < 0) != IS_PEER.try_with(|()| ()).is_ok() {
            true => Owner::Here,
            false => Owner::Peer(PEER),
        }
    }

    fn tablet(&self, token: i64) -> TokenRange {
        let [low, high] = [(i64::MIN, -1), (0, i64::MAX)].map(|(first, last)| TokenRange { first, last });
        if low.contains(token) { low } else { high }
    }

    fn nodes(&self) -> Vec<ReportedNode> {
        Vec::new()
    }

    fn tablets(&self) -> Vec<ReportedTablet> {
        let tablet = |(id, token, owner)| ReportedTablet {
            id,
            tokens: self.tablet(token),
            owner: Some(owner),
            epoch: 1,
            state: String::new(),
        };
        [(0, -1, HERE), (1, 0, PEER)].map(tablet).into()
    }

    fn here(&self) -> Uuid {
        HERE
    }

    fn lease_term(&self) -> LeaseTerm {
        LeaseTerm::default()
    }

    fn may_serve_since(&self, _: LeaseTerm) -> bool {
        let fewer = |lost: usize| lost.checked_sub(1);
        let lost = self
            .lost_leases
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
        lost.is_err()
    }

    fn changes(&self) -> u64 {
        0
    }

    fn has_left(&self) -> bool {
        false
    }

    async fn changed(&self, _: u64, _: Duration) -> bool {
        true
    }

    async fn refresh(&self) {}

    async fn execute(&self, _: Uuid, _: &Request<'_>, _: Instant) -> Result<Outcome, RemoteError> {
        not_here()
    }

    async fn read_part(
        &self,
        node: Uuid,
        request: &Request<'_>,
        tokens: TokenRange,
        _: Instant,
    ) -> Result<PartAnswer, RemoteError> {
        assert_eq!((node, tokens.first >= 0), (PEER, true));
        self.parts.fetch_add(1, Ordering::Relaxed);
        (self.reply)(self.read(request, tokens).await)
    }

    async fn get(
        &self,
        _: Uuid,
        keys: &[(i64, Bytes)],
        _: Instant,
    ) -> Result<Vec<Option<Bytes>>, RemoteError> {
        let rows = IS_PEER.scope((), self.engine().serve_get(keys)).await;
        rows.map_err(|error| RemoteError::NoAnswer(format!("{error:?}")))
    }

    async fn scan(&self, _: Uuid, range: &ScanRange, _: Instant) -> Result<Box<dyn RemoteScan>, RemoteError> {
        self.scans.fetch_add(1, Ordering::Relaxed);
        let scan = key_reads::scan_here(&self.engine().context, range, key_reads::Undecided::Awaited).await;
        let scan = scan.map_err(|error| RemoteError::NoAnswer(error.to_string()))?;
        Ok(Box::new(Scanned(scan)))
    }

    async fn search_lists(&self, _: Uuid, _: &ListSearch, _: Instant) -> Result<Vec<Bytes>, RemoteError> {
        not_here()
    }

    async fn write(&self, _: Uuid, _: &RemoteWrite, _: Instant) -> Result<(), RemoteError> {
        not_here()
    }

    async fn transact(
        &self,
        _: Uuid,
        _: &TransactionStep,
        _: Instant,
    ) -> Result<TransactionAnswer, RemoteError> {
        not_here()
    }

    async fn remove_stale(&self, _: Uuid, _: &StaleEntries, _: Instant) -> Result<u64, RemoteError> {
        not_here()
    }

    async fn hold(&self, _: Uuid, _: Uuid, _: Instant) -> Result<Vec<TokenRange>, RemoteError> {
        not_here()
    }

    async fn pin(&self, _: Uuid, _: Pin, _: Instant) -> Result<PinnedCut, RemoteError> {
        not_here()
    }

    async fn load(&self, _: Uuid, _: Versions, _: bool, _: Instant) -> Result<(), RemoteError> {
        not_here()
    }
}

/// Returns an engine with a table of 200 rows, and one of 240 rows in 40 partitions.
async fn engine_with_rows(concurrency: usize) -> (Arc<Engine>, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = EngineConfig::small(folder.path());
    config.limits.scan_concurrency = concurrency;
    let engine = Engine::open(config).await.expect("the store opens");
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY, v int, w bigint)",
        "CREATE TABLE ks.wide (p int, c int, d int, v int, s int static, PRIMARY KEY (p, c, d))",
    ] {
        run(&engine, statement).await.expect("the schema changes");
    }
    let row = |k| format!("INSERT INTO ks.t (k, v, w) VALUES ({k}, {}, {k});", k % 7);
    let wide_row = |n| {
        let (p, c, d) = (n % 40, n / 40 % 2, n / 80);
        format!(
            "INSERT INTO ks.wide (p, c, d, v, s) VALUES ({p}, {c}, {d}, {}, {p});",
            n % 11
        )
    };
    let inserts: [String; 2] = [(0..200).map(row).collect(), (0..240).map(wide_row).collect()];
    for inserts in inserts {
        let batch = format!("BEGIN UNLOGGED BATCH {inserts} APPLY BATCH");
        run(&engine, &batch).await.expect("the rows are written");
    }
    (engine, folder)
}

/// An engine with rows in a cluster whose other node gives a fixed reply.
struct Joined {
    engine: Arc<Engine>,
    cluster: Arc<Halves>,
    _folder: tempfile::TempDir,
}

impl Joined {
    async fn with(concurrency: usize, reply: Reply) -> Joined {
        let (engine, folder) = engine_with_rows(concurrency).await;
        let cluster = Arc::new(Halves {
            engine: OnceLock::new(),
            reply,
            parts: AtomicUsize::default(),
            scans: AtomicUsize::default(),
            lost_leases: AtomicUsize::default(),
        });
        let _ = cluster.engine.set(engine.clone());
        engine.join(cluster.clone());
        Joined {
            engine,
            cluster,
            _folder: folder,
        }
    }

    async fn check_results(&self) {
        for (text, expected) in [
            ("SELECT count(*) FROM ks.t", vec![200]),
            ("SELECT sum(w), count(v) FROM ks.t", vec![199 * 100, 200]),
            (
                "SELECT sum(w), count(*) FROM ks.t WHERE v = 3 ALLOW FILTERING",
                vec![(3..200).step_by(7).sum(), (3..200).step_by(7).count() as i64],
            ),
        ] {
            assert_eq!(run(&self.engine, text).await, Ok(expected), "{text}");
        }
    }

    /// Returns the numbers of parts and of scans that the other node has received since the last call.
    fn requested(&self) -> (usize, usize) {
        let taken = |count: &AtomicUsize| count.swap(0, Ordering::Relaxed);
        (taken(&self.cluster.parts), taken(&self.cluster.scans))
    }
}

/// Returns the numbers in the only row, all of them bigints.
async fn run(engine: &Arc<Engine>, text: &str) -> Result<Vec<i64>, CqlError> {
    let outcome = engine
        .query(&ClientState::default(), text, &QueryParameters::default())
        .await?;
    let Response::Rows(rows) = outcome.response else {
        return Ok(Vec::new());
    };
    let number = |cell: Bytes| i64::from_be_bytes(cell.as_ref().try_into().expect("a bigint"));
    Ok(rows.content.iter().flatten().flatten().map(number).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_reads_its_parts_and_sends_no_rows() {
    for concurrency in [1, 4] {
        let joined = Joined::with(concurrency, Box::new(|answer| answer)).await;
        joined.check_results().await;
        let (parts, scans) = joined.requested();
        assert!(parts >= 3, "{parts}");
        assert_eq!(scans, 0);
    }
}

/// Returns statements whose rows come from parts, each with the rows that an engine without a cluster returns.
async fn row_statements() -> Vec<(&'static str, Vec<Vec<Option<Bytes>>>)> {
    let (engine, _folder) = engine_with_rows(1).await;
    let mut statements = Vec::new();
    for text in [
        "SELECT * FROM ks.t WHERE v = 3 ALLOW FILTERING",
        "SELECT k, w FROM ks.t WHERE v >= 0 ALLOW FILTERING",
        "SELECT k FROM ks.t WHERE v > 100 ALLOW FILTERING",
        "SELECT JSON k, v FROM ks.t WHERE v < 2 LIMIT 17 ALLOW FILTERING",
        "SELECT k FROM ks.t WHERE token(k) > -1000 AND w > 20 ALLOW FILTERING",
        "SELECT * FROM ks.wide WHERE v < 5 ALLOW FILTERING",
        "SELECT p, c, v FROM ks.wide WHERE v < 9 PER PARTITION LIMIT 2 LIMIT 50 ALLOW FILTERING",
        "SELECT * FROM ks.wide WHERE c = 1 ALLOW FILTERING",
        "SELECT DISTINCT p, s FROM ks.wide WHERE s > 7 ALLOW FILTERING",
        "SELECT p, count(*), sum(v) FROM ks.wide GROUP BY p",
        "SELECT p, c, max(d), avg(v) FROM ks.wide GROUP BY p, c",
        "SELECT p, c, v FROM ks.wide WHERE v > 3 GROUP BY p, c LIMIT 33 ALLOW FILTERING",
        "SELECT p, c, count(v) FROM ks.wide GROUP BY p, c PER PARTITION LIMIT 1",
    ] {
        let rows = in_pages(&engine, text, None).await;
        statements.push((text, rows));
    }
    statements
}

/// Returns the rows of all pages.
async fn in_pages(engine: &Arc<Engine>, text: &str, page_size: Option<i32>) -> Vec<Vec<Option<Bytes>>> {
    let mut options = QueryParameters {
        page_size,
        ..QueryParameters::default()
    };
    let mut found = Vec::new();
    loop {
        let outcome = engine.query(&ClientState::default(), text, &options).await;
        let Response::Rows(rows) = outcome.expect(text).response else {
            panic!("{text} gives no rows");
        };
        if let Some(size) = page_size {
            let is_whole = rows.content.row_count() as i32 == size;
            assert!(is_whole || rows.paging_state.is_none(), "{text}");
        }
        found.extend(rows.content.iter());
        options.paging_state = rows.paging_state;
        if options.paging_state.is_none() {
            return found;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_parts_come_in_order_whatever_the_pages_are() {
    let statements = row_statements().await;
    for concurrency in [1, 4] {
        let joined = Joined::with(concurrency, Box::new(|answer| answer)).await;
        for (text, expected) in &statements {
            for page_size in [None, Some(1), Some(7), Some(50), Some(1000)] {
                let found = in_pages(&joined.engine, text, page_size).await;
                assert_eq!(found, *expected, "{text}, pages of {page_size:?}");
            }
            assert_eq!(joined.cluster.scans.load(Ordering::Relaxed), 0, "{text}");
        }
        assert!(joined.requested().0 >= 100);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_the_owner_has_not_sent_are_read_here() {
    let statements = row_statements().await;
    let of_another_table = |answer: Result<PartAnswer, RemoteError>| {
        answer.map(|mut answer| {
            if let PartRows::Page(page) = &mut answer.rows {
                page.last = page.last.as_ref().map(|_| Bytes::from_static(b"another"));
                page.is_cut = true;
            }
            answer
        })
    };
    let replies: [Reply; 3] = [
        Box::new(|_| Err(RemoteError::NotOwned)),
        Box::new(|_| Err(RemoteError::Unreachable("gone".to_owned()))),
        Box::new(of_another_table),
    ];
    for reply in replies {
        let joined = Joined::with(2, reply).await;
        for (text, expected) in &statements {
            let found = in_pages(&joined.engine, text, Some(20)).await;
            assert_eq!(found, *expected, "{text}");
        }
        assert!(joined.requested().1 >= 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_that_the_owner_has_not_read_are_read_here() {
    let unknown = || RemoteError::NoAnswer("a request of a newer version of Helenus".to_owned());
    let another = |answer: Result<PartAnswer, RemoteError>| {
        let met = answer.map(|answer| answer.met).unwrap_or_default();
        let rows = PartRows::Group(Default::default());
        Ok(PartAnswer { rows, met })
    };
    let replies: [(Reply, bool); 5] = [
        (Box::new(|_| Err(RemoteError::NotOwned)), false),
        (
            Box::new(|_| Err(RemoteError::Failed(unavailable(Consistency::One)))),
            false,
        ),
        (Box::new(another), false),
        (
            Box::new(|_| Err(RemoteError::Unreachable("gone".to_owned()))),
            true,
        ),
        (Box::new(move |_| Err(unknown())), true),
    ];
    for (reply, is_requested_once) in replies {
        let joined = Joined::with(1, reply).await;
        joined.check_results().await;
        let (parts, scans) = joined.requested();
        assert!(scans >= 3, "{scans}");
        match is_requested_once {
            true => assert_eq!(parts, 3),
            false => assert!(parts > 3, "{parts}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_lasts_is_the_clients() {
    let failure = CqlError::invalid("no such column");
    let reported = failure.clone();
    let reply: Reply = Box::new(move |_| Err(RemoteError::Failed(reported.clone())));
    let joined = Joined::with(2, reply).await;
    let reported = run(&joined.engine, "SELECT sum(w) FROM ks.t").await.unwrap_err();
    let (reported, _) = reported.split();
    assert_eq!(reported, failure);
    assert_eq!(joined.requested().1, 0);
}

#[test]
fn only_what_may_pass_is_tried_in_another_way() {
    let overloaded = CqlError::Overloaded("full".to_owned());
    let warned = overloaded.clone().warned(vec!["slow".to_owned()]);
    for passing in [overloaded, warned, unavailable(Consistency::One), not_in_parts()] {
        assert!(is_passing(&passing), "{passing:?}");
    }
    let invalid = CqlError::invalid("no such thing");
    let warned = invalid.clone().warned(vec!["slow".to_owned()]);
    for lasting in [invalid, warned, read_timeout(Consistency::One)] {
        assert!(!is_passing(&lasting), "{lasting:?}");
    }
}

#[tokio::test]
async fn a_read_that_is_repeated_counts_its_rows_once() {
    let joined = Joined::with(1, Box::new(|answer| answer)).await;
    // The key belongs to this node's half.
    let key = (0..200_i32).find(|key| helenus_row::murmur3_token(&key.to_be_bytes()) < 0);
    let text = format!("SELECT w FROM ks.t WHERE k = {}", key.expect("a key"));
    joined.cluster.lost_leases.store(3, Ordering::Relaxed);
    let before = crate::measurement::rows_read();
    assert_eq!(run(&joined.engine, &text).await.expect("a row").len(), 1);
    assert_eq!(joined.cluster.lost_leases.load(Ordering::Relaxed), 0);
    assert_eq!(crate::measurement::rows_read().0 - before.0, 1);
}
