//! What a connection reads into and writes from: bytes to envelopes, messages to bytes.

use bytes::{Buf, BytesMut};

use super::compression::Compression;
use super::envelope::{
    Envelope, EnvelopeError, Flags, HEADER_LEN, Header, begin_envelope, decode_envelope, decode_header,
    end_envelope,
};
use super::opcode::Direction;
use super::request::RequestMessage;
use super::response::ResponseMessage;
use super::segment::SegmentFormat;
use super::version::ProtocolVersion;
use crate::error::CqlError;

/// Bodies shorter than this are sent as they are: compression would not pay, and each envelope says for itself.
const COMPRESSION_MIN_LEN: usize = 128;

/// Turns the bytes that arrive on a connection into envelopes.
///
/// A connection starts without segments and without compression; [`Decoder::start`] switches to what STARTUP
/// agreed on.
#[derive(Debug)]
pub struct Decoder {
    direction: Direction,
    max_body_len: usize,
    compression: Option<Compression>,
    segments: Option<SegmentFormat>,
    version: ProtocolVersion,
    /// Of a segmented connection: what came out of segments and is not yet an envelope.
    unwrapped: BytesMut,
    /// True while `unwrapped` ends inside an envelope that its segment says is continued.
    continued: bool,
    started: bool,
    /// What is still to come of an envelope that was refused.
    refused_len: usize,
}

impl Decoder {
    /// Returns a decoder for the messages that go that way, refusing bodies over `max_body_len` bytes.
    pub fn new(direction: Direction, max_body_len: usize) -> Decoder {
        Decoder {
            direction,
            max_body_len,
            compression: None,
            segments: None,
            version: ProtocolVersion::V5,
            unwrapped: BytesMut::new(),
            continued: false,
            started: false,
            refused_len: 0,
        }
    }

    /// From now on bodies may be that long.
    pub fn set_max_body_len(&mut self, max_body_len: usize) {
        self.max_body_len = max_body_len;
    }

    /// What comes from now on is in that version, with that compression, and in segments if it is v5.
    pub fn start(&mut self, version: ProtocolVersion, compression: Option<Compression>) {
        self.started = true;
        self.version = version;
        self.segments = segment_format(version, compression);
        self.compression = compression.filter(|_| self.segments.is_none());
    }

    /// Takes one envelope off the front of the input, or nothing while it is incomplete.
    ///
    /// # Errors
    /// For what is no envelope. If its length is told, the next call goes on behind it.
    pub fn decode(&mut self, input: &mut BytesMut) -> Result<Option<Envelope>, EnvelopeError> {
        let envelope = self.decode_as_sent(input)?;
        envelope.map(|envelope| self.decompress(envelope)).transpose()
    }

    /// Returns the same, but a compressed body stays so: [`Decoder::decompress`] takes as much memory as [`Decoder::decompressed_len`]
    /// tells.
    ///
    /// # Errors
    /// Those of [`Decoder::decode`].
    pub fn decode_as_sent(&mut self, input: &mut BytesMut) -> Result<Option<Envelope>, EnvelopeError> {
        let envelope = match self.segments {
            None if !skip(&mut self.refused_len, input) => Ok(None),
            None => decode_envelope(input, self.direction, self.max_body_len),
            Some(format) => self.decode_segmented(format, input),
        };
        envelope.map_err(|error| {
            // Who has not even started up may speak another protocol.
            let len = error.len.filter(|_| self.started);
            self.refused_len = len.unwrap_or(0);
            EnvelopeError { len, ..error }
        })
    }

    /// Forgets what has come of an envelope that is not there as a whole, and skips the rest of it when that comes. Gives the header to
    /// answer to; none if it has not come yet.
    pub fn give_up(&mut self, input: &mut BytesMut) -> Option<Header> {
        let partial = match self.segments {
            None => input,
            Some(_) => &mut self.unwrapped,
        };
        let (header, body_len) = decode_header(partial, self.direction, self.max_body_len).ok()??;
        self.refused_len = (HEADER_LEN + body_len).saturating_sub(partial.len());
        // Not cleared: the memory shall go.
        *partial = BytesMut::new();
        Some(header)
    }

