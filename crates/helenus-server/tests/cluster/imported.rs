//! `INSERT … ROWS` through nodes that own some of the rows.

use bytes::Bytes;
use helenus_query::request::{BoundValue, BoundValues, QueryParameters};
use helenus_row::transfer::{TransferBound, TransferWriter};
use helenus_row::{Cell, ColumnId, Deletion, Liveness, RowBuilder};

use crate::nodes::{NODES, Nodes, shown};

const STATEMENT: &str = "INSERT INTO t (v) ROWS ?";

fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn row(timestamp_us: i64, value: i32) -> Bytes {
    let mut row = RowBuilder::new();
    row.liveness(Liveness {
        timestamp_us,
        expiry: None,
    });
    row.cell(ColumnId(0), Cell::live(timestamp_us, int(value)));
    row.build()
}

async fn send(nodes: &Nodes, node: usize, rows: TransferWriter) -> String {
    let options = QueryParameters {
        values: BoundValues::Positional(vec![BoundValue::Set(rows.finish())]),
        ..QueryParameters::default()
    };
    match nodes.outcome(node, STATEMENT, &options).await {
        Ok(outcome) => shown(&outcome),
        Err(error) => error,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_one_blob_reach_all_owners() {
    let nodes = Nodes::start().await;
    for statement in [
        "CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c))",
        "CREATE INDEX ON t (v)",
        "CREATE MATERIALIZED VIEW by_v AS SELECT * FROM t \
         WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, k, c)",
    ] {
        assert_eq!(nodes.run(0, statement).await, "");
    }
    for node in 0..NODES {
        // Each node sends other rows of the same partitions.
        let mut rows = TransferWriter::new();
        for k in 0..24 {
            rows.partition(&int(k));
            rows.row(&[int(node as i32)], &row(10, k % 4));
        }
        assert_eq!(send(&nodes, node, rows).await, "");
        // A blob of one partition goes to the partition's owner.
        let mut rows = TransferWriter::new();
        rows.partition(&int(100));
        rows.row(&[int(node as i32)], &row(10, 7));
        assert_eq!(send(&nodes, node, rows).await, "");
    }
    let mut rows = TransferWriter::new();
    for k in 0..12 {
        rows.partition(&int(k));
        let deletion = Deletion {
            timestamp_us: 10,
            local_deletion_s: 1_000,
        };
        let start = TransferBound {
            values: vec![int(1)],
            is_inclusive: true,
        };
        rows.range_deletion(&start, &TransferBound::default(), deletion);
    }
    assert_eq!(send(&nodes, 1, rows).await, "");
    for node in 0..NODES {
        // Twelve partitions have one row each, twelve have three, and the last has three.
        assert_eq!(nodes.run(node, "SELECT count(*) FROM t").await, "51");
        assert_eq!(nodes.run(node, "SELECT count(*) FROM by_v").await, "51");
        for v in 0..4 {
            for table in ["t", "by_v"] {
                let text = format!("SELECT count(*) FROM {table} WHERE v = {v}");
                assert_eq!(nodes.run(node, &text).await, "12", "{text} on node {node}");
            }
        }
        let text = "SELECT c, writetime(v) FROM t WHERE k = 100";
        assert_eq!(nodes.run(node, text).await, "0, 10; 1, 10; 2, 10");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_blob_writes_to_no_owner() {
    let nodes = Nodes::start().await;
    nodes
        .run(0, "CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c))")
        .await;
    let mut rows = TransferWriter::new();
    for k in 0..24 {
        rows.partition(&int(k));
        rows.row(&[int(1)], &row(10, 1));
    }
    rows.row(&[b"x"], &row(10, 1));
    let answer = send(&nodes, 2, rows).await;
    assert!(answer.contains("row k = 23 AND c = 0x78, column c"), "{answer}");
    for node in 0..NODES {
        assert_eq!(nodes.run(node, "SELECT count(*) FROM t").await, "0");
    }
}
