//! Measures the time to encode, merge and read a row. Run in release: `cargo run --release -p helenus-row --example merge_cost`.

use std::hint::black_box;
use std::time::Instant;

use bytes::Bytes;
use helenus_cql::types::CqlType;
use helenus_row::key::row_key;
use helenus_row::merge::merge;
use helenus_row::read::live_row;
use helenus_row::{
    Cell, CellRules, ColumnId, KeyKind, KeyLayout, Liveness, Order, RowBuilder, RowRef, TableId,
    murmur3_token,
};

const ROUNDS: u32 = 1_000_000;

fn time<T>(what: &str, mut run: impl FnMut(u32) -> T) {
    let start = Instant::now();
    for round in 0..ROUNDS {
        black_box(run(round));
    }
    println!(
        "{what:40} {:6} ns",
        start.elapsed().as_nanos() / u128::from(ROUNDS)
    );
}

fn insert(timestamp_us: i64, columns: u32, liveness: bool) -> Bytes {
    let mut builder = RowBuilder::new();
    if liveness {
        builder.liveness(Liveness {
            timestamp_us,
            expiry: None,
        });
    }
    for id in 0..columns {
        builder.cell(
            ColumnId(id),
            Cell::live(timestamp_us, Bytes::from_static(&[7; 50])),
        );
    }
    builder.build()
}

fn main() {
    let layout = KeyLayout::new(vec![(CqlType::BIGINT, Order::Desc), (CqlType::TEXT, Order::Asc)]);
    let clustering = [Bytes::from_static(&[0; 8]), Bytes::from_static(b"some text")];
    time("encode a key", |_| {
        let encoded = layout.encode_clustering(&clustering).unwrap();
        row_key(
            TableId(1),
            murmur3_token(b"partition key"),
            b"partition key",
            &encoded.bytes,
        )
    });
    let encoded = layout.encode_clustering(&clustering).unwrap().bytes;
    time("decode a clustering", |_| layout.decode_clustering(&encoded));
    time("encode a row of 5 cells", |round| {
        insert(i64::from(round), 5, true)
    });
    let row = insert(1_700_000_000_000_000, 5, true);
    let newer = insert(1_700_000_000_000_001, 5, true);
    let one_cell = insert(1_700_000_000_000_002, 1, false);
    time("merge, overwriting", |_| {
        merge(KeyKind::Row, Some(&row), std::slice::from_ref(&newer))
    });
    time("merge, one cell into five", |_| {
        merge(KeyKind::Row, Some(&row), std::slice::from_ref(&one_cell))
    });
    let updates: Vec<Bytes> = (0..16)
        .map(|i| insert(1_700_000_000_000_002 + i, 1, false))
        .collect();
    time("merge, 16 updates into five cells", |_| {
        merge(KeyKind::Row, Some(&row), &updates)
    });
    time("read a row of 5 cells", |_| {
        let row = RowRef::parse(row.clone()).unwrap();
        live_row(&row, None, &CellRules::default(), 0)
            .unwrap()
            .unwrap()
            .columns
            .len()
    });
}
