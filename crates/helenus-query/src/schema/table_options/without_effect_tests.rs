use helenus_cql::ast::{Statement, TableChange};
use helenus_cql::parser::parse_statement;

use super::super::{TableOptions, of_new};
use super::warning;

/// Returns the warning for a table with these options.
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
fn an_option_whose_effect_is_missed_gets_a_warning() {
    assert_eq!(
        warning_for("cdc = true AND comment = 'c'").as_deref(),
        Some("The option cdc of ks.t has no effect in Helenus: changes of the table are not captured")
    );
    assert_eq!(warning_for("cdc = false"), None);
}

#[test]
fn options_of_storage_get_no_warning() {
    let written = super::super::describe(&TableOptions::default(), false).join(" AND ");
    assert_eq!(warning_for(&written), None);
    let usual = "compaction = {'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': 160} AND caching = {'keys': 'ALL', 'rows_per_partition': '10'} \
                 AND compression = {'class': 'ZstdCompressor'} AND speculative_retry = 'NEVER' AND bloom_filter_fp_chance = 0.2 AND memtable = 'trie' \
                 AND gc_grace_seconds = 5";
    assert_eq!(warning_for(usual), None);
}
