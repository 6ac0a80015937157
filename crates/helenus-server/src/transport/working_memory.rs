//! The memory that long requests take beyond their own bytes while they run: syntax trees, plans and cells. These are about a hundred times
//! as large as their text. All long requests of a node share one budget, and a request waits while the budget is used up.

use std::time::Duration;

use helenus_cql::error::CqlError;
use helenus_cql::frame::Request;
use helenus_cql::frame::request::{BatchStatement, StatementRef};
use helenus_query::request::BoundValue;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Bytes that one word of a statement takes in memory. Measured for lists, batches, selections and relations: 35 to 420.
const BYTES_PER_WORD: usize = 256;
/// Bytes that a statement of a batch takes beyond its words.
const BYTES_PER_STATEMENT: usize = 512;
/// Bytes that an element of a bound collection takes in memory.
const BYTES_PER_ELEMENT: usize = 256;
/// Bytes of one permit of the semaphore.
const UNIT_BYTES: usize = 1024;
/// Maximum time that a request waits for memory.
const WAIT: Duration = Duration::from_secs(10);

/// The budget of a node.
pub(crate) struct WorkingMemory {
    units: u32,
    free: Semaphore,
}

impl WorkingMemory {
    /// Returns a budget of `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> WorkingMemory {
        let units = u32::try_from(bytes_max / UNIT_BYTES).unwrap_or(u32::MAX >> 4);
        let units = units.clamp(1, u32::MAX >> 4);
        WorkingMemory {
            units,
            free: Semaphore::new(units as usize),
        }
    }

    /// Reserves memory until the result is dropped, and waits for it if necessary. A request that needs more than the whole budget reserves
    /// all of it.
    ///
    /// # Errors
    /// [`CqlError::Overloaded`] if other requests hold the memory for too long.
    pub async fn reserve(&self, bytes: usize) -> Result<SemaphorePermit<'_>, CqlError> {
        let units = u32::try_from(bytes / UNIT_BYTES).map_or(self.units, |units| units.min(self.units));
        match tokio::time::timeout(WAIT, self.free.acquire_many(units)).await {
            Ok(Ok(permit)) => Ok(permit),
            // The first case does not occur, because the semaphore is never closed.
            Ok(Err(_)) | Err(_) => Err(CqlError::Overloaded(format!(
                "Long statements in progress take all of the {} bytes that they may take (node_in_flight_bytes); try again later, or send \
                 smaller batches and literals",
                self.units as usize * UNIT_BYTES
            ))),
        }
    }
}

/// Estimates the bytes that a request takes while it runs, beyond its own bytes.
pub(crate) fn expanded_len(request: &Request) -> usize {
    match request {
        Request::Query(query) => text_len(&query.query) + values_len(query.parameters.values.iter()),
        Request::Prepare(prepare) => text_len(&prepare.query),
        Request::Execute(execute) => values_len(execute.parameters.values.iter()),
        Request::Batch(batch) => batch.statements.iter().map(statement_len).sum(),
        _ => 0,
    }
}

fn statement_len(statement: &BatchStatement) -> usize {
    let text = match &statement.statement {
        StatementRef::Query(text) => text_len(text),
        StatementRef::Prepared(_) => 0,
    };
    BYTES_PER_STATEMENT + text + values_len(statement.values.iter())
}

/// Estimates the bytes that a text takes, from the number of its separators. Separators in a long literal count, too, which only makes the
/// estimate larger.
fn text_len(text: &str) -> usize {
    let parts_words = |byte: &u8| matches!(byte, b' ' | b',' | b'(' | b')' | b';' | b':');
    text.bytes().filter(|byte| parts_words(byte)).count() * BYTES_PER_WORD
}

fn values_len<'v>(values: impl Iterator<Item = &'v BoundValue>) -> usize {
    values.map(value_len).sum()
}

/// Estimates the bytes that a value takes, if it may be a collection. The type is not known here. A value counts as a collection if it
/// begins with a count and is long enough for that many elements.
fn value_len(value: &BoundValue) -> usize {
    let BoundValue::Set(bytes) = value else {
        return 0;
    };
    let count = match bytes.first_chunk::<4>() {
        Some(count) => u32::from_be_bytes(*count) as usize,
        None => return 0,
    };
    match count.saturating_mul(size_of::<i32>()) <= bytes.len() {
        true => count * BYTES_PER_ELEMENT,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn request_waits_for_memory_and_largest_gets_all() {
        let memory = WorkingMemory::new(10 * UNIT_BYTES);
        let most = memory.reserve(1 << 40).await.unwrap();
        let mut waiting = std::pin::pin!(memory.reserve(UNIT_BYTES));
        assert!(futures::poll!(&mut waiting).is_pending());
        drop(most);
        assert!(waiting.await.is_ok());
    }

    #[test]
    fn words_statements_and_elements_count() {
        assert_eq!(text_len("a (b, c);"), 6 * BYTES_PER_WORD);
        let list = |count: u32, len: usize| {
            let mut bytes = count.to_be_bytes().to_vec();
            bytes.resize(len, 0);
            BoundValue::Set(bytes.into())
        };
        assert_eq!(value_len(&list(1000, 8004)), 1000 * BYTES_PER_ELEMENT);
        assert_eq!(value_len(&list(u32::MAX, 8004)), 0);
        assert_eq!(value_len(&BoundValue::Null), 0);
    }
}
