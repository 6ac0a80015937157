//! REGISTER: asks for events.

use bytes::BytesMut;

use crate::error::CqlError;
use crate::frame::primitive::{Reader, put_string_list};
use crate::frame::response::EventType;

/// The kinds of events that the connection wants from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Register {
    pub events: Vec<EventType>,
}

impl Register {
    pub(crate) fn decode(reader: &mut Reader) -> Result<Register, CqlError> {
        let names = reader.string_list()?;
        let event = |name: &String| {
            EventType::from_name(name)
                .ok_or_else(|| CqlError::Protocol(format!("Invalid value '{name}' for Type")))
        };
        Ok(Register {
            events: names.iter().map(event).collect::<Result<_, _>>()?,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        let names: Vec<&str> = self.events.iter().map(|event| event.name()).collect();
        put_string_list(out, &names);
    }
}
