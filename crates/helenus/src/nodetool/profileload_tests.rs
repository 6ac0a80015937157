use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: ProfileArgs,
}

fn profile(words: &[&str]) -> anyhow::Result<Profile> {
    let words = std::iter::once("profileload").chain(words.iter().copied());
    Line::try_parse_from(words)?.args.profile()
}

fn refusal(words: &[&str]) -> String {
    profile(words).unwrap_err().to_string()
}

#[test]
fn the_arguments_are_those_of_cassandras() {
    let all = profile(&[]).unwrap();
    assert_eq!((all.keyspace, all.table, all.duration_ms), (None, None, 10_000));
    assert_eq!(all.kinds, SamplerKind::ALL);
    assert_eq!(profile(&["250"]).unwrap().duration_ms, 250);
    let some = profile(&["shop", "*", "250", "-a", "writes, READS"]).unwrap();
    assert_eq!((some.keyspace.as_deref(), some.table), (Some("shop"), None));
    assert_eq!(some.kinds, [SamplerKind::Writes, SamplerKind::Reads]);
    let one = profile(&["-s", "20", "-k", "19", "shop", "carts"]).unwrap();
    assert_eq!((one.table.as_deref(), one.duration_ms), (Some("carts"), 10_000));
}

#[test]
fn what_makes_no_sense_is_refused_in_cassandras_words() {
    assert!(
        refusal(&["a", "b", "1", "c"]).starts_with("Invalid arguments, either [keyspace table/* duration]")
    );
    assert_eq!(
        refusal(&["-k", "0"]),
        "TopK count (-k) option must have positive value"
    );
    assert_eq!(
        refusal(&["-k", "10", "-s", "10"]),
        "TopK count (-k) option must be smaller then the summary capacity (-s)"
    );
    assert_eq!(refusal(&["-s", "1025"]), "Capacity (-s) cannot exceed 1024.");
    assert_eq!(refusal(&["0"]), "Duration: 0 must be positive");
    assert!(refusal(&["100", "-i", "50"]).contains("interval: 50 ms; duration: 100 ms"));
    assert!(refusal(&["-a", "READS,x"]).starts_with("'x' sampler is not available from: [READS, WRITES, "));
}

#[test]
fn samples_are_shown_in_cassandras_order_and_format() {
    let sample = |table: &str, value: &str, count: u64| json!({ "table": table, "value": value, "count": count, "error": 1 });
    let found = json!({
        "WRITE_SIZE": [sample("shop.carts", "17", 2048)],
        "READS": [sample("shop.carts", "17", 12), sample("shop.c", "a:b", 3)],
        "LOCAL_READ_TIME": [sample("shop.carts", "SELECT * FROM carts WHERE id = ?", 1500)],
        "WRITES": [],
    });
    let kinds = [
        SamplerKind::WriteSize,
        SamplerKind::LocalReadTime,
        SamplerKind::Writes,
        SamplerKind::Reads,
    ];
    let page = samples_page(&kinds, &found);
    let lines: Vec<&str> = page.lines().map(str::trim_end).collect();
    assert_eq!(
        lines,
        [
            "Frequency of reads by partition:",
            "   Table      Partition Count +/-",
            "   shop.carts 17        12    1",
            "   shop.c     a:b       3     1",
            "",
            "Frequency of writes by partition:",
            "   Nothing recorded during sampling period...",
            "",
            "Longest read query times:",
            "   Query                            Microseconds",
            "   SELECT * FROM carts WHERE id = ? 1500",
            "",
            "Max mutation size by partition:",
            "   Table      Partition Bytes",
            "   shop.carts 17        2048",
        ]
    );
}

#[test]
fn samplings_in_the_background_are_listed() {
    let jobs = [json!("shop_of_horrors.*"), json!("shop.carts")];
    assert_eq!(
        jobs_page(&jobs),
        "       KEYSPACE TABLE\nshop_of_horrors     *\n           shop carts\n"
    );
}
