//! A topic of brokers that speak Kafka's protocol.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rskafka::BackoffConfig;
use rskafka::client::error::{Error, ProtocolError};
use rskafka::client::partition::{OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use tokio::sync::Mutex;

use super::admin::TopicAdmin;
use super::broker::{Brokers, first_of};
use super::client::{TopicClient, TopicError, TopicRecord};
use super::producer::PartitionProducer;
use super::read::retried;
use super::requirements;
use crate::config::{TopicConfig, TopicUrl};
use crate::error::StoreError;

/// Timeout of a request. After it, the connection counts as broken and is replaced.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);
/// Timeouts of appending a record, by the number of preceding failures. A silent broker is abandoned soon, and a slow one is eventually
/// waited for. A record that timed out may still be appended; the appender detects that.
const PRODUCE_TIMEOUTS: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];
const FETCH_BYTES_MAX: i32 = 8 << 20;
/// Maximum time in ms that a broker waits for records before it answers a fetch.
const FETCH_WAIT_MS: i32 = 100;
const DELETE_TIMEOUT_MS: i32 = 3000;

/// A topic on Kafka brokers.
pub(crate) struct KafkaTopic {
    url: TopicUrl,
    config: TopicConfig,
    tls: Option<Arc<rustls::ClientConfig>>,
    connection: Mutex<Option<Arc<Connection>>>,
    /// Number of consecutive records that were not confirmed in time.
    produce_failures: AtomicU32,
}

/// Connections to the brokers.
struct Connection {
    client: Client,
    partitions: Mutex<HashMap<u32, Arc<PartitionClient>>>,
    producers: Mutex<HashMap<u32, Arc<PartitionProducer>>>,
}

fn failed(error: &Error) -> TopicError {
    let Error::ServerError { protocol_error, .. } = error else {
        return TopicError::Failed(error.to_string());
    };
    match protocol_error {
        ProtocolError::MessageTooLarge | ProtocolError::RecordListTooLarge => TopicError::TooLarge,
        ProtocolError::OffsetOutOfRange => TopicError::OutOfRange,
        _ => TopicError::Failed(error.to_string()),
    }
}

impl KafkaTopic {
    /// Returns a client of the topic. No request is sent yet.
    pub fn new(url: TopicUrl, config: TopicConfig) -> Result<KafkaTopic, StoreError> {
        let tls = config.tls_client()?;
        Ok(KafkaTopic {
            url,
            config,
            tls,
            connection: Mutex::default(),
            produce_failures: AtomicU32::new(0),
        })
    }

    fn brokers(&self) -> Brokers<'_> {
        Brokers {
            url: &self.url,
            config: &self.config,
            tls: self.tls.clone(),
        }
    }

    /// Connects through a broker, which names the other brokers.
    async fn connect(&self, broker: &str) -> Result<Connection, TopicError> {
        let backoff = BackoffConfig {
            init_backoff: Duration::from_millis(50),
            max_backoff: Duration::from_millis(500),
            base: 2.0,
            deadline: Some(Duration::from_secs(1)),
        };
        let mut builder = ClientBuilder::new(vec![broker.to_owned()])
            .client_id("helenus")
            .backoff_config(backoff);
        if let Some(tls) = &self.tls {
            builder = builder.tls_config(tls.clone());
        }
        if let Some(sasl) = self.config.sasl_client() {
            builder = builder.sasl_config(sasl);
        }
        let client = builder.build().await.map_err(|error| failed(&error))?;
        Ok(Connection {
            client,
            partitions: Mutex::default(),
            producers: Mutex::default(),
        })
    }

    async fn connection(&self) -> Result<Arc<Connection>, TopicError> {
        let mut connection = self.connection.lock().await;
        if let Some(connection) = connection.as_ref() {
            return Ok(connection.clone());
        }
        let made = Arc::new(first_of(self.url.brokers.iter().map(|broker| self.connect(broker))).await?);
        *connection = Some(made.clone());
        Ok(made)
    }

    /// Runs a request. After a failure or a timeout, the next request connects again, because the client crate would keep a connection to a
    /// silent broker.
    async fn request<T>(
        &self,
        timeout: Duration,
        request: impl Future<Output = Result<T, TopicError>>,
    ) -> Result<T, TopicError> {
        let mut guard = Reconnect {
            topic: self,
            is_armed: true,
        };
        let answer = tokio::time::timeout(timeout, request).await;
        guard.is_armed = !matches!(
            answer,
            Ok(Ok(_) | Err(TopicError::TooLarge | TopicError::OutOfRange))
        );
        answer.unwrap_or_else(|_| {
            let seconds = timeout.as_secs();
            Err(TopicError::Failed(format!("no answer within {seconds} s")))
        })
    }

    async fn partition(&self, partition: u32) -> Result<Arc<PartitionClient>, TopicError> {
        let connection = self.connection().await?;
        let known = connection.partitions.lock().await.get(&partition).cloned();
        if let Some(client) = known {
            return Ok(client);
        }
        let number = i32::try_from(partition).map_err(|error| TopicError::Failed(error.to_string()))?;
        // The lock is not held during the request: the broker may be silent, and other partitions have other brokers.
        let made =
            connection
                .client
                .partition_client(self.url.topic.clone(), number, UnknownTopicHandling::Error);
        let made = Arc::new(made.await.map_err(|error| failed(&error))?);
        let mut partitions = connection.partitions.lock().await;
        Ok(partitions.entry(partition).or_insert(made).clone())
    }

    async fn producer(&self, partition: u32) -> Result<Arc<PartitionProducer>, TopicError> {
        let connection = self.connection().await?;
        let known = connection.producers.lock().await.get(&partition).cloned();
        if let Some(producer) = known {
            return Ok(producer);
        }
        let made = Arc::new(PartitionProducer::connect(&self.brokers(), partition).await?);
        let mut producers = connection.producers.lock().await;
        Ok(producers.entry(partition).or_insert(made).clone())
    }

    /// Creates the topic if it is missing, and refuses a topic that may lose acknowledged records.
    ///
    /// # Errors
    /// A description of the problem for the operator.
    pub async fn prepare(&self) -> Result<(), StoreError> {
        let refuse = |why: String| StoreError::InvalidConfig(format!("log_store = \"{}\": {why}", self.url));
        let admin = TopicAdmin(self.brokers());
        let unreachable = |error: StoreError| refuse(format!("the topic cannot be read: {error}"));
        let mut found = retried(|| admin.describe()).await.map_err(unreachable)?;
        if found.is_none() {
            let replicas = self.config.replicas_min;
            let created = admin.create(replicas, &requirements::settings(replicas)).await;
            created.map_err(|error| {
                let error = StoreError::from(error);
                refuse(format!(
                    "the topic {} cannot be created with {replicas} replicas (log_store_replicas_min): {error}",
                    self.url.topic
                ))
            })?;
            tracing::info!(topic = self.url.topic, replicas, "the topic for the log is made");
            // The brokers learn of a new topic one after the other.
            let missing = || TopicError::Failed("the topic is not there yet".into());
            let described = retried(|| async { admin.describe().await?.ok_or_else(missing) });
            found = Some(described.await.map_err(unreachable)?);
        }
        let weaknesses = found.and_then(|found| requirements::weaknesses(&found, &self.url, &self.config));
        weaknesses.map_or(Ok(()), |why| Err(refuse(why)))
    }
}

