//! A node's tablets: an implementation of `TabletHost`, with reads and writes of rows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use helenus_cluster::{
    AgentHandle, Epoch, HostError, HostId, LeaseTerm, Removal, TabletHost, TabletId, TabletLoad, TabletSpec,
    TabletState, TokenRange,
};
use tokio::sync::mpsc;

use crate::bucket::{Broken, Bucket, Database, Fenced, Key, LogId, LogRecord, LogSpan};
use crate::executor::Sim;
use crate::history::NOTHING;
use crate::history_recorder::Recorder;

/// Number of keys. Their tokens are evenly distributed on the ring.
pub const KEYS: u64 = 12;

/// Time for which a standby tablet is kept until the document shows that it is this node's.
const AHEAD_PATIENCE: Duration = Duration::from_secs(5);

pub fn token_of(key: Key) -> i64 {
    let step = u64::MAX / KEYS;
    (step * key + step / 2).wrapping_add(i64::MIN as u64) as i64
}

/// The answer of a node to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    Value(u64),
    Written,
    /// The operation had no effect.
    NotMine,
    /// The operation may have taken effect.
    Unknown,
}

struct Open {
    tokens: TokenRange,
    epoch: Epoch,
    fence: u64,
    rows: BTreeMap<Key, u64>,
    /// Number of the last record that is in `rows`.
    lsn: u64,
    log: LogId,
    logs_version: u64,
    serving: bool,
    /// Held by the write in progress.
    writing: Arc<tokio::sync::Mutex<()>>,
}

/// The log of this process.
#[derive(Debug, Clone, Copy)]
struct OwnLog {
    id: LogId,
    next: u64,
    lsn: u64,
}

/// Notice that a tablet was closed here, to be handed over to another node.
#[derive(Debug, Clone, Copy)]
pub struct Released {
    pub tablet: TabletId,
    pub epoch: Epoch,
    pub by: HostId,
    pub to: HostId,
}

#[derive(Clone)]
pub struct Host {
    sim: Sim,
    bucket: Bucket,
    broken: Broken,
    recorder: Recorder,
    here: HostId,
    open: Arc<Mutex<BTreeMap<TabletId, Open>>>,
    /// Databases that were opened before this node owns the tablets.
    ahead: Arc<Mutex<BTreeMap<TabletId, Database>>>,
    /// Held while a record is appended to the log.
    log: Arc<tokio::sync::Mutex<Option<OwnLog>>>,
    released: mpsc::UnboundedSender<Released>,
    /// Locks that are held while a tablet is being opened.
    opening: Arc<Mutex<BTreeMap<TabletId, Arc<tokio::sync::Mutex<()>>>>>,
    handle: Arc<OnceLock<AgentHandle>>,
}

impl Host {
    /// Creates the host. The receiver yields the tablets that were closed, whose next owners must be notified.
    pub fn new(
        sim: Sim,
        bucket: Bucket,
        broken: Broken,
        recorder: Recorder,
        here: HostId,
    ) -> (Self, mpsc::UnboundedReceiver<Released>) {
        let (released, releases) = mpsc::unbounded_channel();
        let host = Host {
            sim,
            bucket,
            broken,
            recorder,
            here,
            open: Arc::default(),
            ahead: Arc::default(),
            log: Arc::default(),
            released,
            opening: Arc::default(),
            handle: Arc::default(),
        };
        (host, releases)
    }

    pub fn set_handle(&self, handle: AgentHandle) {
        assert!(self.handle.set(handle).is_ok());
    }

    fn handle(&self) -> &AgentHandle {
        self.handle.get().unwrap()
    }

