//! Entries that were read but not yet followed to their rows. Thousands are read for each one that is followed. So an entry costs no
//! allocation and no reference count: it is a slice of the bytes of its list.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// An entry that can be followed to its row.
pub(crate) struct Candidate {
    pub distance: f32,
    pub list: i64,
    /// The entry's encoded clustering in the hidden table.
    pub entry: Bytes,
    pub written_us: i64,
}

/// The place of an entry. The nearest entry is the greatest. Among equally near entries, it is the one that a scan returns first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// The distance as [`ordered`] bits, the number of the piece, and the offset in the piece.
    order: Reverse<(u32, u32, u32)>,
    len: u32,
    written_us: i64,
}

/// Returns a distance as bits that have the order of `f32::total_cmp`.
fn ordered(distance: f32) -> u32 {
    let bits = distance.to_bits();
    match distance.is_sign_negative() {
        true => !bits,
        false => bits | SIGN,
    }
}

/// Returns the distance from [`ordered`] bits.
fn distance_of(ordered: u32) -> f32 {
    f32::from_bits(match ordered & SIGN {
        0 => !ordered,
        _ => ordered & !SIGN,
    })
}

const SIGN: u32 = 1 << 31;

/// The entries of one list.
pub(crate) struct ListCandidates {
    list: i64,
    bytes: Bytes,
    /// Places of the entries. The number of the piece is 0.
    places: Vec<Place>,
}

/// Bytes of an encoded candidate before the entry: its distance, timestamp and length.
const ENCODED_HEAD_LEN: usize = 16;

impl ListCandidates {
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Encodes the entries for another node.
    pub fn encode(&self) -> Bytes {
        let entries_len: usize = self.places.iter().map(|place| place.len as usize).sum();
        let mut encoded = BytesMut::with_capacity(entries_len + self.places.len() * ENCODED_HEAD_LEN);
        for place in &self.places {
            let Reverse((distance, _, at)) = place.order;
            let entry = self.bytes.get(at as usize..);
            if let Some(entry) = entry.and_then(|rest| rest.get(..place.len as usize)) {
                encoded.put_f32_le(distance_of(distance));
                encoded.put_i64_le(place.written_us);
                encoded.put_u32_le(place.len);
                encoded.put_slice(entry);
            }
        }
        encoded.freeze()
    }

    /// Decodes the entries of a list from [`ListCandidates::encode`]. `None` if they are damaged.
    pub fn decode(list: i64, encoded: Bytes) -> Option<ListCandidates> {
        let mut collector = ListCollector::new(list, Some(encoded.clone()));
        let mut rest = encoded.as_ref();
        while !rest.is_empty() {
            let mut head = rest.split_off(..ENCODED_HEAD_LEN)?;
            let (distance, written_us, len) = (head.get_f32_le(), head.get_i64_le(), head.get_u32_le());
            collector.add(distance, rest.split_off(..len as usize)?, written_us);
        }
        Some(collector.finish())
    }
}

/// Collects the entries of one list.
pub(crate) struct ListCollector {
    list: i64,
    /// The bytes that contain all entries. `None` if the entries are copied.
    shared: Option<Bytes>,
    copied: BytesMut,
    places: Vec<Place>,
}

impl ListCollector {
    pub fn new(list: i64, shared: Option<Bytes>) -> ListCollector {
        ListCollector {
            list,
            shared,
            copied: BytesMut::new(),
            places: Vec::new(),
        }
    }

    /// Adds an entry. `entry` is a slice of the shared bytes, if there are any.
    pub fn add(&mut self, distance: f32, entry: &[u8], written_us: i64) {
        let at = match &self.shared {
            Some(shared) => (entry.as_ptr() as usize).wrapping_sub(shared.as_ptr() as usize),
            None => {
                self.copied.extend_from_slice(entry);
                self.copied.len() - entry.len()
            }
        };
        // Larger offsets do not occur. A list beyond 4 GiB is read row by row, and is split long before.
        if let (Ok(at), Ok(len)) = (u32::try_from(at), u32::try_from(entry.len())) {
            self.places.push(Place {
                order: Reverse((ordered(distance), 0, at)),
                len,
                written_us,
            });
        }
    }

    pub fn finish(self) -> ListCandidates {
        ListCandidates {
            list: self.list,
            bytes: self.shared.unwrap_or_else(|| self.copied.freeze()),
            places: self.places,
        }
    }
}

/// Number of entries of the first list by which near and far entries are divided: the distance of this nearest one is the limit.
const NEAR: usize = 64;

/// Entries of lists, the nearest first. Few of them are ever taken. So only the near ones are kept in order, until all of them are taken.
#[derive(Default)]
pub(crate) struct Candidates {
    pieces: Vec<(i64, Bytes)>,
    near: BinaryHeap<Place>,
    far: Vec<Place>,
    /// Maximum distance of near entries, as [`ordered`] bits.
    near_max: u32,
}

