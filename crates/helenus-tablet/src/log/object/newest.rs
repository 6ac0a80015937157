//! The most recently appended groups, in memory, so that the history of a log need not be read back from the bucket.

use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;

use super::format::{Group, group_of};

/// Maximum bytes that are kept. Groups beyond it are left out, and read from the bucket.
const BYTES_MAX: usize = 32 << 20;

#[derive(Default)]
struct Frames {
    /// Frames with the numbers of their objects, in order.
    frames: Vec<(u64, Bytes)>,
    bytes: usize,
    /// True if a frame was left out. Later frames are then left out too, so that there are no gaps.
    is_full: bool,
    since: Option<Instant>,
}

/// The newest groups of a log.
#[derive(Default)]
pub(crate) struct NewestGroups(Mutex<Frames>);

impl NewestGroups {
    /// Adds the frame of an object that is in the log.
    pub fn push(&self, number: u64, frame: Bytes) {
        let mut newest = self.0.lock();
        newest.is_full |= newest.bytes + frame.len() > BYTES_MAX;
        if newest.is_full {
            return;
        }
        newest.bytes += frame.len();
        newest.since.get_or_insert_with(Instant::now);
        newest.frames.push((number, frame));
    }

    /// Takes all groups if they have at least `bytes` bytes, or if the first one is at least `age` old. Otherwise returns none.
    pub fn take(&self, bytes: usize, age: Duration) -> Vec<(u64, Group)> {
        let frames = {
            let mut newest = self.0.lock();
            let is_old = newest.since.is_some_and(|since| since.elapsed() >= age);
            match newest.bytes >= bytes || is_old {
                true => std::mem::take(&mut *newest).frames,
                false => return Vec::new(),
            }
        };
        let group = |(number, frame): (u64, Bytes)| Some((number, group_of(&frame, number)?));
        frames.into_iter().filter_map(group).collect()
    }
}
