//! Tests of reads that skip rows where they are stored. A read returns, counts and refuses the same as one that decodes each row. Reads
//! decode each row while the rows of partitions are sampled.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::super::select_tests::{Node, show};
use crate::engine::sampling::SamplingRequest;
use crate::limits::Limits;
use crate::metrics::sampling::SamplerKind;
use crate::request::QueryParameters;
use crate::response::Response;

const END_OF_PAGE: &str = "end of page";
const TABLES: [&str; 4] = [
    "CREATE TABLE wide (p int, q text, c int, d decimal, s int static, u text static, v int, f double, b blob, x varint, \
     l list<int>, z frozen<list<int>>, w int, PRIMARY KEY ((p, q), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC)",
    "CREATE TABLE single (k text PRIMARY KEY, v int, b blob, u uuid, t timestamp, m map<text, int>)",
    "CREATE TABLE counted (p int, c text, n counter, PRIMARY KEY (p, c))",
    "CREATE TABLE texts (p int, c text, e frozen<tuple<int, text>>, v text, o boolean, s text static, PRIMARY KEY (p, c, e))",
];

fn pick<'p>(random: &mut SmallRng, from: &[&'p str]) -> &'p str {
    from[random.random_range(0..from.len())]
}

/// Replaces each `#` by a small number, each `@` by a digit, each `%` by a short text without quotes, and each `?` by one of few decimals.
fn fill(random: &mut SmallRng, pattern: &str) -> String {
    let mut filled = String::new();
    for letter in pattern.chars() {
        match letter {
            '#' => filled.push_str(&random.random_range(-1..4).to_string()),
            '@' => filled.push_str(&random.random_range(0..4).to_string()),
            '%' => filled.push_str(pick(random, &["", "a", "b", "ab"])),
            '?' => filled.push_str(pick(random, &["1", "1.0", "1.00", "-2.5", "30"])),
            letter => filled.push(letter),
        }
    }
    filled
}

const WRITES: [&str; 24] = [
    "INSERT INTO wide (p, q, c, d, v, f, b, x, z) VALUES (#, '%', #, ?, #, #.5, 0x0@, #, [#, #])",
    "INSERT INTO wide (p, q, c, d, v, f) VALUES (#, '%', #, ?, #, null)",
    "INSERT INTO wide (p, q, c, d, b, l) VALUES (#, '%', #, ?, 0x, [#, #])",
    "INSERT INTO wide (p, q, c, d) VALUES (#, '%', #, ?)",
    "INSERT INTO wide (p, q, c, d, v, w) VALUES (#, '%', #, ?, #, #) USING TTL 100",
    "UPDATE wide USING TTL 100 SET v = # WHERE p = # AND q = '%' AND c = # AND d = ?",
    "UPDATE wide SET f = NaN, x = 123456789012345678901@ WHERE p = # AND q = '%' AND c = # AND d = ?",
    "UPDATE wide SET l = l + [#], v = # WHERE p = # AND q = '%' AND c = # AND d = ?",
    "UPDATE wide SET s = #, u = '%' WHERE p = # AND q = '%'",
    "UPDATE wide USING TTL 100 SET s = # WHERE p = # AND q = '%'",
    "DELETE v, b FROM wide WHERE p = # AND q = '%' AND c = # AND d = ?",
    "DELETE s FROM wide WHERE p = # AND q = '%'",
    "DELETE FROM wide WHERE p = # AND q = '%' AND c = # AND d = ?",
    "DELETE FROM wide WHERE p = # AND q = '%' AND c > #",
    "DELETE FROM wide WHERE p = # AND q = '%'",
    "INSERT INTO single (k, v, b, t) VALUES ('%#%', #, 0x0@, #)",
    "INSERT INTO single (k, u, m) VALUES ('%#%', 0000000@-0000-1000-8000-000000000000, {'%': #})",
    "UPDATE single USING TTL 100 SET v = #, t = # WHERE k = '%#%'",
    "DELETE FROM single WHERE k = '%#%'",
    "UPDATE counted SET n = n + # WHERE p = # AND c = '%'",
    "DELETE FROM counted WHERE p = # AND c = '%'",
    "INSERT INTO texts (p, c, e, v, o) VALUES (#, '%', (#, '%'), '%%', true)",
    "UPDATE texts SET v = '%', o = false WHERE p = # AND c = '%' AND e = (#, null)",
    "UPDATE texts SET s = '%' WHERE p = #",
];

