//! The size of an answer: its memory is reserved, and an answer that is too large is refused.

use helenus_cql::error::{Consistency, CqlError, Failure};

use crate::limits::node_limits::NodeLimits;
use crate::limits::scope;

/// The code of `RequestFailureReason.READ_SIZE`.
const READ_SIZE: u16 = 4;
/// Bytes by which memory is reserved. A smaller answer reserves none.
const STEP_BYTES: usize = 256 << 10;

/// The size of an answer in progress.
pub(crate) struct ResultSize<'e> {
    limits: &'e NodeLimits,
    reserved: usize,
}

impl<'e> ResultSize<'e> {
    pub fn new(limits: &'e NodeLimits) -> ResultSize<'e> {
        ResultSize { limits, reserved: 0 }
    }

    /// Reserves memory for an answer that has grown to `bytes`.
    ///
    /// # Errors
    /// The answer is too large (a read failure), there is no memory for it, or the request must end.
    pub async fn reserve(&mut self, bytes: usize) -> Result<(), CqlError> {
        if bytes < self.reserved + STEP_BYTES {
            return Ok(());
        }
        let limit = self.limits.load().answer_bytes_max;
        if bytes > limit {
            return Err(too_large(limit));
        }
        scope::reserve(&self.limits.answers, bytes - self.reserved).await?;
        self.reserved = bytes;
        Ok(())
    }
}

fn too_large(limit: usize) -> CqlError {
    CqlError::ReadFailure {
        message: format!(
            "The answer is larger than {limit} bytes, the limit of answer_bytes_max; query aborted. Request it in pages"
        ),
        consistency: Consistency::One,
        received: 0,
        block_for: 1,
        failures: vec![Failure {
            endpoint: std::net::IpAddr::from([127, 0, 0, 1]),
            code: READ_SIZE,
        }],
        data_present: false,
    }
}
