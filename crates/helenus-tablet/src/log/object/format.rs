//! The encoding of an object of a log: magic, the log's id, then a frame as in a segment file ([`crate::log::frame`]).
//! `docs/data-layout.md` describes it.

use bytes::{Bytes, BytesMut};
use object_store::PutPayload;
use object_store::path::Path;
use uuid::Uuid;

use super::LogId;
use crate::clock::CommitTime;
use crate::log::frame::{FrameHeader, Record, decode_records};
use crate::log::writer::empty_frame;

/// The folder of all logs.
const FOLDER: &str = "logs";
const GROUP_MAGIC: [u8; 8] = *b"HLNSLOB1";
const FENCE_MAGIC: [u8; 8] = *b"HLNSFEN1";
/// Bytes of the magic and the log's id.
const HEAD_LEN: usize = 24;

/// Returns the folder of a log. `None` for the folder of all logs.
pub(crate) fn log_folder(id: Option<LogId>) -> Path {
    let folder = Path::from(FOLDER);
    match id {
        Some(id) => folder.join(id.to_string()),
        None => folder,
    }
}

pub(crate) fn log_path(id: LogId, number: u64) -> Path {
    log_folder(Some(id)).join(format!("{number:020}"))
}

/// Returns the path of the mark of a swept log: no tablet needed it once it was fenced, and its groups are being deleted.
pub(crate) fn swept_path(id: LogId) -> Path {
    log_folder(Some(id)).join("swept")
}

/// Returns the number in the path of a log object. `None` if the path has no such number.
pub(super) fn number_of(location: &Path) -> Option<u64> {
    let name = location.filename()?;
    (name.len() == 20).then(|| name.parse().ok()).flatten()
}

/// Returns true if the path is one of a log object, also below a prefix. A client must not retry the PUT of a log object by itself. The
/// appender must know of each try, because a refused PUT may follow one that took effect.
pub(crate) fn is_log_object(location: &Path) -> bool {
    let count = location.parts_count();
    count >= 3
        && number_of(location).is_some()
        && location
            .parts()
            .nth(count - 3)
            .is_some_and(|folder| folder.as_ref() == FOLDER)
}

/// The content of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogObject {
    Group(Group),
    /// End of the log.
    Fence,
}

/// A group commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// The oldest object that was still needed when this one was written.
    pub first: u64,
    /// Time of the commit by the store's clock, in ms.
    pub time_ms: i64,
    /// Time of the commit by the machine's clock, in ms.
    pub machine_ms: i64,
    pub records: Vec<Record>,
}

/// Encodes an object with a frame, and fills in the frame's header.
pub(super) fn encode(id: LogId, number: u64, first: u64, time: CommitTime, mut frame: Vec<u8>) -> PutPayload {
    FrameHeader::finish(&mut frame, number, time, first);
    payload(GROUP_MAGIC, id, frame)
}

pub(super) fn encode_fence(id: LogId, number: u64, time_ms: i64) -> PutPayload {
    let mut frame = empty_frame();
    FrameHeader::finish(&mut frame, number, time_ms, number);
    payload(FENCE_MAGIC, id, frame)
}

fn payload(magic: [u8; 8], id: LogId, frame: Vec<u8>) -> PutPayload {
    let mut head = BytesMut::with_capacity(HEAD_LEN);
    head.extend_from_slice(&magic);
    head.extend_from_slice(id.as_bytes());
    PutPayload::from_iter([head.freeze(), Bytes::from(frame)])
}

/// Decodes an object. `None` if it is damaged, or belongs to another log or number.
pub(super) fn decode(bytes: &Bytes, id: LogId, number: u64) -> Option<LogObject> {
    let magic = bytes.get(..8)?;
    if Uuid::from_slice(bytes.get(8..HEAD_LEN)?).ok()? != id {
        return None;
    }
    let frame = bytes.slice(HEAD_LEN..);
    match () {
        () if magic == FENCE_MAGIC => FrameHeader::decode(&frame, number).map(|_| LogObject::Fence),
        () if magic == GROUP_MAGIC => group_of(&frame, number).map(LogObject::Group),
        () => None,
    }
}

/// Decodes the group of a frame. `None` if it is damaged, or belongs to another number.
pub(super) fn group_of(frame: &Bytes, number: u64) -> Option<Group> {
    let (header, body) = FrameHeader::decode(frame, number)?;
    Some(Group {
        first: header.durable_offset,
        time_ms: header.time_ms,
        machine_ms: header.machine_ms(),
        records: decode_records(frame.slice_ref(body))?,
    })
}
