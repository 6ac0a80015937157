//! The HTTP server of a node from the start of its process. Until the node is ready, the server reports that the process lives, and why the
//! node is not ready. Then the same server begins to serve all routes, so that no connection is lost.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;
use parking_lot::Mutex;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tower_service::Service;

use crate::boxed;

const OPENING: &str = "the store is being opened";

#[derive(Clone)]
struct Context {
    prometheus: PrometheusHandle,
    waits_for: Arc<Mutex<String>>,
}

/// The routes that serve requests at present.
type Current = Arc<ArcSwap<Router>>;

/// The HTTP server until the node is ready. [`HttpServer`](crate::http::HttpServer) takes it over.
pub struct StartingHttp {
    pub(crate) address: SocketAddr,
    current: Current,
    waits_for: Arc<Mutex<String>>,
    /// Channel that stops the server when it is set to true.
    pub(crate) stop: watch::Sender<bool>,
}

impl StartingHttp {
    /// Binds the address and begins to serve requests.
    ///
    /// # Errors
    /// The address cannot be bound.
    #[boxed]
    pub async fn start(listen: SocketAddr, prometheus: PrometheusHandle) -> io::Result<StartingHttp> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        let waits_for = Arc::new(Mutex::new(OPENING.to_owned()));
        let context = Context {
            prometheus,
            waits_for: waits_for.clone(),
        };
        let router = Router::new()
            .route("/health/live", get(live))
            .route("/metrics", get(metrics))
            .fallback(starting)
            .with_state(context);
        let current = Current::new(ArcSwap::from_pointee(router));
        let router = Router::new().fallback(forward).with_state(current.clone());
        let (stop, mut stopped) = watch::channel(false);
        tokio::spawn(async move {
            let until = async move {
                let _ = stopped.wait_for(|stopped| *stopped).await;
            };
            if let Err(error) = axum::serve(
                listener,
                router.into_make_service_with_connect_info::<SocketAddr>(),
            )
            .with_graceful_shutdown(until)
            .await
            {
                tracing::error!(%error, "the HTTP server failed");
            }
        });
        Ok(StartingHttp {
            address,
            current,
            waits_for,
            stop,
        })
    }

    /// Sets the reason why the node is not ready. `None` means that it is opening the store.
    pub fn set_waits_for(&self, what: Option<&str>) {
        what.unwrap_or(OPENING).clone_into(&mut self.waits_for.lock());
    }

    /// Replaces the routes that serve requests.
    pub(crate) fn answer_by(&self, routes: Router) {
        self.current.store(Arc::new(routes));
    }
}

async fn forward(State(current): State<Current>, request: Request) -> Response {
    let mut router = Router::clone(&current.load());
    router.call(request).await.into_response()
}

async fn live() -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, "application/json")],
        "{\"status\":\"up\"}\n",
    )
}

async fn starting(State(context): State<Context>) -> impl IntoResponse {
    let why = context.waits_for.lock().clone();
    let body = json!({ "status": "starting", "troubles": [why] });
    let json = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::SERVICE_UNAVAILABLE, json, format!("{body}\n"))
}

async fn metrics(State(context): State<Context>) -> impl IntoResponse {
    ::metrics::gauge!("helenus_ready").set(0.0);
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, context.prometheus.render())
}
