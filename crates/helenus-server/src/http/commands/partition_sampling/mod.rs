//! Samples of the requests to partitions over HTTP, for `nodetool toppartitions` and `profileload`:
//!
//! - `POST /node/sampling` samples for a time and returns the partitions with the greatest counts;
//! - `POST /node/sampling/schedule` samples repeatedly and logs them;
//! - `POST /node/sampling/stop` ends scheduled samplings;
//! - `GET /node/sampling` lists the scheduled samplings.
//!
//! The body of the first two is a JSON object with the fields of [`Order`]. That of the third has the keyspace and the table of the order.

mod schedule;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::post;
use helenus_query::engine::Engine;
use helenus_query::engine::sampling::{NamedSample, SamplingRequest};
use helenus_query::metrics::sampling::SamplerKind;
use serde_json::{Value, json};

use self::schedule::Schedule;
use crate::http::reports::as_json;
use crate::node::admin_auth::{AdminAuthenticator, Refusal};

/// Maximum capacity of a sampler, as in Cassandra.
const CAPACITY_MAX: u64 = 1024;
/// Maximum duration and maximum interval of a sampling.
const DURATION_MAX: Duration = Duration::from_secs(24 * 3600);

/// A requested sampling.
#[derive(Clone, Debug)]
struct Order {
    request: SamplingRequest,
    /// Number of partitions that are returned, those with the greatest counts.
    top: usize,
    duration: Duration,
    /// Time between the beginnings of two scheduled samplings.
    interval: Duration,
}

#[derive(Clone)]
struct Context {
    engine: Arc<Engine>,
    authenticator: AdminAuthenticator,
    schedule: Arc<Schedule>,
}

/// Returns the routes of the requests above. `authenticator` is that of the node's other commands.
pub(crate) fn router(engine: Arc<Engine>, authenticator: AdminAuthenticator) -> Router {
    Router::new()
        .route("/node/sampling", post(sample).get(list))
        .route("/node/sampling/schedule", post(schedule))
        .route("/node/sampling/stop", post(stop))
        .with_state(Context {
            engine,
            authenticator,
            schedule: Arc::default(),
        })
}

fn refused(why: impl Into<String>) -> Refusal {
    (StatusCode::BAD_REQUEST, format!("{}\n", why.into()))
}

impl Order {
    fn parse(body: &str) -> Result<Order, Refusal> {
        let body: Value =
            serde_json::from_str(body).map_err(|error| refused(format!("the body is no JSON: {error}")))?;
        let number = |name: &str, most: u64| match body.get(name).and_then(Value::as_u64) {
            Some(number) if (1..=most).contains(&number) => Ok(number),
            _ => Err(refused(format!("{name} is not a number from 1 to {most}"))),
        };
        let milliseconds = |name: &str| {
            let most = u64::try_from(DURATION_MAX.as_millis()).unwrap_or(u64::MAX);
            number(name, most).map(Duration::from_millis)
        };
        let duration = milliseconds("duration_ms")?;
        let interval = match body.get("interval_ms") {
            None | Some(Value::Null) => duration,
            Some(_) => milliseconds("interval_ms")?,
        };
        let (keyspace, table) = place(&body);
        let names = body.get("samplers").and_then(Value::as_array);
        let kinds = names.into_iter().flatten().map(sampler_kind);
        Ok(Order {
            request: SamplingRequest {
                keyspace,
                table,
                capacity: usize::try_from(number("capacity", CAPACITY_MAX)?).unwrap_or_default(),
                kinds: kinds.collect::<Result<_, _>>()?,
            },
            top: usize::try_from(number("top", CAPACITY_MAX)?).unwrap_or_default(),
            duration,
            interval: interval.max(duration),
        })
    }

    /// Samples for the requested duration and returns the results.
    async fn run(&self, engine: &Engine) -> Result<Vec<(SamplerKind, Vec<NamedSample>)>, String> {
        let running = engine.begin_sampling(&self.request)?;
        tokio::time::sleep(self.duration).await;
        let found = running.finish(self.top).into_iter();
        Ok(found
            .map(|(kind, samples)| (kind, engine.named_samples(kind, samples)))
            .collect())
    }
}

fn sampler_kind(name: &Value) -> Result<SamplerKind, Refusal> {
    let name = name.as_str().unwrap_or_default();
    SamplerKind::named(name).ok_or_else(|| refused(format!("there is no sampler {name}")))
}

/// Returns the keyspace and the table in a body. `None` stands for all.
fn place(body: &Value) -> (Option<String>, Option<String>) {
    let name = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    (name("keyspace"), name("table"))
}

async fn sample(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<impl IntoResponse, Refusal> {
    let command = format!("POST /node/sampling {body}");
    context.authenticator.admit(command.trim_end(), peer, &headers)?;
    let found = Order::parse(&body)?.run(&context.engine).await.map_err(refused)?;
    let shown = found.iter().map(|(kind, samples)| {
        let samples: Vec<Value> = samples.iter().map(shown_sample).collect();
        (kind.name().to_owned(), samples.into())
    });
    Ok(as_json(&Value::Object(shown.collect())))
}

fn shown_sample(sample: &NamedSample) -> Value {
    json!({
        "table": format!("{}.{}", sample.keyspace, sample.table),
        "value": sample.value,
        "count": sample.count,
        "error": sample.error,
    })
}

async fn schedule(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<impl IntoResponse, Refusal> {
    let command = format!("POST /node/sampling/schedule {body}");
    context.authenticator.admit(command.trim_end(), peer, &headers)?;
    let order = Order::parse(&body)?;
    let began = context.schedule.begin(context.engine.clone(), order);
    Ok(as_json(&json!({ "done": began.map_err(refused)? })))
}

async fn stop(
    State(context): State<Context>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: String,
) -> Result<impl IntoResponse, Refusal> {
    let command = format!("POST /node/sampling/stop {body}");
    context.authenticator.admit(command.trim_end(), peer, &headers)?;
    let (keyspace, table) = place(&serde_json::from_str(&body).unwrap_or_default());
    let stopped = context.schedule.stop(keyspace, table);
    Ok(as_json(&json!({ "done": stopped })))
}

async fn list(State(context): State<Context>) -> impl IntoResponse {
    as_json(&json!(context.schedule.list()))
}