/// Guard that drops the connection after a request that has failed or was cancelled.
struct Reconnect<'a> {
    topic: &'a KafkaTopic,
    is_armed: bool,
}

impl Drop for Reconnect<'_> {
    fn drop(&mut self) {
        // If the lock is held, its holder is already connecting again.
        if self.is_armed
            && let Ok(mut connection) = self.topic.connection.try_lock()
        {
            *connection = None;
        }
    }
}

#[async_trait]
impl TopicClient for KafkaTopic {
    async fn partitions(&self) -> Result<u32, TopicError> {
        let listed = async {
            let connection = self.connection().await?;
            let listed = connection.client.list_topics().await;
            listed.map_err(|error| failed(&error))
        };
        let topics = self.request(REQUEST_TIMEOUT, listed).await?;
        let found = topics.into_iter().find(|topic| topic.name == self.url.topic);
        let missing = || TopicError::Failed(format!("there is no topic {}", self.url.topic));
        found
            .map(|topic| topic.partitions.len() as u32)
            .ok_or_else(missing)
    }

    async fn produce(&self, partition: u32, record: TopicRecord) -> Result<i64, TopicError> {
        let failures = self.produce_failures.load(Ordering::Relaxed);
        let timeout = PRODUCE_TIMEOUTS[failures as usize % PRODUCE_TIMEOUTS.len()];
        // The failure is counted in advance, so that a cancelled request counts too.
        self.produce_failures
            .store(failures.wrapping_add(1), Ordering::Relaxed);
        let produced = self.request(timeout, async {
            let producer = self.producer(partition).await?;
            producer.produce(record).await
        });
        let offset = produced.await?;
        self.produce_failures.store(0, Ordering::Relaxed);
        Ok(offset)
    }

    async fn fetch(&self, partition: u32, offset: i64) -> Result<Vec<(i64, TopicRecord)>, TopicError> {
        self.request(REQUEST_TIMEOUT, async {
            let client = self.partition(partition).await?;
            let fetched = client
                .fetch_records(offset, 1..FETCH_BYTES_MAX, FETCH_WAIT_MS)
                .await;
            let (records, _) = fetched.map_err(|error| failed(&error))?;
            let plain = records
                .into_iter()
                .filter(|found| found.offset >= offset)
                .map(|found| {
                    let record = TopicRecord {
                        key: found.record.key.unwrap_or_default(),
                        value: found.record.value.unwrap_or_default(),
                    };
                    (found.offset, record)
                });
            Ok(plain.collect())
        })
        .await
    }

    async fn bounds(&self, partition: u32) -> Result<Range<i64>, TopicError> {
        self.request(REQUEST_TIMEOUT, async {
            let client = self.partition(partition).await?;
            let start = client.get_offset(OffsetAt::Earliest).await;
            let start = start.map_err(|error| failed(&error))?;
            let end = client.get_offset(OffsetAt::Latest).await;
            Ok(start..end.map_err(|error| failed(&error))?)
        })
        .await
    }

    async fn delete_before(&self, partition: u32, offset: i64) -> Result<(), TopicError> {
        self.request(REQUEST_TIMEOUT, async {
            let client = self.partition(partition).await?;
            let deleted = client.delete_records(offset, DELETE_TIMEOUT_MS).await;
            deleted.map_err(|error| failed(&error))
        })
        .await
    }
}
