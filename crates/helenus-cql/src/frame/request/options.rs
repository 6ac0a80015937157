//! OPTIONS: requests what the server supports. Its body is empty.

/// The request to which [`Supported`](crate::frame::response::Supported) is the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options;
