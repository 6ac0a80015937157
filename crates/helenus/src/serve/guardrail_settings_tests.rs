use helenus_query::engine::guardrail_settings::{Flag, Threshold, ThresholdKind, ValueAct, ValueKind};

use super::super::settings::load;
use super::all;

fn names() -> Vec<&'static str> {
    all().map(|setting| setting.name).collect()
}

#[test]
fn every_guardrail_has_its_settings() {
    let mut expected: Vec<String> = Vec::new();
    for kind in ThresholdKind::ALL {
        expected.push(format!("{}_warn_threshold", kind.name()));
        expected.push(format!("{}_fail_threshold", kind.name()));
    }
    expected.extend(Flag::ALL.iter().map(|flag| flag.setting()));
    expected.extend(Flag::WARNED.iter().map(|flag| flag.warning_setting()));
    for kind in ValueKind::ALL {
        expected.extend(
            kind.acts()
                .iter()
                .map(|act| format!("{}_{}", kind.name(), act.suffix())),
        );
    }
    assert_eq!(names(), expected);
}

#[test]
fn values_are_read_as_cassandra_writes_them() {
    let pairs = [
        ("tables_warn_threshold", "3"),
        ("tables_fail_threshold", "5"),
        ("collection_size_fail_threshold", "1MiB"),
        ("maximum_timestamp_warn_threshold", "10s"),
        ("group_by_enabled", "false"),
        ("zero_ttl_on_twcs_warned", "true"),
        ("data_disk_usage_percentage_fail_threshold", "90"),
        ("read_consistency_levels_disallowed", "[all, QUORUM]"),
    ];
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let guardrails = load(&pairs, None, &[]).expect("valid settings").limits.guardrails;
    let expected = Threshold {
        warn: Some(3),
        fail: Some(5),
    };
    assert_eq!(guardrails.threshold(ThresholdKind::Tables), expected);
    assert_eq!(
        guardrails.threshold(ThresholdKind::CollectionSize).fail,
        Some(1 << 20)
    );
    assert_eq!(
        guardrails.threshold(ThresholdKind::MaximumTimestamp).warn,
        Some(10_000_000)
    );
    assert!(!guardrails.is_enabled(Flag::GroupBy));
    assert!(guardrails.is_warned(Flag::ZeroTtlOnTwcs));
    assert_eq!(guardrails.threshold(ThresholdKind::DataDiskUsage).fail, Some(90));
    let disallowed = guardrails.values(ValueKind::ReadConsistencyLevels, ValueAct::Disallowed);
    assert_eq!(disallowed, ["ALL", "QUORUM"]);
}

#[test]
fn wrong_values_are_refused() {
    for (name, value) in [
        ("tables_warn_threshold", "-2"),
        ("tables_warn_threshold", "0"),
        ("write_consistency_levels_warned", "MOST"),
        ("group_by_enabled", "maybe"),
        ("zero_ttl_on_twcs_warned", "maybe"),
        ("data_disk_usage_percentage_warn_threshold", "101"),
    ] {
        let pairs = [(name.to_owned(), value.to_owned())];
        assert!(load(&pairs, None, &[]).is_err(), "{name} = {value}");
    }
}

#[test]
fn a_warning_beyond_the_failure_is_refused() {
    let pairs = [("tables_warn_threshold", "5"), ("tables_fail_threshold", "4")];
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let Err(refusal) = load(&pairs, None, &[]) else {
        panic!("it is taken");
    };
    assert!(
        refusal
            .to_string()
            .contains("should be lower than the fail threshold 4"),
        "{refusal}"
    );
}
