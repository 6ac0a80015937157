//! Cassandra's reconcile rules, on packed values (`org.apache.cassandra.db.rows.{Cells, Row.Merger}`, `LivenessInfo.supersedes`,
//! `DeletionTime.supersedes`).
//!
//! Each rule is a total order whose maximum is kept. A deletion shadows by timestamp alone, which every order compares first. The merge is
//! therefore associative, commutative and idempotent.

use std::cmp::Ordering;

use bytes::Bytes;

use crate::error::RowError;
use crate::header::PartitionHeader;
use crate::key::KeyKind;
use crate::packed::{CellRef, ColumnRef, ComplexRef, ExactParts, Packed, RowWriter};
use crate::row::{CellKind, ColumnId, Deletion, Expiry, Liveness, Row};

/// Merges a stored value, if there is one, and operands, in any order, into one packed value.
///
/// The merge is associative, commutative and idempotent, and its bytes are canonical. Whatever the order and the grouping of merges, the
/// result is byte for byte equal.
///
/// # Errors
/// [`RowError`] if any of the values is corrupt.
pub fn merge(kind: KeyKind, existing: Option<&Bytes>, operands: &[Bytes]) -> Result<Bytes, RowError> {
    let pair = match kind {
        KeyKind::Header => merge_headers,
        KeyKind::Static | KeyKind::Row => merge_rows,
    };
    let merged = match operands {
        [] => None,
        [single] => Some(single.clone()),
        several => Some(merge_all(several, pair)?),
    };
    match (existing, merged) {
        (Some(existing), Some(merged)) => pair(existing, &merged),
        (Some(one), None) => Ok(one.clone()),
        (None, Some(one)) => Ok(one),
        (None, None) => Ok(match kind {
            KeyKind::Header => PartitionHeader::default().encode(),
            KeyKind::Static | KeyKind::Row => Row::default().encode(),
        }),
    }
}

type Pair = fn(&Bytes, &Bytes) -> Result<Bytes, RowError>;

/// Merges the operands in pairs, round by round, so that small ones aren't merged one by one into a growing result.
fn merge_all(operands: &[Bytes], pair: Pair) -> Result<Bytes, RowError> {
    let mut round = operands.to_vec();
    while round.len() > 1 {
        round = round
            .chunks(2)
            .map(|two| match two {
                [a, b] => pair(a, b),
                rest => rest.first().cloned().ok_or(RowError::Truncated),
            })
            .collect::<Result<_, RowError>>()?;
    }
    round.pop().ok_or(RowError::Truncated)
}

fn merge_headers(a: &Bytes, b: &Bytes) -> Result<Bytes, RowError> {
    if a == b {
        return Ok(a.clone());
    }
    Ok(PartitionHeader::decode(a)?
        .merge(&PartitionHeader::decode(b)?)
        .encode())
}

/// Merges two packed rows.
pub(crate) fn merge_rows(a: &Bytes, b: &Bytes) -> Result<Bytes, RowError> {
    if a == b {
        return Ok(a.clone());
    }
    let (left, right) = (Packed::parse(a)?, Packed::parse(b)?);
    if overwrites(&left, &right)? {
        return Ok(a.clone());
    }
    if overwrites(&right, &left)? {
        return Ok(b.clone());
    }
    merge_parts(&left, &right, a.len() + b.len())
}

/// Returns true if `new` hides all of `old`. Then the merge is `new` without change.
fn overwrites(new: &Packed<'_>, old: &Packed<'_>) -> Result<bool, RowError> {
    if !old.is_uniform() || old.has_exact_clustering() {
        return Ok(false);
    }
    let old_timestamp = old.base().timestamp_us;
    if let Some(deletion) = new.deletion() {
        return Ok(deletion.deletes(old_timestamp) && old.deletion() <= new.deletion());
    }
    if old.deletion().is_some() || !new.is_uniform() || new.base().timestamp_us <= old_timestamp {
        return Ok(false);
    }
    if old.liveness().is_some() && new.liveness().is_none() {
        return Ok(false);
    }
    let mut new_columns = new.columns();
    for column in old.columns() {
        let (id, _) = column?;
        loop {
            match new_columns.next().transpose()? {
                Some((other, _)) if other < id => {}
                Some((other, _)) if other == id => break,
                _ => return Ok(false),
            }
        }
    }
    Ok(true)
}

fn merge_parts(left: &Packed<'_>, right: &Packed<'_>, capacity: usize) -> Result<Bytes, RowError> {
    let deletion = Deletion::max(left.deletion(), right.deletion());
    let liveness = merge_liveness(left.liveness(), right.liveness());
    let mut writer = RowWriter::new(liveness, deletion, capacity);
    let mut scratch = Vec::new();
    let (mut lefts, mut rights) = (left.columns(), right.columns());
    let (mut l, mut r) = (lefts.next().transpose()?, rights.next().transpose()?);
    loop {
        let order = match (&l, &r) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((left_id, _)), Some((right_id, _))) => left_id.cmp(right_id),
        };
        match order {
            Ordering::Equal => {
                if let (Some((id, a)), Some((_, b))) = (l, r) {
                    write_both(&mut writer, id, a, b, &mut scratch)?;
                }
            }
            Ordering::Less => write_one(&mut writer, l, &mut scratch)?,
            Ordering::Greater => write_one(&mut writer, r, &mut scratch)?,
        }
        if order.is_le() {
            l = lefts.next().transpose()?;
        }
        if order.is_ge() {
            r = rights.next().transpose()?;
        }
    }
    let exact = oldest_clustering(left.exact_clustering()?, right.exact_clustering()?);
    Ok(writer.finish(
        exact
            .as_ref()
            .map(|(timestamp_us, parts)| (*timestamp_us, &**parts)),
    ))
}

