//! The receiver of the answer to a relayed request: a client's connection, which has no future for the request.

use std::task::Waker;

use bytes::Bytes;
use helenus_query::cluster::ReturnAddress;
use tokio::sync::OwnedSemaphorePermit;

use super::answer_codec::decode_relayed_answer;
use super::failure::CallError;

/// The receiver of the answer to a relayed request. If this is dropped without an answer, the request has none.
pub(super) struct RelaySink {
    /// `None` once the answer was sent.
    back: Option<ReturnAddress>,
    _permit: OwnedSemaphorePermit,
}

impl RelaySink {
    pub fn new(back: ReturnAddress, permit: OwnedSemaphorePermit) -> RelaySink {
        RelaySink {
            back: Some(back),
            _permit: permit,
        }
    }

    /// Sends the answer. Returns the waker of the receiver's task if the caller must wake it.
    pub fn send_quietly(mut self, outcome: Result<Bytes, CallError>) -> Option<Waker> {
        let ReturnAddress { receiver, number, .. } = self.back.take()?;
        let answer = match outcome {
            Ok(message) => decode_relayed_answer(message),
            Err(error) => Err(error.into()),
        };
        receiver.put(number, answer)
    }
}

impl Drop for RelaySink {
    fn drop(&mut self) {
        if let Some(ReturnAddress { receiver, number, .. }) = self.back.take() {
            let error = CallError::NoAnswer("the connection has ended".to_owned());
            if let Some(waker) = receiver.put(number, Err(error.into())) {
                waker.wake();
            }
        }
    }
}
