//! A store that is only read from its bucket, beside the processes that own its tablets.
//!
//! Readers write nothing to the bucket, so the owners do not know of the readers, and never wait for them. The tablets are those of the
//! cluster document. The crates above read it, and pass the tablets to [`Store::follow_tablets`]. [`Store::refresh_tablets`] looks for
//! newer manifests. Reads see the files of the newest manifest found, and nothing of the owners' memory and logs.
//!
//! A tablet that was split or merged may be deleted before this process knows of its children. Reads of it then fail with
//! [`StoreError::NotOwned`], and [`Store::refreshed`] waits until the newest cluster document has been read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use helenus_row::TokenRange;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::Remote;
use crate::boxed;
use crate::database::followed::FollowedManifest;
use crate::database::tablet_db::TabletDb;
use crate::error::StoreError;
use crate::store::assemble::{TabletParts, assemble};
use crate::store::{Store, StoreKind};
use crate::tablet::{NodeLog, Tablet};
use crate::tree::limits::ReadLimits;

/// Maximum number of manifests that are read at the same time.
const READS: usize = 32;
/// Maximum time that a read waits for a refresh round.
const REFRESH_WAIT: Duration = Duration::from_secs(5);
/// Time, and number of refresh intervals, without a successful round after which the store reports trouble. The longer of the two counts.
const AGE_MAX: Duration = Duration::from_secs(30);
const AGE_MAX_INTERVALS: u32 = 3;
/// Nominal size of memtables. None is ever filled.
const MEMTABLE_BYTES: u64 = 1 << 20;

/// The state of the rounds in which a read-only store is refreshed.
pub(super) struct Follower {
    /// Notified when a read waits for the next round.
    due: Notify,
    begun: AtomicU64,
    ended: watch::Sender<u64>,
    /// Time at which the last successful round began. Initially the time at which the store was opened.
    refreshed: Mutex<Instant>,
    /// The reason for which the last round failed. `None` if it succeeded.
    failure: Mutex<Option<String>>,
    /// A log that takes no writes.
    log: Arc<NodeLog>,
}

impl Default for Follower {
    fn default() -> Follower {
        Follower {
            due: Notify::new(),
            begun: AtomicU64::new(0),
            ended: watch::Sender::new(0),
            refreshed: Mutex::new(Instant::now()),
            failure: Mutex::default(),
            log: NodeLog::new(),
        }
    }
}

/// A refresh round in progress.
pub struct RefreshRound {
    number: u64,
    began: Instant,
}

impl Store {
    /// Returns true for a store that is only read.
    pub fn is_read_only(&self) -> bool {
        self.follower().is_some() || matches!(self.kind, StoreKind::Pinned(_))
    }

    /// Refuses writes to a read-only store.
    pub(crate) fn check_writable(&self) -> Result<(), StoreError> {
        match self.is_read_only() {
            true => Err(StoreError::ReadOnly),
            false => Ok(()),
        }
    }

    fn follower(&self) -> Option<&Follower> {
        match &self.kind {
            StoreKind::Remote(remote) => remote.follower.as_ref(),
            StoreKind::Local(_) | StoreKind::Pinned(_) => None,
        }
    }

    fn require_follower(&self) -> Result<&Follower, StoreError> {
        self.follower()
            .ok_or_else(|| StoreError::InvalidConfig("the store is not read-only".into()))
    }

    /// Replaces the tablets of a read-only store. New ones are opened first.
    #[boxed]
    pub async fn follow_tablets(&self, wanted: &[(u32, TokenRange)]) -> Result<(), StoreError> {
        let (remote, follower) = (self.remote()?, self.require_follower()?);
        let known = self.tablets();
        let open = |(id, tokens): (u32, TokenRange)| {
            let same = |tablet: &&Arc<Tablet>| tablet.id() == id && tablet.token_range() == tokens;
            let found = known.iter().find(same).cloned();
            async move {
                match found {
                    Some(tablet) => Ok(tablet),
                    None => remote.follow(follower, id, tokens).await,
                }
            }
        };
        let opening = futures::stream::iter(wanted.iter().copied().map(open));
        let mut tablets: Vec<Arc<Tablet>> = opening.buffer_unordered(READS).try_collect().await?;
        tablets.sort_unstable_by_key(|tablet| tablet.token_range().first);
        let stays = |tablet: &&Arc<Tablet>| tablets.iter().any(|other| Arc::ptr_eq(other, tablet));
        let gone: Vec<Arc<Tablet>> = known.iter().filter(|tablet| !stays(tablet)).cloned().collect();
        self.tablets.store(Arc::new(tablets));
        for tablet in gone {
            // Reads that find files of a removed tablet deleted are to be retried on its children.
            tablet.limits.give_up();
            remote.closed.lock().add(&tablet.stats());
        }
        Ok(())
    }