    fn open_tablets(&self) -> MutexGuard<'_, BTreeMap<TabletId, Open>> {
        self.open.lock().unwrap()
    }

    fn may_answer(&self, term: LeaseTerm) -> bool {
        self.handle().may_serve_since(term) || self.broken.lease
    }

    pub async fn read(&self, key: Key) -> Reply {
        let token = token_of(key);
        let term = self.handle().lease_term();
        let found = self
            .open_tablets()
            .values()
            .find(|tablet| tablet.serving && tablet.tokens.contains(token))
            .map(|tablet| (tablet.epoch, tablet.rows.get(&key).copied().unwrap_or(NOTHING)));
        let Some((epoch, value)) = found else {
            return Reply::NotMine;
        };
        self.sim.sleep(self.sim.millis(0..2)).await;
        if !self.may_answer(term) {
            return Reply::NotMine;
        }
        self.recorder.answered(key, epoch);
        Reply::Value(value)
    }

    pub async fn write(&self, key: Key, value: u64) -> Reply {
        let token = token_of(key);
        let found = self
            .open_tablets()
            .iter()
            .find(|(_, tablet)| tablet.serving && tablet.tokens.contains(token))
            .map(|(id, tablet)| (*id, tablet.fence, tablet.writing.clone()));
        let Some((id, fence, writing)) = found else {
            return Reply::NotMine;
        };
        let _guard = writing.lock().await;
        let mut own = self.log.lock().await;
        let log = match self.open_tablets().get(&id) {
            Some(tablet) if tablet.serving && tablet.fence == fence => tablet.log,
            _ => return Reply::NotMine,
        };
        let Some(appending) = own.filter(|own| own.id == log) else {
            return Reply::NotMine;
        };
        let record = LogRecord {
            lsn: appending.lsn + 1,
            tablet: id,
            row: (key, value),
        };
        let number = appending.next;
        let put = || {
            self.bucket
                .call(move |contents| contents.append(log, number, record))
        };
        loop {
            match put().await {
                Ok(Ok(())) => break,
                Ok(Err(Fenced)) => {
                    *own = None;
                    self.lose_all(log);
                    return Reply::Unknown;
                }
                Err(_) => self.sim.sleep(Duration::from_millis(20)).await,
            }
        }
        *own = Some(OwnLog {
            next: number + 1,
            lsn: record.lsn,
            ..appending
        });
        match self.open_tablets().get_mut(&id) {
            Some(tablet) if tablet.fence == fence => {
                tablet.rows.insert(key, value);
                tablet.lsn = record.lsn;
            }
            // The record is in the log, where the next owner finds it.
            _ => return Reply::Unknown,
        }
        // The lease is not checked, because the fence decides whether the record is in the log. A new owner reads it there before its first
        // answer.
        Reply::Written
    }

    /// Gives up all tablets of a log that another node has fenced.
    fn lose_all(&self, log: LogId) {
        let lost: Vec<TabletId> = {
            let mut open = self.open_tablets();
            let lost = open.iter().filter(|(_, tablet)| tablet.log == log);
            let lost: Vec<TabletId> = lost.map(|(id, _)| *id).collect();
            lost.iter().for_each(|id| drop(open.remove(id)));
            lost
        };
        lost.into_iter().for_each(|id| self.handle().tablet_lost(id));
    }

    /// Stops new reads and writes, and waits for those in progress. Returns the fence.
    async fn stop(&self, id: TabletId) -> Result<u64, HostError> {
        let (writing, fence) = match self.open_tablets().get_mut(&id) {
            Some(tablet) => {
                tablet.serving = false;
                (tablet.writing.clone(), tablet.fence)
            }
            None => return Err(HostError::Failed("it is not open".into())),
        };
        drop(writing.lock().await);
        Ok(fence)
    }

    fn resume(&self, id: TabletId) {
        if let Some(tablet) = self.open_tablets().get_mut(&id) {
            tablet.serving = true;
        }
    }

    /// Opens a tablet that another node has closed, as far as that is possible before this node owns it.
    pub async fn open_ahead(&self, released: Released) {
        let view = self.handle().view();
        let moves_here = view.tablets_of(released.by).any(|tablet| {
            tablet.id == released.tablet
                && tablet.epoch == released.epoch
                && tablet.state == TabletState::Moving { to: self.here }
        });
        let tablet = released.tablet;
        if !moves_here {
            return;
        }
        let Some(fence) = self.fence_ahead(tablet).await else {
            return;
        };
        self.sim.sleep(AHEAD_PATIENCE).await;
        let mut ahead = self.ahead.lock().unwrap();
        if ahead.get(&tablet).is_some_and(|opened| opened.fence == fence) {
            ahead.remove(&tablet);
        }
    }

    /// Opens the database as a standby and returns its fence. `None` if the tablet is open or being opened.
    pub async fn fence_ahead(&self, tablet: TabletId) -> Option<u64> {
        let lock = self.opening_of(tablet);
        let _opening = lock.try_lock().ok()?;
        if self.open_tablets().contains_key(&tablet) {
            return None;
        }
        let opened = self.open_database(tablet).await.ok()?;
        let fence = opened.fence;
        self.ahead.lock().unwrap().insert(tablet, opened);
        Some(fence)
    }

    fn opening_of(&self, tablet: TabletId) -> Arc<tokio::sync::Mutex<()>> {
        self.opening.lock().unwrap().entry(tablet).or_default().clone()
    }

    /// Returns the standby database. `None` if another node has opened it since.
    async fn take_ahead(&self, tablet: TabletId) -> Option<Database> {
        let opened = self.ahead.lock().unwrap().remove(&tablet)?;
        let fence = self
            .bucket
            .call(move |contents| contents.databases.get(&tablet).map(|database| database.fence))
            .await;
        let is_ours = fence.is_ok_and(|fence| fence == Some(opened.fence));
        (is_ours || self.broken.ahead).then_some(opened)
    }

    async fn open_database(&self, tablet: TabletId) -> Result<Database, HostError> {
        let opened = self.at_bucket(move |contents| contents.open(tablet)).await?;
        self.sim.sleep(self.sim.millis(0..100)).await;
        Ok(opened)
    }

    async fn at_bucket<T: Send + 'static>(
        &self,
        effect: impl FnOnce(&mut crate::bucket::Contents) -> T + Send + 'static,
    ) -> Result<T, HostError> {
        let called = self.bucket.call(effect).await;
        called.map_err(|error| HostError::Failed(error.to_string()))
    }

    /// Returns the log of this process. Begins one if there is none.
    async fn own_log(&self) -> Result<OwnLog, HostError> {
        let mut own = self.log.lock().await;
        if let Some(own) = *own {
            return Ok(own);
        }
        let id = self.at_bucket(|contents| contents.begin_log()).await?;
        Ok(*own.insert(OwnLog { id, next: 0, lsn: 0 }))
    }

    /// Returns the records that a tablet's files lack, from the logs that it names. Their owners add no more records from now on.
    async fn recover(
        &self,
        tablet: TabletId,
        database: &Database,
        own: OwnLog,
    ) -> Result<(Vec<LogRecord>, Vec<LogSpan>), HostError> {
        let (mut records, mut spans) = (Vec::new(), Vec::new());
        for span in &database.logs {
            let log = span.log;
            let last = match span.last {
                Some(last) => Some(last),
                None if log == own.id => own.next.checked_sub(1),
                None => self.at_bucket(move |contents| contents.fence_log(log)).await?,
            };
            let reading = self.at_bucket(move |contents| contents.read_log(log, last, tablet));
            records.extend(reading.await?);
            spans.extend(last.map(|last| LogSpan {
                log,
                last: Some(last),
            }));
        }
        records.retain(|record| record.lsn > database.flushed);
        records.sort_by_key(|record| record.lsn);
        Ok((records, spans))
    }

    /// Notifies the tablet's next owner that the tablet is closed here.
    fn release(&self, tablet: TabletId) {
        let view = self.handle().view();
        let moving = view.tablets_of(self.here).find(|info| info.id == tablet);
        if let Some(info) = moving
            && let TabletState::Moving { to } = info.state
        {
            // The receiver exists as long as the node runs.
            let _ = self.released.send(Released {
                tablet,
                epoch: info.epoch,
                by: self.here,
                to,
            });
        }
    }

    async fn make(&self, parents: &[(TabletId, u64)], children: &[TabletSpec]) -> Result<(), HostError> {
        for child in children.iter().copied() {
            for parent in parents.iter().copied() {
                self.sim.sleep(self.sim.millis(0..20)).await;
                self.bucket
                    .call(move |contents| contents.clone_part(parent, child.id, child.tokens, token_of))
                    .await
                    .map_err(|error| HostError::Failed(error.to_string()))?
                    .map_err(|Fenced| HostError::Failed("fenced".into()))?;
            }
        }
        match self.sim.chance(10) {
            true => Err(HostError::Failed("an injected failure".into())),
            false => Ok(()),
        }
    }

    async fn flush(&self, tablet: TabletId, fence: u64) -> Result<Result<(), Fenced>, HostError> {
        let found = self
            .open_tablets()
            .get(&tablet)
            .map(|open| (open.rows.clone(), open.lsn));
        let Some((rows, lsn)) = found else {
            return Ok(Err(Fenced));
        };
        self.at_bucket(move |contents| contents.flush(tablet, fence, rows, lsn))
            .await
    }

    async fn stop_all(&self, ids: &[TabletId]) -> Result<Vec<(TabletId, u64)>, HostError> {
        let mut fences = Vec::new();
        for id in ids {
            let fence = self.stop(*id).await?;
            let flushed = self.flush(*id, fence).await?;
            flushed.map_err(|Fenced| HostError::Failed("fenced".into()))?;
            fences.push((*id, fence));
        }
        Ok(fences)
    }

    async fn reshape(&self, parents: &[TabletId], children: &[TabletSpec]) -> Result<(), HostError> {
        let result = match self.stop_all(parents).await {
            Ok(fences) => self.make(&fences, children).await,
            Err(error) => Err(error),
        };
        for parent in parents {
            match result {
                Ok(()) => drop(self.open_tablets().remove(parent)),
                // The store did not answer when the parent was opened again.
                Err(_) if self.sim.chance(30) => drop(self.open_tablets().remove(parent)),
                Err(_) => self.resume(*parent),
            }
        }
        result
    }
}

