//! READY: the connection has started up, or the events are registered. Its body is empty.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready;
