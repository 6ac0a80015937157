//! Checks when a store is opened that its bucket supports conditional writes, and explains errors of the first requests.

use std::future::Future;
use std::time::Duration;

use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion};

use crate::bucket::connection::Bucket;
use crate::error::{StoreError, chain};

/// Addresses of the services that give credentials to virtual machines. On other machines, these addresses never answer.
pub(crate) const CREDENTIAL_SERVICES: [&str; 3] =
    ["169.254.169.254", "169.254.170.2", "metadata.google.internal"];
/// Maximum time that the start of a node waits for an answer of the object store.
const OPENING_TIMEOUT: Duration = Duration::from_secs(20);

/// Checks conditional writes: writes, rewrites and deletes a small object, each with a condition that holds and with one that does not.
pub(crate) async fn check(bucket: &Bucket) -> Result<(), StoreError> {
    let path = Path::from(format!("checks/{}", uuid::Uuid::new_v4()));
    let created = match put(bucket, &path, PutMode::Create).await? {
        Put::Done(created) => created,
        Put::Refused(error) => return Err(explain(bucket, &error)),
    };
    let result = async {
        creates_once(bucket, &path).await?;
        // Objects of a log are never rewritten, so a log store does not need conditional replacement.
        match bucket.setting {
            "log_store" => Ok(()),
            _ => replaces_on_condition(bucket, &path, created).await,
        }
    };
    let result = result.await;
    let deleted = patiently(bucket, bucket.store.delete(&path)).await?;
    result?;
    deleted.map_err(|error| explain(bucket, &error))
}

async fn creates_once(bucket: &Bucket, path: &Path) -> Result<(), StoreError> {
    match put(bucket, path, PutMode::Create).await? {
        Put::Refused(_) => Ok(()),
        Put::Done(_) => Err(unfit(
            bucket,
            "If-None-Match: it created an object that was there already",
        )),
    }
}

async fn replaces_on_condition(
    bucket: &Bucket,
    path: &Path,
    created: UpdateVersion,
) -> Result<(), StoreError> {
    let wrong = UpdateVersion {
        e_tag: created
            .e_tag
            .as_ref()
            .map(|_| "\"00000000000000000000000000000000\"".into()),
        version: created.version.as_ref().map(|_| "1".into()),
    };
    match put(bucket, path, PutMode::Update(wrong)).await? {
        Put::Refused(_) => {}
        Put::Done(_) => {
            return Err(unfit(
                bucket,
                "If-Match: it replaced an object although the condition did not hold",
            ));
        }
    }
    match put(bucket, path, PutMode::Update(created)).await? {
        Put::Done(_) => Ok(()),
        Put::Refused(_) => Err(unfit(
            bucket,
            "If-Match: it refused a replacement although the condition held",
        )),
    }
}

/// Outcome of a conditional PUT.
enum Put {
    Done(UpdateVersion),
    /// The condition did not hold.
    Refused(Error),
}

async fn put(bucket: &Bucket, path: &Path, mode: PutMode) -> Result<Put, StoreError> {
    let options = PutOptions {
        mode,
        ..PutOptions::default()
    };
    let payload = PutPayload::from_static(b"helenus");
    match patiently(bucket, bucket.store.put_opts(path, payload, options)).await? {
        Ok(result) => Ok(Put::Done(result.into())),
        Err(error @ (Error::AlreadyExists { .. } | Error::Precondition { .. })) => Ok(Put::Refused(error)),
        Err(error) => Err(explain(bucket, &error)),
    }
}

/// Waits for an answer, for at most [`OPENING_TIMEOUT`].
pub(crate) async fn patiently<T>(bucket: &Bucket, answer: impl Future<Output = T>) -> Result<T, StoreError> {
    tokio::time::timeout(OPENING_TIMEOUT, answer).await.map_err(|_| {
        refuse(
            bucket,
            &format!(
                "no answer within {} s; {}",
                OPENING_TIMEOUT.as_secs(),
                reachable(bucket)
            ),
        )
    })
}

fn unfit(bucket: &Bucket, detail: &str) -> StoreError {
    refuse(
        bucket,
        &format!(
            "this object store does not honour {detail}. Two nodes could both own a tablet there; use a store with conditional writes"
        ),
    )
}

fn refuse(bucket: &Bucket, why: &str) -> StoreError {
    StoreError::InvalidConfig(format!("{} = \"{}\": {why}", bucket.setting, bucket.url))
}

fn is_s3(bucket: &Bucket) -> bool {
    matches!(bucket.url.scheme(), "s3" | "s3a" | "s3express")
}

fn reachable(bucket: &Bucket) -> &'static str {
    if is_s3(bucket) {
        "is AWS_ENDPOINT_URL right, and is it reachable from here?"
    } else {
        "is it reachable from here?"
    }
}

fn credentials(bucket: &Bucket) -> &'static str {
    match bucket.url.scheme() {
        "gs" => "GOOGLE_SERVICE_ACCOUNT or GOOGLE_APPLICATION_CREDENTIALS",
        "s3" | "s3a" | "s3express" => {
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile in ~/.aws, or the role of this machine"
        }
        _ => "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or a managed identity",
    }
}

/// Returns an error of the first requests with an explanation of how to correct it.
pub(crate) fn explain(bucket: &Bucket, error: &Error) -> StoreError {
    let text = chain(error);
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let name = bucket.url.host_str().unwrap_or_default();
    let why = if has(&CREDENTIAL_SERVICES) {
        format!("no credentials were found: set {}", credentials(bucket))
    } else if has(&[
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "InvalidAuthenticationInfo",
    ]) || matches!(error, Error::Unauthenticated { .. })
    {
        format!("the credentials are wrong: check {}", credentials(bucket))
    } else if matches!(error, Error::PermissionDenied { .. }) {
        format!("access denied: the credentials must allow to list, get, put and delete objects of {name}")
    } else if matches!(error, Error::NotFound { .. }) || has(&["NoSuchBucket", "ContainerNotFound"]) {
        format!("there is no bucket {name}: make it, or correct the name")
    } else if has(&[
        "incorrectly configured region",
        "PermanentRedirect",
        "AuthorizationHeaderMalformed",
    ]) {
        "the bucket is in another region: set AWS_REGION".to_owned()
    } else if has(&["error sending request", "dns error", "connect", "timed out"]) {
        format!("it cannot be reached; {}", reachable(bucket))
    } else {
        return refuse(bucket, &format!("it answered: {}", brief(&text)));
    };
    refuse(bucket, &format!("{why} ({})", brief(&text)))
}

/// Returns the code and message of S3's error document, if the text has one; otherwise the text.
fn brief(text: &str) -> String {
    let element = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(content, _)| content)
    };
    match (element("Code"), element("Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn of_a_page_the_code_and_the_message_are_told() {
        let page = "404: <?xml?><Error><Code>NoSuchBucket</Code><Message>No such bucket</Message><Key>k</Key></Error>";
        assert_eq!(super::brief(page), "NoSuchBucket: No such bucket");
        assert_eq!(super::brief("connection refused"), "connection refused");
    }
}
