//! The decoder and the encoder of a connection: bytes to envelopes, messages to bytes.

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

/// Bodies shorter than this are not compressed, as it would not pay off. A flag of each envelope says if it is compressed.
const COMPRESSION_MIN_LEN: usize = 128;

/// Turns the bytes that arrive on a connection into envelopes.
///
/// A connection starts without segments and without compression. [`Decoder::start`] switches to the format that STARTUP requested.
#[derive(Debug)]
pub struct Decoder {
    direction: Direction,
    max_body_len: usize,
    compression: Option<Compression>,
    segments: Option<SegmentFormat>,
    version: ProtocolVersion,
    /// Bytes taken out of segments that are not yet returned as an envelope. Empty for connections without segments.
    unwrapped: BytesMut,
    /// True while `unwrapped` may end inside an envelope, because the last segment was not self-contained.
    continued: bool,
    started: bool,
    /// Bytes of a refused envelope that are still to be skipped.
    refused_len: usize,
}

impl Decoder {
    /// Creates a decoder for messages in that direction. Bodies over `max_body_len` bytes are refused.
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

    /// Sets the maximum length of the following bodies, in bytes.
    pub fn set_max_body_len(&mut self, max_body_len: usize) {
        self.max_body_len = max_body_len;
    }

    /// Switches to the version and the compression of the following messages. In v5, they come in segments.
    pub fn start(&mut self, version: ProtocolVersion, compression: Option<Compression>) {
        self.started = true;
        self.version = version;
        self.segments = segment_format(version, compression);
        self.compression = compression.filter(|_| self.segments.is_none());
    }

    /// Takes one envelope from the input's front. `None` if the envelope is incomplete.
    ///
    /// # Errors
    /// If the bytes are not a valid envelope. If the error has its length, the next call continues behind it.
    pub fn decode(&mut self, input: &mut BytesMut) -> Result<Option<Envelope>, EnvelopeError> {
        let envelope = self.decode_as_sent(input)?;
        envelope.map(|envelope| self.decompress(envelope)).transpose()
    }

    /// Takes one envelope as [`Decoder::decode`], but without decompressing the body. [`Decoder::decompress`] needs
    /// [`Decoder::decompressed_len`] bytes of memory.
    ///
    /// # Errors
    /// As [`Decoder::decode`].
    pub fn decode_as_sent(&mut self, input: &mut BytesMut) -> Result<Option<Envelope>, EnvelopeError> {
        let envelope = match self.segments {
            None if !skip(&mut self.refused_len, input) => Ok(None),
            None => decode_envelope(input, self.direction, self.max_body_len),
            Some(format) => self.decode_segmented(format, input),
        };
        envelope.map_err(|error| {
            // A client that has not started up may speak another protocol, so the length is not trusted.
            let len = error.len.filter(|_| self.started);
            self.refused_len = len.unwrap_or(0);
            EnvelopeError { len, ..error }
        })
    }

    /// Discards the received part of an incomplete envelope, and skips the rest when it arrives. Returns the header for the response.
    /// `None` if the header is incomplete.
    pub fn give_up(&mut self, input: &mut BytesMut) -> Option<Header> {
        let partial = match self.segments {
            None => input,
            Some(_) => &mut self.unwrapped,
        };
        let (header, body_len) = decode_header(partial, self.direction, self.max_body_len).ok()??;
        self.refused_len = (HEADER_LEN + body_len).saturating_sub(partial.len());
        // The buffer is replaced instead of cleared, to free its memory.
        *partial = BytesMut::new();
        Some(header)
    }

    /// Returns the number of bytes buffered while the rest of an envelope is missing.
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
                    self.release();
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

    /// Frees an empty buffer, which would otherwise keep the memory of its last envelope.
    fn release(&mut self) {
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

    /// Returns a decompressor for the results of [`Decoder::decode_as_sent`], which works without the decoder.
    pub fn decompressor(&self) -> Decompressor {
        Decompressor {
            // As in Cassandra, the flag is ignored in segments and if no compression was requested.
            compression: self.compression.filter(|_| self.segments.is_none()),
            max_body_len: self.max_body_len,
        }
    }

    /// Returns the length of the body after [`Decoder::decompress`], in bytes, as [`Decompressor::decompressed_len`].
    pub fn decompressed_len(&self, envelope: &Envelope) -> usize {
        self.decompressor().decompressed_len(envelope)
    }

    /// Decompresses the body of an envelope from [`Decoder::decode_as_sent`].
    ///
    /// # Errors
    /// If the body is too long or corrupt. The next envelope can still be read.
    pub fn decompress(&self, envelope: Envelope) -> Result<Envelope, EnvelopeError> {
        self.decompressor().decompress(envelope)
    }
}

/// Decompresses bodies, on any thread: decompressing many megabytes takes long.
#[derive(Clone, Copy, Debug)]
pub struct Decompressor {
    compression: Option<Compression>,
    max_body_len: usize,
}

impl Decompressor {
    /// Returns the compression of an envelope's body. `None` if the body is not compressed.
    fn compression_of(self, envelope: &Envelope) -> Option<Compression> {
        let is_marked = envelope.header.flags.contains(Flags::COMPRESSED);
        self.compression.filter(|_| is_marked)
    }

    /// Returns the length of the decompressed body that the body declares, in bytes. 0 if it declares none, or more than allowed.
    pub fn decompressed_len(self, envelope: &Envelope) -> usize {
        match self.compression_of(envelope) {
            Some(compression) => {
                let declared = compression.decompressed_len(&envelope.body);
                declared.ok().filter(|len| *len <= self.max_body_len).unwrap_or(0)
            }
            None => envelope.body.len(),
        }
    }

    /// Decompresses the body of an envelope.
    ///
    /// # Errors
    /// If the body is too long or corrupt. The next envelope can still be read.
    pub fn decompress(self, mut envelope: Envelope) -> Result<Envelope, EnvelopeError> {
        let Some(compression) = self.compression_of(&envelope) else {
            return Ok(envelope);
        };
        let header = envelope.header;
        let refuse = |error| EnvelopeError {
            version: header.version,
            stream: header.stream,
            error,
            // No byte of the envelope remains to be skipped.
            len: Some(0),
            is_negotiation: false,
        };
        let body = compression.decompress(&envelope.body, self.max_body_len);
        envelope.body = body.map_err(refuse)?.freeze();
        envelope.header.flags = header.flags.without(Flags::COMPRESSED);
        Ok(envelope)
    }
}

/// Removes the received bytes of a refused envelope from the buffer. Returns true if all of its bytes are removed.
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

/// Turns messages into the bytes to send. The counterpart is [`Decoder`].
#[derive(Clone, Copy, Debug)]
pub struct OutputEncoder {
    compression: Option<Compression>,
    segments: Option<SegmentFormat>,
}

impl OutputEncoder {
    /// Returns the encoder of a new connection, without segments and compression.
    pub fn unstarted() -> OutputEncoder {
        OutputEncoder {
            compression: None,
            segments: None,
        }
    }

    /// Returns the encoder of a connection after STARTUP.
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
