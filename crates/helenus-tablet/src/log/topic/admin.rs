//! A connection for requests that the client does not offer: a topic with settings, and what an existing one is like.
//!
//! It is made of the client's own transport and messages, which are open under a feature that promises no stability; the version of the crate
//! is therefore fixed.

use std::sync::Arc;
use std::time::Duration;

use rskafka::client::SaslConfig;
use rskafka::client::error::ProtocolError;
use rskafka::messenger::Messenger;
use rskafka::protocol::messages::{
    CreateTopicConfig, CreateTopicRequest, CreateTopicsRequest, MetadataRequest, MetadataRequestTopic,
    MetadataResponse, RequestBody, WriteVersionedType,
};
use rskafka::protocol::primitives::{Boolean, Int16, Int32, NullableString, String_};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, BufStream};
use tokio::net::TcpStream;

use super::client::TopicError;
use super::describe_configs::DescribeTopicConfigs;
use super::requirements::TopicDescription;
use crate::config::{TopicConfig, TopicUrl};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const CREATE_TIMEOUT_MS: i32 = 10_000;
const MESSAGE_BYTES_MAX: usize = 16 << 20;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection to one broker.
struct AdminConnection {
    messenger: Messenger<BufStream<Box<dyn Stream>>>,
}

fn failed(error: impl std::fmt::Display) -> TopicError {
    TopicError::Failed(error.to_string())
}

fn refused(error: ProtocolError, message: Option<String>) -> TopicError {
    failed(message.unwrap_or_else(|| error.to_string()))
}

/// Connects to any of the brokers, whichever answers first.
pub(super) async fn first_of<T>(
    connecting: impl IntoIterator<Item = impl Future<Output = Result<T, TopicError>> + Send>,
) -> Result<T, TopicError> {
    let all = connecting.into_iter().map(Box::pin);
    let (first, _) = futures::future::select_ok(all).await?;
    Ok(first)
}

impl AdminConnection {
    async fn connect(
        broker: &str,
        tls: Option<Arc<rustls::ClientConfig>>,
        sasl: Option<SaslConfig>,
    ) -> Result<AdminConnection, TopicError> {
        let connecting = async {
            let socket = TcpStream::connect(broker).await.map_err(failed)?;
            let stream: Box<dyn Stream> = match tls {
                None => Box::new(socket),
                Some(tls) => {
                    let host = broker.rsplit_once(':').map_or(broker, |(host, _)| host);
                    let host = host.trim_start_matches('[').trim_end_matches(']');
                    let name = ServerName::try_from(host.to_owned()).map_err(failed)?;
                    let connector = tokio_rustls::TlsConnector::from(tls);
                    Box::new(connector.connect(name, socket).await.map_err(failed)?)
                }
            };
            let mut messenger =
                Messenger::new(BufStream::new(stream), MESSAGE_BYTES_MAX, Arc::from("helenus"));
            messenger.sync_versions().await.map_err(failed)?;
            if let Some(sasl) = sasl {
                messenger.do_sasl(sasl).await.map_err(failed)?;
            }
            Ok(AdminConnection { messenger })
        };
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
        let connected = connected.unwrap_or_else(|_| Err(failed("it does not answer")));
        connected.map_err(|error| match error {
            TopicError::Failed(why) => TopicError::Failed(format!("{broker}: {why}")),
            error => error,
        })
    }

    async fn request<R>(&self, timeout: Duration, request: R) -> Result<R::ResponseBody, TopicError>
    where
        R: RequestBody + Send + WriteVersionedType<Vec<u8>>,
        R::ResponseBody: rskafka::protocol::messages::ReadVersionedType<std::io::Cursor<Vec<u8>>>,
    {
        let answer = tokio::time::timeout(timeout, self.messenger.request(request)).await;
        let answer = answer.map_err(|_| failed("no answer"))?;
        answer.map_err(failed)
    }

