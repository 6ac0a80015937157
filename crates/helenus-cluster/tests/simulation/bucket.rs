//! The object store: documents and tablets' databases, reached over a network that delays, loses and repeats nothing in order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use helenus_cluster::{Document, DocumentError, Documents, Expect, Listed, TabletId, TokenRange, Version};
use tokio::sync::oneshot;

use crate::executor::{Sim, WORLD};

pub type Key = u64;

/// What is broken on purpose, to see that it is found.
#[derive(Debug, Clone, Copy, Default)]
pub struct Broken {
    /// Databases take writes from whoever opened them once.
    pub fencing: bool,
    /// Nodes answer without asking for their lease.
    pub lease: bool,
    /// Nodes answer if they have a lease, be it of a later stay than what they read.
    pub term: bool,
    /// Nodes take over what they opened ahead without asking whether anyone has opened it since.
    pub ahead: bool,
}

/// How the store behaves just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    Healthy,
    Slow,
    /// Some calls fail, with or without effect.
    Flaky,
    /// All calls fail, and some have an effect all the same.
    Failing,
    /// Nothing gets through.
    Away,
}

/// One tablet's database.
#[derive(Debug, Clone, Default)]
pub struct Database {
    /// Counts openings: only the latest opener may write.
    pub fence: u64,
    base: BTreeMap<Key, u64>,
    wal: BTreeMap<u64, (Key, u64)>,
    wal_end: u64,
}

impl Database {
    pub fn rows(&self) -> BTreeMap<Key, u64> {
        let mut rows = self.base.clone();
        rows.extend(self.wal.values().copied());
        rows
    }

    pub fn next_wal(&self) -> u64 {
        self.wal.keys().last().map_or(self.wal_end, |last| last + 1)
    }

    fn flush(&mut self) {
        self.base = self.rows();
        self.wal_end = self.next_wal();
        self.wal.clear();
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fenced;

#[derive(Default)]
pub struct Contents {
    documents: BTreeMap<String, (Version, u64, Vec<u8>)>,
    writes: u64,
    pub databases: BTreeMap<TabletId, Database>,
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

    /// The opener's fence; whoever opened the database before can't write any more.
    pub fn open(&mut self, tablet: TabletId) -> u64 {
        let database = self.databases.entry(tablet).or_default();
        database.fence += 1;
        database.fence
    }

    fn check(&mut self, tablet: TabletId, fence: u64) -> Result<&mut Database, Fenced> {
        let fencing = !self.broken.fencing;
        match self.databases.get_mut(&tablet) {
            Some(database) if database.fence == fence || !fencing => Ok(database),
            _ => Err(Fenced),
        }
    }

    /// Puts one object of the log. With fencing, nobody overwrites another one's.
    pub fn write(&mut self, tablet: TabletId, fence: u64, id: u64, row: (Key, u64)) -> Result<(), Fenced> {
        let fencing = !self.broken.fencing;
        let database = self.check(tablet, fence)?;
        match database.wal.get(&id) {
            // It was flushed long ago: replay does not look at it.
            _ if id < database.wal_end => Ok(()),
            Some(other) if fencing && *other != row => Err(Fenced),
            _ => {
                database.wal.insert(id, row);
                Ok(())
            }
        }
    }

    pub fn flush(&mut self, tablet: TabletId, fence: u64) -> Result<(), Fenced> {
        self.check(tablet, fence).map(Database::flush)
    }

    /// Adds what `parent` holds of the range to `child`'s database.
    pub fn clone_part(
        &mut self,
        parent: (TabletId, u64),
        child: TabletId,
        tokens: TokenRange,
        token_of: fn(Key) -> i64,
    ) -> Result<(), Fenced> {
        let mut rows = self.check(parent.0, parent.1)?.rows();
        rows.retain(|key, _| tokens.contains(token_of(*key)));
        self.databases.entry(child).or_default().base.extend(rows);
        Ok(())
    }
}

struct Shared {
    contents: Mutex<Contents>,
    mood: Mutex<Mood>,
    cut_off: Mutex<BTreeMap<usize, bool>>,
}

/// The store as one node reaches it.
#[derive(Clone)]
pub struct Bucket {
    sim: Sim,
    shared: Arc<Shared>,
    node: usize,
}

/// What becomes of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    /// It never arrives.
    Lost,
    /// It takes effect; the answer is an error.
    AnswerLost,
    /// The answer is an error; it takes effect some time afterwards.
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
            mood: Mutex::new(Mood::Healthy),
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

    pub fn set_mood(&self, mood: Mood) {
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

    /// Someone who does not know better makes a database.
    pub fn make_database(&self, tablet: TabletId) {
        self.shared.contents.lock().unwrap().open(tablet);
    }

    fn fate(&self) -> Fate {
        let cut_off = self.shared.cut_off.lock().unwrap().get(&self.node) == Some(&true);
        let mood = *self.shared.mood.lock().unwrap();
        let failures_percent = match mood {
            _ if cut_off || mood == Mood::Away => return Fate::Lost,
            Mood::Healthy => return Fate::Answered,
            Mood::Slow => 2,
            Mood::Flaky => 30,
            Mood::Failing | Mood::Away => 100,
        };
        match self.sim.chance(failures_percent) {
            false => Fate::Answered,
            true => *self
                .sim
                .pick(&[Fate::Lost, Fate::Lost, Fate::AnswerLost, Fate::Late])
                .unwrap(),
        }
    }

    fn delay(&self) -> Duration {
        match *self.shared.mood.lock().unwrap() {
            Mood::Slow => self.sim.millis(5..900),
            Mood::Flaky if self.sim.chance(10) => self.sim.millis(20..400),
            _ => self.sim.millis(1..6),
        }
    }

    /// Does something at the store, whatever becomes of the caller in the meantime.
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
                Fate::Answered => {
                    let result = effect(&mut contents.lock().unwrap());
                    this.sim.sleep(back).await;
                    // A caller that is gone hears nothing.
                    let _ = reply.send(result);
                }
                Fate::Lost => {}
                Fate::AnswerLost => drop(effect(&mut contents.lock().unwrap())),
                Fate::Late => {
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

    async fn delete(&self, name: &str) -> Result<(), DocumentError> {
        let name = name.to_string();
        self.call(move |contents| drop(contents.documents.remove(&name)))
            .await
    }
}
