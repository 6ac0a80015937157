//! The topic of brokers that speak Kafka's protocol.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::Utc;
use rskafka::BackoffConfig;
use rskafka::client::error::{Error, ProtocolError};
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::Record;
use tokio::sync::Mutex;

use super::client::{TopicClient, TopicError, TopicRecord};
use super::read::retried;
use crate::config::{TopicConfig, TopicUrl};
use crate::error::StoreError;

/// The time after which a connection counts as broken, and is made anew.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);
const FETCH_BYTES_MAX: i32 = 8 << 20;
/// How long a broker waits for records that a fetch asks for.
const FETCH_WAIT_MS: i32 = 100;
const DELETE_TIMEOUT_MS: i32 = 3000;
const CREATE_TIMEOUT_MS: i32 = 10_000;
/// The replicas of a topic that survives the loss of a broker without a pause.
const REPLICAS: u16 = 3;

/// A topic of brokers.
pub(crate) struct KafkaTopic {
    url: TopicUrl,
    config: TopicConfig,
    tls: Option<Arc<rustls::ClientConfig>>,
    connection: Mutex<Option<Arc<Connection>>>,
}

/// Connections to the brokers.
struct Connection {
    client: Client,
    partitions: Mutex<HashMap<u32, Arc<PartitionClient>>>,
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
    /// The topic of that configuration; nothing is sent yet.
    pub fn new(url: TopicUrl, config: TopicConfig) -> Result<KafkaTopic, StoreError> {
        let tls = config.tls_client()?;
        Ok(KafkaTopic {
            url,
            config,
            tls,
            connection: Mutex::default(),
        })
    }

    async fn connect(&self) -> Result<Connection, TopicError> {
        let backoff = BackoffConfig {
            init_backoff: Duration::from_millis(50),
            max_backoff: Duration::from_millis(500),
            base: 2.0,
            deadline: Some(Duration::from_secs(1)),
        };
        let mut builder = ClientBuilder::new(self.url.brokers.clone())
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
        })
    }

    async fn connection(&self) -> Result<Arc<Connection>, TopicError> {
        let mut connection = self.connection.lock().await;
        if let Some(connection) = connection.as_ref() {
            return Ok(connection.clone());
        }
        let made = Arc::new(self.connect().await?);
        *connection = Some(made.clone());
        Ok(made)
    }

    /// Runs a request. After a failure or without an answer in time, the next one connects anew: the client keeps a connection whose broker is
    /// silent.
    async fn request<T>(
        &self,
        request: impl Future<Output = Result<T, TopicError>>,
    ) -> Result<T, TopicError> {
        let mut guard = Reconnect {
            topic: self,
            is_armed: true,
        };
        let answer = tokio::time::timeout(REQUEST_TIMEOUT, request).await;
        guard.is_armed = !matches!(
            answer,
            Ok(Ok(_) | Err(TopicError::TooLarge | TopicError::OutOfRange))
        );
        answer.unwrap_or_else(|_| {
            let seconds = REQUEST_TIMEOUT.as_secs();
            Err(TopicError::Failed(format!("no answer within {seconds} s")))
        })
    }

    async fn partition(&self, partition: u32) -> Result<Arc<PartitionClient>, TopicError> {
        let connection = self.connection().await?;
        let mut partitions = connection.partitions.lock().await;
        if let Some(client) = partitions.get(&partition) {
            return Ok(client.clone());
        }
        let number = i32::try_from(partition).map_err(|error| TopicError::Failed(error.to_string()))?;
        let made =
            connection
                .client
                .partition_client(self.url.topic.clone(), number, UnknownTopicHandling::Error);
        let made = Arc::new(made.await.map_err(|error| failed(&error))?);
        partitions.insert(partition, made.clone());
        Ok(made)
    }

    async fn find(&self) -> Result<Option<u32>, TopicError> {
        let listed = async {
            let connection = self.connection().await?;
            connection
                .client
                .list_topics()
                .await
                .map_err(|error| failed(&error))
        };
        let topics = self.request(listed).await?;
        let found = topics.into_iter().find(|topic| topic.name == self.url.topic);
        Ok(found.map(|topic| topic.partitions.len() as u32))
    }

    /// Makes the topic if it is missing, and a weak one is allowed.
    ///
    /// # Errors
    /// In words for the operator.
    pub async fn prepare(&self) -> Result<(), StoreError> {
        let refuse = |why: String| StoreError::InvalidConfig(format!("log_store = \"{}\": {why}", self.url));
        let unreachable = |error: StoreError| refuse(format!("the brokers do not answer: {error}"));
        if retried(|| self.find()).await.map_err(unreachable)?.is_some() {
            return Ok(());
        }
        let replicas = self.config.replicas_min;
        if replicas >= REPLICAS {
            return Err(refuse(format!(
                "there is no topic {}. Make it with:  kafka-topics.sh --create --topic {} --partitions {} --replication-factor {replicas} \
                 --config min.insync.replicas=2 --config retention.ms=-1 --config retention.bytes=-1 \
                 --config unclean.leader.election.enable=false  (a topic with fewer replicas is made by itself, with the broker's \
                 settings, if log_store_replicas_min is less)",
                self.url.topic, self.url.topic, self.config.partitions
            )));
        }
        let created = async {
            let connection = self.connection().await?;
            let controller = connection
                .client
                .controller_client()
                .map_err(|error| failed(&error))?;
            let partitions = i32::try_from(self.config.partitions).unwrap_or(i32::MAX);
            let created =
                controller.create_topic(&self.url.topic, partitions, replicas as i16, CREATE_TIMEOUT_MS);
            match created.await {
                Err(Error::ServerError {
                    protocol_error: ProtocolError::TopicAlreadyExists,
                    ..
                }) => Ok(()),
                created => created.map_err(|error| failed(&error)),
            }
        };
        let created =
            tokio::time::timeout(Duration::from_millis(2 * CREATE_TIMEOUT_MS as u64), created).await;
        let created = created.unwrap_or_else(|_| Err(TopicError::Failed("no answer".into())));
        created.map_err(|error| refuse(format!("the topic cannot be made: {}", StoreError::from(error))))
    }
}

