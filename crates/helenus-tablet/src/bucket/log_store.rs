//! A log that lies apart from the data of its store: in another bucket, which may be faster and more expensive, or in a folder that all
//! nodes share.
//!
//! The location of the log is chosen when the store is created, and recorded in `FORMAT`. Only `helenus migrate-log` changes it. A store
//! opened without its log would lack acknowledged writes that are not flushed. The object `<store id>/LOG`, written before `FORMAT`,
//! identifies the log. A folder of the same name on another machine is empty, and another bucket has the object of another store.

use std::sync::Arc;

use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use uuid::Uuid;

use crate::bucket::check;
use crate::bucket::check::{explain, patiently};
use crate::bucket::connection::Bucket;
use crate::bucket::store_identity::BindTarget;
use crate::config::{StoreConfig, StoreUrl, TopicUrl};
use crate::error::StoreError;
use crate::log::topic::TopicClient;
use crate::log::topic::kafka::KafkaTopic;
use crate::metadata::format::Format;

const NAME: &str = "LOG";

/// Creates a client for the configured log store. `None` if none is configured. No request is sent yet.
pub(crate) fn connect(bucket: &Bucket, config: &StoreConfig) -> Result<Option<Bucket>, StoreError> {
    let requests = bucket.requests.clone();
    let endpoint = config.log_store_endpoint.as_deref();
    match &config.log_store {
        None => Ok(None),
        Some(StoreUrl::File(path)) => Bucket::folder(path, config.fsync, requests).map(Some),
        Some(StoreUrl::Remote(url)) => Bucket::connect_as("log_store", url, endpoint, requests).map(Some),
    }
}

/// Connects to the configured topic, and creates the topic if it does not exist. `None` if no topic is configured.
pub(crate) async fn connect_topic(config: &StoreConfig) -> Result<Option<Arc<dyn TopicClient>>, StoreError> {
    let Some(url) = &config.log_topic else {
        return Ok(None);
    };
    let topic = KafkaTopic::new(url.clone(), config.log_topic_config.clone())?;
    topic.prepare().await?;
    Ok(Some(Arc::new(topic)))
}

/// Checks that the topic is the one recorded for the store's log.
fn check_topic(bucket: &Bucket, topic: &TopicUrl, format: &Format) -> Result<(), StoreError> {
    let there = format.log_store.as_deref();
    let recorded = there.and_then(TopicUrl::parse).transpose()?;
    match (there, recorded) {
        (_, Some(recorded)) if recorded.topic == topic.topic => Ok(()),
        (there, _) => Err(StoreError::InvalidConfig(format!(
            "log_store = \"{topic}\": the log of {} lies {}; move it with helenus migrate-log",
            bucket.url,
            there.map_or("beside its data".to_owned(), |there| format!("in {there}"))
        ))),
    }
}

fn mark(store_id: Uuid) -> Path {
    Path::from(format!("{store_id}/{NAME}"))
}

/// Marks a location as the log of a store that is being created.
pub(crate) async fn begin(log: &Bucket, store_id: Uuid) -> Result<(), StoreError> {
    let options = PutOptions {
        mode: PutMode::Create,
        ..PutOptions::default()
    };
    let path = mark(store_id);
    let put = log.store.put_opts(
        &path,
        PutPayload::from_static(b"The log of a Helenus store.\n"),
        options,
    );
    let put = patiently(log, put).await?;
    put.map(|_| ()).map_err(|error| explain(log, &error))
}

/// Marks a location as the log of an existing store.
///
/// # Errors
/// The log there belongs to another store, or the location can't be written.
pub(crate) async fn adopt_place(log: &Bucket, store_id: Uuid, identity: Uuid) -> Result<(), StoreError> {
    check::check(log).await?;
    match patiently(log, log.store.head(&mark(store_id))).await? {
        Ok(_) => {}
        Err(Error::NotFound { .. }) => begin(log, store_id).await?,
        Err(error) => return Err(explain(log, &error)),
    }
    let owner = bind_target(log, store_id).identity(identity).await?;
    match owner == identity {
        true => Ok(()),
        false => Err(StoreError::InvalidConfig(format!(
            "log_store = \"{}\": the log there belongs to store {owner}",
            log.url
        ))),
    }
}

/// Returns the location at which a log records the identity of its store.
pub(crate) fn bind_target(log: &Bucket, store_id: Uuid) -> BindTarget<'_> {
    BindTarget {
        bucket: log,
        folder: Path::from(store_id.to_string()),
        anchor: mark(store_id),
    }
}

/// Returns the separate log of the store with that identity. `None` if the log lies beside the data or in a topic.
///
/// # Errors
/// The log is not in the configured location, or belongs to another store.
pub(crate) async fn of_store(
    bucket: &Bucket,
    log: Option<Bucket>,
    topic: Option<&TopicUrl>,
    format: &Format,
    identity: Uuid,
) -> Result<Option<Arc<dyn ObjectStore>>, StoreError> {
    if let (None, Some(topic)) = (&log, topic) {
        return check_topic(bucket, topic, format).map(|()| None);
    }
    let Some(log) = configured(bucket, log, format).await? else {
        return Ok(None);
    };
    let owner = bind_target(&log, format.store_id).identity(identity).await?;
    if owner != identity {
        return Err(StoreError::InvalidConfig(format!(
            "log_store = \"{}\": the log there belongs to store {owner}, and {} is store {identity}, which was made of a copy of it: copy \
             the log as well, and run:  helenus adopt --store {} --log-store URL",
            log.url, bucket.url, bucket.url
        )));
    }
    let folder = format.store_id.to_string();
    Ok(Some(Arc::new(PrefixStore::new(log.store, folder))))
}

/// Refuses to adopt a log that is still in its original location, because its own store writes to it. The copy of a store needs a copy of
/// the log.
pub(crate) async fn refuse_in_use(log: &Bucket, store_id: Uuid) -> Result<(), StoreError> {
    let found = bind_target(log, store_id).find().await?;
    match (found.recorded, found.copied) {
        (Some(recorded), None) => Err(StoreError::InvalidConfig(format!(
            "log_store = \"{}\": this is the log of store {}, not a copy of it: copy the log as well, and name the copy",
            log.url, recorded.identity
        ))),
        _ => Ok(()),
    }
}

/// Returns the separate location of the store's log. `None` if the log lies beside the data.
///
/// # Errors
/// The log is not in the configured location.
pub(crate) async fn configured(
    bucket: &Bucket,
    log: Option<Bucket>,
    format: &Format,
) -> Result<Option<Bucket>, StoreError> {
    let refuse = |why: String| Err(StoreError::InvalidConfig(why));
    let store = &bucket.url;
    let (log, there) = match (log, &format.log_store) {
        (None, None) => return Ok(None),
        (Some(log), Some(there)) => (log, there),
        (None, Some(there)) => {
            return refuse(format!(
                "store = \"{store}\": its log lies in {there}, without which acknowledged writes would be missing: start with --log-store {there}"
            ));
        }
        (Some(log), None) => {
            return refuse(format!(
                "log_store = \"{}\": the log of {store} lies beside its data; move it with helenus migrate-log",
                log.url
            ));
        }
    };
    check::check(&log).await?;
    match patiently(&log, log.store.head(&mark(format.store_id))).await? {
        Ok(_) => Ok(Some(log)),
        Err(Error::NotFound { .. }) => refuse(format!(
            "log_store = \"{}\": the log of {store} is not there; it was made with --log-store {there}, which all nodes must reach",
            log.url
        )),
        Err(error) => Err(explain(&log, &error)),
    }
}
