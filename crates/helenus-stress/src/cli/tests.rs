//! Tests of command lines that must be accepted.

use std::time::Duration;

use super::*;
use crate::cli::options::{Level, POPULATE_ALL};
use crate::data::keys::Picking;

fn parse_words(line: &str) -> Result<Cli, clap::Error> {
    let words = shell_words(line);
    Cli::try_parse_from(dynamic::rewrite(words.into_iter().map(OsString::from)))
}

fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, ' ') => words.push(String::new()),
            (_, c) => words.last_mut().unwrap().push(c),
        }
    }
    words
}

fn run(line: &str) -> LoadArgs {
    match parse_words(line).unwrap().command {
        Command::Run(args) => args,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_many_tables_reports_command_line_pastes_unchanged() {
    let args = run(
        "helenus-stress run MultiTableKeyValue --workload.nbTables=1000 -d 30m -p 10M -r 0.2 -t 8 -c 50 \
         --cl LOCAL_ONE --replication \"{'class': 'SimpleStrategy', 'replication_factor': 3}\"",
    );
    assert_eq!(
        crate::workloads::find(&args.workload).unwrap().name,
        "many-tables"
    );
    assert_eq!(
        args.load.workload_parameter,
        [("nbTables".to_owned(), "1000".to_owned())]
    );
    assert_eq!(args.load.duration, Some(Duration::from_secs(1800)));
    assert_eq!((args.load.threads, args.load.concurrency), (8, 50));
    assert_eq!(
        (args.load.partitions, args.load.readrate),
        (Some(10_000_000), Some(0.2))
    );
    assert_eq!(args.connect.cl, Level::LocalOne);
    assert!(args.schema.replication.is_some());
}

#[test]
fn flags_of_tlp_stress_keep_their_names() {
    let args = run(
        "helenus-stress run KeyValue --concurrency 50 --threads 4 --partitions 1k --reads .5 --rate 5k --populate 10k \
         --compaction lcs --compression \"{'enabled': false}\" --drop --keyspace ks --id 002 --pg sequence --csv \
         --hdr out/h --host 10.0.0.1 --port 9043 -U me -P secret --cql 'CREATE INDEX ON t (a)' --dc dc1 --ttl 60 \
         --field.keyvalue.value='book(20,40)' -w.x=1 --rowcache ALL --keycache NONE --paging 100 --co \
         --prometheusport 0 --queue 100 --max-requests 5 --core-connections 2 --no-schema --deletes 0.1 -n 1B",
    );
    assert_eq!(args.load.iterations, Some(1_000_000_000));
    assert_eq!(args.load.rate, 5000.0);
    assert_eq!((args.load.readrate, args.load.deleterate), (Some(0.5), Some(0.1)));
    assert_eq!(args.load.partitiongenerator, Picking::Sequence);
    assert_eq!(args.load.populate, Some(10_000));
    assert_eq!(args.connect.addresses(), ["10.0.0.1:9043"]);
    assert_eq!(args.connect.connections, 2);
    assert_eq!(
        args.output.csv,
        Some("".into()),
        "--csv alone is on, as in older versions"
    );
    assert_eq!(args.schema.cql, ["CREATE INDEX ON t (a)"]);
    assert_eq!(
        args.load.field_generator,
        [("keyvalue.value".to_owned(), "book(20,40)".to_owned())]
    );
    assert_eq!(
        args.load.ignored.given(),
        [
            "--coordinatoronly",
            "--prometheusport",
            "--queue",
            "--max-requests"
        ]
    );
}

#[test]
fn duration_excludes_operations_and_levels_ignore_case() {
    assert!(parse_words("helenus-stress run kv -d 5 -n 10").is_err());
    assert!(parse_words("helenus-stress run kv -r 1.5").is_err());
    assert!(parse_words("helenus-stress run kv -t 0").is_err());
    assert!(parse_words("helenus-stress run kv --keyspace a.b").is_err());
    let args = run("helenus-stress run kv --cl Quorum -d 90 --populate all");
    assert_eq!(args.connect.cl, Level::Quorum);
    assert_eq!(args.load.duration, Some(Duration::from_secs(90)));
    assert_eq!(args.load.populate, Some(POPULATE_ALL));
}

#[test]
fn contact_points_may_carry_ports_and_be_of_either_protocol() {
    let args = run("helenus-stress run kv --host a,b:1,::1,[::2]:3 --port 7");
    assert_eq!(args.connect.addresses(), ["a:7", "b:1", "[::1]:7", "[::2]:3"]);
}

#[test]
fn the_password_stays_out_of_the_result() {
    let args = run("helenus-stress run kv -P hush");
    let config = serde_json::to_string(&args).unwrap();
    assert!(
        !config.contains("hush") && config.contains("\"threads\":1"),
        "{config}"
    );
}