/// Drops the connection with a request that has failed or was given up.
struct Reconnect<'a> {
    topic: &'a KafkaTopic,
    is_armed: bool,
}

impl Drop for Reconnect<'_> {
    fn drop(&mut self) {
        // A lock that is held is held by whoever connects anew.
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
        let found = self.find().await?;
        found.ok_or_else(|| TopicError::Failed(format!("there is no topic {}", self.url.topic)))
    }

    async fn produce(&self, partition: u32, record: TopicRecord) -> Result<i64, TopicError> {
        let record = Record {
            key: Some(record.key),
            value: Some(record.value),
            headers: Default::default(),
            timestamp: Utc::now(),
        };
        self.request(async {
            let client = self.partition(partition).await?;
            let offsets = client.produce(vec![record], Compression::NoCompression).await;
            let offsets = offsets.map_err(|error| failed(&error))?;
            let answered = offsets.first().copied();
            answered.ok_or_else(|| TopicError::Failed("an answer without an offset".into()))
        })
        .await
    }

    async fn fetch(&self, partition: u32, offset: i64) -> Result<Vec<(i64, TopicRecord)>, TopicError> {
        self.request(async {
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
        self.request(async {
            let client = self.partition(partition).await?;
            let start = client.get_offset(OffsetAt::Earliest).await;
            let start = start.map_err(|error| failed(&error))?;
            let end = client.get_offset(OffsetAt::Latest).await;
            Ok(start..end.map_err(|error| failed(&error))?)
        })
        .await
    }

    async fn delete_before(&self, partition: u32, offset: i64) -> Result<(), TopicError> {
        self.request(async {
            let client = self.partition(partition).await?;
            let deleted = client.delete_records(offset, DELETE_TIMEOUT_MS).await;
            deleted.map_err(|error| failed(&error))
        })
        .await
    }
}
