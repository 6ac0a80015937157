//! The keyspace, and the options that the command line adds to each table.

use crate::cli::options::SchemaArgs;

/// Returns the CREATE KEYSPACE of a run. By default there are as many replicas as nodes, at most three.
pub fn create_keyspace(args: &SchemaArgs, nodes: usize) -> String {
    let simple = |factor: usize| format!("{{'class': 'SimpleStrategy', 'replication_factor': {factor}}}");
    let replication = match args.replication.as_deref().map(str::trim) {
        None => simple(nodes.clamp(1, 3)),
        Some(text) => match text.parse() {
            Ok(factor) => simple(factor),
            Err(_) => single_quoted(text),
        },
    };
    format!(
        "CREATE KEYSPACE IF NOT EXISTS {} WITH replication = {replication}",
        args.keyspace
    )
}

/// Adds the command line's table options to a CREATE TABLE. Returns other statements unchanged.
pub fn with_options(statement: &str, args: &SchemaArgs) -> String {
    let upper = statement.trim_start().to_ascii_uppercase();
    let options = table_options(args);
    if !upper.starts_with("CREATE TABLE") || options.is_empty() {
        return statement.to_owned();
    }
    let joint = if upper.contains(") WITH ") {
        " AND "
    } else {
        " WITH "
    };
    format!("{statement}{joint}{}", options.join(" AND "))
}

fn table_options(args: &SchemaArgs) -> Vec<String> {
    let mut options = Vec::new();
    if let Some(compaction) = &args.compaction {
        options.push(format!("compaction = {}", expand_compaction(compaction)));
    }
    if let Some(compression) = &args.compression {
        options.push(format!("compression = {}", single_quoted(compression)));
    }
    if args.rowcache.is_some() || args.keycache.is_some() {
        let rows = args.rowcache.as_deref().unwrap_or("NONE");
        let keys = args.keycache.as_deref().unwrap_or("ALL");
        options.push(format!(
            "caching = {{'keys': '{keys}', 'rows_per_partition': '{rows}'}}"
        ));
    }
    if args.ttl > 0 {
        options.push(format!("default_time_to_live = {}", args.ttl));
    }
    options
}

/// Returns CQL's map of options. Double quotes become single ones, as in tlp-stress, because single quotes are hard to type in a shell.
fn single_quoted(text: &str) -> String {
    text.trim().replace('"', "'")
}

/// Expands tlp-stress's short forms `stcs[,MIN,MAX]`, `lcs[,SSTABLE_MB[,FANOUT]]` and `twcs[,SIZE,UNIT]`. All else is CQL.
fn expand_compaction(text: &str) -> String {
    let mut words = text.split(',').map(str::trim);
    let (class, names): (_, &[&str]) = match words.next() {
        Some("stcs") => (
            "SizeTieredCompactionStrategy",
            &["min_threshold", "max_threshold"],
        ),
        Some("lcs") => (
            "LeveledCompactionStrategy",
            &["sstable_size_in_mb", "fanout_size"],
        ),
        Some("twcs") => (
            "TimeWindowCompactionStrategy",
            &["compaction_window_size", "compaction_window_unit"],
        ),
        _ => return single_quoted(text),
    };
    let values: Vec<&str> = words.collect();
    let mut map = format!("{{'class': '{class}'");
    for (name, value) in names.iter().zip(values) {
        map += &format!(", '{name}': '{}'", value.to_ascii_uppercase());
    }
    map + "}"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> SchemaArgs {
        SchemaArgs {
            keyspace: "ks".into(),
            ..SchemaArgs::default()
        }
    }

    #[test]
    fn default_replication_is_node_count_up_to_three() {
        let factor = |nodes| create_keyspace(&args(), nodes);
        assert!(factor(1).ends_with("'replication_factor': 1}"));
        assert!(factor(9).ends_with("'replication_factor': 3}"));
        let explicit = SchemaArgs {
            replication: Some("5".into()),
            ..args()
        };
        assert!(create_keyspace(&explicit, 1).ends_with("'replication_factor': 5}"));
        let explicit = SchemaArgs {
            replication: Some(r#"{"class": "NetworkTopologyStrategy", "dc1": 2}"#.into()),
            ..args()
        };
        assert!(create_keyspace(&explicit, 1).ends_with("= {'class': 'NetworkTopologyStrategy', 'dc1': 2}"));
    }

    #[test]
    fn options_go_to_tables_only() {
        let args = SchemaArgs {
            compaction: Some("lcs,160".into()),
            ttl: 60,
            ..args()
        };
        assert_eq!(
            with_options("CREATE TABLE IF NOT EXISTS t (a int PRIMARY KEY)", &args),
            "CREATE TABLE IF NOT EXISTS t (a int PRIMARY KEY) WITH compaction = \
             {'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': '160'} AND default_time_to_live = 60"
        );
        let clustered = "CREATE TABLE t (a int, b int, PRIMARY KEY (a, b)) WITH CLUSTERING ORDER BY (b DESC)";
        assert!(with_options(clustered, &args).contains("DESC) AND compaction"));
        assert_eq!(
            with_options("CREATE INDEX ON t (a)", &args),
            "CREATE INDEX ON t (a)"
        );
    }

    #[test]
    fn compaction_has_the_shorthands_of_tlp_stress() {
        assert_eq!(
            expand_compaction("stcs"),
            "{'class': 'SizeTieredCompactionStrategy'}"
        );
        assert_eq!(
            expand_compaction("twcs,1,hours"),
            "{'class': 'TimeWindowCompactionStrategy', 'compaction_window_size': '1', \
             'compaction_window_unit': 'HOURS'}"
        );
        assert_eq!(expand_compaction(r#"{"class": "X"}"#), "{'class': 'X'}");
    }
}
