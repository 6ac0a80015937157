//! A store that is read from its bucket alone, beside the processes that own its tablets.
//!
//! Nothing is written to the bucket, so the owners know nothing of who reads, and wait for nobody. The tablets are those of the cluster
//! document, which the crates above read; they hand it down with [`Store::follow_tablets`]. [`Store::refresh_tablets`] looks for newer manifests. Reads
//! see the files of the newest manifest that was found, and nothing of the owners' memory and logs.
//!
//! A tablet that was split or merged may be deleted before this process knows of its heirs. Reads of it then fail with
//! [`StoreError::NotOwned`], and [`Store::refreshed`] waits until the newest cluster document has been read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
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
use crate::token_range::TokenRange;
use crate::tree::limits::ReadLimits;

/// Manifests that are read at a time.
const READS: usize = 32;
/// How long a read waits for a round of refreshing.
const REFRESH_WAIT: Duration = Duration::from_secs(5);
/// A store is in trouble that was not brought up to date for so long, and for so many intervals.
const AGE_MAX: Duration = Duration::from_secs(30);
const AGE_MAX_INTERVALS: u32 = 3;
/// No memtable is ever filled.
const MEMTABLE_BYTES: u64 = 1 << 20;

/// The rounds in which a store that is only read is brought up to date.
pub(super) struct Follower {
    /// A read waits for the next round.
    due: Notify,
    begun: AtomicU64,
    ended: watch::Sender<u64>,
    /// When the last round that succeeded began; at first when the store was opened.
    refreshed: Mutex<Instant>,
    /// Why the last round has failed. `None` if it succeeded.
    failure: Mutex<Option<String>>,
    /// Takes no writes.
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

/// A round under way.
pub struct RefreshRound {
    number: u64,
    began: Instant,
}

impl Store {
    /// Returns true of a store that is only read.
    pub fn is_read_only(&self) -> bool {
        self.follower().is_some() || matches!(self.kind, StoreKind::Pinned(_))
    }

    /// Refuses what would write to a store that is only read.
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

    /// Reads these tablets from now on, and no others. Those that are new are opened first. For a store that is only read.
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
            // Reads that find its files deleted are to be tried again.
            tablet.limits.give_up();
            remote.closed.lock().add(&tablet.stats());
        }
        Ok(())
    }

    /// Looks for newer files of all tablets. For a store that is only read.
    ///
    /// # Errors
    /// Of the first tablet whose manifest could not be read; the others are up to date all the same.
    #[boxed]
    pub async fn refresh_tablets(&self) -> Result<(), StoreError> {
        self.require_follower()?;
        let tablets = Vec::clone(&self.tablets());
        let look = |tablet: Arc<Tablet>| async move { tablet.follow().await };
        let looks = futures::stream::iter(tablets).map(look);
        let results: Vec<Result<(), StoreError>> = looks.buffer_unordered(READS).collect().await;
        results.into_iter().collect()
    }

    /// Returns when a read waits for the next round. For a store that is only read.
    #[boxed]
    pub async fn refresh_wanted(&self) {
        match self.follower() {
            Some(follower) => follower.due.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Begins a round: what is read from the bucket from now on is in it.
    pub fn begin_refresh(&self) -> Result<RefreshRound, StoreError> {
        Ok(RefreshRound {
            number: self.require_follower()?.begun.fetch_add(1, Ordering::AcqRel) + 1,
            began: Instant::now(),
        })
    }

    /// Ends a round. `failure` is why not all that there is could be read; `None` if all was.
    pub fn end_refresh(&self, round: &RefreshRound, failure: Option<String>) {
        let Some(follower) = self.follower() else { return };
        if failure.is_none() {
            *follower.refreshed.lock() = round.began;
        }
        *follower.failure.lock() = failure;
        follower.ended.send_replace(round.number);
    }

    /// Waits until a round that begins from now on has brought a read-only store up to date, for a few seconds at most. Returns true if a round
    /// has done so. A store that is written is always up to date.
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

    /// How long ago the last round began that has succeeded; `None` of a store that is not only read.
    pub fn refresh_age(&self) -> Option<Duration> {
        let refreshed = *self.follower()?.refreshed.lock();
        Some(refreshed.elapsed())
    }

    /// Why the last round has failed. `None` if it succeeded, and of a store that is not only read.
    pub(crate) fn refresh_failure(&self) -> Option<String> {
        self.follower()?.failure.lock().clone()
    }

    /// From which age on a store that is only read is in trouble.
    pub(crate) fn refresh_age_max(&self) -> Duration {
        let interval = self.remote().map_or(Duration::ZERO, |remote| {
            remote.databases.config.read_only_refresh_interval
        });
        AGE_MAX.max(interval * AGE_MAX_INTERVALS)
    }
}

impl Remote {
    /// Opens a tablet to be read.
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
