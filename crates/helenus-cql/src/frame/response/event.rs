//! EVENT: a message to connections that registered for it. Its stream is -1.

use std::net::SocketAddr;

use bytes::BytesMut;

use super::schema_change::SchemaChange;
use crate::error::CqlError;
use crate::frame::primitive::{Reader, put_inet, put_string};
use crate::frame::version::ProtocolVersion;

/// The kinds of events that a connection can register for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    TopologyChange,
    StatusChange,
    SchemaChange,
    /// A complete trace. Clients can register for this event, but it is never sent, as in Cassandra.
    TraceComplete,
}

impl EventType {
    pub fn name(self) -> &'static str {
        match self {
            EventType::TopologyChange => "TOPOLOGY_CHANGE",
            EventType::StatusChange => "STATUS_CHANGE",
            EventType::SchemaChange => "SCHEMA_CHANGE",
            EventType::TraceComplete => "TRACE_COMPLETE",
        }
    }

    pub fn from_name(name: &str) -> Option<EventType> {
        [
            EventType::TopologyChange,
            EventType::StatusChange,
            EventType::SchemaChange,
            EventType::TraceComplete,
        ]
        .into_iter()
        .find(|event| event.name().eq_ignore_ascii_case(name))
    }

    /// Returns the first version that has the event.
    pub(crate) fn since(self) -> ProtocolVersion {
        match self {
            EventType::TopologyChange | EventType::StatusChange | EventType::SchemaChange => {
                ProtocolVersion::V3
            }
            EventType::TraceComplete => ProtocolVersion::V4,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopologyChange {
    NewNode,
    RemovedNode,
    MovedNode,
}

impl TopologyChange {
    fn name(self) -> &'static str {
        match self {
            TopologyChange::NewNode => "NEW_NODE",
            TopologyChange::RemovedNode => "REMOVED_NODE",
            TopologyChange::MovedNode => "MOVED_NODE",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusChange {
    Up,
    Down,
}

impl StatusChange {
    fn name(self) -> &'static str {
        match self {
            StatusChange::Up => "UP",
            StatusChange::Down => "DOWN",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    TopologyChange(TopologyChange, SocketAddr),
    StatusChange(StatusChange, SocketAddr),
    SchemaChange(SchemaChange),
}

impl Event {
    pub fn event_type(&self) -> EventType {
        match self {
            Event::TopologyChange(..) => EventType::TopologyChange,
            Event::StatusChange(..) => EventType::StatusChange,
            Event::SchemaChange(_) => EventType::SchemaChange,
        }
    }

    pub(crate) fn encode(&self, version: ProtocolVersion, out: &mut BytesMut) {
        put_string(out, self.event_type().name());
        match self {
            Event::TopologyChange(change, node) => {
                put_string(out, change.name());
                put_inet(out, *node);
            }
            Event::StatusChange(change, node) => {
                put_string(out, change.name());
                put_inet(out, *node);
            }
            Event::SchemaChange(change) => change.encode(version, out),
        }
    }

    pub(crate) fn decode(reader: &mut Reader) -> Result<Event, CqlError> {
        let name = reader.string()?;
        let unknown =
            |what: &str, name: String| CqlError::Protocol(format!("Invalid value '{name}' for {what}"));
        match EventType::from_name(&name) {
            Some(EventType::TopologyChange) => {
                let name = reader.string()?;
                let change = [
                    TopologyChange::NewNode,
                    TopologyChange::RemovedNode,
                    TopologyChange::MovedNode,
                ]
                .into_iter()
                .find(|change| change.name() == name)
                .ok_or_else(|| unknown("Change", name))?;
                Ok(Event::TopologyChange(change, reader.inet()?))
            }
            Some(EventType::StatusChange) => {
                let name = reader.string()?;
                let change = [StatusChange::Up, StatusChange::Down]
                    .into_iter()
                    .find(|change| change.name() == name)
                    .ok_or_else(|| unknown("Status", name))?;
                Ok(Event::StatusChange(change, reader.inet()?))
            }
            Some(EventType::SchemaChange) => Ok(Event::SchemaChange(SchemaChange::decode(reader)?)),
            Some(EventType::TraceComplete) | None => Err(unknown("Type", name)),
        }
    }
}