#[async_trait]
impl TabletHost for Host {
    async fn open(&self, tablet: TabletId, tokens: TokenRange, epoch: Epoch) -> Result<(), HostError> {
        let lock = self.opening_of(tablet);
        let _opening = lock.lock().await;
        let opened = match self.take_ahead(tablet).await {
            Some(opened) => opened,
            None => self.open_database(tablet).await?,
        };
        let own = self.own_log().await?;
        let (records, mut spans) = self.recover(tablet, &opened, own).await?;
        let lsn = records.last().map_or(opened.flushed, |record| record.lsn);
        match self.log.lock().await.as_mut().filter(|log| log.id == own.id) {
            Some(log) => log.lsn = log.lsn.max(lsn),
            None => return Err(HostError::Failed("the log is fenced".into())),
        }
        spans.retain(|span| span.log != own.id);
        spans.push(LogSpan {
            log: own.id,
            last: None,
        });
        let version = opened.logs_version;
        let naming = self.at_bucket(move |contents| contents.name_logs(tablet, version, spans));
        let named = naming.await?;
        let logs_version = named.map_err(|Fenced| HostError::Failed("another node opens it".into()))?;
        let mut rows = opened.rows;
        rows.extend(records.iter().map(|record| record.row));
        let open = Open {
            tokens,
            epoch,
            fence: opened.fence,
            rows,
            lsn,
            log: own.id,
            logs_version,
            serving: true,
            writing: Arc::default(),
        };
        self.open_tablets().insert(tablet, open);
        Ok(())
    }

