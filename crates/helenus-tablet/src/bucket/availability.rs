//! Checks whether the object stores and brokers of a store answer. A node that starts during an outage waits for them.

use std::error::Error as StdError;

use object_store::client::{HttpError, HttpErrorKind};
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt};
use tokio::net::TcpStream;

use crate::boxed;
use crate::bucket::check::{CREDENTIAL_SERVICES, explain, patiently};
use crate::bucket::connection::{Bucket, CONNECT_TIMEOUT, FORMAT_NAME};
use crate::bucket::log_store;
use crate::config::{StoreConfig, StoreUrl, TopicUrl};
use crate::error::chain;

/// Returns why the data or the log of a store is temporarily unavailable: no answer, or an error that may pass. `None` if all of them
/// answer, even with a permanent error.
#[boxed]
pub async fn why_unavailable(config: &StoreConfig) -> Option<String> {
    let StoreUrl::Remote(url) = &config.url else {
        return None;
    };
    let bucket = Bucket::connect(url).ok()?;
    let data = why_away(&bucket).await;
    // A node that only reads has no log.
    if data.is_some() || config.read_only {
        return data;
    }
    if let Ok(Some(log)) = log_store::connect(&bucket, config)
        && let Some(why) = why_away(&log).await
    {
        return Some(why);
    }
    let topic = config.log_topic.as_ref()?;
    no_broker(topic).await
}

/// Returns why no broker of a topic can be connected to. `None` if one can.
async fn no_broker(topic: &TopicUrl) -> Option<String> {
    let mut why = String::new();
    for broker in &topic.brokers {
        match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(broker.as_str())).await {
            Ok(Ok(_)) => return None,
            Ok(Err(error)) => why = format!("{broker}: {error}"),
            Err(_) => why = format!("{broker}: no answer within {} s", CONNECT_TIMEOUT.as_secs()),
        }
    }
    Some(format!(
        "log_store = \"{topic}\": no broker can be reached ({why})"
    ))
}

async fn why_away(bucket: &Bucket) -> Option<String> {
    match patiently(bucket, bucket.store.head(&Path::from(FORMAT_NAME))).await {
        Err(no_answer) => Some(no_answer.to_string()),
        Ok(Err(error)) if may_pass(&error) => Some(explain(bucket, &error).to_string()),
        Ok(_) => None,
    }
}

/// Returns true if a later request may succeed despite this error.
pub fn may_pass(error: &Error) -> bool {
    let text = chain(error);
    if CREDENTIAL_SERVICES.iter().any(|address| text.contains(address)) {
        return false;
    }
    if let Some(http) = http_error(error) {
        return !matches!(http.kind(), HttpErrorKind::Decode | HttpErrorKind::Unknown);
    }
    // The client exposes the status only within the text: "status code: 503 Service Unavailable".
    let status = text.split_once("status code: ").map(|(_, status)| status);
    status.is_some_and(|status| status.starts_with('5') || status.starts_with("429"))
        || text.contains("Server returned error response")
}

fn http_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a HttpError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(http) = error.downcast_ref::<HttpError>() {
            return Some(http);
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(text: &str) -> Error {
        Error::Generic {
            store: "S3",
            source: text.to_owned().into(),
        }
    }

    #[test]
    fn only_errors_that_pass_are_waited_for() {
        assert!(may_pass(&answered(
            "Server returned non-2xx status code: 503 Service Unavailable: "
        )));
        assert!(may_pass(&answered(
            "Server returned non-2xx status code: 429 Too Many Requests: "
        )));
        assert!(!may_pass(&answered(
            "Server returned non-2xx status code: 403 Forbidden: "
        )));
        assert!(!may_pass(&answered(
            "Server returned non-2xx status code: 400 Bad Request: 503"
        )));
        let refused = HttpError::new(HttpErrorKind::Connect, std::io::Error::other("refused"));
        let unreachable = Error::Generic {
            store: "S3",
            source: Box::new(refused),
        };
        assert!(may_pass(&unreachable));
        let refused = HttpError::new(
            HttpErrorKind::Connect,
            std::io::Error::other("http://169.254.169.254/token"),
        );
        let without_credentials = Error::Generic {
            store: "S3",
            source: Box::new(refused),
        };
        assert!(!may_pass(&without_credentials));
    }
}
