//! The answers of a connection that wait to be written.

use std::sync::Arc;

use bytes::BytesMut;
use helenus_query::limits::answers::Reservation;

use super::failure::Failure;
use super::frame::{Header, Kind, MESSAGE_BYTES_MAX, flags};
use super::mailbox::Mailbox;

/// The work that ends with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// No work: further chunks of a scan follow.
    Nothing,
    Request,
    Scan,
}

/// An answer that waits to be written.
pub(super) struct Reply {
    pub header: Header,
    pub body: BytesMut,
    /// Memory that stays reserved until the answer has been written.
    pub reserved: Option<Reservation>,
    pub ends: Ends,
}

impl Reply {
    /// Returns the reply to a request that has failed.
    pub fn failure(id: u32, failure: &Failure, ends: Ends) -> Reply {
        Reply {
            header: Header {
                flags: failure.flags,
                ..Header::new(Kind::Failure, id)
            },
            body: BytesMut::from(failure.text.as_bytes()),
            reserved: None,
            ends,
        }
    }
}

/// The answers that wait, in order.
#[derive(Default)]
pub(super) struct Replies {
    pub ready: Vec<Reply>,
    /// True once the connection has ended. Answers are dropped then.
    pub is_closed: bool,
}

impl Replies {
    fn push(&mut self, reply: Reply) {
        if !self.is_closed {
            self.ready.push(reply);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Drops all answers, and those that follow.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.ready = Vec::new();
    }
}

/// Sends the answer to one request. If this is dropped without an answer, as after a panic, it sends a failure.
pub(super) struct Replier {
    id: u32,
    replies: Arc<Mailbox<Replies>>,
    /// [`Ends::Nothing`] once the last answer was sent.
    ends: Ends,
}

impl Replier {
    pub fn new(id: u32, replies: Arc<Mailbox<Replies>>, ends: Ends) -> Replier {
        Replier { id, replies, ends }
    }

    /// Sends a part of the answer, which further parts follow.
    pub fn more(&self, body: BytesMut) {
        let reply = Reply {
            header: Header {
                flags: flags::MORE,
                ..Header::new(Kind::Answer, self.id)
            },
            body,
            reserved: None,
            ends: Ends::Nothing,
        };
        self.replies.put(|replies| replies.push(reply));
    }

    /// Sends the last answer.
    pub fn finish(mut self, result: Result<BytesMut, Failure>, reserved: Option<Reservation>) {
        let ends = std::mem::replace(&mut self.ends, Ends::Nothing);
        let reply = match result {
            Ok(body) if body.len() <= MESSAGE_BYTES_MAX => Reply {
                header: Header::new(Kind::Answer, self.id),
                body,
                reserved,
                ends,
            },
            Ok(body) => {
                let len = body.len();
                let text = format!("the answer has {len} bytes; the maximum is {MESSAGE_BYTES_MAX}");
                Reply::failure(self.id, &Failure::new(text), ends)
            }
            Err(failure) => Reply::failure(self.id, &failure, ends),
        };
        self.replies.put(|replies| replies.push(reply));
    }
}

impl Drop for Replier {
    fn drop(&mut self) {
        if self.ends != Ends::Nothing {
            let reply = Reply::failure(self.id, &Failure::broken(), self.ends);
            self.replies.put(|replies| replies.push(reply));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_gets_one_last_answer() {
        let replies = Arc::new(Mailbox::new(Replies::default()));
        let replier = |id, ends| Replier::new(id, replies.clone(), ends);
        replier(1, Ends::Request).finish(Ok(BytesMut::from(&b"yes"[..])), None);
        replier(2, Ends::Request).finish(Err(Failure::undone("no")), None);
        let scan = replier(3, Ends::Scan);
        scan.more(BytesMut::new());
        drop(scan);
        let ready = replies.take(|replies| std::mem::take(&mut replies.ready));
        let shown = |reply: &Reply| (reply.header.kind, reply.header.id, reply.header.flags, reply.ends);
        let expected = [
            (Kind::Answer, 1, 0, Ends::Request),
            (Kind::Failure, 2, flags::UNDONE, Ends::Request),
            (Kind::Answer, 3, flags::MORE, Ends::Nothing),
            (Kind::Failure, 3, 0, Ends::Scan),
        ];
        assert_eq!(ready.iter().map(shown).collect::<Vec<_>>(), expected);
        replies.take(Replies::close);
        drop(replier(4, Ends::Request));
        assert!(replies.look(|replies| replies.is_empty()));
    }
}
