//! HTTP of a node that is starting: it lives, it is not ready, and says what it waits for.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;
use parking_lot::Mutex;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::boxed;

const OPENING: &str = "the store is being opened";

#[derive(Clone)]
struct Context {
    prometheus: PrometheusHandle,
    waits_for: Arc<Mutex<String>>,
}

/// The HTTP server until the node is ready. Its address stays bound when [`HttpServer`](crate::http::HttpServer) takes over.
pub struct StartingHttp {
    listener: std::net::TcpListener,
    waits_for: Arc<Mutex<String>>,
    stop: watch::Sender<bool>,
}

impl StartingHttp {
    /// Binds the address and begins to answer.
    ///
    /// # Errors
    /// The address cannot be bound.
    #[boxed]
    pub async fn start(listen: SocketAddr, prometheus: PrometheusHandle) -> io::Result<StartingHttp> {
        let bound = TcpListener::bind(listen).await?.into_std()?;
        let answering = TcpListener::from_std(bound.try_clone()?)?;
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
        let (stop, mut stopped) = watch::channel(false);
        tokio::spawn(async move {
            let until = async move {
                let _ = stopped.wait_for(|stopped| *stopped).await;
            };
            if let Err(error) = axum::serve(answering, router).with_graceful_shutdown(until).await {
                tracing::error!(%error, "the HTTP server failed");
            }
        });
        Ok(StartingHttp {
            listener: bound,
            waits_for,
            stop,
        })
    }

    /// Changes the reason for which the node is not ready. `None` if there is none beside the work of opening the store.
    pub fn set_waits_for(&self, what: Option<&str>) {
        what.unwrap_or(OPENING).clone_into(&mut self.waits_for.lock());
    }

    /// Stops answering, and returns the bound socket.
    ///
    /// # Errors
    /// The socket cannot be registered.
    pub(crate) fn into_listener(self) -> io::Result<TcpListener> {
        let _ = self.stop.send(true);
        TcpListener::from_std(self.listener)
    }
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
