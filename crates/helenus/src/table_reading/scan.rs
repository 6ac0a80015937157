//! The rows of a range of tokens, page by page.

use std::collections::VecDeque;

use anyhow::Result;
use bytes::Bytes;

use crate::node_session::{NodeSession, now_s};

/// The rows of a range of tokens, or of another statement.
pub struct RangeScan<'r> {
    session: &'r mut NodeSession,
    statement: &'r str,
    values: Vec<Bytes>,
    rows: VecDeque<Vec<Option<Bytes>>>,
    /// The time of the last page, in seconds since 1970.
    read_at_s: i64,
    /// The paging state of the next page. `None` before the first page.
    state: Option<Bytes>,
    is_last: bool,
}

impl<'r> RangeScan<'r> {
    /// Returns the rows of tokens above `after`, up to `last`.
    pub fn new(session: &'r mut NodeSession, statement: &'r str, (after, last): (i64, i64)) -> RangeScan<'r> {
        let bytes = |token: i64| Bytes::copy_from_slice(&token.to_be_bytes());
        RangeScan::of(session, statement, vec![bytes(after), bytes(last)])
    }

    /// Returns the rows of a statement with these values.
    pub fn of(session: &'r mut NodeSession, statement: &'r str, values: Vec<Bytes>) -> RangeScan<'r> {
        RangeScan {
            session,
            statement,
            values,
            rows: VecDeque::new(),
            read_at_s: 0,
            state: None,
            is_last: false,
        }
    }

    /// Returns the next row, with the time of its answer in seconds since 1970. `None` at the end.
    pub fn next_row(&mut self) -> Result<Option<(Vec<Option<Bytes>>, i64)>> {
        while self.rows.is_empty() && !self.is_last {
            let page = self
                .session
                .page(self.statement, &self.values, self.state.as_ref())?;
            self.read_at_s = now_s();
            self.rows.extend(page.content.iter());
            self.state = page.page.paging_state;
            self.is_last = self.state.is_none();
        }
        Ok(self.rows.pop_front().map(|row| (row, self.read_at_s)))
    }
}
