//! The object store: documents and tablets' databases, over a network that delays and loses calls and does not keep their order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use helenus_cluster::{Document, DocumentError, Documents, Expect, Listed, TabletId, TokenRange, Version};
use tokio::sync::oneshot;

use crate::executor::{Sim, WORLD};

pub type Key = u64;

/// The checks that are broken on purpose, to show that the simulation finds that.
#[derive(Debug, Clone, Copy, Default)]
pub struct Broken {
    /// Logs are read without a fence, so that their owners can still append to them.
    pub fencing: bool,
    /// Nodes answer without checking their lease.
    pub lease: bool,
    /// Nodes take over standby tablets without checking whether another node has opened them since.
    pub ahead: bool,
}

/// The current behaviour of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreHealth {
    Healthy,
    Slow,
    /// Calls fail at times, with or without effect.
    Flaky,
    /// All calls fail, and some take effect all the same.
    Failing,
    /// No call reaches the store.
    Away,
}

/// The id of the log of a process.
pub type LogId = u64;

/// The objects of a log that may have records of a tablet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSpan {
    pub log: LogId,
    /// The last object. `None` while the owner of the log may append more.
    pub last: Option<u64>,
}

/// A record: a number that orders the writes to a tablet, and one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRecord {
    pub lsn: u64,
    pub tablet: TabletId,
    pub row: (Key, u64),
}

/// The log of one process: an object for each record, and the number at which the log is fenced.
#[derive(Debug, Clone, Default)]
struct NodeLog {
    records: BTreeMap<u64, LogRecord>,
    fence: Option<u64>,
}

impl NodeLog {
    fn end(&self) -> u64 {
        self.records.keys().last().map_or(0, |last| last + 1)
    }
}

/// One tablet's database, and the document that names the logs with the records that it lacks.
#[derive(Debug, Clone, Default)]
pub struct Database {
    /// Number of openings. Only the latest opener may write files.
    pub fence: u64,
    pub rows: BTreeMap<Key, u64>,
    /// Number of the last record that is in files.
    pub flushed: u64,
    pub logs: Vec<LogSpan>,
    /// Number of changes of `logs`.
    pub logs_version: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fenced;

#[derive(Default)]
pub struct Contents {
    documents: BTreeMap<String, (Version, u64, Vec<u8>)>,
    writes: u64,
    pub databases: BTreeMap<TabletId, Database>,
    logs: BTreeMap<LogId, NodeLog>,
    broken: Broken,
}

impl Contents {
    fn put(&mut self, name: &str, content: Vec<u8>, expect: Expect) -> Result<Version, DocumentError> {
        let current = self.documents.get(name).map(|(version, ..)| *version);
        let version = match (expect, current) {
            (Expect::Absent, None) => 1,
            (Expect::Version(expected), Some(current)) if expected == current => current + 1,
            _ => return Err(DocumentError::Conflict),
        };
        self.writes += 1;
        self.documents
            .insert(name.into(), (version, self.writes, content));
        Ok(version)
    }

    fn list(&self, prefix: &str) -> Vec<Listed> {
        let named = self.documents.iter().filter(|(name, _)| name.starts_with(prefix));
        named
            .map(|(name, (_, write, _))| Listed {
                name: name.clone(),
                stamp: write.to_string(),
            })
            .collect()
    }

    fn stamp(&self, name: &str) -> Option<Listed> {
        let (_, write, _) = self.documents.get(name)?;
        Some(Listed {
            name: name.to_owned(),
            stamp: write.to_string(),
        })
    }

    /// Opens the database. Earlier openers can no longer write its files.
    pub fn open(&mut self, tablet: TabletId) -> Database {
        let database = self.databases.entry(tablet).or_default();
        database.fence += 1;
        database.clone()
    }

    fn check(&mut self, tablet: TabletId, fence: u64) -> Result<&mut Database, Fenced> {
        match self.databases.get_mut(&tablet) {
            Some(database) if database.fence == fence => Ok(database),
            _ => Err(Fenced),
        }
    }

    /// Begins the log of a process.
    pub fn begin_log(&mut self) -> LogId {
        let id = self.logs.len() as LogId + 1;
        self.logs.insert(id, NodeLog::default());
        id
    }