    /// Returns the bytes held back inside, waiting for the rest of an envelope.
    pub fn buffered_len(&self) -> usize {
        self.unwrapped.len()
    }

    fn decode_segmented(
        &mut self,
        format: SegmentFormat,
        input: &mut BytesMut,
    ) -> Result<Option<Envelope>, EnvelopeError> {
        loop {
            let is_behind_refused = skip(&mut self.refused_len, &mut self.unwrapped);
            if !is_behind_refused && !self.continued {
                return Err(self.cut_off());
            }
            if !self.unwrapped.is_empty() {
                let envelope = decode_envelope(&mut self.unwrapped, self.direction, self.max_body_len)?;
                if envelope.is_some() {
                    self.let_go();
                    return Ok(envelope);
                }
                if !self.continued {
                    return Err(self.cut_off());
                }
            }
            let segment = match format.decode(input) {
                Ok(Some(segment)) => segment,
                Ok(None) => return Ok(None),
                Err(error) => {
                    return Err(EnvelopeError::last(self.version, 0, error));
                }
            };
            if segment.self_contained && !(is_behind_refused && self.unwrapped.is_empty()) {
                return Err(self.error("Self-contained frame inside a message of several frames".to_owned()));
            }
            self.continued = !segment.self_contained;
            if self.unwrapped.is_empty() {
                self.unwrapped = segment.payload;
            } else {
                self.unwrapped.extend_from_slice(&segment.payload);
            }
        }
    }

    /// An empty buffer would keep the memory of the envelope that lay in it.
    fn let_go(&mut self) {
        if self.unwrapped.is_empty() {
            self.unwrapped = BytesMut::new();
        }
    }

    fn error(&self, message: String) -> EnvelopeError {
        EnvelopeError::last(self.version, 0, CqlError::Protocol(message))
    }

    fn cut_off(&self) -> EnvelopeError {
        self.error("Envelope is cut off at the end of a self-contained frame".to_owned())
    }

    /// Undoes the compression of bodies that came as [`Decoder::decode_as_sent`] gave them, apart from the decoder.
    pub fn decompressor(&self) -> Decompressor {
        Decompressor {
            // As Cassandra does: the flag means nothing where no compression was agreed on, nor in segments.
            compression: self.compression.filter(|_| self.segments.is_none()),
            max_body_len: self.max_body_len,
        }
    }

    /// How long the body is that [`Decoder::decompress`] makes, as far as it tells.
    pub fn decompressed_len(&self, envelope: &Envelope) -> usize {
        self.decompressor().decompressed_len(envelope)
    }

    /// Undoes the compression of a body that came as [`Decoder::decode_as_sent`] gave it.
    ///
    /// # Errors
    /// For one that is too long, or none. The next envelope begins behind it.
    pub fn decompress(&self, envelope: Envelope) -> Result<Envelope, EnvelopeError> {
        self.decompressor().decompress(envelope)
    }
}

/// Undoes the compression of bodies, wherever that is best done: a body of many megabytes takes long.
#[derive(Clone, Copy, Debug)]
pub struct Decompressor {
    compression: Option<Compression>,
    max_body_len: usize,
}

impl Decompressor {
    /// How the body of an envelope is compressed, if it is.
    fn compression_of(self, envelope: &Envelope) -> Option<Compression> {
        let is_marked = envelope.header.flags.contains(Flags::COMPRESSED);
        self.compression.filter(|_| is_marked)
    }

    /// Returns the bytes of the decompressed body, as the body itself declares them; 0 if it declares none, or more than are allowed.
    pub fn decompressed_len(self, envelope: &Envelope) -> usize {
        match self.compression_of(envelope) {
            Some(compression) => {
                let declared = compression.decompressed_len(&envelope.body);
                declared.ok().filter(|len| *len <= self.max_body_len).unwrap_or(0)
            }
            None => envelope.body.len(),
        }
    }

