//! Splits posting lists that have grown too long, in the background. The owner of the index's directory does this.
//!
//! A round checks the marked lists, computes centroids for those that are too long, and publishes new lists into which entries are being
//! moved. From then on, searches read such lists together. Writers put entries into the nearest list once they know of it. Then the entries
//! are moved, each with its own timestamp plus one, and the lists are published as settled. The next round continues one that was
//! interrupted.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::nearest::directories::{self, WRITERS_KNOW};
use super::nearest::list_reader::ListReader;
use super::posting_lists::directory::{Directory, List, ROOT};
use super::posting_lists::hidden_rows::{
    Change, decode_list_row, directory_partition, list_partition, list_row, marks_partition, row_op,
};
use super::posting_lists::k_means::{k_means, nearest};
use super::posting_lists::packed_vector::{packed_vectors, unpack};
use crate::failure::ExecutionError;
use crate::rows::RowSelection;
use crate::schema::{Index, Schema};
use crate::storage::ExecutionContext;
use crate::storage::row_reads::RowCursor;

/// Maximum number of entries of a list that is not split.
const ENTRIES_MAX: usize = 256;
/// Number of entries that each list of a split should get. A split makes at most [`PARTS_MAX`] lists.
const SPLIT_ENTRIES: usize = 128;
const PARTS_MAX: usize = 128;
/// Number of vectors by which each centroid is computed.
const SAMPLED_FOR_A_PART: usize = 48;
/// Number of marked lists that one round checks.
const LISTS_IN_A_ROUND: usize = 256;
/// Number of entries that are moved together.
const BATCH_ENTRIES: usize = 512;
/// Time between two checks for marks.
const PERIOD: Duration = Duration::from_secs(1);
/// Maximum time of a write that began before its node knew of the new lists.
const WRITES_END: Duration = Duration::from_secs(1);

/// Starts the background task, which ends with the node.
pub(crate) fn begin(context: &Arc<ExecutionContext>) {
    let context = Arc::downgrade(context);
    tokio::spawn(maintain(context));
}

async fn maintain(context: Weak<ExecutionContext>) {
    loop {
        tokio::time::sleep(PERIOD).await;
        let Some(context) = context.upgrade() else { return };
        let schema = context.schema();
        let indexes = indexes(&schema);
        let is_there = |number| indexes.iter().any(|index| index.table.number == number);
        context.indexes.posting_lists.retain(is_there);
        for index in &indexes {
            // The next round continues a round that failed.
            if let Err(error) = round(&context, index, WRITERS_KNOW + WRITES_END).await {
                tracing::debug!(
                    index = index.name,
                    ?error,
                    "posting lists stay as they are for now"
                );
            }
        }
    }
}

fn indexes(schema: &Schema) -> Vec<Arc<Index>> {
    let indexes = schema.stored_tables().flat_map(|table| &table.indexes);
    indexes.filter(|index| index.has_posting_lists).cloned().collect()
}

/// Splits the marked lists that are too long, or continues what an earlier round has begun. Entries are moved after `wait`. Returns the
/// number of lists into which entries were moved.
pub(crate) async fn round(
    context: &Arc<ExecutionContext>,
    index: &Arc<Index>,
    wait: Duration,
) -> Result<usize, ExecutionError> {
    let is_mine = || context.owns(directory_partition().token);
    if !is_mine() {
        return Ok(0);
    }
    let directory = directories::current(context, index).await?;
    let moving = directory.lists().iter().filter(|list| list.moving_from.is_some());
    let moving = moving.count();
    if moving > 0 {
        tokio::time::sleep(wait).await;
        settle(context, index).await?;
        return Ok(moving);
    }
    let marks = marks(context, index).await?;
    let mut changed = Vec::new();
    for (list, _) in &marks {
        changed.extend(split(context, index, &directory, *list).await?);
    }
    let made = changed.iter().filter(|list| list.moving_from.is_some()).count();
    if made > 0 && is_mine() {
        directories::publish(context, index, &directory, &changed).await?;
        directories::current(context, index).await?;
        tokio::time::sleep(wait).await;
        settle(context, index).await?;
    }
    let unmark = |(list, timestamp_us): &(i64, i64)| {
        let row = list_row(index, *list)?;
        let timestamp_us = *timestamp_us;
        let removed = Change::Removed { timestamp_us };
        Ok::<_, CqlError>(row_op(index, &marks_partition(), &row, removed))
    };
    let unmarked = marks.iter().map(unmark).collect::<Result<Vec<_>, _>>()?;
    directories::write(context, unmarked).await?;
    Ok(made)
}

/// Returns the marked lists, with the timestamps of their marks.
async fn marks(context: &ExecutionContext, index: &Index) -> Result<Vec<(i64, i64)>, ExecutionError> {
    let mut rows = RowCursor::new(&index.table, marks_partition(), None, RowSelection::all(), false);
    let mut marks = Vec::new();
    while marks.len() < LISTS_IN_A_ROUND
        && let Some(found) = rows.next(context).await?
    {
        let live = found.row.live(0)?;
        let liveness = live.and_then(|live| live.liveness);
        if let Some((list, liveness)) = decode_list_row(index, &found.clustering).zip(liveness) {
            marks.push((list, liveness.timestamp_us));
        }
    }
    Ok(marks)
}

