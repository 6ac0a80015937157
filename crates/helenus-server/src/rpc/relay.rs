//! Relayed requests: forwarded requests whose answers go to the connections of clients, without a future that waits for them.

use std::task::Waker;

use bytes::BytesMut;
use helenus_cluster::NodeInfo;
use helenus_query::cluster::{Request, ReturnAddress, Sent};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::answer_codec::decode_relayed_answer;
use super::failure::CallError;
use super::peers::Peers;
use super::pending::Outcome;
use super::statement_codec::{Texts, encode_statement};

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
    pub fn send_quietly(mut self, outcome: Outcome) -> Option<Waker> {
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

impl Peers {
    /// Queues a request whose answer goes to `back`. `None` if nothing was queued, because the request would have to wait.
    pub(super) fn relay(
        &self,
        node: &NodeInfo,
        request: &Request<'_>,
        deadline: Instant,
        back: ReturnAddress,
    ) -> Option<Sent> {
        let mut body = BytesMut::new();
        encode_statement(request, Texts::Omitted, false, &mut body);
        self.relay_body(node, body, deadline, back)
    }
}
