//! REGISTER: subscribes the connection to events.

use bytes::BytesMut;

use crate::error::CqlError;
use crate::frame::primitive::{Reader, put_string_list};
use crate::frame::response::EventType;
use crate::frame::version::ProtocolVersion;

/// The kinds of events that the connection will receive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Register {
    pub events: Vec<EventType>,
}

impl Register {
    pub(crate) fn decode(reader: &mut Reader, version: ProtocolVersion) -> Result<Register, CqlError> {
        let names = reader.string_list()?;
        let event = |name: &String| {
            EventType::from_name(name)
                .ok_or_else(|| CqlError::Protocol(format!("Invalid value '{name}' for Type")))
        };
        let events: Vec<EventType> = names.iter().map(event).collect::<Result<_, _>>()?;
        match events.iter().find(|event| event.since() > version) {
            None => Ok(Register { events }),
            Some(event) => Err(CqlError::Protocol(format!(
                "Event {} not valid for protocol version {version}",
                event.name()
            ))),
        }
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        let names: Vec<&str> = self.events.iter().map(|event| event.name()).collect();
        put_string_list(out, &names);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completed_traces_can_be_requested_from_v4() {
        let register = Register {
            events: vec![EventType::TraceComplete],
        };
        let decoded = |version| {
            let mut body = BytesMut::new();
            register.encode(&mut body);
            Register::decode(&mut Reader::new(body.freeze()), version)
        };
        let refusal = "Event TRACE_COMPLETE not valid for protocol version 3/v3".to_owned();
        assert_eq!(decoded(ProtocolVersion::V3), Err(CqlError::Protocol(refusal)));
        assert_eq!(decoded(ProtocolVersion::V4), Ok(register.clone()));
        assert_eq!(decoded(ProtocolVersion::V5), Ok(register.clone()));
    }
}
