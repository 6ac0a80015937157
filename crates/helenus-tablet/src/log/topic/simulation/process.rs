//! A simulated process: it begins a log, takes over tablets from other processes that still write, writes to them, and starts again once it
//! is fenced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use bytes::Bytes;
use object_store::memory::InMemory;
use uuid::Uuid;

use super::Omission;
use super::brokers::{Brokers, Client};
use super::dice::Dice;
use super::tablets::{Span, Stored, Tablets};
use crate::clock::StoreClock;
use crate::error::StoreError;
use crate::log::encode_record;
use crate::log::object::LogObjects;
use crate::log::topic::format::LogPlace;
use crate::log::topic::{BegunLog, TopicAppender, TopicClient, TopicLogs};
use crate::log::writer::empty_frame;
use crate::operation::Op;

const STORE: Uuid = Uuid::from_u128(7);

/// The environment that all processes of a run share.
#[derive(Clone)]
pub(super) struct World {
    pub dice: Dice,
    pub brokers: Arc<Brokers>,
    pub bucket: Arc<InMemory>,
    pub tablets: Arc<Tablets>,
    pub omission: Option<Omission>,
}

/// A tablet that this process owns.
struct Owned {
    tenure: u64,
    opener: u64,
    version: u64,
    values: Vec<u64>,
    lsn: u64,
    spans: Vec<Span>,
}

/// Result of a tablet's recovery.
struct Recovered {
    values: Vec<u64>,
    lsn: u64,
    spans: Vec<Span>,
}

struct OwnLog {
    place: LogPlace,
    appender: TopicAppender,
    /// The last record of each tablet that is in files.
    flushed: BTreeMap<u32, u64>,
    /// The first frame that is still needed, and the newest frame at the time when that was found. `None` if there is nothing to delete.
    unneeded: Option<(u64, u64)>,
}

impl World {
    fn client(&self, next_offset: Option<i64>) -> Arc<dyn TopicClient> {
        Arc::new(Client {
            brokers: self.brokers.clone(),
            omission: self.omission,
            next_offset: next_offset.map(AtomicI64::new),
        })
    }

    fn logs(&self) -> TopicLogs {
        TopicLogs {
            client: self.client(None),
            store_identity: STORE,
            bucket: self.bucket.clone(),
        }
    }

    async fn needed(&self) -> BTreeSet<Uuid> {
        match self.omission {
            Some(Omission::Need) => BTreeSet::new(),
            _ => self.tablets.needed_logs().await,
        }
    }

    /// Begins a log in the same way as [`crate::store`].
    async fn begin(&self) -> Result<OwnLog, StoreError> {
        let logs = self.logs();
        loop {
            let begun = logs.begin(&self.needed().await, 1).await?;
            let needed = self.needed().await;
            let mut places = needed.into_iter().filter_map(LogPlace::of);
            if !places.any(|place| place.partition == begun.place.partition) {
                logs.delete_former(&begun).await;
                self.tablets.begun(begun.place);
                return Ok(self.own_log(&begun));
            }
        }
    }

    fn own_log(&self, begun: &BegunLog) -> OwnLog {
        let mut appender = TopicAppender::new(
            self.client(Some(begun.offset + 1)),
            begun,
            Arc::default(),
            Arc::new(StoreClock::new(None)),
        );
        // Half of the logs split frames into several parts.
        if self.dice.chance(50) {
            appender.part_bytes_max = 60;
        }
        OwnLog {
            place: begun.place,
            appender,
            flushed: BTreeMap::new(),
            unneeded: None,
        }
    }

    /// Fences and reads the logs that a tablet's document names.
    async fn recover(&self, tablet: usize, stored: &Stored) -> Result<Recovered, StoreError> {
        let logs = self.logs();
        let mut recovered = Recovered {
            values: stored.values.clone(),
            lsn: stored.lsn,
            spans: Vec::new(),
        };
        for span in &stored.spans {
            let last = match span.last {
                Some(last) => last,
                None => logs.fence(span.place).await?.end - 1,
            };
            // The log was named by a process that did not know yet that it was fenced. The log may be deleted at any time.
            if span.first > last {
                continue;
            }
            let groups = logs.read(span.place, 1, last).await?;
            self.tablets.read(span.place, last + 1, values_by_frame(&groups));
            let before = recovered.lsn;
            let records = groups.iter().flat_map(|(_, group)| &group.records);
            for record in records.filter(|record| record.lsn > before) {
                let own = record.ops.iter().filter(|op| op.token == tablet as i64);
                for op in own {
                    recovered.values.push(value_of(op));
                    recovered.lsn = record.lsn;
                }
            }
            if recovered.lsn > before {
                recovered.spans.push(Span {
                    last: Some(last),
                    ..*span
                });
            }
        }
        Ok(recovered)
    }

