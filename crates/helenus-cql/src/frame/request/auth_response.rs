//! AUTH_RESPONSE: the client's reply to AUTHENTICATE or AUTH_CHALLENGE.

use bytes::{Bytes, BytesMut};

use crate::error::CqlError;
use crate::frame::primitive::{Reader, put_bytes};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthResponse {
    pub token: Option<Bytes>,
}

impl AuthResponse {
    pub(crate) fn decode(reader: &mut Reader) -> Result<AuthResponse, CqlError> {
        Ok(AuthResponse {
            token: reader.bytes()?,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_bytes(out, self.token.as_deref());
    }
}
