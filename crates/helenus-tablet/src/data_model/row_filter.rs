//! The compaction filter for stored rows of `helenus-row`, shared by the data models that store such rows.

use bytes::Bytes;
use helenus_row::compaction_filter::{self, RowFilter, TableState};
use helenus_row::{ByteRange, KeyKind, TableId, key};

use super::{CompactFilter, DataModelError, Decision, FilterOutcome, OlderOverlap};

fn damaged(error: impl std::fmt::Display) -> DataModelError {
    DataModelError(error.to_string())
}

impl<T: FnMut(TableId) -> TableState + Send + Sync> CompactFilter for RowFilter<T> {
    fn needs(&self, key: &[u8]) -> Option<Bytes> {
        self.needs_header(key)
    }

    fn provide(&mut self, key: &Bytes, row: Option<&Bytes>) -> Result<(), DataModelError> {
        self.set_header(key, row.map(|row| row.as_ref())).map_err(damaged)
    }

    fn entry(
        &mut self,
        key: &[u8],
        value: &Bytes,
        below: OlderOverlap,
    ) -> Result<FilterOutcome, DataModelError> {
        let below = match below {
            OlderOverlap::Nothing => compaction_filter::OlderOverlap::Nothing,
            OlderOverlap::Hidden => compaction_filter::OlderOverlap::Hidden,
            OlderOverlap::Something => compaction_filter::OlderOverlap::Something,
        };
        let outcome = self.filter(key, value, below).map_err(damaged)?;
        Ok(FilterOutcome {
            decision: match outcome.decision {
                compaction_filter::Decision::Keep => Decision::Keep,
                compaction_filter::Decision::Drop => Decision::Drop,
                compaction_filter::Decision::Replace(bytes) => Decision::Replace(bytes),
            },
            purge_blocked: outcome.purge_blocked,
            is_dead: outcome.is_dead,
            purged_covering_deletion: outcome.purged_covering_deletion,
        })
    }

    fn covers(&self, key: &Bytes) -> Option<(Bytes, Option<Bytes>)> {
        let parts = key::split_key(key).ok()?;
        let prefix = (parts.kind == KeyKind::Header).then(|| key.slice_ref(parts.partition_prefix))?;
        let range = ByteRange::with_prefix(&prefix);
        Some((prefix, range.end))
    }
}
