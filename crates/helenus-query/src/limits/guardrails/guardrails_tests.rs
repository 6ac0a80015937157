use std::sync::Arc;

use super::{Flag, Guard, Guardrails, Threshold, ThresholdKind, ValueAct, ValueKind};

fn strings(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

fn guard(guardrails: &Guardrails) -> Guard {
    Guard::new(&Arc::new(guardrails.clone()))
}

#[test]
fn a_threshold_warns_and_fails_above_it_and_not_at_it() {
    let mut guardrails = Guardrails::default();
    let threshold = Threshold {
        warn: Some(2),
        fail: Some(4),
    };
    guardrails.set_threshold(ThresholdKind::Tables, threshold);
    let mut guard = guard(&guardrails);
    guard.check(ThresholdKind::Tables, "t", 2).expect("not beyond");
    assert_eq!(guard.warnings, Vec::<String>::new());
    guard
        .check(ThresholdKind::Tables, "t", 4)
        .expect("a warning only");
    assert_eq!(
        guard.warnings,
        [
            "Guardrail tables violated: Creating table t, current number of tables 4 exceeds warning threshold of 2."
        ]
    );
    let (error, warnings) = guard
        .check(ThresholdKind::Tables, "t", 5)
        .expect_err("beyond")
        .split();
    let message =
        "Guardrail tables violated: Cannot have more than 4 tables, aborting the creation of table t";
    assert_eq!(error.to_string(), message);
    assert_eq!(warnings.last().map(String::as_str), Some(message));
}

#[test]
fn a_minimum_is_beyond_below() {
    let mut guardrails = Guardrails::default();
    let threshold = Threshold {
        warn: None,
        fail: Some(3),
    };
    guardrails.set_threshold(ThresholdKind::MinimumReplicationFactor, threshold);
    let mut guard = guard(&guardrails);
    let kind = ThresholdKind::MinimumReplicationFactor;
    guard.check(kind, "k", 3).expect("not below");
    guard.check(kind, "k", 2).expect_err("below");
}

#[test]
fn a_flag_says_why() {
    let mut guardrails = Guardrails::default();
    guardrails.set_enabled(Flag::AllowFiltering, false);
    let refused = guard(&guardrails).require(Flag::AllowFiltering);
    assert_eq!(
        refused.expect_err("disabled").split().0.to_string(),
        "Guardrail allow_filtering violated: Querying with ALLOW FILTERING is not allowed. ALLOW FILTERING can \
         potentially visit all the data in the table and have unpredictable performance."
    );
    guard(&guardrails).require(Flag::GroupBy).expect("enabled");
    guardrails.set_enabled(Flag::AllowFiltering, true);
    assert!(guardrails.is_empty());
}

#[test]
fn a_flag_may_warn_while_it_is_enabled() {
    let mut guardrails = Guardrails::default();
    guardrails.set_warned(Flag::ZeroTtlOnTwcs, true);
    assert!(!guardrails.is_empty());
    let mut warned = guard(&guardrails);
    warned.require(Flag::ZeroTtlOnTwcs).expect("enabled");
    let [warning] = warned.warnings.as_slice() else {
        panic!("one warning: {:?}", warned.warnings);
    };
    assert!(
        warning.starts_with(
            "Guardrail zero_ttl_on_twcs violated: 0 default_time_to_live on a table with TimeWindowCompactionStrategy \
             compaction strategy is not recommended. It is suspicious"
        ),
        "{warning}"
    );
    guardrails.set_warned(Flag::ZeroTtlOnTwcs, false);
    assert!(guardrails.is_empty());
}

#[test]
fn a_flag_is_named_by_other_words() {
    let mut guardrails = Guardrails::default();
    guardrails.set_enabled(Flag::VectorType, false);
    let refused = guard(&guardrails).require_named(Flag::VectorType, "Column v");
    assert_eq!(
        refused.expect_err("disabled").split().0.to_string(),
        "Guardrail vector_type violated: Column v is not allowed"
    );
}

#[test]
fn a_warning_comes_before_a_failure() {
    let order = |kind, warn, fail| {
        let mut guardrails = Guardrails::default();
        let threshold = Threshold {
            warn: Some(warn),
            fail: Some(fail),
        };
        guardrails.set_threshold(kind, threshold);
        guardrails.check_order()
    };
    assert_eq!(order(ThresholdKind::Tables, 4, 4), Ok(()));
    assert_eq!(
        order(ThresholdKind::Tables, 5, 4),
        Err(
            "The warn threshold 5 for tables_warn_threshold should be lower than the fail threshold 4"
                .to_owned()
        )
    );
    assert_eq!(order(ThresholdKind::MinimumReplicationFactor, 3, 2), Ok(()));
    let refused = order(ThresholdKind::MinimumReplicationFactor, 2, 3).expect_err("fails before it warns");
    assert!(refused.contains("should be greater than"), "{refused}");
    // Both are distances before the current time. The warning has the shorter one.
    assert_eq!(order(ThresholdKind::MinimumTimestamp, 10, 20), Ok(()));
}

#[test]
fn values_are_disallowed_before_they_are_ignored_or_warned_of() {
    let mut guardrails = Guardrails::default();
    let kind = ValueKind::TableProperties;
    guardrails.set_values(kind, ValueAct::Disallowed, strings(&["cdc"]));
    guardrails.set_values(kind, ValueAct::Ignored, strings(&["caching", "comment"]));
    guardrails.set_values(kind, ValueAct::Warned, strings(&["compression"]));
    let mut guard = guard(&guardrails);
    let ignored = guard
        .check_values(kind, &["compression", "comment"])
        .expect("allowed");
    assert_eq!(ignored, ["comment"]);
    assert_eq!(
        guard.warnings,
        [
            "Guardrail table_properties violated: Ignoring provided values [comment] as they are not supported for \
             Table Properties (ignored values are: [caching, comment])",
            "Guardrail table_properties violated: Provided values [compression] are not recommended for Table \
             Properties (warned values are: [compression])",
        ]
    );
    let refused = guard
        .check_values(kind, &["comment", "cdc"])
        .expect_err("disallowed");
    assert_eq!(
        refused.split().0.to_string(),
        "Guardrail table_properties violated: Provided values [cdc] are not allowed for Table Properties (disallowed \
         values are: [cdc])"
    );
}

#[test]
fn settings_have_the_names_of_cassandra() {
    let names: Vec<String> = Flag::ALL.iter().map(|flag| flag.setting()).collect();
    assert!(names.contains(&"allow_filtering_enabled".to_owned()));
    assert!(names.contains(&"drop_truncate_table_enabled".to_owned()));
    assert!(names.contains(&"non_partition_restricted_index_query_enabled".to_owned()));
    assert_eq!(Flag::ZeroTtlOnTwcs.warning_setting(), "zero_ttl_on_twcs_warned");
}