    /// Writes one object of a log, if there is none with this number.
    pub fn append(&mut self, log: LogId, number: u64, record: LogRecord) -> Result<(), Fenced> {
        let log = self.logs.entry(log).or_default();
        if log.fence == Some(number) {
            return Err(Fenced);
        }
        match log.records.get(&number) {
            Some(other) if *other != record => Err(Fenced),
            _ => {
                log.records.insert(number, record);
                Ok(())
            }
        }
    }

    /// Fences a log, so that nothing more is appended to it. Returns its last number. `None` if it has no records.
    pub fn fence_log(&mut self, log: LogId) -> Option<u64> {
        let fencing = !self.broken.fencing;
        let log = self.logs.entry(log).or_default();
        let end = log.fence.unwrap_or(log.end());
        if fencing {
            log.fence = Some(end);
        }
        end.checked_sub(1)
    }

    /// Returns the records of a tablet in a log up to this number.
    pub fn read_log(&self, log: LogId, last: Option<u64>, tablet: TabletId) -> Vec<LogRecord> {
        let (Some(log), Some(last)) = (self.logs.get(&log), last) else {
            return Vec::new();
        };
        let records = log.records.range(..=last).map(|(_, record)| *record);
        records.filter(|record| record.tablet == tablet).collect()
    }

    /// Replaces the logs that a tablet names, if no other node has replaced them since.
    pub fn name_logs(&mut self, tablet: TabletId, version: u64, logs: Vec<LogSpan>) -> Result<u64, Fenced> {
        match self.databases.get_mut(&tablet) {
            // A node with the broken check does not find out that other nodes have opened the tablet, nor that they have named logs.
            Some(database) if database.logs_version == version || self.broken.ahead => {
                database.logs = logs;
                database.logs_version += 1;
                Ok(database.logs_version)
            }
            _ => Err(Fenced),
        }
    }

    /// Writes rows to files. They include all records up to `lsn`.
    pub fn flush(
        &mut self,
        tablet: TabletId,
        fence: u64,
        rows: BTreeMap<Key, u64>,
        lsn: u64,
    ) -> Result<(), Fenced> {
        let database = self.check(tablet, fence)?;
        database.rows = rows;
        database.flushed = lsn;
        Ok(())
    }

    /// Adds the rows of `parent` in the range to `child`'s database.
    pub fn clone_part(
        &mut self,
        parent: (TabletId, u64),
        child: TabletId,
        tokens: TokenRange,
        token_of: fn(Key) -> i64,
    ) -> Result<(), Fenced> {
        let mut rows = self.check(parent.0, parent.1)?.rows.clone();
        rows.retain(|key, _| tokens.contains(token_of(*key)));
        self.databases.entry(child).or_default().rows.extend(rows);
        Ok(())
    }
}

struct Shared {
    contents: Mutex<Contents>,
    mood: Mutex<StoreHealth>,
    cut_off: Mutex<BTreeMap<usize, bool>>,
}

/// The store as one node reaches it.
#[derive(Clone)]
pub struct Bucket {
    sim: Sim,
    shared: Arc<Shared>,
    node: usize,
}

/// The outcome of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallOutcome {
    Answered,
    /// The call never arrives.
    Lost,
    /// The call takes effect, but the answer is an error.
    AnswerLost,
    /// The answer is an error, and the call takes effect some time afterwards.
    Late,
}

impl Bucket {
    pub fn new(sim: Sim, broken: Broken) -> Self {
        let contents = Contents {
            broken,
            ..Contents::default()
        };
        let shared = Shared {
            contents: Mutex::new(contents),
            mood: Mutex::new(StoreHealth::Healthy),
            cut_off: Mutex::default(),
        };
        Bucket {
            sim,
            shared: Arc::new(shared),
            node: usize::MAX,
        }
    }

    pub fn of_node(&self, node: usize) -> Self {
        Bucket { node, ..self.clone() }
    }

    pub fn set_mood(&self, mood: StoreHealth) {
        *self.shared.mood.lock().unwrap() = mood;
    }

    pub fn cut_off(&self, node: usize, cut_off: bool) {
        self.shared.cut_off.lock().unwrap().insert(node, cut_off);
    }

