//! The header of the answer to a forwarded request.
//!
//! ```text
//! flags u8 | warnings [string list] | steps: count i32, each: µs i64, activity [long string] | body
//! ```
//!
//! Warnings and steps are there if their flag is set.

use bytes::{BufMut, Bytes, BytesMut};

use crate::error::CqlError;
use crate::frame::primitive::{Reader, len_i32, put_long_string, put_string_list};

const NOT_OWNED: u8 = 0x01;
const UNPREPARED: u8 = 0x02;
const ERROR: u8 = 0x04;
const CONDITIONAL: u8 = 0x08;
const APPLIED: u8 = 0x10;
const WARNINGS: u8 = 0x20;
const STEPS: u8 = 0x40;
const KNOWN_FLAGS: u8 = 0x7F;

/// The kind of answer, and of the body behind the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// The body is that of RESULT, in the version of the client's protocol.
    Result,
    /// The body is that of ERROR in v5, which has all errors.
    Error,
    /// The node does not own the request's rows, and has done nothing. There is no body.
    NotOwned,
    /// The node does not know a prepared statement of the request, and has done nothing. There is no body.
    Unprepared,
}

/// The header of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardedAnswer {
    pub kind: AnswerKind,
    /// True if a conditional statement was applied. `None` for other statements.
    pub is_applied: Option<bool>,
    pub warnings: Vec<String>,
    /// The steps of the request's trace. Empty if the request is not traced.
    pub steps: Vec<ForwardedStep>,
}

/// A step of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardedStep {
    pub activity: String,
    /// Time since the owner began the request, in microseconds.
    pub elapsed_us: i64,
}

impl ForwardedAnswer {
    /// Returns a header without warnings and steps.
    pub fn of(kind: AnswerKind) -> ForwardedAnswer {
        ForwardedAnswer {
            kind,
            is_applied: None,
            warnings: Vec::new(),
            steps: Vec::new(),
        }
    }

    fn flags(&self) -> u8 {
        let flag = |present: bool, flag| if present { flag } else { 0 };
        let kind = match self.kind {
            AnswerKind::Result => 0,
            AnswerKind::Error => ERROR,
            AnswerKind::NotOwned => NOT_OWNED,
            AnswerKind::Unprepared => UNPREPARED,
        };
        kind | flag(self.is_applied.is_some(), CONDITIONAL)
            | flag(self.is_applied == Some(true), APPLIED)
            | flag(!self.warnings.is_empty(), WARNINGS)
            | flag(!self.steps.is_empty(), STEPS)
    }

    /// Appends the header. The body comes behind it.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_u8(self.flags());
        if !self.warnings.is_empty() {
            put_string_list(out, &self.warnings);
        }
        if !self.steps.is_empty() {
            out.put_i32(len_i32(self.steps.len()));
            for step in &self.steps {
                out.put_i64(step.elapsed_us);
                put_long_string(out, &step.activity);
            }
        }
    }

    /// Reads the header. Returns it with the body.
    ///
    /// # Errors
    /// [`CqlError::Protocol`] if the bytes are not such a header.
    pub fn decode(message: Bytes) -> Result<(ForwardedAnswer, Bytes), CqlError> {
        let reader = &mut Reader::new(message);
        let flags = reader.u8()?;
        let has = |flag| flags & flag != 0;
        let kind = match flags & (ERROR | NOT_OWNED | UNPREPARED) {
            0 => AnswerKind::Result,
            ERROR => AnswerKind::Error,
            NOT_OWNED => AnswerKind::NotOwned,
            UNPREPARED => AnswerKind::Unprepared,
            _ => return Err(invalid("kind")),
        };
        if flags & !KNOWN_FLAGS != 0 {
            return Err(invalid("flag"));
        }
        let header = ForwardedAnswer {
            kind,
            is_applied: has(CONDITIONAL).then(|| has(APPLIED)),
            warnings: match has(WARNINGS) {
                true => reader.string_list()?,
                false => Vec::new(),
            },
            steps: match has(STEPS) {
                true => decode_steps(reader)?,
                false => Vec::new(),
            },
        };
        Ok((header, reader.clone().into_rest()))
    }
}

fn invalid(part: &str) -> CqlError {
    CqlError::Protocol(format!("An answer to a forwarded request has an unknown {part}"))
}

fn decode_steps(reader: &mut Reader) -> Result<Vec<ForwardedStep>, CqlError> {
    let count = reader.long_count(12)?;
    let mut steps = Vec::with_capacity(count);
    for _ in 0..count {
        steps.push(ForwardedStep {
            elapsed_us: reader.i64()?,
            activity: reader.long_string()?,
        });
    }
    Ok(steps)
}
