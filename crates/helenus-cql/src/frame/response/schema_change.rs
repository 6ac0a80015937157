//! A change of the schema, which is the result of a statement, and an event for other connections (Cassandra's `Event.SchemaChange`).

use bytes::BytesMut;

use crate::error::CqlError;
use crate::frame::primitive::{Reader, put_string, put_string_list};
use crate::frame::version::ProtocolVersion;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Created,
    Updated,
    Dropped,
}

impl ChangeKind {
    fn name(self) -> &'static str {
        match self {
            ChangeKind::Created => "CREATED",
            ChangeKind::Updated => "UPDATED",
            ChangeKind::Dropped => "DROPPED",
        }
    }

    fn from_name(name: &str) -> Result<ChangeKind, CqlError> {
        match name {
            "CREATED" => Ok(ChangeKind::Created),
            "UPDATED" => Ok(ChangeKind::Updated),
            "DROPPED" => Ok(ChangeKind::Dropped),
            _ => Err(CqlError::Protocol(format!("Invalid value '{name}' for Change"))),
        }
    }
}

/// The changed object within its keyspace. Views count as tables, and a change of an index is a change of its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaTarget {
    Keyspace,
    Table(String),
    Type(String),
    Function { name: String, arg_types: Vec<String> },
    Aggregate { name: String, arg_types: Vec<String> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    pub change: ChangeKind,
    pub keyspace: String,
    pub target: SchemaTarget,
}

impl SchemaChange {
    pub(crate) fn encode(&self, version: ProtocolVersion, out: &mut BytesMut) {
        let (target, name, arg_types) = match &self.target {
            SchemaTarget::Keyspace => ("KEYSPACE", None, None),
            SchemaTarget::Table(name) => ("TABLE", Some(name), None),
            SchemaTarget::Type(name) => ("TYPE", Some(name), None),
            SchemaTarget::Function { name, arg_types } => ("FUNCTION", Some(name), Some(arg_types)),
            SchemaTarget::Aggregate { name, arg_types } => ("AGGREGATE", Some(name), Some(arg_types)),
        };
        // v3 has no functions. The keyspace is reported as changed, with an empty name, as Cassandra does.
        if arg_types.is_some() && version < ProtocolVersion::V4 {
            put_string(out, ChangeKind::Updated.name());
            put_string(out, "KEYSPACE");
            put_string(out, &self.keyspace);
            put_string(out, "");
            return;
        }
        put_string(out, self.change.name());
        put_string(out, target);
        put_string(out, &self.keyspace);
        if let Some(name) = name {
            put_string(out, name);
        }
        if let Some(arg_types) = arg_types {
            put_string_list(out, arg_types);
        }
    }

    pub(crate) fn decode(reader: &mut Reader) -> Result<SchemaChange, CqlError> {
        let change = ChangeKind::from_name(&reader.string()?)?;
        let target = reader.string()?;
        let keyspace = reader.string()?;
        let target = match target.as_str() {
            "KEYSPACE" => SchemaTarget::Keyspace,
            "TABLE" => SchemaTarget::Table(reader.string()?),
            "TYPE" => SchemaTarget::Type(reader.string()?),
            "FUNCTION" => SchemaTarget::Function {
                name: reader.string()?,
                arg_types: reader.string_list()?,
            },
            "AGGREGATE" => SchemaTarget::Aggregate {
                name: reader.string()?,
                arg_types: reader.string_list()?,
            },
            _ => return Err(CqlError::Protocol(format!("Invalid value '{target}' for Target"))),
        };
        Ok(SchemaChange {
            change,
            keyspace,
            target,
        })
    }
}
