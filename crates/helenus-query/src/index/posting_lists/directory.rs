//! The directory of an index's posting lists and their centroids. It determines the list of a new vector and the lists that a search reads.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use super::arithmetic::{distance_squared, dot};
use crate::index::similarity::SimilarityFunction;

/// The first list. It is the only one until it is split.
pub const ROOT: i64 = 0;
/// Maximum number of lists without groups. With more lists, the nearest centroid is searched for in the groups with the nearest leaders.
const UNGROUPED_MAX: usize = 1_024;
/// Number of groups that are searched.
const GROUPS_SOUGHT: usize = 6;

/// A posting list.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    pub id: i64,
    /// The list whose entries are being moved into this one, after a split. `None` if no entries are being moved.
    pub moving_from: Option<i64>,
    pub centroid: Vec<f32>,
}

/// Lists whose centroids are near that of the leader.
#[derive(Debug)]
struct Group {
    leader: usize,
    members: Vec<usize>,
}

/// The lists of an index at some time.
#[derive(Debug, Default)]
pub struct Directory {
    /// Version, which changes with every change of the lists.
    pub version: i64,
    lists: Vec<List>,
    groups: Vec<Group>,
}

impl Directory {
    /// Returns a directory. If `lists` is empty, all entries are in [`ROOT`].
    pub fn new(version: i64, lists: Vec<List>) -> Directory {
        let mut directory = Directory {
            version,
            lists,
            groups: Vec::new(),
        };
        if directory.lists.len() > UNGROUPED_MAX {
            directory.group();
        }
        directory
    }

    pub fn lists(&self) -> &[List] {
        &self.lists
    }

    fn group(&mut self) {
        let step = self.lists.len().isqrt();
        let leaders = (0..self.lists.len()).step_by(step.max(1));
        let mut groups: Vec<Group> = leaders
            .map(|leader| Group {
                leader,
                members: Vec::new(),
            })
            .collect();
        for (place, list) in self.lists.iter().enumerate() {
            let distance = |group: &Group| self.distance(group.leader, &list.centroid);
            let nearest = groups
                .iter_mut()
                .map(|group| (distance(group), group))
                .min_by(|(a, _), (b, _)| a.total_cmp(b));
            if let Some((_, group)) = nearest {
                group.members.push(place);
            }
        }
        self.groups = groups;
    }

    fn distance(&self, place: usize, vector: &[f32]) -> f32 {
        self.lists
            .get(place)
            .map_or(f32::INFINITY, |list| distance_squared(&list.centroid, vector))
    }

    /// Returns the list for a [prepared](super::prepared) vector.
    pub fn list_of(&self, vector: &[f32]) -> i64 {
        self.nearest(vector).map_or(ROOT, |list| list.id)
    }

    /// Returns the lists that may contain the entry of a vector: its list, and the list from which entries are being moved into that one.
    pub fn lists_of(&self, vector: &[f32]) -> impl Iterator<Item = i64> {
        let nearest = self.nearest(vector);
        let from = nearest.and_then(|list| list.moving_from);
        std::iter::once(nearest.map_or(ROOT, |list| list.id)).chain(from)
    }

    fn nearest(&self, vector: &[f32]) -> Option<&List> {
        let least = |places: &mut dyn Iterator<Item = usize>| {
            places
                .map(|place| (self.distance(place, vector), place))
                .min_by(|(a, _), (b, _)| a.total_cmp(b))
        };
        let found = if self.groups.is_empty() {
            least(&mut (0..self.lists.len()))
        } else {
            let mut near: Vec<(f32, &Group)> = self
                .groups
                .iter()
                .map(|group| (self.distance(group.leader, vector), group))
                .collect();
            if near.len() > GROUPS_SOUGHT {
                near.select_nth_unstable_by(GROUPS_SOUGHT, |(a, _), (b, _)| a.total_cmp(b));
                near.truncate(GROUPS_SOUGHT);
            }
            let members = near.iter().flat_map(|(_, group)| group.members.iter().copied());
            least(&mut { members })
        };
        found.and_then(|(_, place)| self.lists.get(place))
    }