/// The conditions of each table.
const CONDITIONS: [&[&str]; 4] = [
    &[
        "p = #",
        "q = '%'",
        "q > '%'",
        "c = #",
        "c > #",
        "c <= #",
        "d = ?",
        "d < ?",
        "s = #",
        "s > #",
        "u = '%'",
        "v = #",
        "v = #",
        "v > #",
        "v <= #",
        "f >= #",
        "f = NaN",
        "f < #.5",
        "b = 0x0@",
        "b > 0x",
        "b = 0x",
        "x = #",
        "x > #",
        "l CONTAINS #",
        "z CONTAINS #",
        "z = [#, #]",
        "w = #",
        "c IN (#, #)",
        "token(p, q) > 0",
        "token(p, q) <= 4000000000000000000",
    ],
    &[
        "k = '%#%'",
        "k > '%'",
        "v = #",
        "v >= #",
        "b = 0x0@",
        "u = 0000000@-0000-1000-8000-000000000000",
        "t < #",
        "t = #",
        "m CONTAINS #",
        "m['%'] = #",
        "m CONTAINS KEY '%'",
    ],
    &["p > #", "p = #", "c = '%'", "c >= '%'", "n = #", "n > #"],
    &[
        "p >= #",
        "c = '%'",
        "c < '%'",
        "e = (#, '%')",
        "e > (#, null)",
        "v = '%%'",
        "v > '%'",
        "o = true",
        "o = false",
        "s = '%'",
        "s >= '%'",
    ],
];
const NAMES: [&str; 4] = ["wide", "single", "counted", "texts"];
const KEYS: [&str; 4] = ["p, q", "k", "p", "p"];
const VALUES: [&str; 4] = ["v", "v", "n", "v"];

/// Returns a random SELECT that filters the rows of a table.
fn select(random: &mut SmallRng) -> String {
    let table = random.random_range(0..TABLES.len());
    let conditions: Vec<String> = (0..random.random_range(1..4))
        .map(|_| {
            let pattern = pick(random, CONDITIONS[table]);
            fill(random, pattern)
        })
        .collect();
    let (key, value) = (KEYS[table], VALUES[table]);
    let (columns, group) = match random.random_range(0..8) {
        0 => ("count(*)".to_owned(), String::new()),
        1 => (format!("count({value}), max({value})"), String::new()),
        2 => (format!("{key}, count(*)"), format!(" GROUP BY {key}")),
        3 => (format!("DISTINCT {key}"), String::new()),
        4 => (format!("{key}, {value}"), String::new()),
        _ => ("*".to_owned(), String::new()),
    };
    let limit = pick(
        random,
        &[
            "",
            "",
            "",
            " LIMIT 3",
            " PER PARTITION LIMIT 1",
            " PER PARTITION LIMIT 2 LIMIT 5",
        ],
    );
    format!(
        "SELECT {columns} FROM {} WHERE {}{group}{limit} ALLOW FILTERING",
        NAMES[table],
        conditions.join(" AND ")
    )
}

/// Returns the rows and warnings of all pages as text, or the error.
async fn read(node: &Node, text: &str, page_size: Option<i32>, now_s: i64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut options = QueryParameters {
        page_size,
        now_s: Some(now_s),
        ..QueryParameters::default()
    };
    loop {
        let outcome = match node.query(text, &options).await {
            Ok(outcome) => outcome,
            Err(error) => {
                lines.push(error.to_string());
                return lines;
            }
        };
        let Response::Rows(page) = outcome.response else {
            panic!("{text}: no rows");
        };
        lines.extend(page.content.iter().map(|row| show(&page, &row)));
        lines.extend(outcome.warnings);
        lines.push(END_OF_PAGE.to_owned());
        options.paging_state = page.paging_state;
        if options.paging_state.is_none() {
            return lines;
        }
    }
}

/// Returns the time of writes.
fn now_s(node: &Node) -> i64 {
    node.engine().context.clock.now_us() / 1_000_000
}

