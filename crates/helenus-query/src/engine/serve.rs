//! Requests of other nodes to this one. This node must own all tokens that a request is about.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use helenus_cql::error::CqlError;
use helenus_cql::frame::forwarded::ForwardedRequest;
use helenus_row::murmur3_token;
use helenus_tablet::{Scan, StoreError, TokenRange, WriteBatch};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::Engine;
use crate::analysis::{Plan, Planned};
use crate::boxed;
use crate::cluster::{
    Backoff, Cluster, LeaseTerm, ListSearch, Owner, PartAnswer, RemoteWrite, Request, RequestWork, ScanRange,
    Source, TransactionAnswer, TransactionStep, Versions,
};
use crate::execution;
use crate::execution::routing::serve::serve;
use crate::execution::select::part_owners;
use crate::execution::timing::Timing;
use crate::execution::transaction::spread;
use crate::execution::writes::commit::apply_here;
use crate::execution::writes::{WriteSet, batch_recovery};
use crate::failure::ExecutionError;
use crate::index::nearest::lists;
use crate::index::stale_entry::StaleEntries;
use crate::index::stale_removal;
use crate::limits::scope;
use crate::request::{ClientFrame, ClientState, QueryParameters};
use crate::response::Outcome;
use crate::storage::key_reads::{self, Undecided};
use crate::storage::writes::failed;

/// Maximum time for which a request of another node waits for a tablet of this node. The tablet may not be open yet, or may still be handed
/// over.
const OPENING_PATIENCE: Duration = Duration::from_secs(1);

/// Maximum number of tries to read the undecided transactions of a tablet, and the pause between two of them. The store may refuse requests
/// for a moment, and to open the tablet once more would cost more.
const LOAD_TRIES: u32 = 40;
const LOAD_PAUSE: Duration = Duration::from_millis(250);

/// Returns the masked plan if the requesting node has found that its client may not see masked values.
fn as_asked(planned: Arc<Planned>, masks: bool) -> Arc<Planned> {
    match (masks, &planned.masked) {
        (true, Some(masked)) => masked.clone(),
        _ => planned,
    }
}

/// Returns true if this node owns the request's partitions.
fn owns(cluster: &dyn Cluster, request: &Request<'_>) -> bool {
    let is_here = |token| cluster.owner(token) == Owner::Here;
    match request.share {
        Some(share) => share.iter().flatten().all(|key| is_here(murmur3_token(key))),
        None => request.token.is_some_and(is_here),
    }
}

impl Engine {
    fn require_cluster(&self) -> Result<&Arc<dyn Cluster>, ExecutionError> {
        self.cluster().ok_or(ExecutionError::NotOwned)
    }