/// Returns the older of two exact clusterings: a row keeps the first written form, even if it is written again in another form.
fn oldest_clustering<'a>(a: Option<ExactParts<'a>>, b: Option<ExactParts<'a>>) -> Option<ExactParts<'a>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

type Elements<'a> = Vec<(&'a [u8], CellRef<'a>)>;

fn write_one<'a>(
    writer: &mut RowWriter,
    column: Option<(ColumnId, ColumnRef<'a>)>,
    scratch: &mut Elements<'a>,
) -> Result<(), RowError> {
    match column {
        None => {}
        Some((id, ColumnRef::Simple(cell))) => writer.simple(id, &cell),
        Some((id, ColumnRef::Complex(complex))) => {
            scratch.clear();
            for element in complex.cells() {
                scratch.push(element?);
            }
            writer.complex(id, complex.deletion, scratch);
        }
    }
    Ok(())
}

fn write_both<'a>(
    writer: &mut RowWriter,
    id: ColumnId,
    a: ColumnRef<'a>,
    b: ColumnRef<'a>,
    scratch: &mut Elements<'a>,
) -> Result<(), RowError> {
    match (a, b) {
        (ColumnRef::Simple(a), ColumnRef::Simple(b)) => {
            writer.simple(id, if reconcile_cells(&a, &b).is_ge() { &a } else { &b });
        }
        (ColumnRef::Complex(a), ColumnRef::Complex(b)) => {
            merge_elements(&a, &b, scratch)?;
            writer.complex(id, Deletion::max(a.deletion, b.deletion), scratch);
        }
        _ => return Err(RowError::Corrupt("column of one cell and of many")),
    }
    Ok(())
}

fn merge_elements<'a>(
    a: &ComplexRef<'a>,
    b: &ComplexRef<'a>,
    merged: &mut Elements<'a>,
) -> Result<(), RowError> {
    merged.clear();
    let (mut lefts, mut rights) = (a.cells(), b.cells());
    let (mut l, mut r) = (lefts.next().transpose()?, rights.next().transpose()?);
    loop {
        let (order, element) = match (l, r) {
            (None, None) => return Ok(()),
            (Some(left), None) => (Ordering::Less, left),
            (None, Some(right)) => (Ordering::Greater, right),
            (Some(left), Some(right)) => match left.0.cmp(right.0) {
                Ordering::Equal if reconcile_cells(&left.1, &right.1).is_lt() => (Ordering::Equal, right),
                Ordering::Greater => (Ordering::Greater, right),
                order => (order, left),
            },
        };
        merged.push(element);
        if order.is_le() {
            l = lefts.next().transpose()?;
        }
        if order.is_ge() {
            r = rights.next().transpose()?;
        }
    }
}

/// Compares two versions of a cell. The greater one is kept (`Cells.resolveRegular`).
///
/// The newest version is kept. At the same timestamp, a tombstone wins over an expiring cell, and an expiring cell over one that does not
/// expire. Of two tombstones or expiring cells, the later deletion or expiry time wins, then the smaller TTL, then the greater value.
///
/// Counters follow the same rule. The stored value is a total, and the partition's only writer assigns each increment a newer timestamp.
pub fn reconcile_cells(a: &CellRef<'_>, b: &CellRef<'_>) -> Ordering {
    a.timestamp_us.cmp(&b.timestamp_us).then_with(|| {
        let (left, right) = (rank(&a.kind), rank(&b.kind));
        left.cmp(&right).then_with(|| a.value.cmp(b.value))
    })
}

/// Returns the rank of the kind, the local deletion time, and the negated TTL.
fn rank(kind: &CellKind) -> (u8, i64, i64) {
    match kind {
        CellKind::Live => (0, 0, 0),
        CellKind::Counter => (1, 0, 0),
        CellKind::Expiring(expiry) => (2, expiry.expires_at_s, -i64::from(expiry.ttl_s)),
        CellKind::Tombstone { local_deletion_s } => (3, *local_deletion_s, 0),
    }
}

/// Returns the liveness that supersedes the other (`LivenessInfo.supersedes`). The newest supersedes. At the same timestamp, one that
/// expires does, then the one that expires later, then the one with the smaller TTL.
pub fn merge_liveness(a: Option<Liveness>, b: Option<Liveness>) -> Option<Liveness> {
    fn rank(liveness: &Liveness) -> (i64, Option<(i64, i64)>) {
        let expiry = |e: Expiry| (e.expires_at_s, -i64::from(e.ttl_s));
        (liveness.timestamp_us, liveness.expiry.map(expiry))
    }
    match (a, b) {
        (Some(a), Some(b)) => Some(if rank(&a) >= rank(&b) { a } else { b }),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
pub(crate) mod merge_tests;
