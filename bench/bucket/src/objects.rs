//! Objects by name, with S3's preconditions.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Bound, Range};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use bytes::{Bytes, BytesMut};
use chrono::{DateTime, Utc};
use parking_lot::Mutex;

use crate::frames::Frames;

/// Minimum size in bytes of objects that are stored in the folder, if there is one.
const LARGE_BYTES: usize = 16 << 10;

#[derive(Clone)]
enum Content {
    Memory(Bytes),
    Disk(Arc<Frames>),
}

#[derive(Clone)]
pub struct Object {
    content: Content,
    pub e_tag: String,
    pub modified: DateTime<Utc>,
    /// Headers `x-amz-meta-…` of the PUT.
    pub metadata: Vec<(String, String)>,
}

impl Object {
    pub fn len(&self) -> u64 {
        match &self.content {
            Content::Memory(bytes) => bytes.len() as u64,
            Content::Disk(frames) => frames.len(),
        }
    }

    pub fn read(&self, range: Range<u64>) -> Result<Bytes> {
        match &self.content {
            Content::Memory(bytes) => {
                Ok(bytes.slice(usize::try_from(range.start)?..usize::try_from(range.end)?))
            }
            Content::Disk(frames) => frames.read(range),
        }
    }
}

/// The precondition of a PUT.
pub enum Condition {
    None,
    Absent,
    Matches(String),
}

/// A page of a listing.
#[derive(Default)]
pub struct Listing {
    pub objects: Vec<(String, Object)>,
    pub folders: Vec<String>,
    /// Name after which the next page begins. `None` after the last page.
    pub next: Option<String>,
}

type Parts = BTreeMap<u32, Bytes>;

#[derive(Default)]
struct Inner {
    objects: BTreeMap<String, Object>,
    uploads: HashMap<String, Parts>,
    number: u64,
}

pub struct Objects {
    inner: Mutex<Inner>,
    folder: Option<PathBuf>,
}

impl Objects {
    pub fn new(folder: Option<PathBuf>) -> Objects {
        Objects {
            inner: Mutex::default(),
            folder,
        }
    }

    pub fn get(&self, name: &str) -> Option<Object> {
        self.inner.lock().objects.get(name).cloned()
    }

    /// Puts an object, and returns its tag. `None` if the precondition is false.
    pub fn put(
        &self,
        name: &str,
        bytes: Bytes,
        metadata: Vec<(String, String)>,
        condition: &Condition,
    ) -> Result<Option<String>> {
        let content = self.keep(bytes)?;
        let mut inner = self.inner.lock();
        let found = inner.objects.get(name);
        let holds = match condition {
            Condition::None => true,
            Condition::Absent => found.is_none(),
            Condition::Matches(e_tag) => found.is_some_and(|object| object.e_tag == *e_tag),
        };
        if !holds {
            return Ok(None);
        }
        inner.number += 1;
        let e_tag = format!("\"{:032x}\"", inner.number);
        let object = Object {
            content,
            e_tag: e_tag.clone(),
            modified: Utc::now(),
            metadata,
        };
        inner.objects.insert(name.to_owned(), object);
        Ok(Some(e_tag))
    }

    fn keep(&self, bytes: Bytes) -> Result<Content> {
        let Some(folder) = self.folder.as_ref().filter(|_| bytes.len() >= LARGE_BYTES) else {
            // The bytes are copied, because a slice would keep the whole received buffer.
            return Ok(Content::Memory(Bytes::copy_from_slice(&bytes)));
        };
        Ok(Content::Disk(Arc::new(Frames::write(folder, &bytes)?)))
    }

    pub fn delete(&self, name: &str) {
        self.inner.lock().objects.remove(name);
    }

    /// Lists objects with a prefix and after a name. With a delimiter, objects in folders are listed as folders.
    pub fn list(&self, prefix: &str, delimited: bool, after: Option<&str>, most: usize) -> Listing {
        let inner = self.inner.lock();
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after.to_owned()),
            _ => Bound::Included(prefix.to_owned()),
        };
        let mut listing = Listing::default();
        let found = inner.objects.range((start, Bound::Unbounded));
        for (name, object) in found.take_while(|(name, _)| name.starts_with(prefix)) {
            let folder = delimited
                .then(|| name.get(prefix.len()..)?.find('/'))
                .flatten()
                .and_then(|at| name.get(..prefix.len() + at + 1));
            match folder {
                Some(folder) if listing.folders.last().is_some_and(|last| last == folder) => continue,
                _ if listing.objects.len() + listing.folders.len() >= most => {
                    // The page ends with the last object or folder, whichever is later.
                    let object = listing.objects.last().map(|(name, _)| name.clone());
                    let folder = listing.folders.last().map(|folder| format!("{folder}\u{10ffff}"));
                    listing.next = object.max(folder);
                    break;
                }
                Some(folder) => listing.folders.push(folder.to_owned()),
                None => listing.objects.push((name.clone(), object.clone())),
            }
        }
        listing
    }

    pub fn begin_upload(&self) -> String {
        let mut inner = self.inner.lock();
        inner.number += 1;
        let id = format!("upload-{}", inner.number);
        inner.uploads.insert(id.clone(), Parts::new());
        id
    }

    /// Adds a part to an upload. Returns false if there is no such upload.
    pub fn put_part(&self, upload: &str, number: u32, bytes: &Bytes) -> bool {
        let part = Bytes::copy_from_slice(bytes);
        let mut inner = self.inner.lock();
        let parts = inner.uploads.get_mut(upload);
        parts.is_some_and(|parts| {
            parts.insert(number, part);
            true
        })
    }

    /// Ends an upload, and returns its content. `None` if there is no such upload.
    pub fn end_upload(&self, upload: &str) -> Option<Bytes> {
        let parts = self.inner.lock().uploads.remove(upload)?;
        let mut whole = BytesMut::with_capacity(parts.values().map(Bytes::len).sum());
        parts.values().for_each(|part| whole.extend_from_slice(part));
        Some(whole.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold_or_nothing_changes() {
        let objects = Objects::new(None);
        let put = |text: &'static str, condition: &Condition| {
            objects
                .put("a", Bytes::from_static(text.as_bytes()), Vec::new(), condition)
                .unwrap()
        };
        let first = put("1", &Condition::Absent).unwrap();
        assert!(put("2", &Condition::Absent).is_none());
        assert!(put("2", &Condition::Matches("\"0\"".into())).is_none());
        assert!(put("3", &Condition::Matches(first)).is_some());
        assert_eq!(objects.get("a").unwrap().read(0..1).unwrap(), "3");
    }

    #[test]
    fn pages_of_a_listing_follow_each_other() {
        let objects = Objects::new(None);
        for name in ["p/a/1", "p/a/2", "p/b", "p/c/1", "p/d", "q"] {
            objects
                .put(name, Bytes::new(), Vec::new(), &Condition::None)
                .unwrap();
        }
        let all = |delimited: bool, most: usize| {
            let (mut names, mut after) = (Vec::new(), None);
            loop {
                let page = objects.list("p/", delimited, after.as_deref(), most);
                let mut found: Vec<String> = page.objects.into_iter().map(|(name, _)| name).collect();
                found.extend(page.folders);
                found.sort_unstable();
                names.extend(found);
                after = page.next;
                if after.is_none() {
                    return names;
                }
            }
        };
        for most in 1..7 {
            assert_eq!(
                all(false, most),
                ["p/a/1", "p/a/2", "p/b", "p/c/1", "p/d"],
                "{most}"
            );
            assert_eq!(all(true, most), ["p/a/", "p/b", "p/c/", "p/d"], "{most}");
        }
    }
}
