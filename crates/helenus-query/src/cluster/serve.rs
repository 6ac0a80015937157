//! What this node does for the others: everything that it is asked for must be its own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_tablet::{Scan, WriteBatch};
use tokio::time::Instant;

use super::coordinate::{Request, Work};
use super::route::{Route, Target, route};
use super::writes::{apply_here, failed};
use super::{Backoff, Cluster, LeaseTerm, Owner, RemoteWrite, ScanRange, Source, Versions, is_moved, reads};
use crate::dml::{PlannedBatch, WriteSet};
use crate::engine::{Engine, store_error};
use crate::plan::Planned;
use crate::request::{ClientState, QueryOptions};
use crate::response::Outcome;
use crate::scope;

/// How long a request of another node waits for a tablet that is this node's and not yet open, or still being handed over.
const OPENING_PATIENCE: Duration = Duration::from_secs(1);

/// Why this node did not do what another has asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It owns not all of it, and has done nothing.
    NotMine,
    Failed(CqlError),
}

impl From<CqlError> for Refused {
    fn from(error: CqlError) -> Refused {
        match is_moved(&error) {
            true => Refused::NotMine,
            false => Refused::Failed(error),
        }
    }
}

impl Engine {
    fn require_cluster(&self) -> Result<&Arc<dyn Cluster>, Refused> {
        self.cluster().ok_or(Refused::NotMine)
    }

    /// Runs a statement that another node has passed on, or its part of it ([`QueryOptions::place`]). The caller sees to it that it runs
    /// to its end.
    ///
    /// # Errors
    /// [`Refused::NotMine`] before anything was done.
    pub async fn serve_statement(
        self: &Arc<Self>,
        client: &ClientState,
        source: Source<'_>,
        options: &QueryOptions,
    ) -> Result<Outcome, Refused> {
        let _epoch = self.writes.enter();
        match source {
            Source::Text(text) => {
                let planned = crate::trace::parsing(|| {
                    let parsed = self.parse(text)?;
                    self.plan(client.keyspace.as_deref(), &parsed)
                })?;
                self.serve_planned(client, source, &planned, options).await
            }
            Source::Prepared(prepared) => {
                let planned = self.current_plan(prepared)?;
                self.serve_planned(client, source, &planned, options).await
            }
            Source::Batch(kind, statements) => {
                let write_type = crate::dml::batch_write_type(kind);
                scope::limit_time(self.limits.timeouts.write(write_type), true);
                let batch =
                    PlannedBatch::plan(self, client, client.keyspace.as_deref(), kind, statements).await?;
                self.serve_work(client, source, Work::Batch(&batch), options)
                    .await
            }
        }
    }

    async fn serve_planned(
        self: &Arc<Self>,
        client: &ClientState,
        source: Source<'_>,
        planned: &Planned,
        options: &QueryOptions,
    ) -> Result<Outcome, Refused> {
        self.limits.timeouts.limit(&planned.plan);
        let values = planned.markers.bind(&options.values)?;
        let work = Work::Statement {
            planned,
            values: &values,
        };
        self.serve_work(client, source, work, options).await
    }

    async fn serve_work(
        self: &Arc<Self>,
        client: &ClientState,
        source: Source<'_>,
        work: Work<'_>,
        options: &QueryOptions,
    ) -> Result<Outcome, Refused> {
        let cluster = self.require_cluster()?.clone();
        let request = Request {
            client,
            keyspace: client.keyspace.as_deref(),
            source,
            work,
            options,
        };
        let is_here = |target: &Target| cluster.owner(target.token) == Owner::Here;
        let deadline = self.deadline();
        let mut opening = Backoff::until(deadline.min(Instant::now() + OPENING_PATIENCE), cluster.as_ref());
        loop {
            let is_mine = match route(self, cluster.as_ref(), &request, &options.place)? {
                Route::Anywhere => true,
                Route::Owner(target) => is_here(&target),
                Route::Several(targets) => targets.iter().all(is_here),
            };
            if !is_mine {
                return Err(Refused::NotMine);
            }
            let served = request
                .serve(self, cluster.as_ref(), &options.place, deadline)
                .await;
            match served {
                Err(error) if is_moved(&error) && opening.wait(cluster.as_ref()).await => {}
                served => return Ok(served?),
            }
        }
    }

