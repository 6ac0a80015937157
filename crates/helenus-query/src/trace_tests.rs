use super::*;

fn trace(number: u128, steps: usize) -> Trace {
    let event = TraceEvent {
        id: Uuid::nil(),
        activity: "step".to_owned(),
        elapsed: Duration::ZERO,
        thread: String::new(),
    };
    Trace {
        id: Uuid::from_u128(number),
        client: IpAddr::from([127, 0, 0, 1]),
        command: "QUERY",
        request: "Execute CQL3 query",
        parameters: BTreeMap::new(),
        started_at_us: 0,
        duration: Duration::ZERO,
        events: vec![event; steps],
        deleted: Deleted::default(),
    }
}

#[test]
fn the_latest_traces_are_kept() {
    let traces = Traces::default();
    for number in 0..KEPT_MAX + 5 {
        traces.record(trace(number as u128, 1));
    }
    let kept = traces.all();
    assert_eq!((kept.len(), kept[0].id), (KEPT_MAX, Uuid::from_u128(5)));
    traces.record(trace(9_999, STEPS_MAX));
    let kept = traces.all();
    assert_eq!((kept.len(), kept[0].id), (1, Uuid::from_u128(9_999)));
}

#[test]
fn large_traces_push_out_older_ones() {
    let traces = Traces::default();
    let large = |number| {
        let mut trace = trace(number, 1);
        trace
            .parameters
            .insert("query".to_owned(), "x".repeat(BYTES_MAX / 4));
        trace
    };
    (0..10).for_each(|number| traces.record(large(number)));
    assert_eq!(traces.all().len(), 3);
    let event = TraceEvent {
        activity: "x".repeat(BYTES_MAX / 2),
        ..trace(0, 1).events.remove(0)
    };
    traces.add(Uuid::from_u128(9), event);
    assert_eq!(traces.all().len(), 1);
    traces.change_all(|trace| trace.events.clear());
    let bytes = traces.all()[0].bytes();
    assert_eq!(traces.kept.lock().bytes, bytes);
}

#[test]
fn long_statements_and_many_values_are_cut() {
    let long = parameter(&"é".repeat(PARAMETER_LEN_MAX));
    assert_eq!(long.len(), PARAMETER_LEN_MAX + 3);
    let mut markers = Markers::new(vec![None; 2_000]);
    let spec = ColumnSpec::new("ks", "t", "v", helenus_cql::types::CqlType::TEXT);
    (0..2_000).for_each(|index| markers.set(index, spec.clone()));
    let values = vec![BoundValue::Set("x".repeat(2_000).into()); 2_000];
    let shown = bound_variables(&markers, &BoundValues::Positional(values));
    assert!((900..1_100).contains(&shown.len()), "{}", shown.len());
}

#[test]
fn shortened_statements_end_between_characters() {
    let long = "é".repeat(SHOWN_MAX);
    assert_eq!(shorten(&long).len(), SHOWN_MAX);
    assert_eq!(shorten(&format!("x{long}")).len(), SHOWN_MAX - 1);
    assert_eq!(shorten("SELECT"), "SELECT");
    assert_eq!(
        shorten("SELECT password FROM people"),
        "SELECT password FROM people"
    );
    let secret = "/* hi */ Create Role ann WITH HASHED PASSWORD = 'x' AND LOGIN = true";
    assert_eq!(shorten(secret), "/* hi */ Create Role ann WITH HASHED PASSWORD");
}

#[test]
fn traces_that_are_kept_can_be_changed() {
    let traces = Traces::default();
    traces.record(trace(1, 2));
    traces.change(Uuid::from_u128(1), |trace| trace.events.clear());
    traces.change(Uuid::from_u128(2), |_| panic!("there is no such trace"));
    assert!(traces.all().iter().all(|trace| trace.events.is_empty()));
}
