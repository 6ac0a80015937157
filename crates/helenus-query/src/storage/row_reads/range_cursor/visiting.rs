//! Reads of the entries of a range as they are stored, without decoding them.

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_tablet::Visit;

use super::RangeCursor;
use crate::storage::ExecutionContext;

/// The reason why visiting ended ([`RangeCursor::visit`]).
pub enum Visited {
    /// There are no more entries.
    End,
    /// The visitor returned [`Visit::Last`].
    Last,
    /// The visitor returned [`Visit::Before`] for the entry with this key and packed row. Later calls do not pass the entry again.
    Before(Bytes, Bytes),
}

impl RangeCursor {
    /// Passes the key and packed row of each entry to `visit`, in order and without a copy, as long as `visit` returns [`Visit::Next`].
    /// [`RangeCursor::next_partition`] and [`RangeCursor::next_row`] read ahead, so a cursor is read either by them or in this way.
    pub async fn visit(
        &mut self,
        context: &ExecutionContext,
        visit: &mut (dyn FnMut(&[u8], &[u8]) -> Visit + Send),
    ) -> Result<Visited, CqlError> {
        loop {
            let mut wish = Visit::Next;
            if let Some(scan) = &mut self.scan {
                let last = scan.visit_at_hand(&mut |key, packed| {
                    wish = visit(key, packed);
                    wish
                });
                if last.is_some() && self.begun_at.is_some() {
                    self.last = last;
                    self.restarts = 0;
                }
                if wish == Visit::Last {
                    return Ok(Visited::Last);
                }
            }
            let Some((key, packed)) = self.next_stored(context).await? else {
                return Ok(Visited::End);
            };
            if wish == Visit::Next {
                wish = visit(&key, &packed);
            }
            match wish {
                Visit::Next => {}
                Visit::Last => return Ok(Visited::Last),
                Visit::Before => return Ok(Visited::Before(key, packed)),
            }
        }
    }
}
