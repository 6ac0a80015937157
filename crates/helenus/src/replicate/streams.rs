//! The streams of the source's logs: one for each tablet, until the tablet is split or merged.

use std::collections::{BTreeMap, HashSet};

use anyhow::{Result, anyhow};
use bytes::Bytes;
use helenus_cql::types::CqlType;
use helenus_cql::value::read_elements;

use super::state::to_bigint;
use crate::node_session::NodeSession;

/// A stream, with the times of its generations in µs since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    pub id: Bytes,
    /// The last token of its tablet, and that of the tablet before.
    pub last: i64,
    pub after: i64,
    pub begin_us: i64,
    /// The end. `None` for a current stream.
    pub end_us: Option<i64>,
}

impl Stream {
    /// Returns true if the other stream has some of this one's changes from before it began.
    pub fn follows(&self, other: &Stream) -> bool {
        other.end_us.is_some_and(|end_us| end_us <= self.begin_us)
            && other.after < self.last
            && self.after < other.last
    }
}

/// Reads the streams of all generations.
pub fn read(session: &mut NodeSession) -> Result<Vec<Stream>> {
    let rows = session.rows(
        "SELECT time, range_end, streams FROM system_distributed.cdc_streams_descriptions_v2",
        &[],
    )?;
    let mut generations: BTreeMap<i64, BTreeMap<i64, Vec<Bytes>>> = BTreeMap::new();
    for row in rows {
        let [Some(time), Some(last), Some(streams)] = row.as_slice() else {
            continue;
        };
        let set = CqlType::set(CqlType::BLOB, true);
        let ids =
            read_elements(&set, streams).map_err(|problem| anyhow!("the streams of the logs: {problem}"))?;
        let ids = ids.into_iter().map(|id| streams.slice_ref(id)).collect();
        if let (Some(time_ms), Some(last)) = (to_bigint(time), to_bigint(last)) {
            generations
                .entry(time_ms.saturating_mul(1000))
                .or_default()
                .insert(last, ids);
        }
    }
    Ok(of_generations(&generations))
}

/// Returns the streams of generations, which have the streams of each range by its last token.
fn of_generations(generations: &BTreeMap<i64, BTreeMap<i64, Vec<Bytes>>>) -> Vec<Stream> {
    let mut open: BTreeMap<Bytes, Stream> = BTreeMap::new();
    let mut found = Vec::new();
    for (time_us, ranges) in generations {
        let here: HashSet<&Bytes> = ranges.values().flatten().collect();
        let gone: Vec<Bytes> = open.keys().filter(|id| !here.contains(id)).cloned().collect();
        for id in gone {
            if let Some(mut stream) = open.remove(&id) {
                stream.end_us = Some(*time_us);
                found.push(stream);
            }
        }
        let mut after = i64::MIN;
        for (last, ids) in ranges {
            for id in ids {
                open.entry(id.clone()).or_insert_with(|| Stream {
                    id: id.clone(),
                    last: *last,
                    after,
                    begin_us: *time_us,
                    end_us: None,
                });
            }
            after = *last;
        }
    }
    found.extend(open.into_values());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> Bytes {
        Bytes::copy_from_slice(name.as_bytes())
    }

    #[test]
    fn streams_end_when_their_tablet_is_split() {
        let of = |ranges: &[(i64, &str)]| {
            let ranges = ranges.iter().map(|(last, name)| (*last, vec![id(name)]));
            ranges.collect::<BTreeMap<_, _>>()
        };
        let generations = BTreeMap::from([
            (10, of(&[(0, "left"), (i64::MAX, "right")])),
            (20, of(&[(0, "left"), (50, "middle"), (i64::MAX, "end")])),
        ]);
        let mut streams = of_generations(&generations);
        streams.sort_by_key(|stream| (stream.begin_us, stream.last));
        let shown: Vec<_> = streams
            .iter()
            .map(|stream| (stream.id.as_ref(), stream.begin_us, stream.end_us))
            .collect();
        assert_eq!(
            shown,
            [
                (&b"left"[..], 10, None),
                (b"right", 10, Some(20)),
                (b"middle", 20, None),
                (b"end", 20, None)
            ]
        );
        let (left, right, middle) = (&streams[0], &streams[1], &streams[2]);
        assert!(middle.follows(right) && !left.follows(right) && !right.follows(middle));
    }
}
