//! Cassandra's native protocol, versions 3, 4 and 5, in both directions and without I/O.
//!
//! A v5 connection carries checksummed [`segment`]s once it has started up. They contain [`envelope`]s, which have a nine-byte header and a
//! body. In v3 and v4, and before start-up, envelopes are sent without segments. A body is a [`request`] or a [`response`], with one file
//! for each opcode. [`Decoder`] turns a growing buffer into envelopes, and [`OutputEncoder`] turns messages into the bytes to send.
//!
//! Bytes from the other side never cause a panic: every read is bounds-checked and fails as a
//! [`CqlError::Protocol`](crate::error::CqlError::Protocol).

pub mod compression;
pub mod envelope;
pub mod forwarded;
pub mod metadata;
mod opcode;
mod primitive;
mod query_parameters;
pub mod request;
pub mod response;
pub mod segment;
mod stream;
mod type_option;
mod version;

pub use compression::Compression;
pub use envelope::{Envelope, EnvelopeError, Flags, Header, MAX_BODY_LEN};
pub use metadata::{ColumnSpec, PreparedMetadata, ResultMetadata};
pub use opcode::{Direction, Opcode};
pub use primitive::{BoundValue, Reader};
pub(crate) use primitive::{put_bytes, put_long_string};
pub use query_parameters::{BoundValues, QueryParameters};
pub(crate) use query_parameters::{decode_values, encode_values};
pub use request::{Request, RequestMessage};
pub use response::{Response, ResponseMessage, Rows, RowsBuilder, RowsContent};
pub use stream::{Decoder, Decompressor, OutputEncoder};
pub use version::ProtocolVersion;

/// A custom payload, whose meaning the protocol does not define.
pub type CustomPayload = Vec<(String, Option<bytes::Bytes>)>;

#[cfg(test)]
mod frame_tests;
#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod golden_tests;
