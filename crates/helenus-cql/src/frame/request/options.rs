//! OPTIONS: asks what the server supports. Its body is empty.

/// The request to be answered by [`Supported`](crate::frame::response::Supported).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options;
