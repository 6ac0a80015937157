//! Scans for other nodes. The caller requests each chunk, so a slow caller delays only its own scan. A scan that waits holds no thread.

use std::sync::Arc;

use bytes::BytesMut;
use helenus_query::cluster::ScanRange;
use helenus_query::engine::{Engine, ServedScan};
use helenus_query::failure::ExecutionError;
use helenus_tablet::TokenRange;
use tokio::sync::Semaphore;

use super::failure::Failure;
use super::messages::encoded;
use super::proto::{Entry, ScanChunk, ScanRequest};
use super::replies::Replier;

/// Bytes of rows in a chunk.
const CHUNK_BYTES: usize = 256 << 10;

fn range(request: ScanRequest) -> ScanRange {
    ScanRange {
        tokens: TokenRange {
            first: request.first_token,
            last: request.last_token,
        },
        start: request.start,
        end: request.end,
        reversed: request.reversed,
    }
}

/// Sends that the scan has begun, and then its chunks. Each chunk takes a permit of `credit`. Ends early when `credit` is closed.
pub(super) async fn serve(
    engine: Arc<Engine>,
    request: ScanRequest,
    credit: Arc<Semaphore>,
    replier: Replier,
) {
    replier.more(BytesMut::new());
    let range = range(request);
    let mut scan = match engine.serve_scan(&range).await {
        Ok(scan) => scan,
        Err(refused) => return replier.finish(refusal(refused).map(|chunk| encoded(&chunk)), None),
    };
    loop {
        match credit.acquire().await {
            Ok(permit) => permit.forget(),
            Err(_) => return replier.finish(Err(Failure::new("the scan was given up")), None),
        }
        match next_chunk(&mut scan).await {
            Ok(chunk) if !chunk.is_last && !chunk.not_mine => replier.more(encoded(&chunk)),
            last => return replier.finish(last.map(|chunk| encoded(&chunk)), None),
        }
    }
}

async fn next_chunk(scan: &mut ServedScan) -> Result<ScanChunk, Failure> {
    match scan.next_chunk(CHUNK_BYTES).await {
        Ok((rows, is_last)) => Ok(ScanChunk {
            not_mine: false,
            entries: rows
                .into_iter()
                .map(|(key, value)| Entry { key, value })
                .collect(),
            is_last,
        }),
        Err(refused) => refusal(refused),
    }
}

fn refusal(refused: ExecutionError) -> Result<ScanChunk, Failure> {
    match refused {
        ExecutionError::NotOwned => Ok(ScanChunk {
            not_mine: true,
            ..ScanChunk::default()
        }),
        ExecutionError::Failed(error) => Err(Failure::new(error.to_string())),
    }
}
