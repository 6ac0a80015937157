//! Tests of ORDER BY an indexed column, over a store in a temporary folder.

use std::collections::BTreeMap;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::select_tests::Node;
use crate::analysis::restrictions::REQUIRES_ALLOW_FILTERING;

const SAI: &str = "'sai'";
const SASI: &str = "'org.apache.cassandra.index.sasi.SASIIndex'";
const PAGES: [Option<i32>; 4] = [None, Some(1), Some(3), Some(50)];

/// A type of values, with a function that writes values in the order of numbers.
struct Values {
    ty: &'static str,
    using: &'static str,
    literal: fn(i64) -> String,
    number: fn(&mut SmallRng) -> i64,
}

/// Returns a random number of any magnitude. Many numbers repeat.
fn any_number(random: &mut SmallRng) -> i64 {
    let number = random.random::<u64>() >> random.random_range(2..64);
    match random.random_range(0..3) {
        0 => number as i64,
        1 => -(number as i64),
        _ => random.random_range(-3..4),
    }
}

const TYPES: [Values; 6] = [
    Values {
        ty: "int",
        using: SAI,
        literal: |number| number.to_string(),
        number: |random| any_number(random) >> 32,
    },
    Values {
        ty: "bigint",
        using: SAI,
        literal: |number| number.to_string(),
        number: any_number,
    },
    Values {
        ty: "timestamp",
        using: SAI,
        literal: |number| number.to_string(),
        number: |random| any_number(random) >> 14,
    },
    Values {
        ty: "double",
        using: SAI,
        literal: |number| format!("{number}.5"),
        // The numbers are small enough that no two of them are the same double.
        number: |random| (any_number(random) >> 20).abs(),
    },
    Values {
        ty: "bigint",
        using: SASI,
        literal: |number| number.to_string(),
        number: any_number,
    },
    Values {
        ty: "text",
        using: SASI,
        // All texts have the same length, so that they have the order of the numbers.
        literal: |number| format!("'{number:08}'"),
        number: |random| random.random_range(0..90),
    },
];

/// The expected content of the table: the number of each row's value, by `k` and `c`.
type Model = BTreeMap<(i32, i32), Option<i64>>;

/// Writes, updates and deletes rows with few different keys.
async fn change(node: &Node, model: &mut Model, values: &Values, random: &mut SmallRng, count: usize) {
    for _ in 0..count {
        let (k, c) = (random.random_range(0..12), random.random_range(0..5));
        let number = (values.number)(random);
        let literal = (values.literal)(number);
        match random.random_range(0..20) {
            0..=11 => {
                node.run(&format!(
                    "INSERT INTO t (k, c, v, w) VALUES ({k}, {c}, {literal}, {})",
                    c % 2
                ))
                .await;
                model.insert((k, c), Some(number));
            }
            12..=15 => {
                node.run(&format!(
                    "UPDATE t SET v = {literal}, w = {} WHERE k = {k} AND c = {c}",
                    c % 2
                ))
                .await;
                model.insert((k, c), Some(number));
            }
            16 => {
                node.run(&format!("DELETE FROM t WHERE k = {k} AND c = {c}"))
                    .await;
                model.remove(&(k, c));
            }
            17 => {
                node.run(&format!("DELETE v FROM t WHERE k = {k} AND c = {c}"))
                    .await;
                model.entry((k, c)).and_modify(|value| *value = None);
            }
            18 => {
                node.run(&format!("DELETE FROM t WHERE k = {k} AND c > {c}"))
                    .await;
                model.retain(|row, _| row.0 != k || row.1 <= c);
            }
            _ => {
                node.run(&format!("DELETE FROM t WHERE k = {k}")).await;
                model.retain(|row, _| row.0 != k);
            }
        }
    }
}

