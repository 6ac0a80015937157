//! The request for the settings of a topic, which the client crate lacks: `DescribeConfigs` of Kafka's protocol in version 1, which all
//! brokers since 1.1 support.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use rskafka::client::error::ProtocolError;
use rskafka::protocol::api_key::ApiKey;
use rskafka::protocol::api_version::{ApiVersion, ApiVersionRange};
use rskafka::protocol::messages::{
    ReadVersionedError, ReadVersionedType, RequestBody, WriteVersionedError, WriteVersionedType,
};
use rskafka::protocol::primitives::{Array, Boolean, Int8, Int16, Int32, NullableString, String_};
use rskafka::protocol::traits::{ReadError, ReadType, WriteType};

const VERSION: ApiVersion = ApiVersion(Int16(1));
const FIRST_TAGGED_VERSION: ApiVersion = ApiVersion(Int16(4));
/// Resource type of a topic.
const TOPIC: Int8 = Int8(2);

/// Request for all settings of a topic.
pub(super) struct DescribeTopicConfigs {
    pub topic: String,
}

/// Answer with the settings of a topic.
pub(super) struct TopicConfigs {
    pub error: Option<ProtocolError>,
    pub error_message: Option<String>,
    /// Effective values by name, including the brokers' defaults.
    pub settings: BTreeMap<String, String>,
}

impl RequestBody for DescribeTopicConfigs {
    type ResponseBody = TopicConfigs;
    const API_KEY: ApiKey = ApiKey::DescribeConfigs;
    const API_VERSION_RANGE: ApiVersionRange = ApiVersionRange::new(VERSION, VERSION);
    const FIRST_TAGGED_FIELD_IN_REQUEST_VERSION: ApiVersion = FIRST_TAGGED_VERSION;
}

impl<W: Write> WriteVersionedType<W> for DescribeTopicConfigs {
    fn write_versioned(&self, writer: &mut W, _: ApiVersion) -> Result<(), WriteVersionedError> {
        let resources = Int32(1);
        resources.write(writer)?;
        TOPIC.write(writer)?;
        String_(self.topic.clone()).write(writer)?;
        let all_names = Array::<String_>(None);
        all_names.write(writer)?;
        let with_synonyms = Boolean(false);
        Ok(with_synonyms.write(writer)?)
    }
}

impl<R: Read> ReadVersionedType<R> for TopicConfigs {
    fn read_versioned(reader: &mut R, _: ApiVersion) -> Result<Self, ReadVersionedError> {
        let _throttle_ms = Int32::read(reader)?;
        let Array(resources) = Array::<Resource>::read(reader)?;
        let found = resources.unwrap_or_default().into_iter().next();
        let found = found.ok_or_else(|| ReadError::Malformed("an answer without a topic".into()))?;
        Ok(found.0)
    }
}

struct Resource(TopicConfigs);

impl<R: Read> ReadType<R> for Resource {
    fn read(reader: &mut R) -> Result<Self, ReadError> {
        let error = ProtocolError::new(Int16::read(reader)?.0);
        let NullableString(error_message) = NullableString::read(reader)?;
        let _kind = Int8::read(reader)?;
        let _topic = String_::read(reader)?;
        let Array(entries) = Array::<Entry>::read(reader)?;
        let entries = entries.unwrap_or_default().into_iter();
        Ok(Resource(TopicConfigs {
            error,
            error_message,
            settings: entries
                .filter_map(|entry| Some((entry.name, entry.value?)))
                .collect(),
        }))
    }
}

struct Entry {
    name: String,
    value: Option<String>,
}

impl<R: Read> ReadType<R> for Entry {
    fn read(reader: &mut R) -> Result<Self, ReadError> {
        let String_(name) = String_::read(reader)?;
        let NullableString(value) = NullableString::read(reader)?;
        let _is_read_only = Boolean::read(reader)?;
        let _source = Int8::read(reader)?;
        let _is_sensitive = Boolean::read(reader)?;
        let _synonyms = Array::<Synonym>::read(reader)?;
        Ok(Entry { name, value })
    }
}

/// A type with a field, because the client crate cannot read arrays of zero-sized types.
struct Synonym {
    _source: i8,
}

impl<R: Read> ReadType<R> for Synonym {
    fn read(reader: &mut R) -> Result<Self, ReadError> {
        String_::read(reader)?;
        NullableString::read(reader)?;
        let Int8(source) = Int8::read(reader)?;
        Ok(Synonym { _source: source })
    }
}