    /// Undoes the compression of a body.
    ///
    /// # Errors
    /// For one that is too long, or none. The next envelope begins behind it.
    pub fn decompress(self, mut envelope: Envelope) -> Result<Envelope, EnvelopeError> {
        let Some(compression) = self.compression_of(&envelope) else {
            return Ok(envelope);
        };
        let header = envelope.header;
        let refuse = |error| EnvelopeError {
            version: header.version,
            stream: header.stream,
            error,
            // All of it was read.
            len: Some(0),
            is_negotiation: false,
        };
        let body = compression.decompress(&envelope.body, self.max_body_len);
        envelope.body = body.map_err(refuse)?.freeze();
        envelope.header.flags = header.flags.without(Flags::COMPRESSED);
        Ok(envelope)
    }
}

/// Takes what has come of a refused envelope off the buffer. True if that was all of it.
fn skip(refused_len: &mut usize, buffer: &mut BytesMut) -> bool {
    let len = buffer.len().min(*refused_len);
    buffer.advance(len);
    *refused_len -= len;
    *refused_len == 0
}

fn segment_format(version: ProtocolVersion, compression: Option<Compression>) -> Option<SegmentFormat> {
    match compression {
        _ if !version.is_segmented() => None,
        Some(Compression::Lz4) => Some(SegmentFormat::Lz4),
        Some(Compression::Snappy) | None => Some(SegmentFormat::Plain),
    }
}

/// Turns messages into the bytes to send; the counterpart of [`Decoder`].
#[derive(Clone, Copy, Debug)]
pub struct OutputEncoder {
    compression: Option<Compression>,
    segments: Option<SegmentFormat>,
}

impl OutputEncoder {
    /// What a connection starts with: no segments, no compression.
    pub fn unstarted() -> OutputEncoder {
        OutputEncoder {
            compression: None,
            segments: None,
        }
    }

    /// What a connection goes on with after STARTUP.
    pub fn started(version: ProtocolVersion, compression: Option<Compression>) -> OutputEncoder {
        let segments = segment_format(version, compression);
        OutputEncoder {
            compression: compression.filter(|_| segments.is_none()),
            segments,
        }
    }

    /// Returns true if envelopes must go through [`OutputEncoder::wrap`] before they are sent.
    pub fn is_segmented(&self) -> bool {
        self.segments.is_some()
    }

    /// Appends a response as an envelope.
    pub fn response(
        &self,
        version: ProtocolVersion,
        stream: i16,
        message: &ResponseMessage,
        out: &mut BytesMut,
    ) {
        let header = Header {
            version,
            flags: message.flags(version),
            stream,
            opcode: message.response.opcode(),
        };
        let start = begin_envelope(out, header);
        message.encode_body(version, out);
        self.finish(start, out);
    }

    /// Appends a request as an envelope.
    pub fn request(
        &self,
        version: ProtocolVersion,
        stream: i16,
        message: &RequestMessage,
        out: &mut BytesMut,
    ) {
        let header = Header {
            version,
            flags: match version.is_beta() {
                true => message.flags().with(Flags::USE_BETA),
                false => message.flags(),
            },
            stream,
            opcode: message.request.opcode(),
        };
        let start = begin_envelope(out, header);
        message.encode_body(version, out);
        self.finish(start, out);
    }

    /// Appends the segments that carry these whole envelopes, or the envelopes themselves before v5.
    pub fn wrap(&self, envelopes: &[u8], out: &mut BytesMut) {
        match self.segments {
            Some(format) => format.encode_envelopes(envelopes, out),
            None => out.extend_from_slice(envelopes),
        }
    }

    fn finish(&self, start: usize, out: &mut BytesMut) {
        let body_start = start + HEADER_LEN;
        if let Some(compression) = self.compression
            && out.len() >= body_start + COMPRESSION_MIN_LEN
        {
            let body = out.split_off(body_start);
            if compression.compress(&body, out).is_ok() && out.len() < body_start + body.len() {
                if let Some(flags) = out.get_mut(start + 1) {
                    *flags |= Flags::COMPRESSED.0;
                }
            } else {
                out.truncate(body_start);
                out.extend_from_slice(&body);
            }
        }
        end_envelope(out, start);
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod stream_tests;
