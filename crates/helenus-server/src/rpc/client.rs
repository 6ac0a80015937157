//! Requests to other nodes, encoded and decoded.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use helenus_cluster::{DocumentVersion, NodeInfo};
use helenus_cql::error::CqlError;
use helenus_query::cluster::{
    ListSearch, PartAnswer, Pin, PinnedCut, RemoteError, RemoteScan, RemoteWrite, Request, ReturnAddress,
    ScanRange, Sent, StaleEntries, TransactionAnswer, TransactionStep, Versions,
};
use helenus_query::response::Outcome;
use helenus_query::trace;
use helenus_tablet::{MetaStamp, TokenRange};
use tokio::time::Instant;
use uuid::Uuid;

use super::answer_codec::decode_execute_answer;
use super::failure::CallError;
use super::frame::Kind;
use super::messages::{self, encoded};
use super::peers::Peers;
use super::proto::{
    GetRequest, GetResponse, GreetRequest, GreetResponse, HoldResponse, Key, LoadRequest, LoadResponse,
    Operand, PartRequest, PartResponse, PinResponse, ReleaseRequest, RemoveStaleResponse, ScanRequest,
    SearchListsResponse, TellRequest, TransactResponse, WriteRequest, WriteResponse,
};
use super::remote_scan::Chunks;
use super::statement_codec::{Texts, encode_statement};
use super::{TabletReleased, cut_codec, envelope, index_codec, part_codec, transaction_codec};

impl Peers {
    pub(super) async fn ping(
        &self,
        node: &NodeInfo,
        message: &GreetRequest,
        timeout: Duration,
    ) -> Result<GreetResponse, CallError> {
        let answer = self.control(node, Kind::Greet, encoded(message), Instant::now() + timeout);
        messages::answer(answer.await?)
    }

    /// Sends the new version of the cluster document, and the stamp by which the store identifies it.
    pub(super) async fn announce_document(
        &self,
        node: &NodeInfo,
        written: &DocumentVersion,
        stamp: MetaStamp,
        timeout: Duration,
    ) -> Result<(), CallError> {
        let message = TellRequest {
            cluster_version: written.version,
            cluster_document: Bytes::copy_from_slice(&written.content),
            e_tag: stamp.e_tag,
            object_version: stamp.object_version,
        };
        let answer = self.control(node, Kind::Tell, encoded(&message), Instant::now() + timeout);
        answer.await.map(|_| ())
    }

    /// Notifies the next owner of a tablet that the tablet is closed here.
    pub(super) async fn release(
        &self,
        node: &NodeInfo,
        released: TabletReleased,
        timeout: Duration,
    ) -> Result<(), CallError> {
        let message = ReleaseRequest {
            host_id: Bytes::copy_from_slice(released.by.as_bytes()),
            tablet: released.tablet,
            epoch: released.epoch,
        };
        let answer = self.control(node, Kind::Release, encoded(&message), Instant::now() + timeout);
        answer.await.map(|_| ())
    }

    /// Has a node execute a request. The node gets the texts of prepared statements only if it does not know them.
    pub async fn execute(
        &self,
        node: &NodeInfo,
        request: &Request<'_>,
        deadline: Instant,
    ) -> Result<Outcome, RemoteError> {
        let began = trace::is_recording().then(std::time::Instant::now);
        let mut texts = match request.sends_texts {
            true => Texts::Sent,
            false => Texts::Omitted,
        };
        loop {
            let mut body = BytesMut::new();
            encode_statement(request, texts, began.is_some(), &mut body);
            let answer = self.request(node, Kind::Execute, body, deadline).await?;
            let answer = decode_execute_answer(answer, request)?;
            for step in answer.steps {
                let Some(began) = began else { break };
                let elapsed_us = u64::try_from(step.elapsed_us).unwrap_or(0);
                let activity = format!("{} (on {})", step.activity, node.description.rpc_address);
                trace::step_at(began + Duration::from_micros(elapsed_us), activity.into());
            }
            match answer.result {
                Err(RemoteError::Failed(CqlError::Unprepared(_))) if texts == Texts::Omitted => {
                    texts = Texts::Sent;
                }
                result => return result,
            }
        }
    }

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

    /// Requests that a node reads a part of an aggregate, and returns its partial result.
    pub async fn read_part(
        &self,
        node: &NodeInfo,
        request: &Request<'_>,
        tokens: TokenRange,
        deadline: Instant,
    ) -> Result<PartAnswer, RemoteError> {
        let mut texts = Texts::Omitted;
        loop {
            let mut statement = BytesMut::new();
            encode_statement(request, texts, false, &mut statement);
            let message = PartRequest {
                statement: statement.freeze(),
                first_token: tokens.first,
                last_token: tokens.last,
            };
            let answer = self
                .request(node, Kind::Part, encoded(&message), deadline)
                .await?;
            match part_codec::answer(messages::answer::<PartResponse>(answer)?) {
                Err(RemoteError::Failed(CqlError::Unprepared(_))) if texts == Texts::Omitted => {
                    texts = Texts::Sent;
                }
                answer => return answer,
            }
        }
    }

