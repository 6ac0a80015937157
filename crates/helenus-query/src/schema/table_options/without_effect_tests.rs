use helenus_cql::ast::{Statement, TableChange};
use helenus_cql::parser::parse_statement;

use super::super::{TableOptions, of_new};
use super::warning;

/// The warning for a table that is made with these options.
fn warning_for(with: &str) -> Option<String> {
    let text = format!("ALTER TABLE t WITH {with}");
    let statement = parse_statement(&text).expect("a statement").statement;
    let Statement::AlterTable(alter) = statement else {
        panic!("no ALTER TABLE: {text}");
    };
    let TableChange::Properties(properties) = alter.change else {
        panic!("no options: {text}");
    };
    let options = of_new(&properties).expect("valid options");
    warning("ks.t", &properties, &options)
}

#[test]
fn options_with_other_values_than_the_default_are_named_once() {
    let told = warning_for(
        "speculative_retry = 'NEVER' AND compression = {'class': 'ZstdCompressor'} AND comment = 'c'",
    );
    let told = told.expect("a warning");
    assert!(
        told.starts_with("The options compression, speculative_retry of ks.t have no effect in Helenus"),
        "{told}"
    );
    let told = warning_for("caching = {'keys': 'ALL', 'rows_per_partition': '10'}").expect("a warning");
    assert!(
        told.starts_with("The option caching of ks.t has no effect"),
        "{told}"
    );
}

#[test]
fn what_describe_writes_with_defaults_gets_no_warning() {
    let written = super::super::describe(&TableOptions::default(), false).join(" AND ");
    assert_eq!(warning_for(&written), None);
    assert_eq!(
        warning_for("default_time_to_live = 60 AND gc_grace_seconds = 5 AND comment = 'c'"),
        None
    );
}

#[test]
fn what_acts_gets_no_warning() {
    let caching = "caching = {'keys': 'NONE', 'rows_per_partition': 'NONE'}";
    assert_eq!(
        warning_for(&format!("memtable_flush_period_in_ms = 1000 AND {caching}")),
        None
    );
}

#[test]
fn the_default_of_compaction_by_levels_is_one_too() {
    let leveled = "compaction = {'class': 'LeveledCompactionStrategy'} AND bloom_filter_fp_chance =";
    let told = warning_for(&format!("{leveled} 0.1")).expect("a warning");
    assert!(told.starts_with("The option compaction of"), "{told}");
    let told = warning_for(&format!("{leveled} 0.01")).expect("a warning");
    assert!(
        told.starts_with("The options bloom_filter_fp_chance, compaction of"),
        "{told}"
    );
}
