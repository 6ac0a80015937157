//! Replays the records of former owners' logs that are in no SSTable into a tablet that is being opened.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;

use super::Remote;
use super::node_log::OwnLog;
use super::tablet_logs::{LogSpan, TabletLogs};
use crate::error::StoreError;
use crate::log::object::{FencedLog, LogId, LogObjects};
use crate::operation::Op;
use crate::tablet::Tablet;
use crate::threads;

/// Time for which the objects of a fenced log are kept in memory for other tablets that are opened.
const KEPT: Duration = Duration::from_secs(15);
/// Time that replay waits for room before it checks whether the tablet has failed.
const REPLAY_POLL: Duration = Duration::from_millis(200);

/// A fenced log, with all of its objects once they have been read.
pub(super) struct RecoveredLog {
    fenced: FencedLog,
    objects: OnceCell<Arc<LogObjects>>,
}

/// The logs that tablets are recovered from. Each is fenced and read once for all tablets that need it.
pub(super) type Recoveries = parking_lot::Mutex<hashbrown::HashMap<LogId, Arc<OnceCell<RecoveredLog>>>>;

/// The outcome of a recovery.
pub(super) struct Recovered {
    /// Number of the last record that the tablet has after the recovery, in files or in memory.
    pub last_lsn: u64,
    /// The logs that still have records which are in no file.
    pub logs: Vec<LogSpan>,
}

impl Remote {
    /// Replays the named logs into a tablet whose tasks run. No former owner can append records of the tablet to them any more.
    pub(super) async fn recover(
        &self,
        tablet: &Arc<Tablet>,
        logs: &TabletLogs,
        own: &OwnLog,
    ) -> Result<Recovered, StoreError> {
        let mut recovered = Recovered {
            last_lsn: tablet.flushed_lsn(),
            logs: Vec::new(),
        };
        for span in &logs.logs {
            let (span, objects) = self.objects_of(span, own).await?;
            let before = recovered.last_lsn;
            recovered.last_lsn = replay(tablet.clone(), objects, before).await?;
            if recovered.last_lsn > before {
                recovered.logs.push(span);
            }
        }
        Ok(recovered)
    }

    /// Returns the objects of a span, and the span with its end.
    async fn objects_of(
        &self,
        span: &LogSpan,
        own: &OwnLog,
    ) -> Result<(LogSpan, Arc<LogObjects>), StoreError> {
        if let Some(last) = span.last {
            let objects = self.read_log(span.log, span.first, last).await?;
            return Ok((span.clone(), Arc::new(objects)));
        }
        if span.log == own.id {
            own.log.barrier(Arc::default()).await;
            let objects = self.read_log(span.log, span.first, own.newest()).await?;
            return Ok((span.clone(), Arc::new(objects)));
        }
        let cell = self.recoveries.lock().entry(span.log).or_default().clone();
        let log = cell.get_or_try_init(|| self.fence_log(span.log)).await?;
        let last = log.fenced.end.saturating_sub(1);
        let closed = LogSpan {
            last: Some(last),
            ..span.clone()
        };
        if span.first > last {
            return Ok((closed, Arc::default()));
        }
        let objects = log
            .objects
            .get_or_try_init(|| async { self.read_fenced(span.log, last).await.map(Arc::new) })
            .await?;
        Ok((closed, objects.clone()))
    }

    async fn fence_log(&self, id: LogId) -> Result<RecoveredLog, StoreError> {
        let fenced = self.fence(id).await?;
        tracing::info!(log = %id, end = fenced.end, "the log of a former owner is fenced");
        let recoveries = self.recoveries.clone();
        self.serving.spawn(async move {
            tokio::time::sleep(KEPT).await;
            recoveries.lock().remove(&id);
        });
        Ok(RecoveredLog {
            fenced,
            objects: OnceCell::new(),
        })
    }
}

/// Stages the records of a tablet that are later than `after`. Returns the number of the last one, or `after` if there is none.
async fn replay(tablet: Arc<Tablet>, objects: Arc<LogObjects>, after: u64) -> Result<u64, StoreError> {
    let staging = threads::spawn_computing(async move {
        let mut last = after;
        for (_, group) in objects.iter() {
            tablet.clock.raise(group.time_ms);
            tablet.clock.note_commit(group.machine_ms.into());
            let mut part: Vec<(u64, Op)> = Vec::new();
            for record in group.records.iter().filter(|record| record.lsn > after) {
                let own = record
                    .ops
                    .iter()
                    .filter(|op| tablet.token_range().contains(op.token));
                part.extend(own.map(|op| (record.lsn, op.clone())));
            }
            let Some((lsn, _)) = part.last() else { continue };
            last = *lsn;
            while !tablet.stage.wait_for_room(REPLAY_POLL).await? {}
            tablet.stage_ops(part)?;
        }
        Ok(last)
    });
    staging
        .await
        .unwrap_or_else(|error| Err(StoreError::Unavailable(error.to_string())))
}