    /// Returns the lists in the order in which a search for vectors near `wanted` reads them.
    pub(crate) fn search_order(&self, measure: SimilarityFunction, wanted: &[f32]) -> SearchOrder {
        let distance = |list: &List| match measure {
            SimilarityFunction::DotProduct => -dot(&list.centroid, wanted),
            SimilarityFunction::Cosine | SimilarityFunction::Euclidean => {
                distance_squared(&list.centroid, wanted)
            }
        };
        let mut families: HashMap<i64, Vec<i64>> = HashMap::new();
        for list in &self.lists {
            if let Some(head) = list.moving_from {
                families.entry(head).or_insert_with(|| vec![head]).push(list.id);
            }
        }
        let far = |list: &List| FarList {
            distance: distance(list),
            list: list.id,
            head: list.moving_from.unwrap_or(list.id),
        };
        let mut rest: BinaryHeap<FarList> = self.lists.iter().map(far).collect();
        if rest.is_empty() {
            rest.push(FarList {
                distance: 0.0,
                list: ROOT,
                head: ROOT,
            });
        }
        SearchOrder { rest, families }
    }
}

/// Lists in the order of their distances. Lists between which entries are being moved form a family and come together. The list from which
/// entries are moved comes first.
#[derive(Debug)]
pub struct SearchOrder {
    rest: BinaryHeap<FarList>,
    /// Families that were not returned yet, by the list from which entries are moved.
    families: HashMap<i64, Vec<i64>>,
}

impl SearchOrder {
    /// Returns true if no list is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

impl Iterator for SearchOrder {
    type Item = Vec<i64>;

    fn next(&mut self) -> Option<Vec<i64>> {
        let FarList { list, head, .. } = self.rest.pop()?;
        let Some(family) = self.families.remove(&head) else {
            return Some(vec![list]);
        };
        self.rest.retain(|other| other.head != head);
        Some(family)
    }
}

/// A list with its distance. The nearest list is the greatest.
#[derive(Clone, Copy, Debug)]
struct FarList {
    distance: f32,
    list: i64,
    head: i64,
}

impl Ord for FarList {
    fn cmp(&self, other: &FarList) -> Ordering {
        let nearer = other.distance.total_cmp(&self.distance);
        nearer.then_with(|| other.list.cmp(&self.list))
    }
}

impl PartialOrd for FarList {
    fn partial_cmp(&self, other: &FarList) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for FarList {
    fn eq(&self, other: &FarList) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for FarList {}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::*;
    use crate::index::posting_lists::gaussian::gaussian;

    fn list(id: i64, moving_from: Option<i64>, centroid: &[f32]) -> List {
        List {
            id,
            moving_from,
            centroid: centroid.to_vec(),
        }
    }

    #[test]
    fn all_is_in_the_root_at_first() {
        let empty = Directory::default();
        assert_eq!(empty.list_of(&[1.0]), ROOT);
        assert_eq!(empty.lists_of(&[1.0]).collect::<Vec<_>>(), [ROOT]);
        let order: Vec<_> = empty.search_order(SimilarityFunction::Cosine, &[1.0]).collect();
        assert_eq!(order, [[ROOT]]);
    }

    #[test]
    fn lists_that_entries_move_between_are_searched_together() {
        let lists = vec![
            list(0, None, &[0.0]),
            list(7, Some(0), &[10.0]),
            list(8, None, &[20.0]),
        ];
        let directory = Directory::new(1, lists);
        assert_eq!(directory.list_of(&[9.0]), 7);
        assert_eq!(directory.lists_of(&[9.0]).collect::<Vec<_>>(), [7, 0]);
        assert_eq!(directory.lists_of(&[19.0]).collect::<Vec<_>>(), [8]);
        let order = |wanted| -> Vec<Vec<i64>> {
            let order = directory.search_order(SimilarityFunction::Euclidean, &[wanted]);
            order.collect()
        };
        assert_eq!(order(16.0), [vec![8], vec![0, 7]]);
        assert_eq!(order(12.0), [vec![0, 7], vec![8]]);
    }

    #[test]
    fn groups_lead_to_the_nearest_list_nearly_always() {
        let mut random = SmallRng::seed_from_u64(9);
        let mut vector = || (0..8).map(|_| gaussian(&mut random)).collect::<Vec<f32>>();
        let lists = (0..2_000).map(|id| list(id, None, &vector())).collect();
        let directory = Directory::new(1, lists);
        assert!(!directory.groups.is_empty());
        let is_found = |wanted: Vec<f32>| {
            let mut order = directory.search_order(SimilarityFunction::Euclidean, &wanted);
            order.next() == Some(vec![directory.list_of(&wanted)])
        };
        let found = (0..200).filter(|_| is_found(vector())).count();
        assert!(found >= 180, "{found}");
    }
}
