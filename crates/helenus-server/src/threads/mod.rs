//! Protection of the threads that serve sockets from long computations. [`long_requests`] has other threads for long requests. [`stall`]
//! measures polls that computed for too long on a thread that serves sockets.

pub(crate) mod long_requests;
pub(crate) mod stall;
