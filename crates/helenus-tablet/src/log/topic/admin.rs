//! Creates a topic with its settings, and reads the settings of an existing one. The client crate can do neither.

use std::time::Duration;

use rskafka::client::error::ProtocolError;
use rskafka::protocol::messages::{CreateTopicConfig, CreateTopicRequest, CreateTopicsRequest};
use rskafka::protocol::primitives::{Int16, Int32, NullableString, String_};

use super::broker::{Brokers, REQUEST_TIMEOUT, failed};
use super::client::TopicError;
use super::describe_configs::DescribeTopicConfigs;
use super::requirements::TopicDescription;

const CREATE_TIMEOUT_MS: i32 = 10_000;

fn refused(error: ProtocolError, message: Option<String>) -> TopicError {
    failed(message.unwrap_or_else(|| error.to_string()))
}

/// Creates and describes topics.
pub(super) struct TopicAdmin<'a>(pub Brokers<'a>);

impl TopicAdmin<'_> {
    /// Returns the description of the topic. `None` if it does not exist.
    pub async fn describe(&self) -> Result<Option<TopicDescription>, TopicError> {
        let (connection, metadata) = self.0.any().await?;
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
            topic: self.0.url.topic.clone(),
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
                Err(failed(format!(
                    "the broker did not report the settings of the topic: {why:?}"
                )))
            }
        }
    }

    /// Creates the topic, unless it exists.
    pub async fn create(&self, replicas: u16, settings: &[(&str, String)]) -> Result<(), TopicError> {
        let (connection, metadata) = self.0.any().await?;
        let controller = metadata.brokers.iter().find(|broker| {
            let controller = metadata.controller_id.map(|id| id.0);
            Some(broker.node_id.0) == controller
        });
        let connection = match controller {
            None => connection,
            Some(broker) => self.0.named(broker).await?,
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
            name: String_(self.0.url.topic.clone()),
            num_partitions: Int32(i32::try_from(self.0.config.partitions).unwrap_or(i32::MAX)),
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
