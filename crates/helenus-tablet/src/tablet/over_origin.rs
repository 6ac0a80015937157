//! Merges the rows of a table's tablet with those of its origin ([`super::origins`]), in the order of a scan.

use bytes::Bytes;
use futures::future::BoxFuture;

use crate::data_model::RowMerge;
use crate::error::StoreError;
use crate::tablet::origins::merge_over;

pub(super) type Row = (Bytes, Bytes);

/// The rows of an origin in a range, under the keys of the table, in order or in reverse.
pub(super) trait RowsThere: Send {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Row>, StoreError>>;
}

/// The rows of a range of a table that has an origin.
pub(super) struct OverOrigin {
    rows: Box<dyn RowsThere>,
    reversed: bool,
    /// The next row of each side. `None` if it is not known yet.
    own: Option<Row>,
    there: Option<Row>,
}

impl OverOrigin {
    /// Creates the merge. `rows` are in the direction of the scan.
    pub fn new(rows: Box<dyn RowsThere>, reversed: bool) -> OverOrigin {
        OverOrigin {
            rows,
            reversed,
            own: None,
            there: None,
        }
    }

    /// Returns true if [`OverOrigin::next`] needs the next row of the table's tablet.
    pub fn lacks_own(&self) -> bool {
        self.own.is_none()
    }

    /// Returns the next row. `own` is the next row of the table's tablet. `None` if it is not needed, or if there is none.
    pub async fn next(&mut self, model: &dyn RowMerge, own: Option<Row>) -> Result<Option<Row>, StoreError> {
        if own.is_some() {
            self.own = own;
        }
        if self.there.is_none() {
            self.there = self.rows.next().await?;
        }
        let (Some((own, _)), Some((there, _))) = (&self.own, &self.there) else {
            return Ok(self.own.take().or_else(|| self.there.take()));
        };
        let comes_first = |a: &Bytes, b: &Bytes| if self.reversed { a > b } else { a < b };
        if comes_first(own, there) {
            return Ok(self.own.take());
        }
        if comes_first(there, own) {
            return Ok(self.there.take());
        }
        let (Some((key, own)), Some((_, there))) = (self.own.take(), self.there.take()) else {
            return Ok(None);
        };
        let row = merge_over(model, &key, Some(own), Some(there))?;
        Ok(row.map(|row| (key, row)))
    }
}