impl Candidates {
    pub fn add(&mut self, read: impl IntoIterator<Item = ListCandidates>) {
        for list in read {
            let piece = u32::try_from(self.pieces.len()).unwrap_or(u32::MAX);
            self.pieces.push((list.list, list.bytes));
            if self.near.is_empty() && self.far.is_empty() {
                self.near_max = near_max(&list.places);
            }
            for place in list.places {
                let Reverse((distance, _, at)) = place.order;
                let order = Reverse((distance, piece, at));
                let place = Place { order, ..place };
                match distance <= self.near_max {
                    true => self.near.push(place),
                    false => self.far.push(place),
                }
            }
        }
    }

    /// Takes the nearest entry.
    pub fn pop(&mut self) -> Option<Candidate> {
        if self.near.is_empty() {
            self.near = std::mem::take(&mut self.far).into();
            self.near_max = u32::MAX;
        }
        let place = self.near.pop()?;
        let Reverse((distance, piece, at)) = place.order;
        let (list, bytes) = self.pieces.get(piece as usize)?;
        let entry = bytes.get(at as usize..)?.get(..place.len as usize)?;
        Some(Candidate {
            distance: distance_of(distance),
            list: *list,
            entry: bytes.slice_ref(entry),
            written_us: place.written_us,
        })
    }
}

fn near_max(places: &[Place]) -> u32 {
    let mut distances: Vec<u32> = places.iter().map(|place| place.order.0.0).collect();
    match distances.len() > NEAR {
        true => *distances.select_nth_unstable(NEAR).1,
        false => u32::MAX,
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    fn popped(candidates: &mut Candidates) -> Vec<(i64, Bytes)> {
        let next = || {
            candidates
                .pop()
                .map(|candidate| (candidate.list, candidate.entry))
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn distances_are_ordered_by_their_bits() {
        let ascending = [f32::NEG_INFINITY, -2.5, -0.0, 0.0, 1e-30, 3.0, f32::INFINITY];
        let bits = ascending.map(ordered);
        assert!(bits.is_sorted_by(|a, b| a < b));
        for (distance, bits) in ascending.iter().zip(bits) {
            assert!(distance.total_cmp(&distance_of(bits)).is_eq());
        }
    }

    #[test]
    fn the_nearest_come_first_whether_shared_or_copied() {
        let shared = Bytes::from_static(b"..near.far");
        let mut first = ListCollector::new(1, Some(shared.clone()));
        first.add(9.0, &shared[7..], 1);
        first.add(1.0, &shared[2..6], 2);
        let mut second = ListCollector::new(2, None);
        second.add(1.0, b"as near", 3);
        second.add(4.0, b"between", 4);
        second.add(4.0, b"behind it", 5);
        let mut candidates = Candidates::default();
        candidates.add([first.finish()]);
        candidates.add([second.finish()]);
        let expected: [(i64, &[u8]); 5] = [
            (1, b"near"),
            (2, b"as near"),
            (2, b"between"),
            (2, b"behind it"),
            (1, b"far"),
        ];
        let expected = expected.map(|(list, entry)| (list, Bytes::from_static(entry)));
        assert_eq!(popped(&mut candidates), expected);
        assert!(candidates.pop().is_none());
    }

    #[test]
    fn encoded_lists_are_the_same_when_decoded() {
        let mut collector = ListCollector::new(7, None);
        for (distance, entry) in [(0.5, &b"an entry"[..]), (-1.0, b""), (f32::INFINITY, b"far")] {
            collector.add(distance, entry, -3);
        }
        let encoded = collector.finish().encode();
        let decoded = ListCandidates::decode(7, encoded.clone()).unwrap();
        assert_eq!(decoded.encode(), encoded);
        let mut candidates = Candidates::default();
        candidates.add([decoded]);
        let nearest = candidates.pop().unwrap();
        assert_eq!(
            (nearest.distance, nearest.list, nearest.written_us),
            (-1.0, 7, -3)
        );
        assert_eq!(candidates.pop().unwrap().entry, Bytes::from_static(b"an entry"));
        assert!(ListCandidates::decode(7, encoded.slice(..encoded.len() - 1)).is_none());
        assert!(ListCandidates::decode(7, encoded.slice(..ENCODED_HEAD_LEN - 1)).is_none());
    }

    #[test]
    fn far_ones_come_after_the_near_ones_in_order() {
        let mut random = SmallRng::seed_from_u64(3);
        let mut candidates = Candidates::default();
        let mut distances = Vec::new();
        for list in 0..4 {
            let mut collector = ListCollector::new(list, None);
            for _ in 0..3 * NEAR {
                distances.push(random.random::<f32>());
                collector.add(distances[distances.len() - 1], b"entry", 0);
            }
            candidates.add([collector.finish()]);
        }
        distances.sort_by(f32::total_cmp);
        let next = || candidates.pop().map(|candidate| candidate.distance);
        assert_eq!(std::iter::from_fn(next).collect::<Vec<_>>(), distances);
    }
}