    /// Waits a while for those tablets that are this node's and not yet open, or still being handed over.
    ///
    /// # Errors
    /// One of them is another node's.
    async fn await_open(
        &self,
        cluster: &dyn Cluster,
        tokens: impl Iterator<Item = i64> + Clone,
    ) -> Result<(), Refused> {
        let mut opening = None;
        loop {
            if tokens.clone().any(|token| cluster.owner(token) != Owner::Here) {
                return Err(Refused::NotMine);
            }
            if tokens.clone().all(|token| self.store.tablet(token).is_ok()) {
                return Ok(());
            }
            let opening =
                opening.get_or_insert_with(|| Backoff::until(Instant::now() + OPENING_PATIENCE, cluster));
            if !opening.wait(cluster).await {
                return Err(Refused::NotMine);
            }
        }
    }

    /// Reads rows by token and key.
    pub async fn serve_get(&self, keys: &[(i64, Bytes)]) -> Result<Vec<Option<Bytes>>, Refused> {
        let cluster = self.require_cluster()?;
        let term = cluster.lease_term();
        let tokens = keys.iter().map(|(token, _)| *token);
        self.await_open(cluster.as_ref(), tokens).await?;
        let mut rows = Vec::with_capacity(keys.len());
        for (token, key) in keys {
            scope::checkpoint().await?;
            rows.push(reads::get_here(self, *token, key).await?);
        }
        match cluster.may_serve_since(term) {
            true => Ok(rows),
            false => Err(Refused::NotMine),
        }
    }

    /// Begins a scan of keys of one tablet.
    pub async fn serve_scan(self: &Arc<Self>, range: &ScanRange) -> Result<ServedScan, Refused> {
        let cluster = self.require_cluster()?;
        let term = cluster.lease_term();
        self.await_open(cluster.as_ref(), std::iter::once(range.tokens.first))
            .await?;
        Ok(ServedScan {
            scan: reads::scan_here(self, range).await?,
            cluster: cluster.clone(),
            term,
        })
    }

    /// Writes operands. The caller sees to it that it runs to its end.
    pub async fn serve_write(self: &Arc<Self>, write: RemoteWrite) -> Result<(), Refused> {
        let cluster = self.require_cluster()?.clone();
        let tokens = write.ops.iter().map(|op| op.token);
        self.await_open(cluster.as_ref(), tokens).await?;
        if !write.maintains_indexes {
            let batch = WriteBatch::of(write.ops);
            return Ok(self.store.write(batch, write.durable).await.map_err(failed)?);
        }
        let _epoch = self.writes.enter();
        let mut writes = WriteSet::from_ops(&self.schema(), write.ops)?;
        writes.lock_indexed(self).await?;
        Ok(apply_here(self, &cluster, writes).await?)
    }

    /// Loads the documents that are older than asked for; answers with what is loaded.
    pub async fn load(self: &Arc<Self>, versions: Versions) -> Result<Versions, CqlError> {
        if self.schema().document_version < versions.schema {
            let _loading = self.loading.lock().await;
            // Those who have waited need not read it again.
            if self.schema().document_version < versions.schema {
                crate::ddl::reload(self).await?;
                self.resume_builds();
            }
        }
        if self.headers.version() < versions.headers {
            self.headers.load(&self.store).await?;
        }
        Ok(self.versions())
    }

    /// Returns when no write is under way here that was planned against a schema before today's.
    pub async fn settled(&self) {
        self.writes.settled().await;
    }

    /// Loads the documents as they are in the store now.
    pub async fn load_newest(self: &Arc<Self>) -> Result<(), CqlError> {
        crate::ddl::reload(self).await?;
        self.resume_builds();
        self.headers.load(&self.store).await
    }

    /// The versions of the documents that are loaded.
    pub fn versions(&self) -> Versions {
        Versions {
            schema: self.schema().document_version,
            headers: self.headers.version(),
        }
    }
}

/// A scan for another node.
pub struct ServedScan {
    scan: Scan,
    cluster: Arc<dyn Cluster>,
    /// The node's stay in which it began.
    term: LeaseTerm,
}

/// Rows of a scan, and whether they are the last.
pub type Chunk = (Vec<(Bytes, Bytes)>, bool);

impl ServedScan {
    /// The next rows: about that many bytes of them.
    pub async fn next_chunk(&mut self, bytes_max: usize) -> Result<Chunk, Refused> {
        let mut rows = Vec::new();
        let mut size = 0;
        let mut is_last = false;
        while size < bytes_max {
            match self.scan.next().await.map_err(store_error)? {
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
            false => Err(Refused::NotMine),
        }
    }
}