    pub fn document_names(&self) -> Vec<String> {
        let contents = self.shared.contents.lock().unwrap();
        contents.documents.keys().cloned().collect()
    }

    pub fn databases(&self) -> Vec<TabletId> {
        let contents = self.shared.contents.lock().unwrap();
        contents.databases.keys().copied().collect()
    }

    /// Creates a database, as a node with outdated knowledge does.
    pub fn make_database(&self, tablet: TabletId) {
        self.shared.contents.lock().unwrap().open(tablet);
    }

    fn fate(&self) -> CallOutcome {
        let cut_off = self.shared.cut_off.lock().unwrap().get(&self.node) == Some(&true);
        let mood = *self.shared.mood.lock().unwrap();
        let failures_percent = match mood {
            _ if cut_off || mood == StoreHealth::Away => return CallOutcome::Lost,
            StoreHealth::Healthy => return CallOutcome::Answered,
            StoreHealth::Slow => 2,
            StoreHealth::Flaky => 30,
            StoreHealth::Failing | StoreHealth::Away => 100,
        };
        match self.sim.chance(failures_percent) {
            false => CallOutcome::Answered,
            true => *self
                .sim
                .pick(&[
                    CallOutcome::Lost,
                    CallOutcome::Lost,
                    CallOutcome::AnswerLost,
                    CallOutcome::Late,
                ])
                .unwrap(),
        }
    }

    fn delay(&self) -> Duration {
        match *self.shared.mood.lock().unwrap() {
            StoreHealth::Slow => self.sim.millis(5..900),
            StoreHealth::Flaky if self.sim.chance(10) => self.sim.millis(20..400),
            _ => self.sim.millis(1..6),
        }
    }

    /// Runs an effect at the store, even if the caller is gone in the meantime.
    pub async fn call<T: Send + 'static>(
        &self,
        effect: impl FnOnce(&mut Contents) -> T + Send + 'static,
    ) -> Result<T, DocumentError> {
        let fate = self.fate();
        let (there, back) = (self.delay(), self.delay());
        let (reply, answer) = oneshot::channel();
        let late = self.sim.millis(100..6000);
        let this = self.clone();
        self.sim.spawn(WORLD, async move {
            this.sim.sleep(there).await;
            let contents = &this.shared.contents;
            match fate {
                CallOutcome::Answered => {
                    let result = effect(&mut contents.lock().unwrap());
                    this.sim.sleep(back).await;
                    // Sending fails if the caller is gone, which is no error.
                    let _ = reply.send(result);
                }
                CallOutcome::Lost => {}
                CallOutcome::AnswerLost => drop(effect(&mut contents.lock().unwrap())),
                CallOutcome::Late => {
                    drop(reply);
                    this.sim.sleep(late).await;
                    effect(&mut contents.lock().unwrap());
                }
            }
        });
        answer.await.map_err(|_| DocumentError::Unavailable("503".into()))
    }
}

#[async_trait]
impl Documents for Bucket {
    async fn get(&self, name: &str) -> Result<Option<Document>, DocumentError> {
        let name = name.to_string();
        self.call(move |contents| {
            let found = contents.documents.get(&name);
            found.map(|(version, _, content)| Document {
                version: *version,
                content: content.clone(),
            })
        })
        .await
    }

    async fn put(&self, name: &str, content: &[u8], expect: Expect) -> Result<Version, DocumentError> {
        let (name, content) = (name.to_string(), content.to_vec());
        self.call(move |contents| contents.put(&name, content, expect))
            .await?
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>, DocumentError> {
        let prefix = prefix.to_string();
        self.call(move |contents| contents.list(&prefix)).await
    }

    async fn stamps(&self, names: &[String]) -> Result<Vec<Listed>, DocumentError> {
        let requested = names.iter().map(|name| {
            let name = name.clone();
            self.call(move |contents| contents.stamp(&name))
        });
        let found = futures::future::try_join_all(requested).await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn delete(&self, name: &str) -> Result<(), DocumentError> {
        let name = name.to_string();
        self.call(move |contents| drop(contents.documents.remove(&name)))
            .await
    }
}
