//! Answers requests of other nodes: those about the cluster here, and those about rows by the request handler.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use helenus_cluster::{CLUSTER_DOCUMENT, DocumentVersion};
use helenus_query::cluster::Versions;
use helenus_query::engine::Engine;
use helenus_query::failure::ExecutionError;
use helenus_query::limits::answers::Reservation;
use helenus_tablet::MetaStamp;
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use super::failure::Failure;
use super::messages::{Request, encoded};
use super::proto::{
    GreetRequest, GreetResponse, HoldRequest, LoadRequest, LoadResponse, PinRequest, ReleaseRequest,
    RemoveStaleRequest, RemoveStaleResponse, TellRequest,
};
use super::request_handler::{RequestHandler, in_time};
use super::{TabletReleased, cut_codec, index_codec};

/// Answers requests of other nodes.
pub(super) struct NodeService {
    pub handler: RequestHandler,
    pub cluster_name: String,
    pub host_id: Uuid,
    pub store: Uuid,
    /// Sends the newest version of the cluster document that another node has announced.
    pub tell: watch::Sender<DocumentVersion>,
    pub release: mpsc::Sender<TabletReleased>,
}

impl NodeService {
    fn engine(&self) -> &Arc<Engine> {
        &self.handler.engine
    }

    /// Handles a request that is no scan. The caller must run the future to its end. Setting `is_left` ends a request about rows at its next
    /// checkpoint. Returns the body of the answer, and the memory that is reserved for it.
    pub async fn answer(
        &self,
        request: Request,
        timeout: Duration,
        is_left: Arc<AtomicBool>,
    ) -> (Result<BytesMut, Failure>, Option<Reservation>) {
        let answer = match request {
            Request::Rows(request) => return self.handler.answer(request, timeout, is_left).await,
            Request::Greet(request) => self.greet(&request),
            Request::Tell(request) => Ok(self.tell(request)),
            Request::Release(request) => self.release(&request),
            Request::RemoveStale(request) => in_time(timeout, self.remove_stale(request)).await,
            Request::Hold(request) => self.hold(&request).await,
            Request::Pin(request) => self.pin(&request).await,
            Request::Load(request) => self.load(request).await,
            Request::Scan(_) => Err(Failure::broken()),
        };
        (answer, None)
    }

    fn greet(&self, request: &GreetRequest) -> Result<BytesMut, Failure> {
        if request.cluster_name != self.cluster_name {
            return Err(Failure::refused(format!(
                "this node is of the cluster {:?}",
                self.cluster_name
            )));
        }
        self.engine().observe_clock(request.clock_us);
        Ok(encoded(&GreetResponse {
            host_id: Bytes::copy_from_slice(self.host_id.as_bytes()),
            clock_us: self.engine().clock_us(),
            wall_clock_us: self.engine().wall_clock_us(),
            software: env!("CARGO_PKG_VERSION").to_owned(),
            store: Bytes::copy_from_slice(self.store.as_bytes()),
        }))
    }

    fn tell(&self, request: TellRequest) -> BytesMut {
        let stamp = MetaStamp {
            e_tag: request.e_tag,
            object_version: request.object_version,
        };
        self.engine()
            .store()
            .meta_note_version(CLUSTER_DOCUMENT, request.cluster_version, stamp);
        self.tell.send_if_modified(|newest| {
            let is_newer = newest.version < request.cluster_version;
            if is_newer {
                *newest = DocumentVersion {
                    version: request.cluster_version,
                    content: request.cluster_document.as_ref().into(),
                };
            }
            is_newer
        });
        BytesMut::new()
    }

    fn release(&self, request: &ReleaseRequest) -> Result<BytesMut, Failure> {
        let by =
            Uuid::from_slice(&request.host_id).map_err(|_| Failure::new("the id of a host has 16 bytes"))?;
        // The notification may be lost: the tablet is then opened a little later.
        let _ = self.release.try_send(TabletReleased {
            by,
            tablet: request.tablet,
            epoch: request.epoch,
        });
        Ok(BytesMut::new())
    }

    async fn remove_stale(&self, request: RemoveStaleRequest) -> Result<BytesMut, Failure> {
        let stale = index_codec::stale_entries(request);
        let (not_mine, removed) = match self.engine().serve_stale(&stale).await {
            Ok(removed) => (false, removed),
            Err(ExecutionError::NotOwned) => (true, 0),
            Err(ExecutionError::Failed(error)) => return Err(Failure::new(error.to_string())),
        };
        Ok(encoded(&RemoveStaleResponse { not_mine, removed }))
    }

    async fn hold(&self, request: &HoldRequest) -> Result<BytesMut, Failure> {
        let cut = cut_codec::cut(request).map_err(Failure::new)?;
        let held = self.engine().serve_hold(cut).await;
        let held = held.map_err(|error| Failure::new(error.to_string()))?;
        Ok(encoded(&cut_codec::hold_response(held)))
    }

    async fn pin(&self, request: &PinRequest) -> Result<BytesMut, Failure> {
        let pin = cut_codec::pin(request).map_err(Failure::new)?;
        let pinned = self.engine().serve_pin(pin).await;
        let pinned = pinned.map_err(|error| Failure::new(error.to_string()))?;
        Ok(encoded(&cut_codec::pin_response(pinned)))
    }

    async fn load(&self, request: LoadRequest) -> Result<BytesMut, Failure> {
        let versions = Versions {
            schema: request.schema_version,
            headers: request.headers_version,
        };
        let loaded = self.engine().load(versions).await;
        let loaded = loaded.map_err(|error| Failure::new(error.to_string()))?;
        if request.settled {
            self.engine().settled().await;
        }
        Ok(encoded(&LoadResponse {
            schema_version: loaded.schema,
            headers_version: loaded.headers,
        }))
    }
}