    /// Runs a request that another node has forwarded, or this node's share of it. The request is not routed again: the other node has chosen
    /// this one by the token in the `header`. The caller must run the future to its end.
    ///
    /// # Errors
    /// [`ExecutionError::NotOwned`], before anything was done. [`CqlError::Unprepared`] if a plan is outdated.
    pub fn serve_statement<'s>(
        self: &'s Arc<Self>,
        source: Source<'s>,
        keyspace: Option<&'s str>,
        frame: ClientFrame<'s>,
        header: &'s ForwardedRequest<'s>,
    ) -> BoxFuture<'s, Result<Outcome, ExecutionError>> {
        Box::pin(async move {
            let only_reads = matches!(source, Source::Prepared(prepared) if !prepared.is_write);
            let _epoch = (!only_reads).then(|| self.context.writing.epochs.enter());
            let schema_version = self.context.schema.load().document_version;
            let request = |work| Request {
                masks: header.masks,
                token: Some(header.token),
                share: header.share.as_ref(),
                ..Request::new(frame, source, work, keyspace, schema_version)
            };
            match source {
                Source::Text(_) | Source::Prepared(_) => {
                    let planned = &self.planned(source, keyspace, header.masks)?;
                    execution::limit_time(&self.context.limits().timeouts, &planned.plan);
                    let values = planned.markers.bind(&frame.parameters.values)?;
                    let values = &*values;
                    self.serve_request(&request(RequestWork::Statement { planned, values }))
                        .await
                }
                Source::Batch(kind, statements) => {
                    let write_type = crate::analysis::modification::batch::write_type(kind);
                    scope::limit_time(self.context.limits().timeouts.write(write_type), true);
                    let client = ClientState::default();
                    let batch = self.plan_batch(&client, keyspace, kind, statements).await?;
                    self.serve_request(&request(RequestWork::Batch(&batch))).await
                }
            }
        })
    }

    /// Returns the plan of a statement that is not a batch.
    fn planned(
        &self,
        source: Source<'_>,
        keyspace: Option<&str>,
        masks: bool,
    ) -> Result<Arc<Planned>, CqlError> {
        let planned = match source {
            Source::Text(text) => crate::measurement::parsing(|| {
                let parsed = self.parse(text)?;
                self.plan(keyspace, &parsed).map(Arc::new)
            })?,
            Source::Prepared(prepared) => self.current_plan(prepared)?,
            Source::Batch(..) => {
                return Err(CqlError::Server(
                    "a batch has no plan of one statement".to_owned(),
                ));
            }
        };
        match planned.plan {
            Plan::Direct(_) | Plan::InsertRows(_) => Err(CqlError::Server(
                "a statement that concerns no rows, or rows of all owners, has no owner".to_owned(),
            )),
            Plan::Select(_) | Plan::Modification(_) | Plan::Batch(_) | Plan::Transaction(_) => {
                Ok(as_asked(planned, masks))
            }
        }
    }

    /// Reads a part of a statement for the node that merges the parts. The tokens of the part are in one tablet of this node.
    ///
    /// # Errors
    /// [`ExecutionError::NotOwned`] if another node owns the rows, or may own them.
    pub async fn serve_part(
        &self,
        source: Source<'_>,
        keyspace: Option<&str>,
        parameters: &QueryParameters,
        masks: bool,
        tokens: TokenRange,
    ) -> Result<PartAnswer, ExecutionError> {
        let cluster = self.require_cluster()?;
        let term = cluster.lease_term();
        self.await_open(cluster.as_ref(), std::iter::once(tokens.first))
            .await?;
        if !self
            .context
            .store
            .tablet(tokens.first)?
            .token_range()
            .contains(tokens.last)
        {
            return Err(ExecutionError::NotOwned);
        }
        let planned = self.planned(source, keyspace, masks)?;
        execution::limit_time(&self.context.limits().timeouts, &planned.plan);
        let values = planned.markers.bind(&parameters.values)?;
        let answer = part_owners::serve(&self.context, &planned, &values, parameters, tokens).await?;
        match cluster.may_serve_since(term) {
            true => Ok(answer),
            false => Err(ExecutionError::NotOwned),
        }
    }

    /// Runs a request whose partitions this node owns. Waits if their tablets are not open yet.
    async fn serve_request(&self, request: &Request<'_>) -> Result<Outcome, ExecutionError> {
        let cluster = self.require_cluster()?.as_ref();
        let deadline = self.context.deadline();
        let mut opening = Backoff::until(deadline.min(Instant::now() + OPENING_PATIENCE), cluster);
        loop {
            if !owns(cluster, request) {
                return Err(ExecutionError::NotOwned);
            }
            let timing = Timing::begin(None);
            // The future is boxed, because otherwise the nested futures are too deep for the compiler.
            let served: BoxFuture<'_, _> = Box::pin(serve(&self.context, cluster, request, deadline, timing));
            match served.await {
                Err(ExecutionError::NotOwned) if opening.wait(cluster).await => {}
                served => return served,
            }
        }
    }

    /// Waits for tablets that this node owns but has not opened yet, or that are still being handed over.
    ///
    /// # Errors
    /// Another node owns one of the tablets, or a tablet was not opened in time.
    async fn await_open(
        &self,
        cluster: &dyn Cluster,
        tokens: impl Iterator<Item = i64> + Clone,
    ) -> Result<(), ExecutionError> {
        let mut opening = None;
        loop {
            if tokens.clone().any(|token| cluster.owner(token) != Owner::Here) {
                return Err(ExecutionError::NotOwned);
            }
            if tokens
                .clone()
                .all(|token| self.context.store.tablet(token).is_ok())
            {
                return Ok(());
            }
            let opening =
                opening.get_or_insert_with(|| Backoff::until(Instant::now() + OPENING_PATIENCE, cluster));
            if !opening.wait(cluster).await {
                return Err(ExecutionError::NotOwned);
            }
        }
    }

    /// Reads rows by token and key.
    #[boxed]
    pub async fn serve_get(&self, keys: &[(i64, Bytes)]) -> Result<Vec<Option<Bytes>>, ExecutionError> {
        let cluster = self.require_cluster()?;
        let term = cluster.lease_term();
        let tokens = keys.iter().map(|(token, _)| *token);
        self.await_open(cluster.as_ref(), tokens).await?;
        let mut rows = Vec::with_capacity(keys.len());
        for (token, key) in keys {
            scope::checkpoint().await?;
            rows.push(key_reads::get_here(&self.context, *token, key).await?);
        }
        match cluster.may_serve_since(term) {
            true => Ok(rows),
            false => Err(ExecutionError::NotOwned),
        }
    }

    /// Searches posting lists. Returns the encoded entries of each list.
    #[boxed]
    pub async fn serve_list_search(&self, search: &ListSearch) -> Result<Vec<Bytes>, ExecutionError> {
        let cluster = self.require_cluster()?;
        let term = cluster.lease_term();
        self.await_open(cluster.as_ref(), lists::tokens(search)).await?;
        let found = lists::serve(&self.context, search).await?;
        match cluster.may_serve_since(term) {
            true => Ok(found),
            false => Err(ExecutionError::NotOwned),
        }
    }

    /// Begins a scan of keys of one tablet.
    pub fn serve_scan<'s>(
        self: &'s Arc<Self>,
        range: &'s ScanRange,
    ) -> BoxFuture<'s, Result<ServedScan, ExecutionError>> {
        Box::pin(async move {
            let cluster = self.require_cluster()?;
            let term = cluster.lease_term();
            self.await_open(cluster.as_ref(), std::iter::once(range.tokens.first))
                .await?;
            Ok(ServedScan {
                scan: key_reads::scan_here(&self.context, range, Undecided::Awaited).await?,
                cluster: cluster.clone(),
                term,
            })
        })
    }

    /// Writes operands. The caller must run the future to its end.
    pub fn serve_write<'s>(
        self: &'s Arc<Self>,
        write: RemoteWrite,
    ) -> BoxFuture<'s, Result<(), ExecutionError>> {
        Box::pin(async move {
            let cluster = self.require_cluster()?.clone();
            let tokens = write.ops.iter().map(|op| op.token);
            self.await_open(cluster.as_ref(), tokens).await?;
            if !write.maintains_indexes {
                let batch = WriteBatch::of(write.ops);
                let written = self.context.store.write(batch, write.durable).await;
                return written.map_err(failed);
            }
            let _epoch = self.context.writing.epochs.enter();
            let mut writes = WriteSet::from_ops(&self.schema(), write.ops)?;
            writes.is_uncaptured = write.is_uncaptured;
            writes.lock_indexed(&self.context).await?;
            apply_here(&self.context, &cluster, writes).await
        })
    }

    /// Removes those of the entries that are stale and whose rows this node owns. Returns their number.
    #[boxed]
    pub async fn serve_stale(&self, stale: &StaleEntries) -> Result<u64, ExecutionError> {
        stale_removal::remove(&self.context, stale).await
    }

    /// Takes a step of a transaction over partitions of several owners. The caller must run the future to its end.
    pub fn serve_transaction<'s>(
        self: &'s Arc<Self>,
        step: TransactionStep,
    ) -> BoxFuture<'s, Result<TransactionAnswer, ExecutionError>> {
        Box::pin(async move {
            let cluster = self.require_cluster()?;
            match &step {
                TransactionStep::Lock {
                    partitions,
                    schema_version,
                    ..
                } => {
                    self.load_schema(*schema_version).await?;
                    let tokens = partitions.iter().map(|(_, token)| *token);
                    self.await_open(cluster.as_ref(), tokens).await?;
                }
                TransactionStep::Intend { schema_version, .. } => self.load_schema(*schema_version).await?,
                TransactionStep::Confirm { .. }
                | TransactionStep::End { .. }
                | TransactionStep::States { .. } => {}
            }
            spread::serve(&self.context, cluster, step).await
        })
    }

    /// Has every tablet that is opened from now on load its undecided transactions before its first request.
    pub(super) fn load_transactions(&self) {
        let (context, runtime) = (Arc::downgrade(&self.context), Handle::current());
        self.context.store.prepare_tablets(Box::new(move |tablet| {
            let (context, runtime) = (context.clone(), runtime.clone());
            Box::pin(async move {
                let mut tries = 0;
                loop {
                    let context = context.upgrade().ok_or(StoreError::Closed)?;
                    tries += 1;
                    match spread::load(&context, &tablet, &runtime).await {
                        Ok(()) => return Ok(()),
                        Err(error) if tries >= LOAD_TRIES => {
                            return Err(StoreError::Unavailable(error.to_string()));
                        }
                        Err(_) => tokio::time::sleep(LOAD_PAUSE).await,
                    }
                }
            })
        }));
    }

    /// Replays the batch log of a tablet that was opened here.
    ///
    /// # Errors
    /// The log can't be read. Batches that can't be applied are retried in the background.
    #[boxed]
    pub async fn recover_batches(&self, tokens: TokenRange) -> Result<usize, CqlError> {
        batch_recovery::recover(&self.context, tokens).await
    }

    /// Loads the documents that are older than `versions`. Returns the versions of the loaded documents.
    pub fn load<'s>(self: &'s Arc<Self>, versions: Versions) -> BoxFuture<'s, Result<Versions, CqlError>> {
        Box::pin(async move {
            if self.schema().document_version < versions.schema {
                let _loading = self.schema_updates.loading.lock().await;
                // Another caller may have loaded the schema while this one waited for the lock.
                if self.schema().document_version < versions.schema {
                    super::ddl::reload(self).await?;
                    self.resume_builds();
                }
            }
            if self.context.hooks.headers.version() < versions.headers {
                self.context.hooks.headers.load(&self.context.store).await?;
            }
            Ok(self.versions())
        })
    }

    /// Loads the schema if it is older than this version.
    pub async fn load_schema(self: &Arc<Self>, version: u64) -> Result<(), CqlError> {
        if self.context.schema.load().document_version >= version {
            return Ok(());
        }
        let versions = Versions {
            schema: version,
            headers: 0,
        };
        self.load(versions).await.map(|_| ())
    }

    /// Waits until no write is in progress here that was planned with an older schema than today's.
    pub async fn settled(&self) {
        self.context.writing.epochs.drained().await;
    }

    /// Loads the newest documents of the store.
    pub fn load_newest<'s>(self: &'s Arc<Self>) -> BoxFuture<'s, Result<(), CqlError>> {
        Box::pin(async move {
            super::ddl::reload(self).await?;
            self.resume_builds();
            self.context.hooks.headers.load(&self.context.store).await
        })
    }

    /// Loads the documents that have changed in the store since they were loaded. If none has changed, this is cheaper than
    /// [`Engine::load_newest`].
    pub fn load_changed<'s>(self: &'s Arc<Self>) -> BoxFuture<'s, Result<(), CqlError>> {
        Box::pin(async move {
            if super::ddl::has_changed(self).await? {
                super::ddl::reload(self).await?;
            }
            self.context.hooks.headers.load_changed(&self.context.store).await
        })
    }

    /// Returns the versions of the loaded documents.
    pub fn versions(&self) -> Versions {
        self.context.versions()
    }
}

/// A scan on behalf of another node.
pub struct ServedScan {
    scan: Scan,
    cluster: Arc<dyn Cluster>,
    /// Term of the node's stay in the cluster in which the scan began.
    term: LeaseTerm,
}

/// Rows of a scan, and true if they are the last.
pub type Chunk = (Vec<(Bytes, Bytes)>, bool);

impl ServedScan {
    /// Returns the next rows, about `bytes_max` bytes of them.
    pub async fn next_chunk(&mut self, bytes_max: usize) -> Result<Chunk, ExecutionError> {
        let mut rows = Vec::new();
        let mut size = 0;
        let mut is_last = false;
        while size < bytes_max {
            match self.scan.next().await? {
                Some((key, row)) => {
                    scope::checkpoint().await?;
                    size += key.len() + row.len();
                    rows.push((key, row));
                }
                None => {
                    is_last = true;
                    break;
                }
            }
        }
        match self.cluster.may_serve_since(self.term) {
            true => Ok((rows, is_last)),
            false => Err(ExecutionError::NotOwned),
        }
    }
}
