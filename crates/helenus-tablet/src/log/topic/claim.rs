//! Claims a partition for a new log: writes the object `log_claims/<partition>/<epoch>` by put-if-absent, then the first record of that
//! epoch.
//!
//! The objects are never deleted, so each epoch is claimed only once. The partition itself is the second guard. A log is not begun if an
//! earlier record of the partition ends its epoch, or is one of another process in that epoch.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use uuid::Uuid;

use super::TopicLogs;
use super::format::{LogPlace, RecordKey, beginning, split};
use super::read::{LogReader, read_until, retried};
use crate::error::{StoreError, chain};
use crate::log::object::LogId;

const FOLDER: &str = "log_claims";
/// Minutes after a claim during which tablets may begin to name its log. A log that no tablet names afterwards belongs to a process that
/// has died or has no tablets.
const NAMED_WITHIN_MIN: i64 = 10;

/// The newest claim of a partition.
struct Claim {
    epoch: u64,
    made: DateTime<Utc>,
}

/// A log that has only its beginning.
pub(crate) struct BegunLog {
    pub place: LogPlace,
    pub key: RecordKey,
    /// Offset of the beginning.
    pub first: i64,
    /// Offset up to which all records are accounted for.
    pub offset: i64,
    pub bytes: u64,
}

fn claim_path(place: LogPlace) -> Path {
    Path::from(format!("{FOLDER}/{:010}/{:020}", place.partition, place.epoch))
}

fn place_of(location: &Path) -> Option<LogPlace> {
    let mut parts = location.parts().skip(1);
    Some(LogPlace {
        partition: parts.next()?.as_ref().parse().ok()?,
        epoch: parts.next()?.as_ref().parse().ok()?,
    })
}

impl TopicLogs {
    /// Begins a log in a partition without a log in `needed`. The caller must then check again whether the partition has a needed log. If
    /// not, it deletes the earlier records ([`TopicLogs::delete_former`]); otherwise it must not use the new log.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if there is no such partition.
    pub async fn begin(&self, needed: &BTreeSet<LogId>, time_ms: i64) -> Result<BegunLog, StoreError> {
        let claims = self.claims().await?;
        for partition in self.free_partitions(&claims, needed).await? {
            let epoch = claims.get(&partition).map_or(0, |claim| claim.epoch) + 1;
            let place = LogPlace { partition, epoch };
            let writer = Uuid::new_v4();
            if self.claim(place, writer).await?
                && let Some(begun) = self.begin_at(place, writer, time_ms).await?
            {
                return Ok(begun);
            }
        }
        Err(StoreError::Unavailable(
            "all partitions of the log's topic hold logs that are still needed: give the topic more partitions, several for each node".into(),
        ))
    }

    /// Deletes the records before a log in its partition. These records belong to logs that no tablet needs.
    pub async fn delete_former(&self, begun: &BegunLog) {
        let deleted = self.client.delete_before(begun.place.partition, begun.first);
        if let Err(error) = deleted.await {
            tracing::debug!(?error, "the former log of a partition was not deleted");
        }
    }

    async fn claims(&self) -> Result<BTreeMap<u32, Claim>, StoreError> {
        let folder = Path::from(FOLDER);
        let listed = self.bucket.list(Some(&folder));
        let found: Vec<_> = listed
            .try_collect()
            .await
            .map_err(|error| StoreError::Unavailable(chain(&error)))?;
        let mut claims = BTreeMap::<u32, Claim>::new();
        for object in found {
            let Some(place) = place_of(&object.location) else {
                continue;
            };
            let newest = claims.get(&place.partition).map_or(0, |claim| claim.epoch);
            if place.epoch > newest {
                let claim = Claim {
                    epoch: place.epoch,
                    made: object.last_modified,
                };
                claims.insert(place.partition, claim);
            }
        }
        Ok(claims)
    }

