//! A scan on another node. Two chunks are requested ahead of the rows that the caller takes.

use async_trait::async_trait;
use bytes::Bytes;
use helenus_query::cluster::{RemoteError, RemoteScan};

use super::connection::ScanAnswers;
use super::messages;
use super::proto::{Entry, ScanChunk};

/// The rows of a scan, as they arrive.
pub(super) struct Chunks {
    answers: ScanAnswers,
    entries: std::vec::IntoIter<Entry>,
    is_last: bool,
}

impl Chunks {
    pub fn new(answers: ScanAnswers) -> Chunks {
        Chunks {
            answers,
            entries: Vec::new().into_iter(),
            is_last: false,
        }
    }
}

#[async_trait]
impl RemoteScan for Chunks {
    async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, RemoteError> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Ok(Some((entry.key, entry.value)));
            }
            if self.is_last {
                return Ok(None);
            }
            let chunk: ScanChunk = messages::answer(self.answers.next().await?)?;
            if chunk.not_mine {
                return Err(RemoteError::NotOwned);
            }
            self.entries = chunk.entries.into_iter();
            self.is_last = chunk.is_last;
        }
    }
}
