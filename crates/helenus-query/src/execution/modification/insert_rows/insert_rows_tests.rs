//! Tests of `INSERT … ROWS` against an engine with its own store.

use bytes::Bytes;
use helenus_cql::types::CqlType;
use helenus_row::key::compose_partition_key;
use helenus_row::transfer::{TransferBound, TransferWriter};
use helenus_row::{Cell, ColumnId, Deletion, ExactClustering, Expiry, Liveness, Row, RowBuilder};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::super::dml_tests::Session;
use super::super::view_tests::{BY_ROW, BY_VALUE, TABLE, assert_views_are_right};
use crate::analysis::BatchStatement;
use crate::request::{BoundValue, BoundValues, QueryParameters};

fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn deletion(timestamp_us: i64) -> Deletion {
    Deletion {
        timestamp_us,
        local_deletion_s: 1_000,
    }
}

fn live(timestamp_us: i64) -> Liveness {
    Liveness {
        timestamp_us,
        expiry: None,
    }
}

fn bound(values: &[i32], is_inclusive: bool) -> TransferBound {
    TransferBound {
        values: values.iter().map(|value| int(*value)).collect(),
        is_inclusive,
    }
}

/// Returns the packed row that `build` makes.
fn packed(build: impl FnOnce(&mut RowBuilder)) -> Bytes {
    let mut row = RowBuilder::new();
    build(&mut row);
    row.build()
}

/// Returns a row with a liveness and one cell in the first column.
fn row(timestamp_us: i64, value: i32) -> Bytes {
    packed(|row| {
        row.liveness(live(timestamp_us))
            .cell(ColumnId(0), Cell::live(timestamp_us, int(value)));
    })
}

/// Returns the blob of what `write` writes.
fn blob(write: impl FnOnce(&mut TransferWriter)) -> Bytes {
    let mut writer = TransferWriter::new();
    write(&mut writer);
    writer.finish()
}

/// Returns the blob of one row in partition 1.
fn one(clustering: &[Bytes], row: &Bytes) -> Bytes {
    blob(|rows| {
        rows.partition(&int(1));
        rows.row(clustering, row);
    })
}

async fn send(db: &Session, statement: &str, blob: Bytes) -> String {
    db.run_with(statement, BoundValues::Positional(vec![BoundValue::Set(blob)]))
        .await
}