    /// Takes over a tablet. An inspection does this without a log of its own. `None` if another process was faster.
    async fn take_over(&self, tablet: usize, own: Option<&OwnLog>) -> Result<Option<Owned>, StoreError> {
        let stored = self.tablets.open(tablet).await;
        let recovered = match self.recover(tablet, &stored).await {
            Ok(recovered) => recovered,
            Err(error) => {
                if matches!(error, StoreError::Corrupt { .. }) {
                    self.tablets
                        .unreadable(tablet, stored.version, &error.to_string());
                }
                return Err(error);
            }
        };
        let mut spans = recovered.spans;
        spans.extend(own.map(|log| Span {
            place: log.place,
            first: log.appender.next_frame,
            last: None,
        }));
        let found = recovered.values.clone();
        let begun = self
            .tablets
            .take_over(tablet, stored.version, spans.clone(), found);
        Ok(begun.await.map(|tenure| Owned {
            tenure,
            opener: stored.opener,
            version: stored.version + 1,
            values: recovered.values,
            lsn: recovered.lsn,
            spans,
        }))
    }

    /// Checks all tablets by recovering each as its next owner would.
    pub async fn inspect(&self) {
        for tablet in 0..self.tablets.count() {
            while !matches!(self.take_over(tablet, None).await, Ok(Some(_)))
                && self.tablets.violation().is_none()
            {
                self.dice.pause(100..200).await;
            }
        }
    }

    pub async fn live(self) {
        loop {
            if let Ok(log) = self.begin().await {
                let process = Process {
                    world: self.clone(),
                    log,
                    owned: BTreeMap::new(),
                };
                if let Err(StoreError::Fenced) = process.run().await {
                    self.tablets.refused();
                }
            }
            self.dice.pause(10..200).await;
        }
    }
}

struct Process {
    world: World,
    log: OwnLog,
    owned: BTreeMap<usize, Owned>,
}

impl Process {
    /// Runs until the process's log has ended.
    async fn run(mut self) -> Result<(), StoreError> {
        self.take_over().await;
        loop {
            match self.world.dice.range(0..40) {
                0 => self.take_over().await,
                1 => self.release().await,
                2..=4 => self.flush().await,
                5 => self.sweep().await,
                6..=8 => self.world.dice.pause(10..500).await,
                _ => self.write().await?,
            }
        }
    }

    async fn take_over(&mut self) {
        let count = self.world.tablets.count() as u64;
        let tablet = self.world.dice.range(0..count) as usize;
        if self.owned.contains_key(&tablet) {
            return;
        }
        // A failure is ignored: the recovery may fail, or another process may be faster.
        if let Ok(Some(owned)) = self.world.take_over(tablet, Some(&self.log)).await {
            self.log.flushed.insert(tablet as u32, 0);
            self.owned.insert(tablet, owned);
            if self.world.dice.chance(60) {
                self.flush_tablet(tablet).await;
            }
        }
    }

    fn pick(&self) -> Option<usize> {
        let all: Vec<usize> = self.owned.keys().copied().collect();
        self.world.dice.pick(&all)
    }

    /// Appends a group with records of some tablets.
    async fn write(&mut self) -> Result<(), StoreError> {
        let mut frame = empty_frame();
        let mut group = Vec::new();
        for _ in 0..self.world.dice.range(1..4) {
            let Some(tablet) = self.pick() else { break };
            let Some(owned) = self.owned.get_mut(&tablet) else {
                break;
            };
            let value = self.world.tablets.new_value(tablet, owned.tenure);
            owned.lsn += 1;
            owned.values.push(value);
            let op = Op {
                token: tablet as i64,
                key: Bytes::copy_from_slice(&value.to_be_bytes()),
                operand: Bytes::new(),
            };
            encode_record(owned.lsn, &[op], &mut frame);
            group.push((tablet, owned.tenure, owned.lsn, value));
        }
        if group.is_empty() {
            self.world.dice.pause(5..50).await;
            return Ok(());
        }
        let bytes = self.log.appender.append_group(&mut frame).await?;
        let last_lsns = group.iter().map(|(tablet, _, lsn, _)| (*tablet as u32, *lsn));
        self.log.appender.ledger.record(last_lsns, bytes);
        for (tablet, tenure, _, value) in group {
            self.world.tablets.acknowledged(tablet, tenure, value);
        }
        self.world.dice.pause(0..20).await;
        self.delete_unneeded().await;
        Ok(())
    }

