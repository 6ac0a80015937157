//! Appends records to a partition, over a connection to its leader.
//!
//! The client crate leaves Nagle's algorithm on, so its requests of several segments wait 40 ms for a delayed acknowledgement.

use chrono::Utc;
use rskafka::client::error::ProtocolError;
use rskafka::protocol::messages::{
    ProduceRequest, ProduceRequestPartitionData, ProduceRequestTopicData, ProduceResponse,
};
use rskafka::protocol::primitives::{Int16, Int32, NullableString, Records, String_};
use rskafka::protocol::record::{
    ControlBatchOrRecords, Record, RecordBatch, RecordBatchCompression, RecordBatchTimestampType,
};

use super::broker::{BrokerConnection, Brokers, failed};
use super::client::{TopicError, TopicRecord};

/// `acks=all`: the leader answers when every replica in sync has the record.
const ALL_IN_SYNC: i16 = -1;
/// Maximum time in ms that the leader waits for the other replicas.
const REPLICATION_TIMEOUT_MS: i32 = 30_000;
/// Values for a producer without an id. The broker's detection of duplicates is not used, because the log detects them by its epoch and
/// frame numbers.
const NO_PRODUCER: i64 = -1;
const NO_SEQUENCE: i32 = -1;

/// A connection to the leader of a partition.
pub(super) struct PartitionProducer {
    connection: BrokerConnection,
    topic: String,
    partition: i32,
}

impl PartitionProducer {
    /// Connects to the partition's leader, according to the broker that answers first.
    pub async fn connect(brokers: &Brokers<'_>, partition: u32) -> Result<PartitionProducer, TopicError> {
        let url = brokers.url;
        let (_, metadata) = brokers.any().await?;
        let partition = i32::try_from(partition).map_err(failed)?;
        let topic = metadata.topics.iter().find(|topic| topic.name.0 == url.topic);
        let found = topic.and_then(|topic| {
            let mut partitions = topic.partitions.iter();
            partitions.find(|found| found.partition_index.0 == partition)
        });
        let found =
            found.ok_or_else(|| failed(format!("there is no partition {partition} of {}", url.topic)))?;
        let leader = metadata
            .brokers
            .iter()
            .find(|broker| broker.node_id == found.leader_id)
            .ok_or_else(|| failed(format!("partition {partition} has no leader at present")))?;
        Ok(PartitionProducer {
            connection: brokers.named(leader).await?,
            topic: url.topic.clone(),
            partition,
        })
    }

    /// Appends a record, and waits until all replicas in sync have it. Returns its offset.
    pub async fn produce(&self, record: TopicRecord) -> Result<i64, TopicError> {
        let answer = self.connection.send(self.request(record)).await?;
        offset(answer)
    }

    fn request(&self, record: TopicRecord) -> ProduceRequest {
        let now_ms = Utc::now().timestamp_millis();
        let record = Record {
            key: Some(record.key),
            value: Some(record.value),
            timestamp_delta: 0,
            offset_delta: 0,
            headers: Vec::new(),
        };
        let batch = RecordBatch {
            base_offset: 0,
            partition_leader_epoch: 0,
            last_offset_delta: 0,
            first_timestamp: now_ms,
            max_timestamp: now_ms,
            producer_id: NO_PRODUCER,
            producer_epoch: -1,
            base_sequence: NO_SEQUENCE,
            records: ControlBatchOrRecords::Records(vec![record]),
            compression: RecordBatchCompression::NoCompression,
            is_transactional: false,
            timestamp_type: RecordBatchTimestampType::CreateTime,
        };
        ProduceRequest {
            transactional_id: NullableString(None),
            acks: Int16(ALL_IN_SYNC),
            timeout_ms: Int32(REPLICATION_TIMEOUT_MS),
            topic_data: vec![ProduceRequestTopicData {
                name: String_(self.topic.clone()),
                partition_data: vec![ProduceRequestPartitionData {
                    index: Int32(self.partition),
                    records: Records(vec![batch]),
                }],
            }],
        }
    }
}

fn offset(answer: ProduceResponse) -> Result<i64, TopicError> {
    let partitions = answer
        .responses
        .into_iter()
        .flat_map(|topic| topic.partition_responses);
    let answer = partitions
        .last()
        .ok_or_else(|| failed("an answer without an offset"))?;
    match answer.error {
        None => Ok(answer.base_offset.0),
        Some(ProtocolError::MessageTooLarge | ProtocolError::RecordListTooLarge) => Err(TopicError::TooLarge),
        Some(error) => Err(failed(error)),
    }
}
