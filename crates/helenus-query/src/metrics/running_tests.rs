use super::*;

fn texts(running: &RunningStatements) -> Vec<String> {
    let list = running.list();
    list.iter().map(|one| one.text.to_string()).collect()
}

fn text(text: &str) -> StatementText {
    StatementText::Text(text.into())
}

#[test]
fn running_statements_are_listed_oldest_first() {
    let running = RunningStatements::default();
    let began = Instant::now();
    let first = running.begin(text("first"), began);
    let second = running.begin(text("second"), began);
    assert_eq!(texts(&running), ["QUERY first", "QUERY second"]);
    drop(first);
    assert_eq!(texts(&running), ["QUERY second"]);
    drop(second);
    assert!(texts(&running).is_empty());
    assert_eq!(running.begun(), 2);
}

#[test]
fn slots_are_used_again() {
    let running = RunningStatements::default();
    for round in 0..3 {
        let many: Vec<_> = (0..SHARDS * 4)
            .map(|number| running.begin(text(&format!("{round} {number}")), Instant::now()))
            .collect();
        assert_eq!(texts(&running).len(), SHARDS * 4);
        drop(many);
    }
    assert!(running.shards.iter().all(|shard| shard.lock().slots.len() == 4));
}