    pub async fn get(
        &self,
        node: &NodeInfo,
        keys: &[(i64, Bytes)],
        deadline: Instant,
    ) -> Result<Vec<Option<Bytes>>, RemoteError> {
        let key = |(token, key): &(i64, Bytes)| Key {
            token: *token,
            key: key.clone(),
        };
        let message = GetRequest {
            keys: keys.iter().map(key).collect(),
        };
        let answer = self.request(node, Kind::Get, encoded(&message), deadline).await?;
        let answer: GetResponse = messages::answer(answer)?;
        if answer.not_mine {
            return Err(RemoteError::NotOwned);
        }
        if answer.rows.len() != keys.len() {
            return Err(RemoteError::NoAnswer(
                "as many rows as keys were expected".to_owned(),
            ));
        }
        Ok(answer.rows.into_iter().map(|row| row.value).collect())
    }

    /// Searches posting lists on the node that owns them.
    pub async fn search_lists(
        &self,
        node: &NodeInfo,
        search: &ListSearch,
        deadline: Instant,
    ) -> Result<Vec<Bytes>, RemoteError> {
        let message = index_codec::list_search_request(search);
        let answer = self
            .request(node, Kind::SearchLists, encoded(&message), deadline)
            .await?;
        let answer: SearchListsResponse = messages::answer(answer)?;
        match answer.not_mine {
            true => Err(RemoteError::NotOwned),
            false => Ok(answer.lists),
        }
    }

    pub async fn scan(
        &self,
        node: &NodeInfo,
        range: &ScanRange,
        deadline: Instant,
    ) -> Result<Box<dyn RemoteScan>, RemoteError> {
        let message = ScanRequest {
            first_token: range.tokens.first,
            last_token: range.tokens.last,
            start: range.start.clone(),
            end: range.end.clone(),
            reversed: range.reversed,
        };
        let answers = self.begin_scan(node, encoded(&message), deadline).await?;
        Ok(Box::new(Chunks::new(answers)))
    }

    pub async fn write(
        &self,
        node: &NodeInfo,
        write: &RemoteWrite,
        deadline: Instant,
    ) -> Result<(), RemoteError> {
        let operand = |op: &helenus_tablet::Op| Operand {
            token: op.token,
            key: op.key.clone(),
            operand: op.operand.clone(),
        };
        let message = WriteRequest {
            operands: write.ops.iter().map(operand).collect(),
            durable: write.durable,
            maintain_indexes: write.maintains_indexes,
            uncaptured: write.is_uncaptured,
            schema_version: write.schema_version,
        };
        let answer = self
            .request(node, Kind::Write, encoded(&message), deadline)
            .await?;
        let answer: WriteResponse = messages::answer(answer)?;
        match (answer.not_mine, answer.error.is_empty()) {
            (true, _) => Err(RemoteError::NotOwned),
            (false, true) => Ok(()),
            (false, false) => {
                let error = envelope::outcome(&answer.error).err();
                Err(error.map_or_else(
                    || RemoteError::NoAnswer("an error was expected".to_owned()),
                    RemoteError::Failed,
                ))
            }
        }
    }

    /// Has a node take a step of a transaction over partitions of several nodes.
    pub async fn transact(
        &self,
        node: &NodeInfo,
        step: &TransactionStep,
        deadline: Instant,
    ) -> Result<TransactionAnswer, RemoteError> {
        let message = transaction_codec::request(step);
        let answer = self
            .request(node, Kind::Transact, encoded(&message), deadline)
            .await?;
        transaction_codec::answer(step, messages::answer::<TransactResponse>(answer)?)
    }

    /// Requests that a node removes stale index entries of its rows. Returns the number of removed entries.
    pub async fn remove_stale(
        &self,
        node: &NodeInfo,
        stale: &StaleEntries,
        deadline: Instant,
    ) -> Result<u64, RemoteError> {
        let message = index_codec::stale_request(stale);
        let answer = self
            .control(node, Kind::RemoveStale, encoded(&message), deadline)
            .await?;
        let answer: RemoveStaleResponse = messages::answer(answer)?;
        match answer.not_mine {
            true => Err(RemoteError::NotOwned),
            false => Ok(answer.removed),
        }
    }

    pub async fn hold(
        &self,
        node: &NodeInfo,
        cut: Uuid,
        deadline: Instant,
    ) -> Result<Vec<TokenRange>, RemoteError> {
        let message = cut_codec::hold_request(cut);
        let answer = self
            .control(node, Kind::Hold, encoded(&message), deadline)
            .await?;
        Ok(cut_codec::held(&messages::answer::<HoldResponse>(answer)?))
    }

    pub async fn pin(&self, node: &NodeInfo, pin: Pin, deadline: Instant) -> Result<PinnedCut, RemoteError> {
        let message = cut_codec::pin_request(pin);
        let answer = self.control(node, Kind::Pin, encoded(&message), deadline).await?;
        cut_codec::pinned(&messages::answer::<PinResponse>(answer)?).map_err(RemoteError::NoAnswer)
    }

    pub async fn load(
        &self,
        node: &NodeInfo,
        versions: Versions,
        is_settled: bool,
        deadline: Instant,
    ) -> Result<(), RemoteError> {
        let message = LoadRequest {
            schema_version: versions.schema,
            headers_version: versions.headers,
            settled: is_settled,
        };
        let answer = self
            .control(node, Kind::Load, encoded(&message), deadline)
            .await?;
        let loaded: LoadResponse = messages::answer(answer)?;
        match loaded.schema_version >= versions.schema && loaded.headers_version >= versions.headers {
            true => Ok(()),
            false => Err(RemoteError::NoAnswer(
                "the node has not read the newest cluster document".to_owned(),
            )),
        }
    }
}
