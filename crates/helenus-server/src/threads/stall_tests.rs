use metrics_exporter_prometheus::PrometheusBuilder;

use super::*;

/// Returns the number of stalls that `run` records.
fn stalls(run: impl FnOnce()) -> u64 {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    metrics::with_local_recorder(&recorder, || {
        register();
        run();
    });
    let page = handle.render();
    let count = page
        .lines()
        .find_map(|line| line.strip_prefix("helenus_stall_seconds_count "));
    count.map_or(0, |count| count.parse().unwrap())
}

/// Computes until the thread has used `cpu` of CPU time.
fn compute(cpu: Duration) {
    let end = read(Instant::now()).cpu + cpu;
    while read(Instant::now()).cpu < end {}
}

#[test]
fn long_computation_is_a_stall() {
    assert_eq!(stalls(|| watch(|| compute(2 * STALL_MIN))), 1);
}

#[test]
fn waiting_is_no_stall() {
    assert_eq!(stalls(|| watch(|| std::thread::sleep(2 * STALL_MIN))), 0);
}

#[test]
fn computation_before_the_poll_does_not_count() {
    let run = || {
        watch(|| ());
        compute(2 * STALL_MIN);
        watch(|| std::thread::sleep(2 * STALL_MIN));
    };
    assert_eq!(stalls(run), 0);
}
