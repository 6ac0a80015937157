//! Ensures that one backup at a time writes to a location. Otherwise retention could delete files that another backup has just decided to
//! reuse.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use object_store::path::Path;
use object_store::{Error, ObjectStore, PutMode, PutOptions};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::location::BackupLocation;
use crate::boxed;
use crate::error::StoreError;

const RUNNING: &str = "helenus-backup-running.json";
const RENEWED_EACH: Duration = Duration::from_secs(60);
/// Time without a renewal after which a node's claim is void.
const CLAIM_TTL: Duration = Duration::from_secs(600);

/// Claim of the node that backs up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Claim {
    /// The host id of the node.
    node: Uuid,
    /// Time of the last renewal, in milliseconds since the Unix epoch.
    renewed_ms: u64,
}

impl Claim {
    fn is_valid(&self, now_ms: u64) -> bool {
        u128::from(now_ms.abs_diff(self.renewed_ms)) < CLAIM_TTL.as_millis()
    }
}

/// Guard that a running backup holds on its location.
pub(super) struct Running {
    location: BackupLocation,
    renewing: JoinHandle<()>,
}

impl Running {
    /// Claims the location for a backup. An old claim of `node` itself is overwritten: a node runs one backup at a time, so that claim is
    /// of a process that has ended.
    ///
    /// # Errors
    /// Another node backs up to that location.
    #[boxed]
    pub async fn begin(location: &BackupLocation, node: Uuid) -> Result<Running, StoreError> {
        let path = Path::from(RUNNING);
        let mode = match location.read_in(&location.plain, &path).await? {
            None => PutMode::Create,
            Some(bytes) => {
                // An unreadable claim is ignored, so that it can't block backups forever.
                let found: Option<Claim> = serde_json::from_slice(&bytes).ok();
                if let Some(other) = found.filter(|found| found.node != node && found.is_valid(now_ms())) {
                    return Err(refused(location, &format!("node {} backs up there", other.node)));
                }
                PutMode::Overwrite
            }
        };
        let options = PutOptions {
            mode,
            ..PutOptions::default()
        };
        let put = location.plain.put_opts(&path, claim(node).into(), options).await;
        match put {
            Ok(_) => {}
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                return Err(refused(location, "another node has just begun"));
            }
            Err(error) => return Err(location.failed(&format!("cannot write {path}"), &error)),
        }
        location.remove_unfinished();
        let renewed = location.clone();
        let renewing = tokio::spawn(async move {
            loop {
                tokio::time::sleep(RENEWED_EACH).await;
                if let Err(error) = renewed
                    .write_in(&renewed.plain, &Path::from(RUNNING), claim(node))
                    .await
                {
                    tracing::warn!(%error, "a backup continues, but could not renew its claim of the place");
                }
            }
        });
        Ok(Running {
            location: location.clone(),
            renewing,
        })
    }

    /// Releases the location. A failure is only logged.
    #[boxed]
    pub async fn end(self) {
        self.renewing.abort();
        if let Err(error) = self.location.delete(&Path::from(RUNNING)).await {
            tracing::warn!(%error, "a backup has ended, but could not remove its claim of the place");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

fn claim(node: Uuid) -> Vec<u8> {
    let renewed_ms = now_ms();
    serde_json::to_vec(&Claim { node, renewed_ms }).unwrap_or_default()
}

fn now_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

fn refused(location: &BackupLocation, why: &str) -> StoreError {
    StoreError::InvalidConfig(format!("{location}: {why}; one backup at a time goes to a place"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn another_node_waits_until_the_first_ends_or_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let location = BackupLocation::create(folder.path().to_str().unwrap(), None).unwrap();
        let (first, second) = (Uuid::from_u128(1), Uuid::from_u128(2));
        drop(Running::begin(&location, first).await.unwrap());
        assert!(Running::begin(&location, second).await.is_err());
        let again = Running::begin(&location, first).await.unwrap();
        again.end().await;
        Running::begin(&location, second).await.unwrap().end().await;
        let renewed_ms = now_ms() - CLAIM_TTL.as_millis() as u64;
        let gone = serde_json::to_vec(&Claim {
            node: first,
            renewed_ms,
        })
        .unwrap();
        location
            .write_in(&location.plain, &Path::from(RUNNING), gone)
            .await
            .unwrap();
        Running::begin(&location, second).await.unwrap();
    }
}
