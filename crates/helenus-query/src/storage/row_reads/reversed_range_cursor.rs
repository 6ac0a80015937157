//! Rows of a range of keys, over all tablets, from the last to the first.
//!
//! Only for tables without partition headers and static rows, such as the hidden tables of indexes. In reverse, a partition's header would
//! come after the rows that it covers.

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::{ByteRange, CellRules, KeyKind, TableId};
use helenus_tablet::TokenRange;

use super::range_cursor::{entry, may_begin_again, wait_for_tablets};
use crate::cluster::ScanRange;
use crate::failure::{ExecutionError, store_error};
use crate::rows::{PartitionKey, RowAt, StoredRow};
use crate::schema::Table;
use crate::storage::ExecutionContext;
use crate::storage::key_reads::{self, TabletScan, Undecided, scan_tablet};

/// Bytes of the table's number, with which a key begins.
const TABLE_LEN: usize = 4;
/// Bytes of the token, which follows the table's number.
const TOKEN_LEN: usize = 8;

/// A cursor over the rows of a range of keys, backwards.
pub struct ReversedRangeCursor {
    table: TableId,
    rules: CellRules,
    start: Bytes,
    /// End of the rows that were not returned yet. `None` if it is the end of all keys. If a tablet moves away during a scan, the next scan
    /// begins here.
    end: Option<Bytes>,
    scan: Option<PartScan>,
    /// Number of times that a read-only node has restarted the scan since it last returned a row.
    restarts: u8,
}

/// The scan of the part of the range within one tablet, and the start of that part.
struct PartScan {
    scan: TabletScan,
    start: Bytes,
}

impl ReversedRangeCursor {
    /// Returns a cursor over all rows with keys in the range, which lies within the table.
    pub fn within(table: &Table, range: ByteRange) -> ReversedRangeCursor {
        ReversedRangeCursor {
            table: table.number,
            rules: table.cell_rules.clone(),
            start: range.start,
            end: range.end,
            scan: None,
            restarts: 0,
        }
    }

    /// Returns the row before the last returned one, live or dead, with its partition. `None` if there is none.
    pub async fn next(
        &mut self,
        context: &ExecutionContext,
    ) -> Result<Option<(PartitionKey, RowAt)>, CqlError> {
        while let Some((key, packed)) = self.next_stored(context).await? {
            let entry = entry(&key, packed)?;
            if entry.kind == KeyKind::Row {
                let row = RowAt {
                    row: StoredRow::parse(entry.packed, None, &self.rules)?,
                    clustering: entry.clustering,
                };
                return Ok(Some((entry.partition, row)));
            }
        }
        Ok(None)
    }

    async fn next_stored(&mut self, context: &ExecutionContext) -> Result<Option<(Bytes, Bytes)>, CqlError> {
        loop {
            if let Some(part) = &mut self.scan {
                match part.scan.next().await {
                    Ok(Some((key, packed))) => {
                        self.end = Some(key.clone());
                        self.restarts = 0;
                        return Ok(Some((key, packed)));
                    }
                    Ok(None) => {
                        self.end = Some(part.start.clone());
                        self.scan = None;
                    }
                    Err(ExecutionError::NotOwned) if may_begin_again(context, &mut self.restarts) => {
                        self.scan = None;
                        wait_for_tablets(context).await;
                    }
                    Err(error) => return Err(error.into_client_error()),
                }
            }
            if !self.begin_tablet(context).await? {
                return Ok(None);
            }
        }
    }

    /// Begins the scan of the last remaining tablet. Returns false if the range is done.
    async fn begin_tablet(&mut self, context: &ExecutionContext) -> Result<bool, CqlError> {
        if self.end.as_ref().is_some_and(|end| *end <= self.start) {
            return Ok(false);
        }
        let Some(token) = last_token(self.table, self.end.as_ref()) else {
            return Ok(false);
        };
        let part = match context.cluster() {
            Some(cluster) => loop {
                let range = self.part(cluster.tablet(token));
                if let Some(scan) =
                    key_reads::scan(context, cluster.as_ref(), &range, Undecided::Awaited).await?
                {
                    break PartScan {
                        scan,
                        start: range.start,
                    };
                }
            },
            None => {
                let tablet = context.store.tablet(token).map_err(store_error)?;
                let ScanRange { start, end, .. } = self.part(tablet.token_range());
                let keys = ByteRange {
                    start: start.clone(),
                    end,
                };
                let scan = scan_tablet(&tablet, keys, true).await;
                PartScan {
                    scan: TabletScan::Local(scan.map_err(ExecutionError::into_client_error)?),
                    start,
                }
            }
        };
        self.scan = Some(part);
        Ok(true)
    }

    /// Returns the rest of the range within the tablet with these tokens, which is the last remaining tablet.
    fn part(&self, tokens: TokenRange) -> ScanRange {
        let covered = key_reads::keys_of(self.table, tokens);
        ScanRange {
            tokens,
            start: self.start.clone().max(covered.start),
            end: self.end.clone(),
            reversed: true,
        }
    }
}

/// Returns the greatest token of possible keys of the table below `end`. `None` if no such key is possible.
fn last_token(table: TableId, end: Option<&Bytes>) -> Option<i64> {
    let is_in_table = |end: &&Bytes| end.starts_with(&table.0.to_be_bytes());
    let Some(end) = end.filter(is_in_table) else {
        return Some(i64::MAX);
    };
    let given = end.get(TABLE_LEN..).unwrap_or_default();
    let mut token = [0; TOKEN_LEN];
    token.iter_mut().zip(given).for_each(|(to, from)| *to = *from);
    let token = i64::from_be_bytes(token) ^ i64::MIN;
    match given.len() > TOKEN_LEN {
        true => Some(token),
        false => token.checked_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound;

    use helenus_row::key;

    use super::*;

    #[test]
    fn the_last_token_lies_below_the_end() {
        let table = TableId(7);
        let last = |end: Option<Bytes>| last_token(table, end.as_ref());
        let end_of = |token| key::token_range(table, Bound::Unbounded, Bound::Included(token)).end;
        assert_eq!(last(None), Some(i64::MAX));
        assert_eq!(last(key::table_range(table).end), Some(i64::MAX));
        for token in [i64::MIN, -256, -1, 0, 255, 1 << 40, i64::MAX] {
            assert_eq!(last(end_of(token)), Some(token), "{token}");
            let partition = key::partition_range(table, token, b"key");
            assert_eq!(last(Some(partition.start)), Some(token), "{token}");
        }
        assert_eq!(
            last(Some(
                key::token_range(table, Bound::Included(i64::MIN), Bound::Unbounded).start
            )),
            None
        );
    }
}
