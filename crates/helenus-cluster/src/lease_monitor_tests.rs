use uuid::Uuid;

use super::*;
use crate::ids::{HostId, Incarnation};

const EXPIRY: Duration = Duration::from_millis(2200);
const GAP: Duration = Duration::from_secs(2);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn member() -> Member {
    Member {
        host_id: HostId(Uuid::from_u128(1)),
        incarnation: Incarnation(Uuid::from_u128(2)),
    }
}

fn observe(watch: &mut LeaseMonitor, now: Duration, stamp: Option<&str>) {
    let listed = stamp.map(|stamp| (member(), stamp.to_string()));
    watch.observe(
        now,
        GAP,
        &listed.into_iter().collect(),
        &BTreeSet::from([member()]),
        Seen::All,
    );
}

/// Makes checks every 500 ms that show the same stamp, and one read when the node is suspected.
fn quiet(watch: &mut LeaseMonitor, from_ms: u64, to_ms: u64, stamp: Option<&str>, found: HeartbeatRead) {
    for now in (from_ms..=to_ms).step_by(500).map(ms) {
        observe(watch, now, stamp);
        if watch.should_read(member(), now, EXPIRY / 2) {
            watch.found(member(), found);
        }
    }
}

#[test]
fn quiet_node_expires_at_its_unchanged_version() {
    let mut watch = LeaseMonitor::default();
    quiet(&mut watch, 0, 2000, Some("a"), HeartbeatRead::Live(7));
    assert_eq!(watch.verdict(member(), ms(2100), EXPIRY), LeaseVerdict::Alive);
    assert_eq!(
        watch.verdict(member(), ms(2200), EXPIRY),
        LeaseVerdict::Expired(Expect::Version(7))
    );
}

#[test]
fn a_version_that_no_later_listing_confirms_proves_nothing() {
    let mut watch = LeaseMonitor::default();
    for now in [0, 500, 1000, 1500] {
        observe(&mut watch, ms(now), Some("a"));
    }
    // The heartbeat may have been renewed between the last listing and this read.
    watch.found(member(), HeartbeatRead::Live(8));
    assert_eq!(watch.verdict(member(), ms(9000), EXPIRY), LeaseVerdict::Alive);
    observe(&mut watch, ms(2000), Some("b"));
    assert_eq!(
        watch.verdict(member(), ms(9000), EXPIRY),
        LeaseVerdict::Alive,
        "it was renewed"
    );
    assert_eq!(watch.quiet_for(member(), ms(2300)), Some(ms(300)));
}

#[test]
fn a_blind_spell_proves_nothing() {
    let mut watch = LeaseMonitor::default();
    quiet(&mut watch, 0, 1500, Some("a"), HeartbeatRead::Live(7));
    observe(&mut watch, ms(60_000), Some("a"));
    assert_eq!(watch.verdict(member(), ms(60_000), EXPIRY), LeaseVerdict::Alive);
    quiet(&mut watch, 60_500, 62_500, Some("a"), HeartbeatRead::Live(7));
    assert_eq!(
        watch.verdict(member(), ms(62_500), EXPIRY),
        LeaseVerdict::Expired(Expect::Version(7))
    );
}

#[test]
fn a_lease_that_another_node_ended_is_over_at_once() {
    let mut watch = LeaseMonitor::default();
    quiet(&mut watch, 0, 1500, Some("a"), HeartbeatRead::Expelled);
    assert_eq!(watch.verdict(member(), ms(1500), EXPIRY), LeaseVerdict::Dead);
}

#[test]
fn a_heartbeat_that_is_not_there_is_waited_for_as_long() {
    let mut watch = LeaseMonitor::default();
    quiet(&mut watch, 0, 2000, None, HeartbeatRead::Absent);
    assert_eq!(watch.verdict(member(), ms(2000), EXPIRY), LeaseVerdict::Alive);
    observe(&mut watch, ms(2200), None);
    assert_eq!(watch.verdict(member(), ms(2200), EXPIRY), LeaseVerdict::Dead);
}

#[test]
fn heartbeats_of_strangers_are_left_over_when_quiet() {
    let mut watch = LeaseMonitor::default();
    let listed = BTreeMap::from([(member(), "a".to_string())]);
    for now in [0, 1000, 2000, 3000] {
        watch.observe(ms(now), GAP, &listed, &BTreeSet::new(), Seen::All);
    }
    let nobody = BTreeSet::new();
    assert_eq!(watch.leftovers(&nobody, ms(2900), ms(3000)), []);
    assert_eq!(watch.leftovers(&nobody, ms(3000), ms(3000)), [member()]);
    assert_eq!(
        watch.leftovers(&BTreeSet::from([member()]), ms(3000), ms(3000)),
        []
    );
}

#[test]
fn strangers_are_remembered_from_one_listing_to_the_next() {
    let mut watch = LeaseMonitor::default();
    let listed = BTreeMap::from([(member(), "a".to_string())]);
    let nobody = BTreeSet::new();
    watch.observe(ms(0), GAP, &listed, &nobody, Seen::All);
    for now in [1000, 2000, 3000] {
        watch.observe(ms(now), GAP, &BTreeMap::new(), &nobody, Seen::Members);
    }
    assert_eq!(watch.leftovers(&nobody, ms(3000), ms(3000)), [member()]);
    watch.observe(ms(4000), GAP, &BTreeMap::new(), &nobody, Seen::All);
    assert_eq!(watch.leftovers(&nobody, ms(9000), ms(3000)), []);
}

#[test]
fn a_member_renews_when_its_heartbeat_changes_twice() {
    let mut watch = LeaseMonitor::default();
    let stamps = ["a", "a", "b", "b"];
    for (number, stamp) in (0..).zip(stamps) {
        observe(&mut watch, ms(500 * number), Some(stamp));
        // One change may mean that another node has ended the lease.
        assert!(!watch.renews(member()));
    }
    observe(&mut watch, ms(2000), Some("c"));
    assert!(watch.renews(member()));
}
