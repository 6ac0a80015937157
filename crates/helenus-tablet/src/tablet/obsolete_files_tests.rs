use super::*;

#[test]
fn old_scans_are_seen() {
    let scans = Scans::new();
    assert!(!scans.any_older(Duration::ZERO));
    let scan = scans.begin();
    assert!(!scans.any_older(Duration::from_secs(1)));
    // This scan counts as begun ten seconds ago, before the ring wrapped around.
    let second = (scans.second() + Scans::SECONDS - 10) % Scans::SECONDS;
    scans.began[second].fetch_add(1, Ordering::Relaxed);
    assert!(scans.any_older(Duration::from_secs(9)));
    assert!(!scans.any_older(Duration::from_secs(10)));
    drop(scan);
    assert!(scans.any_older(Duration::from_secs(9)));
    assert_eq!(scans.began[scans.second()].load(Ordering::Relaxed), 0);
}