/// Returns the lists that replace a list that is too long: itself with another centroid, and the new lists. Empty if it need not be split.
async fn split(
    context: &ExecutionContext,
    index: &Arc<Index>,
    directory: &Directory,
    list: i64,
) -> Result<Vec<List>, ExecutionError> {
    let is_known = directory.lists().iter().any(|known| known.id == list);
    let is_first = directory.lists().is_empty() && list == ROOT;
    if !is_known && !is_first {
        return Ok(Vec::new());
    }
    let seed = context.next_timestamp_us().cast_unsigned() ^ list.cast_unsigned();
    let mut random = SmallRng::seed_from_u64(seed);
    let (count, sample) = sample(context, index, list, &mut random).await?;
    if count <= ENTRIES_MAX {
        return Ok(Vec::new());
    }
    let parts = count.div_ceil(SPLIT_ENTRIES).min(PARTS_MAX);
    let mut drawing = SmallRng::from_rng(&mut random);
    let centroids =
        helenus_tablet::threads::spawn_blocking(move || k_means(&sample, parts, &mut drawing)).await;
    let centroids = centroids.map_err(|error| CqlError::Server(error.to_string()))?;
    if centroids.len() < 2 {
        return Ok(Vec::new());
    }
    let lists = centroids
        .into_iter()
        .enumerate()
        .map(|(place, centroid)| match place {
            0 => List {
                id: list,
                moving_from: None,
                centroid,
            },
            _ => List {
                // The id is random, so that two nodes that split at the same time make different lists.
                id: random.random_range(ROOT + 1..=i64::MAX),
                moving_from: Some(list),
                centroid,
            },
        });
    Ok(lists.collect())
}

/// Returns the number of a list's entries, and a random sample of their vectors.
async fn sample(
    context: &ExecutionContext,
    index: &Arc<Index>,
    list: i64,
    random: &mut SmallRng,
) -> Result<(usize, Vec<Vec<f32>>), ExecutionError> {
    let mut entries = ListReader::new(index, list);
    let mut count = 0;
    let mut sample: Vec<Vec<f32>> = Vec::new();
    loop {
        let size_max = ((count / SPLIT_ENTRIES).clamp(2, PARTS_MAX) + 1) * SAMPLED_FOR_A_PART;
        let is_read = entries.next(context, |entry| {
            count += 1;
            let place = match sample.len() < size_max {
                true => sample.len(),
                false => random.random_range(0..count),
            };
            if place < size_max
                && let Some(vector) = packed_vectors(entry.cell).next().and_then(unpack)
            {
                match sample.get_mut(place) {
                    Some(drawn) => *drawn = vector,
                    None => sample.push(vector),
                }
            }
            Ok(())
        });
        if !is_read.await? {
            return Ok((count, sample));
        }
    }
}

/// Moves the entries of all lists that are being split, and publishes the lists as settled.
async fn settle(context: &ExecutionContext, index: &Arc<Index>) -> Result<(), ExecutionError> {
    let directory = directories::current(context, index).await?;
    let mut families: HashMap<i64, Vec<&List>> = HashMap::new();
    for list in directory.lists() {
        if let Some(from) = list.moving_from {
            families.entry(from).or_default().push(list);
        }
    }
    let mut settled = Vec::new();
    for (from, children) in families {
        let head = directory.lists().iter().find(|list| list.id == from);
        let family: Vec<&List> = head.into_iter().chain(children.iter().copied()).collect();
        move_entries(context, index, from, &family).await?;
        settled.extend(children.into_iter().map(|child| List {
            moving_from: None,
            ..child.clone()
        }));
    }
    directories::publish(context, index, &directory, &settled).await?;
    directories::current(context, index).await?;
    Ok(())
}

/// Moves the entries of a list to the nearest lists of its family. An entry with two vectors may get into two lists. Marks lists that are
/// then too long.
async fn move_entries(
    context: &ExecutionContext,
    index: &Arc<Index>,
    from: i64,
    family: &[&List],
) -> Result<(), ExecutionError> {
    let centroids: Vec<Vec<f32>> = family.iter().map(|list| list.centroid.clone()).collect();
    let mut counts = vec![0_usize; family.len()];
    let mut entries = ListReader::new(index, from);
    let source = list_partition(from);
    let (mut added, mut removed) = (Vec::new(), Vec::new());
    loop {
        let is_read = entries.next(context, |entry| {
            let mut places: Vec<usize> = packed_vectors(entry.cell)
                .filter_map(unpack)
                .map(|vector| nearest(&vector, &centroids))
                .collect();
            places.dedup();
            let mut stays = places.is_empty();
            for place in places {
                if let Some(count) = counts.get_mut(place) {
                    *count += 1;
                }
                let Some(target) = family.get(place).filter(|list| list.id != from) else {
                    stays = true;
                    continue;
                };
                let written = Change::Written {
                    cell: Bytes::copy_from_slice(entry.cell),
                    timestamp_us: entry.written_us + 1,
                };
                let partition = list_partition(target.id);
                added.push(row_op(index, &partition, entry.clustering, written));
            }
            if !stays {
                let gone = Change::Removed {
                    timestamp_us: entry.written_us,
                };
                removed.push(row_op(index, &source, entry.clustering, gone));
            }
            Ok(())
        });
        let is_last = !is_read.await?;
        if added.len() >= BATCH_ENTRIES || is_last {
            directories::write(context, std::mem::take(&mut added)).await?;
            directories::write(context, std::mem::take(&mut removed)).await?;
        }
        if is_last {
            break;
        }
    }
    let too_long = family
        .iter()
        .zip(&counts)
        .filter(|(_, count)| **count > ENTRIES_MAX);
    let timestamp_us = context.next_timestamp_us();
    let mark = |(list, _): (&&List, &usize)| {
        let row = list_row(index, list.id)?;
        let cell = Bytes::new();
        let written = Change::Written { cell, timestamp_us };
        Ok::<_, CqlError>(row_op(index, &marks_partition(), &row, written))
    };
    let marks = too_long.map(mark).collect::<Result<Vec<_>, _>>()?;
    Ok(directories::write(context, marks).await?)
}
