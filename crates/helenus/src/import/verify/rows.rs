//! The rows of the target, in the order of tokens.

use anyhow::Result;
use helenus_import::verify::{TargetRow, TargetRows};

use super::selection::Selection;
use crate::node_session::NodeSession;
use crate::table_reading::RangeScan;

/// All rows of a table.
pub struct SelectedRows<'r> {
    scan: RangeScan<'r>,
    selection: &'r Selection,
}

impl<'r> SelectedRows<'r> {
    pub fn new(session: &'r mut NodeSession, selection: &'r Selection) -> SelectedRows<'r> {
        SelectedRows {
            scan: RangeScan::new(session, &selection.statements.range, (i64::MIN, i64::MAX)),
            selection,
        }
    }
}

impl TargetRows for SelectedRows<'_> {
    type Error = anyhow::Error;

    fn next_row(&mut self) -> Result<Option<TargetRow>> {
        let row = self.scan.next_row()?;
        row.map(|(row, read_at_s)| self.selection.decode(row, read_at_s))
            .transpose()
    }
}