async fn import(db: &Session, statement: &str, blob: Bytes) {
    assert_eq!(send(db, statement, blob).await, "", "{statement}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_keep_their_timestamps_and_ttls() {
    let db = Session::new().await;
    db.all(&["CREATE TABLE t (p int, c int, v int, w text, PRIMARY KEY (p, c))"])
        .await;
    let now_s = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs() as i64;
    let expiry = |ends_in_s| Expiry {
        ttl_s: 5000,
        expires_at_s: now_s + ends_in_s,
    };
    // The columns are listed in another order than that of their ids.
    let blob = blob(|rows| {
        rows.partition(&int(2));
        let row = packed(|row| {
            row.liveness(live(10))
                .cell(ColumnId(0), Cell::expiring(12, expiry(1000), "w"))
                .cell(ColumnId(1), Cell::live(11, int(7)));
        });
        rows.row(&[int(1)], &row);
        let ended = packed(|row| {
            row.liveness(Liveness {
                timestamp_us: 10,
                expiry: Some(expiry(-1)),
            });
        });
        rows.row(&[int(2)], &ended);
        rows.partition(&int(1));
        let updated = packed(|row| {
            row.cell(ColumnId(1), Cell::live(5, int(8)));
        });
        rows.row(&[int(3)], &updated);
    });
    let statement = "INSERT INTO ks.t (w, v) ROWS ?";
    import(&db, statement, blob.clone()).await;
    let rows = "SELECT p, c, v, w, writetime(v), writetime(w) FROM t";
    let found = "1, 3, 8, null, 5, null; 2, 1, 7, 'w', 11, 12";
    db.expect(rows, found).await;
    let ttl: i64 = db
        .run("SELECT ttl(w) FROM t WHERE p = 2 AND c = 1")
        .await
        .parse()
        .unwrap();
    assert!((900..=1000).contains(&ttl), "{ttl}");
    // Repeating the statement changes nothing, and older rows do not hide newer ones.
    db.all(&["UPDATE t USING TIMESTAMP 20 SET v = 9 WHERE p = 1 AND c = 3"])
        .await;
    import(&db, statement, blob).await;
    db.expect(rows, "1, 3, 9, null, 20, null; 2, 1, 7, 'w', 11, 12")
        .await;
    // The row of the update ends with its cells, the others do not.
    db.all(&[
        "DELETE v FROM t WHERE p = 1 AND c = 3",
        "DELETE v, w FROM t WHERE p = 2 AND c = 1",
    ])
    .await;
    db.expect("SELECT p, c FROM t", "2, 1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletions_hide_what_is_older() {
    let db = Session::new().await;
    db.all(&["CREATE TABLE t (p int, c int, d int, v int, PRIMARY KEY (p, c, d))"])
        .await;
    for timestamp_us in [10, 20] {
        for (p, c, d) in [(1, 1, 1), (1, 1, 2), (1, 2, 1), (1, 3, 1), (2, 1, 1), (3, 1, 1)] {
            // Old rows have d = 1 and 2, newer ones 11 and 12.
            let d = d + timestamp_us - 10;
            db.all(&[&format!(
                "INSERT INTO t (p, c, d, v) VALUES ({p}, {c}, {d}, 0) USING TIMESTAMP {timestamp_us}"
            )])
            .await;
        }
    }
    let blob = blob(|rows| {
        rows.partition(&int(1));
        rows.range_deletion(&bound(&[1, 1], false), &bound(&[2], true), deletion(10));
        rows.range_deletion(&bound(&[2, 5], true), &bound(&[2, 11], false), deletion(30));
        rows.range_deletion(&bound(&[3], true), &bound(&[], false), deletion(15));
        rows.row(
            &[int(1), int(11)],
            &packed(|row| {
                row.delete_row(deletion(20));
            }),
        );
        rows.row(
            &[int(1), int(12)],
            &packed(|row| {
                row.cell(ColumnId(0), Cell::tombstone(20, 1_000));
            }),
        );
        rows.partition(&int(2));
        rows.partition_deletion(deletion(15));
        rows.partition(&int(3));
        rows.range_deletion(&bound(&[], false), &bound(&[], false), deletion(20));
    });
    import(&db, "INSERT INTO t (v) ROWS ?", blob).await;
    db.expect(
        "SELECT p, c, d, v FROM t WHERE p = 1",
        "1, 1, 1, 0; 1, 1, 12, null; 1, 2, 11, 0; 1, 3, 11, 0",
    )
    .await;
    db.expect("SELECT p, c, d, v FROM t WHERE p IN (2, 3)", "2, 1, 11, 0")
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn collections_have_cells_and_deletions() {
    let db = Session::new().await;
    db.all(&[
        "CREATE TYPE u (a int, b text)",
        "CREATE TABLE t (k int PRIMARY KEY, l list<int>, s set<int>, m map<text, int>, u u, f frozen<set<int>>)",
        "UPDATE t USING TIMESTAMP 5 SET l = [1], s = {1}, m = {'old': 1}, u = {a: 1, b: 'b'} WHERE k = 1",
    ])
    .await;
    let timeuuid = |last: u8| {
        let mut bytes = [0; 16];
        bytes[6] = 0x10;
        bytes[8] = 0x80;
        bytes[15] = last;
        Bytes::copy_from_slice(&bytes)
    };
    let value = packed(|row| {
        row.liveness(live(10))
            .delete_complex(ColumnId(0), deletion(9))
            .complex_cell(ColumnId(0), timeuuid(2), Cell::live(10, int(8)))
            .complex_cell(ColumnId(0), timeuuid(1), Cell::live(10, int(7)))
            .complex_cell(ColumnId(1), int(-3), Cell::live(10, ""))
            .complex_cell(ColumnId(1), int(1), Cell::tombstone(10, 1_000))
            .delete_complex(ColumnId(2), deletion(9))
            .complex_cell(ColumnId(2), Bytes::from_static(b"new"), Cell::live(10, int(2)))
            .complex_cell(
                ColumnId(3),
                Bytes::from_static(&[0, 1]),
                Cell::tombstone(10, 1_000),
            )
            // Two elements, which are sorted as by an INSERT.
            .cell(
                ColumnId(4),
                Cell::live(
                    10,
                    [&[0u8, 0, 0, 2, 0, 0, 0, 4][..], &int(9), &[0, 0, 0, 4], &int(3)].concat(),
                ),
            );
    });
    import(&db, "INSERT INTO t (l, s, m, u, f) ROWS ?", one(&[], &value)).await;
    db.expect(
        "SELECT l, s, m, u, f, writetime(f) FROM t",
        "[7, 8], {-3}, {'new': 2}, {a: 1, b: null}, {3, 9}, 10",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn static_rows_and_counters_are_written() {
    let db = Session::new().await;
    db.all(&[
        "CREATE TABLE t (p int, c int, s int static, v int, PRIMARY KEY (p, c))",
        "CREATE TABLE n (p int, c int, a counter, b counter, PRIMARY KEY (p, c))",
    ])
    .await;
    let cell = packed(|row| {
        row.cell(ColumnId(1), Cell::live(10, int(5)));
    });
    let rows = blob(|rows| {
        rows.partition(&int(1));
        rows.static_row(&cell);
        rows.row(&[int(1)], &row(10, 6));
        rows.partition(&int(2));
        rows.static_row(&cell);
    });
    import(&db, "INSERT INTO t (v, s) ROWS ?", rows).await;
    db.expect(
        "SELECT p, c, s, v, writetime(s) FROM t",
        "1, 1, 5, 6, 10; 2, null, 5, null, 10",
    )
    .await;
    let totals = packed(|row| {
        row.cell(ColumnId(0), Cell::counter(10, 1000));
    });
    import(&db, "INSERT INTO n (b) ROWS ?", one(&[int(1)], &totals)).await;
    db.all(&["UPDATE n SET b = b + 1, a = a + 2 WHERE p = 1 AND c = 1"])
        .await;
    db.expect("SELECT p, c, a, b FROM n", "1, 1, 2, 1001").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn indexes_and_views_follow() {
    let db = Session::new().await;
    db.all(&[TABLE, BY_VALUE, BY_ROW, "CREATE INDEX ON t (w)"]).await;
    let mut random = SmallRng::seed_from_u64(11);
    for round in 0..60 {
        let blob = blob(|rows| {
            for _ in 0..random.random_range(1..4) {
                rows.partition(&int(random.random_range(0..3)));
                for _ in 0..random.random_range(1..4) {
                    let timestamp_us = random.random_range(1..60);
                    let value = int(random.random_range(0..3));
                    let c = random.random_range(0..4);
                    match random.random_range(0..8) {
                        0 => rows.partition_deletion(deletion(timestamp_us)),
                        1 => {
                            rows.range_deletion(&bound(&[c], true), &bound(&[], true), deletion(timestamp_us))
                        }
                        2 => rows.row(
                            &[int(c)],
                            &packed(|row| {
                                row.delete_row(deletion(timestamp_us));
                            }),
                        ),
                        3 => rows.row(
                            &[int(c)],
                            &packed(|row| {
                                row.cell(ColumnId(0), Cell::tombstone(timestamp_us, 1_000));
                            }),
                        ),
                        _ => rows.row(
                            &[int(c)],
                            &packed(|row| {
                                row.liveness(live(timestamp_us))
                                    .cell(ColumnId(0), Cell::live(timestamp_us, value.clone()))
                                    .cell(ColumnId(1), Cell::live(timestamp_us + 1, value));
                            }),
                        ),
                    }
                }
            }
        });
        import(&db, "INSERT INTO t (v, w) ROWS ?", blob).await;
        assert_views_are_right(&db, &format!("after round {round}")).await;
        for w in 0..3 {
            let by_index = db.run(&format!("SELECT p, c FROM t WHERE w = {w}")).await;
            let by_scan = db.run("SELECT p, c, w FROM t").await;
            let of_value = format!(", {w}");
            let mut expected: Vec<&str> = by_scan
                .split("; ")
                .filter_map(|row| row.strip_suffix(&of_value))
                .collect();
            let mut found: Vec<&str> = by_index.split("; ").filter(|row| !row.is_empty()).collect();
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected, "w = {w} after round {round}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_keep_their_form() {
    let db = Session::new().await;
    db.all(&[
        "CREATE TABLE d (p int, q text, c decimal, v int, PRIMARY KEY ((p, q), c)) WITH CLUSTERING ORDER BY (c DESC)",
        "CREATE TABLE n (p int, c int, d text, v int, PRIMARY KEY (p, c, d)) WITH COMPACT STORAGE",
        "CREATE TABLE k (p int, c int, PRIMARY KEY (p, c)) WITH COMPACT STORAGE",
    ])
    .await;
    // 1.00: the scale 2 and the number 100.
    let decimal = Bytes::from_static(&[0, 0, 0, 2, 100]);
    let key = compose_partition_key(&[int(1), Bytes::new()]).unwrap();
    let rows = blob(|rows| {
        rows.partition(&key);
        rows.row(&[decimal], &row(10, 6));
    });
    import(&db, "INSERT INTO d (v) ROWS ?", rows).await;
    db.expect(
        "SELECT * FROM d WHERE p = 1 AND q = '' AND c = 1",
        "1, '', 1.00, 6",
    )
    .await;
    let value = packed(|row| {
        row.cell(ColumnId(0), Cell::live(10, int(6)));
    });
    import(&db, "INSERT INTO n (v) ROWS ?", one(&[int(1)], &value)).await;
    import(
        &db,
        "INSERT INTO n (v) ROWS ?",
        one(&[int(1), Bytes::new()], &value),
    )
    .await;
    db.expect("SELECT * FROM n", "1, 1, null, 6; 1, 1, '', 6").await;
    // The cell of the hidden column is what makes a row exist.
    let hidden = packed(|row| {
        row.cell(ColumnId(0), Cell::live(10, ""));
    });
    import(&db, "INSERT INTO k (value) ROWS ?", one(&[int(1)], &hidden)).await;
    db.expect("SELECT * FROM k", "1, 1").await;
}

/// Columns of the table with which refusals are tested.
const REFUSING: &str = "CREATE TABLE t (p int, c int, s int static, v int, m map<text, int>, l list<int>, f frozen<list<int>>, \
                        PRIMARY KEY (p, c))";
const STATEMENT: &str = "INSERT INTO t (s, v, m, l, f) ROWS ?";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_rows_are_refused_and_nothing_is_written() {
    let db = Session::new().await;
    db.all(&[REFUSING]).await;
    let cell = |id: u32, cell: Cell| {
        packed(|row| {
            row.cell(ColumnId(id), cell);
        })
    };
    let element = |id: u32, path: &'static [u8], cell: Cell| {
        packed(|row| {
            row.complex_cell(ColumnId(id), Bytes::from_static(path), cell);
        })
    };
    let expiring = |ttl_s, expires_at_s| Cell::expiring(10, Expiry { ttl_s, expires_at_s }, int(1));
    let row_cases = [
        (
            cell(1, Cell::live(10, "abc")),
            "row p = 1 AND c = 7, column v: Expected 4 or 0 byte int (3)",
        ),
        (
            cell(0, Cell::live(10, int(1))),
            "row p = 1 AND c = 7, column s: a static column belongs to the static row of the partition",
        ),
        (
            cell(5, Cell::live(10, int(1))),
            "row p = 1 AND c = 7: the packed row has a column at position 5, and the statement names 5 columns",
        ),
        (
            cell(2, Cell::live(10, int(1))),
            "row p = 1 AND c = 7, column m: the column has one cell, but the type map<text, int> has a cell for each element",
        ),
        (
            element(4, b"x", Cell::live(10, int(1))),
            "row p = 1 AND c = 7, column f: the column has a cell for each element, but the type frozen<list<int>> has one cell",
        ),
        (
            element(2, b"\xff", Cell::live(10, int(1))),
            "row p = 1 AND c = 7, column m: String didn't validate.",
        ),
        (
            element(2, b"x", Cell::live(10, "abc")),
            "row p = 1 AND c = 7, column m: Expected 4 or 0 byte int (3)",
        ),
        (
            element(3, b"x", Cell::live(10, int(1))),
            "row p = 1 AND c = 7, column l: an element of a list has a path of 1 bytes, not a timeuuid",
        ),
        (
            cell(1, Cell::counter(10, 1)),
            "row p = 1 AND c = 7, column v: the cell is a counter's, but the column is no counter",
        ),
        (
            cell(1, Cell::live(i64::MIN, int(1))),
            "row p = 1 AND c = 7, column v: Out of bound timestamp, must be in [-9223372036854775807, 9223372036854775807]",
        ),
        (
            cell(1, expiring(0, 1000)),
            "row p = 1 AND c = 7, column v: a TTL of 0 seconds is not between 1 and 630720000",
        ),
        (
            cell(1, expiring(1, 1 << 32)),
            "row p = 1 AND c = 7, column v: the expiration time 4294967296 is not between 0 and 4294967295 seconds since 1970",
        ),
        (
            cell(1, Cell::tombstone(10, -1)),
            "row p = 1 AND c = 7, column v: the deletion time -1 is not between 0 and 4294967295 seconds since 1970",
        ),
        (
            Bytes::from_static(b"\xff"),
            "row p = 1 AND c = 7: the packed row cannot be read: corrupt packed value: unknown row flags",
        ),
        (
            Row {
                exact_clustering: Some(ExactClustering {
                    timestamp_us: 1,
                    components: vec![int(7)],
                }),
                ..Row::default()
            }
            .encode(),
            "row p = 1 AND c = 7: the packed row has clustering values; leave them to the item",
        ),
    ];
    let good = row(10, 1);
    let mut cases: Vec<(Bytes, String)> = row_cases
        .into_iter()
        .map(|(row, problem)| (one(&[int(7)], &row), problem.to_owned()))
        .collect();
    let mut case = |problem: &str, write: &dyn Fn(&mut TransferWriter)| {
        cases.push((blob(write), problem.to_owned()));
    };
    case(
        "static row of partition p = 1, column v: the column is not static, so it does not belong to the static row",
        &|rows| {
            rows.partition(&int(1));
            rows.static_row(&cell(1, Cell::live(10, int(1))));
        },
    );
    case(
        "static row of partition p = 1: a static row has no liveness; leave it out",
        &|rows| {
            rows.partition(&int(1));
            rows.static_row(&good);
        },
    );
    case(
        "row p = 1 AND c = 0x0102, column c: Expected 4 or 0 byte int (2)",
        &|rows| {
            rows.partition(&int(1));
            rows.row(&[Bytes::from_static(&[1, 2])], &good);
        },
    );
    case(
        "row p = 1 AND c = 1: 2 values for 1 clustering columns",
        &|rows| {
            rows.partition(&int(1));
            rows.row(&[int(1), int(1)], &good);
        },
    );
    case("row p = 1: 0 values for 1 clustering columns", &|rows| {
        rows.partition(&int(1));
        rows.row::<Bytes>(&[], &good);
    });
    case(
        "partition p = 0x01, column p: Expected 4 or 0 byte int (1)",
        &|rows| {
            rows.partition(&[1]);
        },
    );
    case("partition p = null: Key may not be empty", &|rows| {
        rows.partition(b"")
    });
    case(
        "deletion of a range in partition p = 1: 2 values for 1 clustering columns",
        &|rows| {
            rows.partition(&int(1));
            rows.range_deletion(&bound(&[1, 2], true), &bound(&[], true), deletion(10));
        },
    );
    case(
        "deletion of partition p = 1: the deletion time -5 is not between 0 and 4294967295 seconds since 1970",
        &|rows| {
            rows.partition(&int(1));
            rows.partition_deletion(Deletion {
                timestamp_us: 1,
                local_deletion_s: -5,
            });
        },
    );
    for (wrong, problem) in cases {
        // A valid row comes before the wrong one.
        let before = blob(|rows| {
            rows.partition(&int(9));
            rows.row(&[int(1)], &cell(1, Cell::live(10, int(1))));
        });
        let end = before.len() - 2;
        let (items, count) = (wrong.len() - 2, wrong[wrong.len() - 1] + 2);
        let both = [&before[..end], &wrong[1..items], &[0, count]].concat();
        let answer = send(&db, STATEMENT, both.into()).await;
        assert_eq!(
            answer,
            format!(
                "error: INSERT … ROWS into ks.t: {problem}. Nothing of the statement was written; correct this and send the rows again"
            )
        );
    }
    let torn = one(&[int(1)], &cell(1, Cell::live(10, int(1))));
    for torn in [torn.slice(..torn.len() - 1), Bytes::new()] {
        assert_eq!(
            send(&db, STATEMENT, torn).await,
            "error: INSERT … ROWS into ks.t: the rows cannot be read: packed value ends too early. Nothing of the statement was written"
        );
    }
    db.expect("SELECT * FROM t", "").await;
    import(&db, STATEMENT, blob(|_| ())).await;
    let too_many = blob(|rows| (0..65_536).for_each(|key| rows.partition(&int(key))));
    assert_eq!(
        send(&db, STATEMENT, too_many).await,
        "error: INSERT … ROWS into ks.t: the rows cannot be read: it has more than 65535 partitions, rows and deletions; send \
         them in several statements. Nothing of the statement was written"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_special_tables_are_checked() {
    let db = Session::new().await;
    db.all(&[
        "CREATE TABLE n (p int, c int, a counter, PRIMARY KEY (p, c))",
        "CREATE TABLE k (p int PRIMARY KEY, v int)",
        "CREATE TABLE c (p int, c text, v int, PRIMARY KEY (p, c)) WITH COMPACT STORAGE",
    ])
    .await;
    let end = "Nothing of the statement was written; correct this and send the rows again";
    for (statement, blob, problem) in [
        (
            "INSERT INTO n (a) ROWS ?",
            one(
                &[int(1)],
                &packed(|row| {
                    row.cell(ColumnId(0), Cell::live(10, vec![0; 8]));
                }),
            ),
            "n: row p = 1 AND c = 1, column a: the column is a counter, but the cell is not a counter's",
        ),
        (
            "INSERT INTO n (a) ROWS ?",
            one(
                &[int(1)],
                &packed(|row| {
                    row.liveness(live(1));
                }),
            ),
            "n: row p = 1 AND c = 1: rows of counter tables have no liveness; leave it out",
        ),
        (
            "INSERT INTO k (v) ROWS ?",
            blob(|rows| {
                rows.partition(&int(1));
                rows.range_deletion(&bound(&[], true), &bound(&[], true), deletion(1));
            }),
            "k: deletion of a range in partition p = 1: the table has no clustering columns, so only its rows and partitions can be deleted",
        ),
        (
            "INSERT INTO c (v) ROWS ?",
            one(
                &[Bytes::new()],
                &packed(|row| {
                    row.cell(ColumnId(0), Cell::live(10, int(1)));
                }),
            ),
            "c: row p = 1 AND c = '': Invalid empty or null value for column c",
        ),
    ] {
        assert_eq!(
            send(&db, statement, blob).await,
            format!("error: INSERT … ROWS into ks.{problem}. {end}")
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statement_is_checked_and_described() {
    let db = Session::new().await;
    db.all(&[TABLE, BY_VALUE]).await;
    let rows = blob(|rows| rows.partition(&int(1)));
    for (statement, problem) in [
        (
            "INSERT INTO t (x) ROWS ?",
            "Undefined column name x in table ks.t",
        ),
        (
            "INSERT INTO t (c) ROWS ?",
            "PRIMARY KEY part c found in the columns of INSERT … ROWS; the rows contain their keys, name only regular and static \
             columns",
        ),
        (
            "INSERT INTO t (v, v) ROWS ?",
            "The column names contains duplicates",
        ),
        (
            "INSERT INTO by_value (w) ROWS ?",
            "Cannot directly modify a materialized view",
        ),
        (
            "INSERT INTO system.local () ROWS ?",
            "INSERT … ROWS is not supported by table system.local, whose rows the server makes",
        ),
        (
            "INSERT INTO system_auth.roles () ROWS ?",
            "INSERT … ROWS is not supported by table system_auth.roles, whose rows the server makes",
        ),
        ("INSERT INTO nothing () ROWS ?", "table nothing does not exist"),
    ] {
        let answer = send(&db, statement, rows.clone()).await;
        assert_eq!(answer, format!("error: {problem}"), "{statement}");
    }
    assert_eq!(
        db.run_with(
            "INSERT INTO t () ROWS ?",
            BoundValues::Positional(vec![BoundValue::Null])
        )
        .await,
        "error: Invalid null value for the rows of INSERT … ROWS"
    );
    // A literal stands for the marker. The list may be empty.
    db.all(&["INSERT INTO t () ROWS 0x01010400000001050104000000020211140002"])
        .await;
    db.expect("SELECT p, c, v, writetime(v) FROM t", "1, 2, null, null")
        .await;
    let prepared = db
        .engine
        .prepare(&db.client, None, "INSERT INTO ks.t (v) ROWS :rows")
        .await
        .unwrap();
    let markers = prepared.0.planned.load().markers.specs();
    assert_eq!(markers.len(), 1);
    assert_eq!((&*markers[0].name, &markers[0].ty), ("rows", &CqlType::BLOB));
    let batch = [BatchStatement::Text(
        "INSERT INTO ks.t (v) ROWS ?".to_owned(),
        vec![BoundValue::Set(rows)],
    )];
    let parameters = QueryParameters::default();
    let refused = db
        .engine
        .batch(
            &db.client,
            helenus_cql::ast::BatchKind::Unlogged,
            &batch,
            &parameters,
        )
        .await;
    assert_eq!(
        refused.err().unwrap().to_string(),
        "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed."
    );
}
