//! A connection to a broker, for requests that the client crate does not offer or sends too slowly.
//!
//! The connection uses the client's own transport and messages, which are public under a feature that promises no stability. The version of the crate
//! is therefore fixed.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use rskafka::client::SaslConfig;
use rskafka::messenger::Messenger;
use rskafka::protocol::messages::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseBroker, ReadVersionedType,
    RequestBody, WriteVersionedType,
};
use rskafka::protocol::primitives::{Boolean, String_};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, BufStream};
use tokio::net::TcpStream;

use super::client::TopicError;
use crate::config::{TopicConfig, TopicUrl};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
/// Timeout of a request that a broker answers from its memory.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const MESSAGE_BYTES_MAX: usize = 16 << 20;
const READ_BUFFER_BYTES: usize = 8 << 10;
/// Large enough that a group of writes is usually sent at once.
const WRITE_BUFFER_BYTES: usize = 64 << 10;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The brokers of a topic, and the login of the client.
pub(super) struct Brokers<'a> {
    pub url: &'a TopicUrl,
    pub config: &'a TopicConfig,
    pub tls: Option<Arc<rustls::ClientConfig>>,
}

impl Brokers<'_> {
    /// Connects to the configured broker that answers first. Also returns its metadata of the topic.
    pub async fn any(&self) -> Result<(BrokerConnection, MetadataResponse), TopicError> {
        let connection = first_of(self.url.brokers.iter().map(|broker| self.connect(broker))).await?;
        let metadata = connection.metadata(&self.url.topic).await?;
        Ok((connection, metadata))
    }

    /// Connects to a broker from the metadata of another one.
    pub async fn named(&self, broker: &MetadataResponseBroker) -> Result<BrokerConnection, TopicError> {
        self.connect(&format!("{}:{}", broker.host.0, broker.port.0))
            .await
    }

    async fn connect(&self, broker: &str) -> Result<BrokerConnection, TopicError> {
        BrokerConnection::connect(broker, self.tls.clone(), self.config.sasl_client()).await
    }
}

/// A connection to one broker.
pub(super) struct BrokerConnection {
    messenger: Messenger<BufStream<Box<dyn Stream>>>,
}

pub(super) fn failed(error: impl std::fmt::Display) -> TopicError {
    TopicError::Failed(error.to_string())
}

/// Tries several connections at once, and returns the first that succeeds.
pub(super) async fn first_of<T>(
    connecting: impl IntoIterator<Item = impl Future<Output = Result<T, TopicError>> + Send>,
) -> Result<T, TopicError> {
    let all = connecting.into_iter().map(Box::pin);
    let (first, _) = futures::future::select_ok(all).await?;
    Ok(first)
}

impl BrokerConnection {
    /// Connects to a broker and logs in.
    async fn connect(
        broker: &str,
        tls: Option<Arc<rustls::ClientConfig>>,
        sasl: Option<SaslConfig>,
    ) -> Result<BrokerConnection, TopicError> {
        let connecting = async {
            let socket = TcpStream::connect(broker).await.map_err(failed)?;
            // Without this, a request of several segments would wait for the acknowledgement of the first, which the broker's kernel delays
            // by 40 ms.
            socket.set_nodelay(true).map_err(failed)?;
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
            let buffered = BufStream::with_capacity(READ_BUFFER_BYTES, WRITE_BUFFER_BYTES, stream);
            let mut messenger = Messenger::new(buffered, MESSAGE_BYTES_MAX, Arc::from("helenus"));
            messenger.sync_versions().await.map_err(failed)?;
            if let Some(sasl) = sasl {
                messenger.do_sasl(sasl).await.map_err(failed)?;
            }
            Ok(BrokerConnection { messenger })
        };
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
        let connected = connected.unwrap_or_else(|_| Err(failed("it does not answer")));
        connected.map_err(|error| match error {
            TopicError::Failed(why) => TopicError::Failed(format!("{broker}: {why}")),
            error => error,
        })
    }

    /// Sends a request, and waits for its answer without a time limit.
    pub async fn send<R>(&self, request: R) -> Result<R::ResponseBody, TopicError>
    where
        R: RequestBody + Send + WriteVersionedType<Vec<u8>>,
        R::ResponseBody: ReadVersionedType<Cursor<Vec<u8>>>,
    {
        self.messenger.request(request).await.map_err(failed)
    }

    /// Sends a request, and waits for its answer up to `timeout`.
    pub async fn request<R>(&self, timeout: Duration, request: R) -> Result<R::ResponseBody, TopicError>
    where
        R: RequestBody + Send + WriteVersionedType<Vec<u8>>,
        R::ResponseBody: ReadVersionedType<Cursor<Vec<u8>>>,
    {
        let answer = tokio::time::timeout(timeout, self.send(request)).await;
        answer.map_err(|_| failed("no answer"))?
    }

    /// Returns the broker's metadata of the topic and of the brokers.
    async fn metadata(&self, topic: &str) -> Result<MetadataResponse, TopicError> {
        let name = String_(topic.to_owned());
        let request = MetadataRequest {
            topics: Some(vec![MetadataRequestTopic { name }]),
            allow_auto_topic_creation: Some(Boolean(false)),
        };
        self.request(REQUEST_TIMEOUT, request).await
    }
}
