use super::*;

const INTERVAL: Duration = Duration::from_secs(5);

fn stats(gets: u64, puts: u64) -> BucketStats {
    BucketStats {
        gets,
        puts,
        lists: 2 * puts,
        deletes: gets / 2,
        read_bytes: gets * 1000,
        ..BucketStats::default()
    }
}

#[test]
fn the_first_sample_has_no_rate() {
    let mut window = SampleWindow::default();
    assert_eq!(window.add(Instant::now(), stats(1000, 1000)), None);
}

#[test]
fn the_first_minute_counts_from_the_first_sample() {
    let mut window = SampleWindow::default();
    let began = Instant::now();
    window.add(began, stats(1000, 1000));
    let rates = window.add(began + INTERVAL, stats(1010, 1005)).unwrap();
    let expected = BucketRates {
        gets: 2.0,
        puts: 1.0,
        lists: 2.0,
        deletes: 1.0,
        read_bytes: 2000.0,
    };
    assert_eq!(rates, expected);
    let rates = window.add(began + 2 * INTERVAL, stats(1010, 1005)).unwrap();
    assert_eq!((rates.gets, rates.puts), (1.0, 0.5));
}

#[test]
fn what_is_older_than_a_minute_does_not_count() {
    let mut window = SampleWindow::default();
    let began = Instant::now();
    window.add(began, stats(0, 0));
    // All requests are in the first interval.
    let rates: Vec<f64> = (1..=13)
        .map(|n| window.add(began + n * INTERVAL, stats(600, 0)).unwrap().gets)
        .collect();
    assert_eq!(rates[0], 120.0);
    assert_eq!(rates[11], 10.0, "the burst lies in the minute");
    assert_eq!(rates[12], 0.0, "the burst lies before the minute");
}

#[test]
fn samples_of_a_minute_are_kept() {
    let mut window = SampleWindow::default();
    let began = Instant::now();
    (0..1000).for_each(|n| {
        window.add(began + n * INTERVAL, stats(u64::from(n), 0));
    });
    assert_eq!(window.0.len(), 13);
}

#[test]
fn late_samples_make_a_longer_window() {
    let mut window = SampleWindow::default();
    let began = Instant::now();
    window.add(began, stats(0, 0));
    window.add(began + Duration::from_secs(5), stats(10, 0));
    // The machine slept for an hour. The rate is that of the time since the sample before the sleep.
    let woken = began + Duration::from_secs(3605);
    assert_eq!(window.add(woken, stats(370, 0)).unwrap().gets, 0.1);
}

#[test]
fn samples_of_one_moment_have_no_rate() {
    let mut window = SampleWindow::default();
    let at = Instant::now();
    window.add(at, stats(0, 0));
    assert_eq!(window.add(at, stats(5, 5)), None);
}