    async fn close(&self, tablet: TabletId) -> Result<(), HostError> {
        let Ok(fence) = self.stop(tablet).await else {
            return Ok(());
        };
        let flushed = self.flush(tablet, fence).await;
        let version = self
            .open_tablets()
            .get(&tablet)
            .filter(|open| open.fence == fence)
            .map(|open| open.logs_version);
        // If this fails, the next owner fences the log of this node.
        if let (Ok(Ok(())), Some(version)) = (flushed, version) {
            let naming = self.at_bucket(move |contents| contents.name_logs(tablet, version, Vec::new()));
            let _ = naming.await?;
        }
        self.open_tablets().remove(&tablet);
        self.release(tablet);
        Ok(())
    }

    async fn abandon(&self, tablet: TabletId) {
        self.open_tablets().remove(&tablet);
    }

    async fn split(&self, parent: TabletId, children: [TabletSpec; 2]) -> Result<(), HostError> {
        self.reshape(&[parent], &children).await
    }

    async fn merge(&self, parents: &[TabletId], child: TabletSpec) -> Result<(), HostError> {
        self.reshape(parents, &[child]).await
    }

    fn is_open(&self, tablet: TabletId) -> bool {
        self.open_tablets().contains_key(&tablet)
    }

    async fn stored(&self) -> Result<Vec<TabletId>, HostError> {
        let listing = self
            .bucket
            .call(|contents| contents.databases.keys().copied().collect());
        listing
            .await
            .map_err(|error| HostError::Failed(error.to_string()))
    }

    async fn remove(&self, tablet: TabletId) -> Result<Removal, HostError> {
        if self.sim.chance(30) {
            return Ok(Removal::StillNeeded);
        }
        let removing = self
            .bucket
            .call(move |contents| drop(contents.databases.remove(&tablet)));
        removing
            .await
            .map_err(|error| HostError::Failed(error.to_string()))?;
        Ok(Removal::Gone)
    }

    fn load(&self) -> Vec<(TabletId, TabletLoad)> {
        let load = |tablet: &Open| TabletLoad {
            bytes: tablet.rows.len() as u64,
            ops_per_s: 0,
        };
        let open = self.open_tablets();
        open.iter().map(|(id, tablet)| (*id, load(tablet))).collect()
    }
}