    /// Looks for newer files of all tablets of a read-only store.
    ///
    /// # Errors
    /// The error of the first tablet whose manifest could not be read. The others are refreshed all the same.
    #[boxed]
    pub async fn refresh_tablets(&self) -> Result<(), StoreError> {
        self.require_follower()?;
        let tablets = Vec::clone(&self.tablets());
        let look = |tablet: Arc<Tablet>| async move { tablet.follow().await };
        let looks = futures::stream::iter(tablets).map(look);
        let results: Vec<Result<(), StoreError>> = looks.buffer_unordered(READS).collect().await;
        results.into_iter().collect()
    }

    /// Waits until a read waits for the next round. Never returns for a store that is not read-only.
    #[boxed]
    pub async fn refresh_requested(&self) {
        match self.follower() {
            Some(follower) => follower.due.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Begins a refresh round of a read-only store. Everything read from the bucket from now on belongs to it.
    pub fn begin_refresh(&self) -> Result<RefreshRound, StoreError> {
        Ok(RefreshRound {
            number: self.require_follower()?.begun.fetch_add(1, Ordering::AcqRel) + 1,
            began: Instant::now(),
        })
    }

    /// Ends a round. `failure` is the reason for which not everything could be read. `None` if all was read.
    pub fn end_refresh(&self, round: &RefreshRound, failure: Option<String>) {
        let Some(follower) = self.follower() else { return };
        if failure.is_none() {
            *follower.refreshed.lock() = round.began;
        }
        *follower.failure.lock() = failure;
        follower.ended.send_replace(round.number);
    }

    /// Waits, for a few seconds at most, until a round that begins from now on has refreshed a read-only store. Returns true if one has. A
    /// store that is written to is always up to date.
    pub async fn refreshed(&self) -> bool {
        let Some(follower) = self.follower() else {
            return true;
        };
        let next = follower.begun.load(Ordering::Acquire) + 1;
        let mut ended = follower.ended.subscribe();
        follower.due.notify_one();
        let round = ended.wait_for(|ended| *ended >= next);
        matches!(tokio::time::timeout(REFRESH_WAIT, round).await, Ok(Ok(_)))
    }

    /// Returns the time since the last successful round began. `None` for a store that is not read-only.
    pub fn refresh_age(&self) -> Option<Duration> {
        let refreshed = *self.follower()?.refreshed.lock();
        Some(refreshed.elapsed())
    }

    /// Returns the reason for which the last round failed. `None` if it succeeded, and for a store that is not read-only.
    pub(crate) fn refresh_failure(&self) -> Option<String> {
        self.follower()?.failure.lock().clone()
    }

    /// Returns the age from which a read-only store reports trouble.
    pub(crate) fn refresh_age_max(&self) -> Duration {
        let interval = self.remote().map_or(Duration::ZERO, |remote| {
            remote.databases.config.read_only_refresh_interval
        });
        AGE_MAX.max(interval * AGE_MAX_INTERVALS)
    }
}

impl Remote {
    /// Opens a tablet for reading.
    async fn follow(
        &self,
        follower: &Follower,
        id: u32,
        tokens: TokenRange,
    ) -> Result<Arc<Tablet>, StoreError> {
        let (databases, config) = (&self.databases, &self.databases.config);
        let followed = FollowedManifest::open(id, self.store.clone(), config.read_timeout).await?;
        Ok(assemble(
            databases,
            TabletParts {
                id,
                tokens,
                db: TabletDb::Followed(Arc::new(followed)),
                store: self.tablet_files(),
                compactions: Arc::default(),
                memtable_bytes: MEMTABLE_BYTES,
                log: follower.log.clone(),
                limits: ReadLimits::of_followed(config.read_timeout, tokens.first),
                origins: self.origins.clone(),
            },
        ))
    }
}
