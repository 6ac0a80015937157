//! AUTHENTICATE, AUTH_CHALLENGE and AUTH_SUCCESS: the server's side of a SASL exchange.

use bytes::{Bytes, BytesMut};

use crate::error::CqlError;
use crate::frame::primitive::{Reader, put_bytes, put_string};

/// Requests authentication. The class of the authenticator is named because drivers match on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authenticate {
    pub authenticator: String,
}

impl Authenticate {
    pub(crate) fn decode(reader: &mut Reader) -> Result<Authenticate, CqlError> {
        Ok(Authenticate {
            authenticator: reader.string()?,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_string(out, &self.authenticator);
    }
}

/// Requests another AUTH_RESPONSE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthChallenge {
    pub token: Option<Bytes>,
}

impl AuthChallenge {
    pub(crate) fn decode(reader: &mut Reader) -> Result<AuthChallenge, CqlError> {
        Ok(AuthChallenge {
            token: reader.bytes()?,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_bytes(out, self.token.as_deref());
    }
}

/// The end of a successful authentication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthSuccess {
    pub token: Option<Bytes>,
}

impl AuthSuccess {
    pub(crate) fn decode(reader: &mut Reader) -> Result<AuthSuccess, CqlError> {
        Ok(AuthSuccess {
            token: reader.bytes()?,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_bytes(out, self.token.as_deref());
    }
}