    /// Returns the places of the newest log of each partition. These logs may have ended.
    pub(super) async fn newest_logs(&self) -> Result<Vec<LogPlace>, StoreError> {
        let claims = self.claims().await?.into_iter();
        Ok(claims
            .map(|(partition, claim)| LogPlace {
                partition,
                epoch: claim.epoch,
            })
            .collect())
    }

    /// Returns partitions that may be claimed: first those that were never claimed, then those whose log has ended, then those whose log no
    /// tablet has ever named.
    async fn free_partitions(
        &self,
        claims: &BTreeMap<u32, Claim>,
        needed: &BTreeSet<LogId>,
    ) -> Result<Vec<u32>, StoreError> {
        let count = retried(|| self.client.partitions()).await?;
        let mut free: Vec<u32> = (0..count).filter(|number| !claims.contains_key(number)).collect();
        let needed_partitions: BTreeSet<u32> = needed
            .iter()
            .filter_map(|id| LogPlace::of(*id))
            .map(|place| place.partition)
            .collect();
        let mut unnamed = Vec::new();
        for (partition, claim) in claims.range(..count) {
            let place = LogPlace {
                partition: *partition,
                epoch: claim.epoch,
            };
            if needed_partitions.contains(partition) {
                continue;
            }
            if free.is_empty() && self.has_ended(place).await? {
                free.push(*partition);
            } else if Utc::now() - claim.made > chrono::Duration::minutes(NAMED_WITHIN_MIN) {
                unnamed.push(*partition);
            }
        }
        free.extend(unnamed);
        Ok(free)
    }

    /// Claims an epoch of a partition. Returns false if another process has claimed it.
    async fn claim(&self, place: LogPlace, writer: Uuid) -> Result<bool, StoreError> {
        let (path, content) = (claim_path(place), writer.to_string());
        let options = PutOptions::from(PutMode::Create);
        let payload = PutPayload::from(content.clone());
        match self.bucket.put_opts(&path, payload, options).await {
            Ok(_) => Ok(true),
            // The existing object may be from an earlier try of this client.
            Err(Error::AlreadyExists { .. }) => {
                let unavailable = |error: Error| StoreError::Unavailable(chain(&error));
                let found = self.bucket.get(&path).await.map_err(unavailable)?;
                Ok(found.bytes().await.map_err(unavailable)? == content.as_bytes())
            }
            Err(error) => Err(StoreError::Unavailable(chain(&error))),
        }
    }

    /// Appends the first record of a log. `None` if it comes too late.
    async fn begin_at(
        &self,
        place: LogPlace,
        writer: Uuid,
        time_ms: i64,
    ) -> Result<Option<BegunLog>, StoreError> {
        let key = RecordKey {
            store: self.store_identity,
            epoch: place.epoch,
            writer,
            part: None,
        };
        let frame = beginning(time_ms);
        let Some(record) = split(key, 1, &frame, frame.len()).pop() else {
            return Ok(None);
        };
        let offset = retried(|| self.client.produce(place.partition, record.clone())).await?;
        // Reads all earlier records, including other tries of this one.
        let mut reader = LogReader::new(self.store_identity, place.epoch);
        let mut has_other_writer = false;
        read_until(self.client.as_ref(), place.partition, offset, |offset, record| {
            let found = RecordKey::decode(&record.key);
            has_other_writer |= found.is_some_and(|found| found.epoch == key.epoch && found.writer != writer);
            reader.take(offset, record);
        })
        .await?;
        if let Some(other) = reader.stranger {
            return Err(StoreError::InvalidConfig(format!(
                "partition {} of the log's topic has records of another store ({other}): each store has a topic of its own",
                place.partition
            )));
        }
        if reader.end.is_some() || has_other_writer {
            return Ok(None);
        }
        // If an earlier try that seemed to fail took effect, the log begins with that record.
        let first = reader.frames.first().map_or(offset, |frame| frame.offset);
        Ok(Some(BegunLog {
            place,
            key,
            first,
            offset,
            bytes: record.value.len() as u64,
        }))
    }
}