    async fn metadata(&self, topic: &str) -> Result<MetadataResponse, TopicError> {
        let name = String_(topic.to_owned());
        let request = MetadataRequest {
            topics: Some(vec![MetadataRequestTopic { name }]),
            allow_auto_topic_creation: Some(Boolean(false)),
        };
        self.request(REQUEST_TIMEOUT, request).await
    }
}

/// Looks at topics and makes them.
pub(super) struct TopicAdmin<'a> {
    pub url: &'a TopicUrl,
    pub config: &'a TopicConfig,
    pub tls: Option<Arc<rustls::ClientConfig>>,
}

impl TopicAdmin<'_> {
    async fn connect(&self) -> Result<AdminConnection, TopicError> {
        let connect = |broker| AdminConnection::connect(broker, self.tls.clone(), self.config.sasl_client());
        first_of(self.url.brokers.iter().map(|broker| connect(broker))).await
    }

    /// What the topic is like; `None` if there is none.
    pub async fn describe(&self) -> Result<Option<TopicDescription>, TopicError> {
        let connection = self.connect().await?;
        let metadata = connection.metadata(&self.url.topic).await?;
        let found = metadata.topics.into_iter().next();
        let found = found.ok_or_else(|| failed("an answer without the topic"))?;
        match found.error {
            None => {}
            Some(ProtocolError::UnknownTopicOrPartition) => return Ok(None),
            Some(error) => return Err(refused(error, None)),
        }
        let replicas = found.partitions.iter().map(|partition| {
            let nodes = partition.replica_nodes.0.as_ref();
            nodes.map_or(0, Vec::len) as u16
        });
        let request = DescribeTopicConfigs {
            topic: self.url.topic.clone(),
        };
        let described = connection.request(REQUEST_TIMEOUT, request).await?;
        match described.error {
            None => Ok(Some(TopicDescription {
                replicas: replicas.min().unwrap_or(0),
                settings: described.settings,
            })),
            Some(ProtocolError::UnknownTopicOrPartition) => Ok(None),
            Some(error) => {
                let why = refused(error, described.error_message);
                Err(failed(format!("its settings are not told: {why:?}")))
            }
        }
    }

    /// Makes the topic, unless it is there.
    pub async fn create(&self, replicas: u16, settings: &[(&str, String)]) -> Result<(), TopicError> {
        let connection = self.connect().await?;
        let metadata = connection.metadata(&self.url.topic).await?;
        let controller = metadata.brokers.iter().find(|broker| {
            let controller = metadata.controller_id.map(|id| id.0);
            Some(broker.node_id.0) == controller
        });
        let connection = match controller {
            None => connection,
            Some(broker) => {
                let address = format!("{}:{}", broker.host.0, broker.port.0);
                let connected =
                    AdminConnection::connect(&address, self.tls.clone(), self.config.sasl_client());
                connected.await?
            }
        };
        let request = self.creation(replicas, settings);
        let timeout = Duration::from_millis(2 * CREATE_TIMEOUT_MS as u64);
        let created = connection
            .request(timeout, request)
            .await?
            .topics
            .into_iter()
            .next();
        let created = created.ok_or_else(|| failed("an answer without the topic"))?;
        match created.error {
            None | Some(ProtocolError::TopicAlreadyExists) => Ok(()),
            Some(error) => Err(refused(error, created.error_message.and_then(|text| text.0))),
        }
    }

    fn creation(&self, replicas: u16, settings: &[(&str, String)]) -> CreateTopicsRequest {
        let configs = settings.iter().map(|(name, value)| CreateTopicConfig {
            name: String_((*name).to_owned()),
            value: NullableString(Some(value.clone())),
            tagged_fields: None,
        });
        let topic = CreateTopicRequest {
            name: String_(self.url.topic.clone()),
            num_partitions: Int32(i32::try_from(self.config.partitions).unwrap_or(i32::MAX)),
            replication_factor: Int16(replicas as i16),
            assignments: Vec::new(),
            configs: configs.collect(),
            tagged_fields: None,
        };
        CreateTopicsRequest {
            topics: vec![topic],
            timeout_ms: Int32(CREATE_TIMEOUT_MS),
            validate_only: None,
            tagged_fields: None,
        }
    }
}
