//! Execution of forwarded statements.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use helenus_cql::frame::forwarded::{ForwardedRequest, ForwardedStep};
use helenus_query::engine::Engine;
use helenus_query::failure::ExecutionError;
use helenus_query::measurement::RequestMeasurement;
use helenus_query::request::ClientFrame;
use helenus_query::trace::{Step, TraceRecorder};

use super::answer_codec::encode_execute_answer;
use super::statement_codec::ReceivedStatement;

/// Runs a forwarded statement, and returns the encoded answer. The caller must run the future to its end.
pub(super) async fn execute(engine: &Arc<Engine>, message: Bytes) -> BytesMut {
    let mut out = BytesMut::new();
    let (header, body) = match ForwardedRequest::decode(message) {
        Ok(decoded) => decoded,
        Err(error) => {
            encode_execute_answer(Err(error.into()), false, Vec::new(), &mut out);
            return out;
        }
    };
    let (is_traced, has_texts) = (header.is_traced, !header.texts.is_empty());
    let run = async {
        let received = ReceivedStatement::of(engine, header, body).await?;
        let frame = ClientFrame::from(&received.parameters);
        let outcome = engine
            .serve_statement(received.source(), received.keyspace(), frame, &received.header)
            .await?;
        Ok::<_, ExecutionError>((received, outcome))
    };
    let (result, steps) = measured(run, is_traced).await;
    encode_execute_answer(result, has_texts, steps, &mut out);
    out
}

/// Runs a request with a measurement of its own. Returns its result, and the recorded steps of its trace if it `is_traced`.
async fn measured<T>(run: impl Future<Output = T>, is_traced: bool) -> (T, Vec<ForwardedStep>) {
    let mut measurement = RequestMeasurement::default();
    let recording = is_traced.then(|| (Instant::now(), TraceRecorder::begin(&mut measurement.store)));
    let mut run = pin!(run);
    let result = std::future::poll_fn(|cx| {
        measurement.swap();
        let polled = run.as_mut().poll(cx);
        measurement.swap();
        polled
    })
    .await;
    let Some((began, recording)) = recording else {
        return (result, Vec::new());
    };
    let step = |step: Step| {
        let elapsed = step.at.saturating_duration_since(began);
        ForwardedStep {
            activity: step.what.into_owned(),
            elapsed_us: i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX),
        }
    };
    (result, recording.finish().into_iter().map(step).collect())
}
