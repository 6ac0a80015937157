//! The rows of one side between two tokens.

use anyhow::{Context, Result};

use super::join::Rows;
use super::plan::TablePlan;
use super::row::TableRow;
use crate::node_session::NodeSession;
use crate::table_reading::RangeScan;

/// The rows of a range, which are counted.
pub struct RangeRows<'r> {
    scan: RangeScan<'r>,
    plan: &'r TablePlan,
    /// Number of rows read so far.
    pub count: u64,
}

impl<'r> RangeRows<'r> {
    /// Returns the rows of tokens above the first one, up to the second.
    pub fn new(session: &'r mut NodeSession, plan: &'r TablePlan, range: (i64, i64)) -> RangeRows<'r> {
        RangeRows {
            scan: RangeScan::new(session, &plan.statements.range, range),
            plan,
            count: 0,
        }
    }
}

impl Rows for RangeRows<'_> {
    fn next_row(&mut self) -> Result<Option<TableRow>> {
        let row = self
            .scan
            .next_row()
            .with_context(|| format!("table {}", self.plan.name))?;
        self.count += u64::from(row.is_some());
        row.map(|(row, read_at_s)| self.plan.decode(row, read_at_s))
            .transpose()
    }
}