    async fn flush(&mut self) {
        if let Some(tablet) = self.pick() {
            self.flush_tablet(tablet).await;
            self.find_unneeded();
        }
    }

    /// Writes a tablet's files, and makes its document name only this process's log. Returns false if another process has taken the tablet
    /// over.
    async fn flush_tablet(&mut self, tablet: usize) -> bool {
        let Some(owned) = self.owned.get_mut(&tablet) else {
            return false;
        };
        let tablets = &self.world.tablets;
        if !tablets
            .flush(tablet, owned.opener, owned.values.clone(), owned.lsn)
            .await
        {
            return false;
        }
        self.log.flushed.insert(tablet as u32, owned.lsn);
        owned.spans.retain(|span| span.last.is_none());
        let is_named = tablets.name(tablet, owned.version, owned.spans.clone()).await;
        owned.version += u64::from(is_named);
        is_named
    }

    /// Releases a tablet, so that its next owner need not fence this log.
    async fn release(&mut self) {
        let Some(tablet) = self.pick() else { return };
        let is_flushed = self.flush_tablet(tablet).await;
        let Some(owned) = self.owned.remove(&tablet) else {
            return;
        };
        if is_flushed && self.world.tablets.name(tablet, owned.version, Vec::new()).await {
            self.log.flushed.insert(tablet as u32, u64::MAX);
        }
    }

    /// Removes frames that no tablet needs from the ledger.
    fn find_unneeded(&mut self) {
        let flushed = &self.log.flushed;
        let is_flushed = |(tablet, last): &(u32, u64)| flushed.get(tablet).is_some_and(|lsn| last <= lsn);
        let mut segments = self.log.appender.ledger.segments.lock();
        let newest = segments.last().map_or(0, |segment| segment.number);
        let unneeded = segments
            .iter()
            .take_while(|segment| !segment.active && segment.last_lsn.iter().all(is_flushed));
        let count = unneeded.count();
        if let Some(last) = segments.drain(..count).next_back() {
            self.log.unneeded = Some((last.number + 1, newest));
        }
    }

    /// Deletes unneeded frames, once a later frame records that they are not needed.
    async fn delete_unneeded(&mut self) {
        let appender = &self.log.appender;
        let due = |(_, newest): &mut (u64, u64)| *newest + 1 < appender.next_frame - 1;
        let Some((first, _)) = self.log.unneeded.take_if(due) else {
            return;
        };
        let kept = appender.offsets.lock().get(&first).copied();
        if let Some(offset) = kept {
            // A failure is ignored, because the next deletion covers these frames too.
            let _ = appender
                .client
                .delete_before(self.log.place.partition, offset)
                .await;
        }
    }

    /// Deletes the rest of ended logs that no tablet needs.
    async fn sweep(&self) {
        let logs = self.world.logs();
        let Ok(ended) = logs.ended_logs().await else {
            return;
        };
        let needed = self.world.needed().await;
        let others = ended.into_iter().filter(|place| *place != self.log.place);
        for place in others.filter(|place| !needed.contains(&place.id())) {
            // A failure is ignored, because the next sweep tries again.
            let _ = logs.delete_fenced(place).await;
        }
    }
}

fn value_of(op: &Op) -> u64 {
    op.key.as_ref().try_into().map_or(0, u64::from_be_bytes)
}

fn values_by_frame(groups: &LogObjects) -> BTreeMap<u64, Vec<u64>> {
    let values = |records: &[crate::log::Record]| -> Vec<u64> {
        records
            .iter()
            .flat_map(|record| &record.ops)
            .map(value_of)
            .collect()
    };
    groups
        .iter()
        .map(|(number, group)| (*number, values(&group.records)))
        .collect()
}
