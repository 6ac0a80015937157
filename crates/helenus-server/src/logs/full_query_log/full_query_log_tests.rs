use std::path::Path;

use bytes::BytesMut;
use helenus_cql::frame::{ProtocolVersion, QueryParameters};
use helenus_cql::query_log::{SEGMENT_SUFFIX, Statements, take_header, take_record};
use tokio::time::timeout;

use super::*;

/// Maximum time of operations that must end.
const LIMIT: Duration = Duration::from_secs(30);

fn entry(text: &str) -> Entry {
    Entry {
        start_ms: 1,
        protocol_version: ProtocolVersion::V5,
        generated_timestamp_us: None,
        generated_now_s: 1,
        keyspace: None,
        parameters: QueryParameters::default(),
        statements: Statements::Single(text.into()),
    }
}

fn texts(folder: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|found| found.unwrap().path())
        .collect();
    paths.sort();
    for path in paths
        .iter()
        .filter(|path| path.extension().is_some_and(|is| is == SEGMENT_SUFFIX))
    {
        let mut bytes = BytesMut::from(&std::fs::read(path).unwrap()[..]);
        assert!(take_header(&mut bytes).unwrap());
        while let Some(payload) = take_record(&mut bytes).unwrap() {
            let Statements::Single(text) = Entry::decode(payload).unwrap().statements else {
                panic!("a batch")
            };
            texts.push(text.to_string());
        }
    }
    texts
}

fn patch(folder: &Path, options: &str) -> QueryLogPatch {
    QueryLogPatch::parse(&format!("path={}\n{options}", folder.display())).unwrap()
}

#[tokio::test]
async fn entries_are_written_in_their_order_while_the_log_is_on() {
    let folder = tempfile::tempdir().unwrap();
    let log = FullQueryLog::default();
    assert!(log.running().is_none());
    log.enable(&patch(folder.path(), "")).unwrap();
    assert!(
        log.enable(&patch(folder.path(), ""))
            .unwrap_err()
            .contains("on already")
    );
    let running = log.running().unwrap();
    for number in 0..100 {
        running.record(&entry(&number.to_string())).await;
    }
    log.disable();
    assert!(log.running().is_none());
    running.record(&entry("late")).await;
    let expected: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    assert_eq!(texts(folder.path()), expected);
    log.enable(&patch(folder.path(), "")).unwrap();
    log.running().unwrap().record(&entry("again")).await;
    log.disable();
    assert_eq!(texts(folder.path()).len(), 101);
    log.reset().unwrap();
    assert!(texts(folder.path()).is_empty());
}

/// Returns a log whose queue has room for one entry, and which has no writer.
fn full(block: bool) -> (RunningQueryLog, mpsc::Receiver<Message>) {
    let (messages, received) = mpsc::channel();
    let running = RunningQueryLog {
        room: Arc::new(Semaphore::new(10)),
        options: QueryLogOptions {
            queue_bytes_max: 10,
            block,
            ..QueryLogOptions::default()
        },
        messages,
        dropped: Dropped::new(),
        timestamps: TimestampSource::default(),
        stopped: Mutex::new(mpsc::channel().1),
    };
    (running, received)
}

#[tokio::test]
async fn a_full_queue_makes_requests_wait_or_drops_their_entries() {
    let brief = Duration::from_millis(50);
    let (running, received) = full(false);
    running.record(&entry("kept")).await;
    timeout(LIMIT, running.record(&entry("dropped"))).await.unwrap();
    assert_eq!(received.try_iter().count(), 1);

    let (running, received) = full(true);
    running.record(&entry("first")).await;
    let second = entry("second");
    let mut waiting = Box::pin(running.record(&second));
    assert!(timeout(brief, &mut waiting).await.is_err());
    drop(received.recv().unwrap());
    timeout(LIMIT, waiting).await.unwrap();
    assert_eq!(received.try_iter().count(), 1);

    let (running, received) = full(true);
    running.record(&entry("first")).await;
    let waiting = running.record(&second);
    running.room.close();
    timeout(LIMIT, waiting).await.unwrap();
    assert_eq!(received.try_iter().count(), 1);
}

#[tokio::test]
async fn requests_go_on_when_the_folder_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let log = FullQueryLog::default();
    let inside = folder.path().join("log");
    log.enable(&patch(
        &inside,
        "max_log_size=400\nblock=true\nmax_queue_weight=1",
    ))
    .unwrap();
    std::fs::remove_dir_all(&inside).unwrap();
    let running = log.running().unwrap();
    let entry = entry("SELECT 1");
    for _ in 0..20 {
        let recorded = running.record(&entry);
        timeout(LIMIT, recorded).await.unwrap();
    }
    log.disable();
}

#[test]
fn options_are_checked() {
    let refused = |text: &str| QueryLogPatch::parse(text).unwrap_err();
    assert!(refused("roll_cycle=YEARLY").contains("not MINUTELY, HOURLY or DAILY"));
    assert_eq!(
        refused("block=yes"),
        "Invalid [yes]. Blocking only accepts 'true' or 'false'."
    );
    assert!(refused("max_queue_weight=0").contains("from 1"));
    assert!(refused("max_log_size=-5").contains("from 1"));
    assert!(refused("size=1").contains("no such option"));
    let log = FullQueryLog::default();
    let archive = QueryLogPatch::parse("archive_command=/bin/true %path").unwrap();
    assert!(
        log.enable(&archive)
            .unwrap_err()
            .contains("allow_nodetool_archive_command")
    );
    assert!(
        log.enable(&QueryLogPatch::default())
            .unwrap_err()
            .contains("log_dir is not set")
    );
    let unwritable = QueryLogPatch::parse("path=/proc/none/log").unwrap();
    assert!(
        log.enable(&unwritable)
            .unwrap_err()
            .starts_with("log_dir = \"/proc/none/log\"")
    );
    assert!(!log.state().0);
}

#[tokio::test]
async fn complete_segments_are_archived() {
    let folder = tempfile::tempdir().unwrap();
    let archived = folder.path().join("archived");
    std::fs::create_dir(&archived).unwrap();
    let log = FullQueryLog::new(QueryLogOptions {
        folder: folder.path().join("log"),
        archive_command: format!("mv %path {}", archived.display()),
        ..QueryLogOptions::default()
    });
    log.enable(&QueryLogPatch::default()).unwrap();
    log.running().unwrap().record(&entry("SELECT 1")).await;
    log.disable();
    let moved = async {
        while texts(&archived).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, moved).await.unwrap();
    assert_eq!(texts(&archived), ["SELECT 1"]);
}
