//! The opcodes of the protocol.
//!
//! Each opcode has an entry in the tables below, a file in [`super::request`] or [`super::response`], and an entry in that folder's
//! `mod.rs`.

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Request,
    Response,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Opcode {
    Error = 0x00,
    Startup = 0x01,
    Ready = 0x02,
    Authenticate = 0x03,
    /// A request of v1, which is refused.
    Credentials = 0x04,
    Options = 0x05,
    Supported = 0x06,
    Query = 0x07,
    Result = 0x08,
    Prepare = 0x09,
    Execute = 0x0A,
    Register = 0x0B,
    Event = 0x0C,
    Batch = 0x0D,
    AuthChallenge = 0x0E,
    AuthResponse = 0x0F,
    AuthSuccess = 0x10,
}

impl Opcode {
    pub fn from_code(code: u8) -> Option<Opcode> {
        Some(match code {
            0x00 => Opcode::Error,
            0x01 => Opcode::Startup,
            0x02 => Opcode::Ready,
            0x03 => Opcode::Authenticate,
            0x04 => Opcode::Credentials,
            0x05 => Opcode::Options,
            0x06 => Opcode::Supported,
            0x07 => Opcode::Query,
            0x08 => Opcode::Result,
            0x09 => Opcode::Prepare,
            0x0A => Opcode::Execute,
            0x0B => Opcode::Register,
            0x0C => Opcode::Event,
            0x0D => Opcode::Batch,
            0x0E => Opcode::AuthChallenge,
            0x0F => Opcode::AuthResponse,
            0x10 => Opcode::AuthSuccess,
            _ => return None,
        })
    }

    pub fn direction(self) -> Direction {
        self.properties().0
    }

    /// Returns the opcode's name in the specification.
    pub fn name(self) -> &'static str {
        self.properties().1
    }

    fn properties(self) -> (Direction, &'static str) {
        use Direction::{Request, Response};
        match self {
            Opcode::Error => (Response, "ERROR"),
            Opcode::Startup => (Request, "STARTUP"),
            Opcode::Ready => (Response, "READY"),
            Opcode::Authenticate => (Response, "AUTHENTICATE"),
            Opcode::Credentials => (Request, "CREDENTIALS"),
            Opcode::Options => (Request, "OPTIONS"),
            Opcode::Supported => (Response, "SUPPORTED"),
            Opcode::Query => (Request, "QUERY"),
            Opcode::Result => (Response, "RESULT"),
            Opcode::Prepare => (Request, "PREPARE"),
            Opcode::Execute => (Request, "EXECUTE"),
            Opcode::Register => (Request, "REGISTER"),
            Opcode::Event => (Response, "EVENT"),
            Opcode::Batch => (Request, "BATCH"),
            Opcode::AuthChallenge => (Response, "AUTH_CHALLENGE"),
            Opcode::AuthResponse => (Request, "AUTH_RESPONSE"),
            Opcode::AuthSuccess => (Response, "AUTH_SUCCESS"),
        }
    }
}