/// Reads in both ways, and compares the answers. Returns true if the read was answered.
async fn check(node: &Node, text: &str, page_size: Option<i32>, now_s: i64) -> bool {
    loop {
        let before = read_decoding(node, text, page_size, now_s).await;
        let found = read(node, text, page_size, now_s).await;
        // Meanwhile, tombstones may be purged.
        if before == read_decoding(node, text, page_size, now_s).await {
            assert_eq!(found, before, "{text} in pages of {page_size:?} at {now_s}");
            return found.last().is_some_and(|line| line == END_OF_PAGE);
        }
    }
}

/// Returns the answer of a read that decodes each row.
async fn read_decoding(node: &Node, text: &str, page_size: Option<i32>, now_s: i64) -> Vec<String> {
    let sampling = node.engine().begin_sampling(&SamplingRequest {
        keyspace: None,
        table: None,
        capacity: 1,
        kinds: vec![SamplerKind::ReadRowCount],
    });
    let lines = read(node, text, page_size, now_s).await;
    drop(sampling.expect("there is no other sampling"));
    lines
}

/// Returns a node with rows in all kinds of states: in files and in memory, deleted, expired, and with cells of a dropped column.
async fn filled(name: &str, random: &mut SmallRng, limits: Limits) -> Node {
    let node = Node::with_limits(name, limits).await;
    for statement in TABLES {
        node.run(statement).await;
    }
    for number in 0..900 {
        if number == 300 {
            node.run("ALTER TABLE wide DROP w").await;
            node.run("ALTER TABLE wide ADD w int").await;
        }
        if number == 400 || number == 700 {
            node.engine().context.store.flush().await.expect("a flush");
        }
        let pattern = pick(random, &WRITES);
        let statement = fill(random, pattern);
        let options = QueryParameters {
            now_s: Some(now_s(&node)),
            ..QueryParameters::default()
        };
        let written = node.query(&statement, &options).await;
        written.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    node
}

#[tokio::test(flavor = "multi_thread")]
async fn skipping_reads_return_what_decoding_reads_return() {
    let mut answered = 0;
    for seed in 0..3 {
        let mut random = SmallRng::seed_from_u64(seed);
        let limits = Limits {
            tombstone_warn_threshold: 0,
            scan_concurrency: 1,
            ..Limits::default()
        };
        let node = filled(&format!("skipping-{seed}"), &mut random, limits).await;
        for _ in 0..250 {
            let text = select(&mut random);
            let size = [None, Some(1), Some(2), Some(7)][random.random_range(0..4)];
            let now_s = now_s(&node) + [0, 200][random.random_range(0..2)];
            answered += usize::from(check(&node, &text, size, now_s).await);
        }
    }
    assert!(answered > 250, "{answered} reads were answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_skipping_reads_return_the_same_rows() {
    let mut random = SmallRng::seed_from_u64(7);
    let limits = Limits {
        scan_concurrency: 4,
        ..Limits::default()
    };
    let node = filled("skipping-parts", &mut random, limits).await;
    for _ in 0..200 {
        let text = select(&mut random);
        let size = [None, Some(2), Some(7)][random.random_range(0..3)];
        check(&node, &text, size, now_s(&node)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skipping_read_with_too_many_tombstones_fails() {
    let limits = Limits {
        tombstone_failure_threshold: 50,
        scan_concurrency: 1,
        ..Limits::default()
    };
    let node = Node::with_limits("skipping-tombstones", limits).await;
    node.run("CREATE TABLE t (p int, c int, v int, w int, PRIMARY KEY (p, c))")
        .await;
    for number in 0..120 {
        let (p, c) = (number % 4, number / 4);
        node.run(&format!(
            "INSERT INTO t (p, c, v, w) VALUES ({p}, {c}, {number}, null)"
        ))
        .await;
    }
    let text = "SELECT * FROM t WHERE v = -1 ALLOW FILTERING";
    let found = read(&node, text, None, now_s(&node)).await;
    assert!(found[0].contains("READ_TOO_MANY_TOMBSTONES"), "{found:?}");
    for text in [text, "SELECT * FROM t WHERE v >= 0 LIMIT 40 ALLOW FILTERING"] {
        check(&node, text, None, now_s(&node)).await;
    }
}
