use proptest::prelude::*;

use super::*;
use crate::document::tests::{cluster, host, record};
use crate::ids::Incarnation;

const HOUR: Duration = Duration::from_secs(3600);

/// Observes a cluster of small tablets at intervals.
struct Watcher {
    stability: StabilityTracker,
    now: Duration,
    document: ClusterDocument,
    suspected: BTreeSet<HostId>,
    loads: BTreeMap<TabletId, TabletLoad>,
    limits: ReshapeLimits,
}

impl Watcher {
    fn new(document: ClusterDocument) -> Watcher {
        let small = |tablet: &crate::document::TabletRecord| (tablet.id, TabletLoad::default());
        Watcher {
            stability: StabilityTracker::default(),
            now: HOUR,
            loads: document.tablets.iter().map(small).collect(),
            document,
            suspected: BTreeSet::new(),
            limits: ReshapeLimits::default(),
        }
    }

    fn look(&mut self) {
        self.stability.observe(
            self.now,
            &self.document,
            &self.suspected,
            &self.loads,
            &self.limits,
        );
    }

    /// Observes the cluster every four seconds, for `seconds` in total.
    fn wait(&mut self, seconds: u64) -> BTreeSet<TabletId> {
        for _ in 0..seconds / 4 {
            self.look();
            self.now += Duration::from_secs(4);
        }
        self.look();
        self.mergeable()
    }

    fn mergeable(&self) -> BTreeSet<TabletId> {
        self.stability.mergeable(self.now, &self.limits)
    }

    fn split(&mut self, tablet: u32) {
        let tokens = self.document.tablet(TabletId(tablet)).unwrap().tokens;
        let middle = tokens.middle().unwrap();
        self.document.begin_split(TabletId(tablet), middle).unwrap();
        self.stability.reset_reshaped(&self.document);
        self.document.finish_reshape(TabletId(tablet)).unwrap();
        for child in &self.document.tablets {
            self.loads.entry(child.id).or_default();
        }
    }
}

fn ids(numbers: impl IntoIterator<Item = u32>) -> BTreeSet<TabletId> {
    numbers.into_iter().map(TabletId).collect()
}

#[test]
fn a_merge_waits_until_all_has_been_calm_for_long() {
    let mut watcher = Watcher::new(cluster(3, 4));
    assert_eq!(watcher.wait(596), ids([]));
    assert_eq!(watcher.wait(4), ids([1, 2, 3]), "each with the next one");
}

#[test]
fn membership_change_restarts_stability_period() {
    let stability = || {
        let mut watcher = Watcher::new(cluster(3, 4));
        assert_eq!(watcher.wait(600).len(), 3);
        watcher
    };
    let disturb = |watcher: &mut Watcher, how: &str| match how {
        "comes" => watcher.document.join(record(4)),
        "goes" => watcher.document.expel(record(3).member()).unwrap(),
        "is another" => watcher.document.nodes[2].incarnation = Incarnation(uuid::Uuid::from_u128(7)),
        "leaves" => watcher.document.begin_leaving(record(3).member()).unwrap(),
        _ => drop(watcher.suspected.insert(host(3))),
    };
    for how in ["comes", "goes", "is another"] {
        let mut watcher = stability();
        disturb(&mut watcher, how);
        assert_eq!(watcher.wait(0), ids([]), "{how}");
        assert_eq!(watcher.wait(596), ids([]), "{how}");
        assert_eq!(watcher.wait(4).len(), 3, "{how}");
    }
    for how in ["leaves", "wavers"] {
        let mut watcher = stability();
        disturb(&mut watcher, how);
        assert_eq!(watcher.wait(4000), ids([]), "not while it {how}");
        watcher.suspected.clear();
        watcher.document.nodes[2].state = NodeState::Normal;
        assert_eq!(watcher.wait(596), ids([]), "{how}");
        assert_eq!(watcher.wait(4).len(), 3, "{how}");
    }
}

#[test]
fn both_must_have_been_small_all_the_time() {
    let mut watcher = Watcher::new(cluster(1, 3));
    watcher.wait(400);
    watcher.loads.get_mut(&TabletId(3)).unwrap().ops_per_s = 6_000;
    watcher.wait(0);
    watcher.loads.get_mut(&TabletId(3)).unwrap().ops_per_s = 0;
    assert_eq!(watcher.wait(200), ids([1]));
    assert_eq!(watcher.wait(400), ids([1, 2]));
}

#[test]
fn what_was_split_just_now_is_not_merged() {
    let mut watcher = Watcher::new(cluster(1, 2));
    watcher.wait(600);
    watcher.split(1);
    assert_eq!(watcher.wait(596), ids([]));
    assert_eq!(watcher.wait(4), ids([3, 4]));
}

#[test]
fn a_merge_that_failed_is_not_tried_again_at_once() {
    let mut watcher = Watcher::new(cluster(1, 3));
    assert_eq!(watcher.wait(600), ids([1, 2]));
    watcher.document.begin_merge(TabletId(1)).unwrap();
    watcher.stability.reset_reshaped(&watcher.document);
    watcher.document.undo_reshape(TabletId(1)).unwrap();
    assert_eq!(watcher.mergeable(), ids([]));
    assert_eq!(watcher.wait(600), ids([1, 2]));
}

#[test]
fn tablet_unreported_for_short_time_is_not_forgotten() {
    let mut watcher = Watcher::new(cluster(1, 2));
    watcher.wait(300);
    let load = watcher.loads.remove(&TabletId(2)).unwrap();
    watcher.wait(4);
    watcher.loads.insert(TabletId(2), load);
    assert_eq!(watcher.wait(300), ids([1]));
}

proptest! {
    /// Shows that a merged tablet is far smaller than one that is split, with any limits and loads.
    #[test]
    fn a_merge_never_makes_what_would_be_split(
        split in 1u64..1 << 40, merge in 1u64..1 << 40,
        left in 0u64..1 << 40, right in 0u64..1 << 40,
    ) {
        let limits = ReshapeLimits {
            split_bytes: split, merge_bytes: merge, split_ops_per_s: split, merge_ops_per_s: merge,
            ..ReshapeLimits::default()
        };
        for (a, b) in [(TabletLoad { bytes: left, ops_per_s: 0 }, TabletLoad { bytes: right, ops_per_s: 0 }),
                       (TabletLoad { bytes: 0, ops_per_s: left }, TabletLoad { bytes: 0, ops_per_s: right })] {
            let loads = BTreeMap::from([(TabletId(1), a), (TabletId(2), b)]);
            if limits.are_small((TabletId(1), TabletId(2)), &loads) == Some(true) {
                prop_assert!((left + right) * 4 <= split);
            }
        }
    }
}