/// Checks a query against the rows of the model that pass `passes`.
async fn check(
    node: &Node,
    model: &Model,
    values: &Values,
    restriction: &str,
    passes: &dyn Fn(i32, i32, i64) -> bool,
) {
    let mut expected: Vec<(i64, (i32, i32))> = model
        .iter()
        .filter_map(|(row, value)| value.map(|value| (value, *row)))
        .filter(|(value, (k, c))| passes(*k, *c, *value))
        .collect();
    for direction in ["ASC", "DESC"] {
        expected.sort_unstable();
        if direction == "DESC" {
            expected.reverse();
        }
        for limit in [1, 7, 1000] {
            let query = format!(
                "SELECT v, k, c FROM t {restriction} ORDER BY v {direction} LIMIT {limit} ALLOW FILTERING"
            );
            let whole = node.select(&query, None).await;
            let wanted = &expected[..expected.len().min(limit)];
            let shown = |value: i64| (values.literal)(value);
            let found: Vec<&str> = whole.iter().filter_map(|row| row.split(' ').next()).collect();
            if !["timestamp", "double"].contains(&values.ty) {
                let numbers: Vec<String> = wanted.iter().map(|(value, _)| shown(*value)).collect();
                assert_eq!(found, numbers, "{}: {query}", values.ty);
            }
            // Each row appears once, with its value.
            let mut keys: Vec<(i64, (i32, i32))> = whole.iter().map(|row| of_model(model, row)).collect();
            let ordered: Vec<i64> = keys.iter().map(|(value, _)| *value).collect();
            let wanted_values: Vec<i64> = wanted.iter().map(|(value, _)| *value).collect();
            assert_eq!(ordered, wanted_values, "{}: {query}", values.ty);
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), wanted.len(), "{}: {query}", values.ty);
            assert!(
                keys.iter().all(|(value, (k, c))| passes(*k, *c, *value)),
                "{query}"
            );
            for size in PAGES {
                assert_eq!(
                    node.select(&query, size).await,
                    whole,
                    "{query} in pages of {size:?}"
                );
            }
        }
    }
}

/// Returns a row of the result in the form of the model.
fn of_model(model: &Model, row: &str) -> (i64, (i32, i32)) {
    let mut from_behind = row.rsplit(' ').map(|part| part.parse().unwrap_or(-1));
    let (c, k) = (from_behind.next().unwrap_or(-1), from_behind.next().unwrap_or(-1));
    let value = model.get(&(k, c)).copied().flatten();
    (value.unwrap_or_else(|| panic!("{row} has no value")), (k, c))
}

