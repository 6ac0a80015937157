//! A cache of the listing and of the newest objects of a tablet's log while the tablet is opened, so that each is requested once.
//!
//! SlateDB searches the end of the log by HEAD requests, eight at a time and then one by one, and requests the size of each object before
//! reading it. One listing answers all of these. It is no older than the first of those HEADs. A number that has been taken since is refused
//! by the PUT of the fence, as without a listing.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use hashbrown::HashMap;
use object_store::path::Path;
use object_store::{
    Attributes, Error, Extensions, GetOptions, GetRange, GetResult, GetResultPayload, ObjectMeta,
    ObjectStore, Result,
};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

/// Objects up to this size are kept until the tablet is open, if they are the newest.
const KEPT_BYTES_MAX: u64 = 512 << 10;

/// A number of an object of the log.
pub(crate) type LogNumber = u64;

/// The log's objects behind a number.
#[derive(Debug)]
struct Listed {
    after: LogNumber,
    objects: HashMap<LogNumber, ObjectMeta>,
}

#[derive(Debug, Default)]
struct ListingState {
    is_open: bool,
    /// The tablet's own fence has been PUT, or refused: a number that was not listed may be taken.
    is_outdated: bool,
    /// The fence.
    own: Option<ObjectMeta>,
    /// The newest object that holds anything, of those that were read.
    newest: Option<(LogNumber, Option<(ObjectMeta, Bytes)>)>,
}

/// The log of one tablet, as it was found.
#[derive(Debug, Default)]
pub(crate) struct LogListingCache {
    listed: OnceCell<Listed>,
    state: Mutex<ListingState>,
}

/// The number in `tablets/<id>/wal/<number>.sst`.
fn number(location: &Path) -> Option<LogNumber> {
    location.filename()?.strip_suffix(".sst")?.parse().ok()
}

fn folder(location: &Path) -> Path {
    location.parts().take(3).collect()
}

fn not_found(location: &Path) -> Error {
    Error::NotFound {
        path: location.to_string(),
        source: "it was not in the listing of the log".into(),
    }
}

fn found(meta: ObjectMeta, bytes: Bytes, range: std::ops::Range<u64>) -> GetResult {
    GetResult {
        payload: GetResultPayload::Stream(futures::stream::once(async move { Ok(bytes) }).boxed()),
        meta,
        range,
        attributes: Attributes::default(),
        extensions: Extensions::default(),
    }
}

impl LogListingCache {
    /// The tablet is open: from now on the bucket is asked.
    pub fn end(&self) {
        let mut state = self.state.lock();
        *state = ListingState {
            is_open: true,
            ..ListingState::default()
        };
    }

    /// An object of the log has been PUT, or, without a size, perhaps not.
    pub fn put(&self, location: &Path, size: Option<u64>) {
        let mut state = self.state.lock();
        if state.is_open {
            return;
        }
        state.is_outdated = true;
        state.own = size.map(|size| ObjectMeta {
            location: location.clone(),
            last_modified: Default::default(),
            size,
            e_tag: None,
            version: None,
        });
    }

    /// The newest object that holds anything.
    pub fn newest(&self) -> Option<LogNumber> {
        self.state.lock().newest.as_ref().map(|(number, _)| *number)
    }

    /// Answers a GET or a HEAD of an object of the log.
    pub async fn get(
        &self,
        store: &dyn ObjectStore,
        location: &Path,
        options: GetOptions,
    ) -> Result<GetResult> {
        let number = number(location).filter(|_| !self.state.lock().is_open);
        match (number, &options.range) {
            (Some(number), None) if options.head => self.head(store, location, number, options).await,
            (Some(number), Some(GetRange::Bounded(range))) => {
                let range = range.clone();
                self.read(store, location, number, range, options).await
            }
            _ => store.get_opts(location, options).await,
        }
    }

    async fn head(
        &self,
        store: &dyn ObjectStore,
        location: &Path,
        number: LogNumber,
        options: GetOptions,
    ) -> Result<GetResult> {
        let listed = self
            .listed
            .get_or_try_init(|| list(store, location, number))
            .await?;
        let whole = |meta: &ObjectMeta| found(meta.clone(), Bytes::new(), 0..meta.size);
        if let Some(meta) = listed.objects.get(&number) {
            return Ok(whole(meta));
        }
        let (own, is_outdated) = {
            let state = self.state.lock();
            (state.own.clone(), state.is_outdated)
        };
        match own.filter(|own| own.location == *location) {
            Some(own) => Ok(whole(&own)),
            None if number > listed.after && !is_outdated => Err(not_found(location)),
            None => store.get_opts(location, options).await,
        }
    }

    async fn read(
        &self,
        store: &dyn ObjectStore,
        location: &Path,
        number: LogNumber,
        range: std::ops::Range<u64>,
        options: GetOptions,
    ) -> Result<GetResult> {
        if let Some((meta, bytes)) = self.kept(number)
            && range.end <= bytes.len() as u64
        {
            let part = bytes.slice(range.start as usize..range.end as usize);
            return Ok(found(meta, part, range));
        }
        let result = store.get_opts(location, options).await?;
        let is_whole = result.range == (0..result.meta.size) && result.meta.size <= KEPT_BYTES_MAX;
        if !is_whole {
            self.keep(number, None);
            return Ok(result);
        }
        let meta = result.meta.clone();
        let bytes = result.bytes().await?;
        self.keep(number, Some((meta.clone(), bytes.clone())));
        let range = 0..meta.size;
        Ok(found(meta, bytes, range))
    }

    fn kept(&self, number: LogNumber) -> Option<(ObjectMeta, Bytes)> {
        let state = self.state.lock();
        let (newest, kept) = state.newest.as_ref()?;
        kept.clone().filter(|_| *newest == number)
    }

    fn keep(&self, number: LogNumber, object: Option<(ObjectMeta, Bytes)>) {
        let mut state = self.state.lock();
        if state.newest.as_ref().is_none_or(|(newest, _)| *newest < number) {
            state.newest = Some((number, object));
        }
    }
}

/// The log from that number on.
async fn list(store: &dyn ObjectStore, location: &Path, from: LogNumber) -> Result<Listed> {
    let after = from.saturating_sub(1);
    let folder = folder(location);
    let offset = folder.clone().join(format!("{after:020}.sst"));
    let objects: Vec<ObjectMeta> = store
        .list_with_offset(Some(&folder), &offset)
        .try_collect()
        .await?;
    let numbered = |meta: ObjectMeta| Some((number(&meta.location)?, meta));
    Ok(Listed {
        after,
        objects: objects.into_iter().filter_map(numbered).collect(),
    })
}

#[cfg(test)]
#[path = "log_listing_cache_tests.rs"]
mod tests;
