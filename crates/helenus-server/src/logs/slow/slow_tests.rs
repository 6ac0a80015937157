use super::*;

#[test]
fn without_a_timeout_nothing_is_slow() {
    let hour = Duration::from_secs(3600);
    assert!(!SlowLog::new(None, false, 0).is_slow(hour));
    let log = SlowLog::new(Some(Duration::from_millis(500)), false, 0);
    assert!(log.is_slow(hour) && !log.is_slow(Duration::from_millis(500)));
}

fn slow(statement: &str) -> FinishedRequest {
    let now = std::time::Instant::now();
    let arrival = crate::metrics::stage_times::Arrival {
        first_byte: now,
        last_byte: now,
        begun: now,
    };
    let mut measurement = RequestMeasurement::default();
    measurement.store.log_ns = 4_500_000;
    FinishedRequest {
        statement: statement.to_owned(),
        values: 0,
        client: ([127, 0, 0, 1], 4000).into(),
        table: Some(("shop".to_owned(), "carts".to_owned())),
        measurement,
        stage_times: StageTimes::new(&arrival, &measurement, now + Duration::from_millis(5)),
    }
}

#[test]
fn last_statements_are_kept_newest_first_without_values() {
    let log = SlowLog::new(None, false, 2);
    for table in ["a", "b", "c"] {
        let statement = format!("SELECT * FROM shop.{table} WHERE id = 17");
        log.enter(
            slow(&statement),
            Duration::from_millis(6),
            Duration::from_millis(1),
        );
    }
    let kept = log.kept();
    let statements: Vec<&str> = kept.iter().map(|one| one.statement.as_str()).collect();
    assert_eq!(
        statements,
        [
            "SELECT * FROM shop.c WHERE id = ?",
            "SELECT * FROM shop.b WHERE id = ?"
        ]
    );
    let report = kept[0].report();
    assert_eq!(report["total_ms"], 6.0);
    assert_eq!(
        report["stages_ms"],
        serde_json::json!({"log": 4.5, "run": 0.5, "send": 1.0})
    );
    assert_eq!(
        (&report["keyspace"], &report["table"]),
        (&"shop".into(), &"carts".into())
    );
    log.set_kept(1);
    assert_eq!(log.kept().len(), 1);
    log.set_kept(0);
    log.enter(slow("SELECT"), Duration::from_millis(6), Duration::ZERO);
    assert!(log.kept().is_empty());
}

#[test]
fn values_are_kept_if_settings_request_them() {
    let log = SlowLog::new(None, true, 2);
    log.enter(slow("SELECT 17"), Duration::from_millis(6), Duration::ZERO);
    assert_eq!(log.kept()[0].statement, "SELECT 17");
}