async fn table_of(values: &Values, place: usize) -> Node {
    let node = Node::open(&format!("value-order-{place}")).await;
    node.run(&format!(
        "CREATE TABLE t (k int, c int, v {}, w int, s int static, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)",
        values.ty
    ))
    .await;
    node.run(&format!(
        "CREATE CUSTOM INDEX by_v ON t (v) USING {}",
        values.using
    ))
    .await;
    node
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_as_sorting_all_of_them_gives_them() {
    for (place, values) in TYPES.iter().enumerate() {
        let mut random = SmallRng::seed_from_u64(place as u64);
        let node = table_of(values, place).await;
        let mut model = Model::new();
        for _ in 0..3 {
            change(&node, &mut model, values, &mut random, 70).await;
            for k in 0..3 {
                node.run(&format!("UPDATE t SET s = {k} WHERE k = {k}")).await;
            }
            let bound = (values.number)(&mut random);
            let literal = (values.literal)(bound);
            check(&node, &model, values, "", &|_, _, _| true).await;
            check(&node, &model, values, "WHERE w = 1", &|_, c, _| c % 2 == 1).await;
            check(&node, &model, values, "WHERE c > 1 AND c <= 3", &|_, c, _| {
                c > 1 && c <= 3
            })
            .await;
            check(&node, &model, values, "WHERE k IN (1, 7, 9)", &|k, _, _| {
                [1, 7, 9].contains(&k)
            })
            .await;
            check(&node, &model, values, "WHERE k = 1 AND c < 4", &|k, c, _| {
                k == 1 && c < 4
            })
            .await;
            check(&node, &model, values, "WHERE s = 2", &|k, _, _| k == 2).await;
            check(
                &node,
                &model,
                values,
                &format!("WHERE v = {literal}"),
                &|_, _, v| v == bound,
            )
            .await;
            if values.ty == "text" {
                let prefix = literal.get(..8).unwrap_or_default();
                let restriction = format!("WHERE v LIKE {prefix}%'");
                check(&node, &model, values, &restriction, &|_, _, v| {
                    v / 10 == bound / 10
                })
                .await;
            } else {
                check(
                    &node,
                    &model,
                    values,
                    &format!("WHERE v >= {literal}"),
                    &|_, _, v| v >= bound,
                )
                .await;
                check(
                    &node,
                    &model,
                    values,
                    &format!("WHERE v < {literal} AND w = 0"),
                    &|_, c, v| v < bound && c % 2 == 0,
                )
                .await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_of_tokens_are_kept() {
    let node = table_of(&TYPES[0], 10).await;
    for k in 0..40 {
        node.run(&format!("INSERT INTO t (k, c, v) VALUES ({k}, 0, {})", 100 - k))
            .await;
    }
    let all = node
        .select("SELECT token(k), k FROM t ORDER BY v LIMIT 99", None)
        .await;
    let is_right = |row: &&String| !row.starts_with('-');
    let right: Vec<&String> = all.iter().filter(is_right).collect();
    let query = "SELECT token(k), k FROM t WHERE token(k) >= 0 ORDER BY v LIMIT 99 ALLOW FILTERING";
    for size in PAGES {
        assert_eq!(node.select(query, size).await.iter().collect::<Vec<_>>(), right);
    }
    assert!(!right.is_empty() && right.len() < all.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_values_are_not_among_the_rows() {
    let node = table_of(&TYPES[0], 11).await;
    for k in 0..6 {
        let ttl = if k % 2 == 0 { " USING TTL 1" } else { "" };
        node.run(&format!("INSERT INTO t (k, c, v) VALUES ({k}, 0, {k}){ttl}"))
            .await;
    }
    node.run("UPDATE t USING TTL 1 SET v = -5 WHERE k = 5 AND c = 0")
        .await;
    tokio::time::sleep(std::time::Duration::from_millis(2_100)).await;
    for size in PAGES {
        assert_eq!(
            node.select("SELECT k FROM t ORDER BY v LIMIT 9", size).await,
            ["1", "3"]
        );
        assert_eq!(
            node.select("SELECT k FROM t ORDER BY v DESC LIMIT 9", size).await,
            ["3", "1"]
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn static_content_alone_has_no_place_among_the_values_of_rows() {
    let node = table_of(&TYPES[0], 12).await;
    node.run("INSERT INTO t (k, c, v) VALUES (1, 1, 10)").await;
    node.run("INSERT INTO t (k, c, v) VALUES (2, 1, 20)").await;
    node.run("INSERT INTO t (k, s) VALUES (1, 1)").await;
    node.run("INSERT INTO t (k, s) VALUES (3, 1)").await;
    // The index entries outlive the rows that a range deletion deletes.
    node.run("DELETE FROM t WHERE k = 1 AND c >= 0").await;
    for direction in ["ASC", "DESC"] {
        let query = format!("SELECT k, c, s FROM t ORDER BY v {direction} LIMIT 9");
        assert_eq!(node.select(&query, None).await, ["2 1 null"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn static_columns_and_keys_give_an_order_too() {
    let node = Node::open("value-order-keys").await;
    node.run("CREATE TABLE t (a int, b int, c int, s int static, PRIMARY KEY ((a, b), c))")
        .await;
    for column in ["a", "c", "s"] {
        node.run(&format!("CREATE INDEX ON t ({column}) USING 'sai'"))
            .await;
    }
    for a in 0..5 {
        for c in 0..3 {
            node.run(&format!(
                "INSERT INTO t (a, b, c) VALUES ({a}, 0, {})",
                10 * c + a
            ))
            .await;
        }
        node.run(&format!("UPDATE t SET s = {} WHERE a = {a} AND b = 0", 100 * a))
            .await;
        node.run(&format!("UPDATE t SET s = {} WHERE a = {a} AND b = 0", -a))
            .await;
    }
    // An entry that outlives its partition precedes the current one.
    node.run("INSERT INTO t (a, b, s) VALUES (9, 0, -101)").await;
    node.run("DELETE FROM t WHERE a = 9 AND b = 0").await;
    node.run("INSERT INTO t (a, b, s) VALUES (9, 0, -100)").await;
    let check = async |query: &str, expected: &[&str]| {
        for size in [None, Some(1), Some(2), Some(4)] {
            assert_eq!(
                node.select(query, size).await,
                expected,
                "{query} in pages of {size:?}"
            );
        }
    };
    check(
        "SELECT a, c FROM t ORDER BY s LIMIT 5",
        &["9 null", "4 4", "4 14", "4 24", "3 3"],
    )
    .await;
    check(
        "SELECT a FROM t ORDER BY s DESC LIMIT 7",
        &["0", "0", "0", "1", "1", "1", "2"],
    )
    .await;
    check(
        "SELECT a, c FROM t ORDER BY c DESC LIMIT 3",
        &["4 24", "3 23", "2 22"],
    )
    .await;
    check(
        "SELECT a, c FROM t WHERE c < 10 ORDER BY c DESC LIMIT 3",
        &["4 4", "3 3", "2 2"],
    )
    .await;
    check(
        "SELECT a, s FROM t ORDER BY a DESC LIMIT 4",
        &["9 -100", "4 -4", "4 -4", "4 -4"],
    )
    .await;
    // Within a partition, rows have the order of clustering, as usual.
    check(
        "SELECT c FROM t WHERE a = 1 AND b = 0 ORDER BY c DESC",
        &["21", "11", "1"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_is_found_where_its_last_value_puts_it() {
    let node = table_of(&TYPES[0], 13).await;
    for round in 0..20 {
        node.run(&format!(
            "INSERT INTO t (k, c, v) VALUES (1, 1, {})",
            (round * 7) % 20
        ))
        .await;
        node.run(&format!(
            "INSERT INTO t (k, c, v) VALUES (2, 1, {})",
            (round * 3) % 20
        ))
        .await;
        let mut expected = vec![(round * 7) % 20, (round * 3) % 20];
        expected.sort_unstable();
        let shown = |values: &[i32]| values.iter().map(i32::to_string).collect::<Vec<_>>();
        assert_eq!(
            node.select("SELECT v FROM t ORDER BY v LIMIT 5", None).await,
            shown(&expected)
        );
        expected.reverse();
        assert_eq!(
            node.select("SELECT JSON v FROM t ORDER BY v DESC LIMIT 5", Some(1))
                .await
                .len(),
            2
        );
        assert_eq!(
            node.select("SELECT v FROM t ORDER BY v DESC LIMIT 5", Some(1))
                .await,
            shown(&expected)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_index_gives_is_refused() {
    let node = table_of(&TYPES[0], 14).await;
    node.run("CREATE INDEX ON t (w)").await;
    let only_clustered = |column: &str| {
        format!(
            "Order by is currently only supported on the clustered columns of the PRIMARY KEY, got {column}"
        )
    };
    let needs_key = "ORDER BY is only supported when the partition key is restricted by an EQ or an IN.";
    let cases = [
        (
            "ORDER BY v",
            format!("{needs_key} With a LIMIT, ORDER BY v reads the index by_v in the order of the values."),
        ),
        ("ORDER BY w LIMIT 1", needs_key.to_owned()),
        ("ORDER BY c LIMIT 1", needs_key.to_owned()),
        ("ORDER BY v, c LIMIT 1", needs_key.to_owned()),
        ("ORDER BY v PER PARTITION LIMIT 1 LIMIT 1", needs_key.to_owned()),
        ("GROUP BY k ORDER BY v LIMIT 1", needs_key.to_owned()),
        ("WHERE k = 1 ORDER BY w LIMIT 1", only_clustered("w")),
        (
            "WHERE k = 1 ORDER BY v LIMIT 1",
            REQUIRES_ALLOW_FILTERING.to_owned(),
        ),
        (
            "WHERE token(k) > 1 ORDER BY v LIMIT 1",
            REQUIRES_ALLOW_FILTERING.to_owned(),
        ),
        (
            "WHERE c > 1 ORDER BY v LIMIT 1",
            REQUIRES_ALLOW_FILTERING.to_owned(),
        ),
        (
            "WHERE w = 1 ORDER BY v LIMIT 1",
            REQUIRES_ALLOW_FILTERING.to_owned(),
        ),
    ];
    for (rest, message) in cases {
        assert_eq!(
            node.error(&format!("SELECT * FROM t {rest}")).await,
            message,
            "{rest}"
        );
    }
    let count = "SELECT count(*) FROM t ORDER BY v LIMIT 1";
    assert_eq!(node.error(count).await, needs_key);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_go_on_with_the_statement_that_they_are_of() {
    let node = table_of(&TYPES[0], 15).await;
    for k in 0..4 {
        node.run(&format!("INSERT INTO t (k, c, v) VALUES ({k}, 0, {k})"))
            .await;
    }
    let state = async |query: &str| {
        node.page(query, Some(1), None)
            .await
            .unwrap()
            .unwrap()
            .paging_state
    };
    let of_table = state("SELECT * FROM t").await;
    let of_order = state("SELECT * FROM t ORDER BY v DESC LIMIT 9").await;
    let refused = "Invalid value for the paging state";
    let query = "SELECT * FROM t ORDER BY v LIMIT 9";
    assert_eq!(
        node.page(query, Some(1), of_table).await.unwrap_err().to_string(),
        refused
    );
    let below = "SELECT * FROM t WHERE v < 2 ORDER BY v DESC LIMIT 9";
    assert_eq!(
        node.page(below, Some(1), of_order).await.unwrap_err().to_string(),
        refused
    );
}
