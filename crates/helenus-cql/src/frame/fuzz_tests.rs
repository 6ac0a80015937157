//! Feeds damaged bytes to the decoders, which may refuse them but must not panic. `HELENUS_FUZZ_SECONDS` is the time to run, one second if
//! it is not set. The targets in `fuzz/` use the same entry points.

use std::time::{Duration, Instant};

use bytes::BytesMut;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::request::{
    Batch, BatchStatement, Execute, Options, Prepare, Query, Register, Startup, StatementRef,
};
use super::response::{EventType, Supported};
use super::*;
use crate::types::CqlType;

/// Reads the input as a connection does, in both directions and in every mode.
fn read_all(input: &[u8], version: ProtocolVersion, compression: Option<Compression>, started: bool) {
    for direction in [Direction::Request, Direction::Response] {
        let mut decoder = Decoder::new(direction, 1 << 20);
        if started {
            decoder.start(version, compression);
        }
        let mut buffer = BytesMut::from(input);
        while let Ok(Some(envelope)) = decoder.decode(&mut buffer) {
            let _ = match direction {
                Direction::Request => RequestMessage::decode(envelope).map(drop),
                Direction::Response => ResponseMessage::decode(envelope).map(|message| {
                    if let Response::Result(response::QueryResult::Rows(rows)) = message.response {
                        assert!(rows.content.iter().count() <= rows.content.row_count());
                    }
                }),
            };
        }
    }
}

/// Returns valid envelopes to damage.
fn seeds(version: ProtocolVersion) -> Vec<BytesMut> {
    let parameters = QueryParameters {
        values: BoundValues::Named(vec![
            ("a".to_owned(), BoundValue::Set(vec![1, 2, 3].into())),
            ("b".to_owned(), BoundValue::Null),
        ]),
        page_size: Some(5),
        paging_state: Some(vec![9; 9].into()),
        timestamp_us: Some(1),
        keyspace: Some("ks".to_owned()),
        ..QueryParameters::default()
    };
    let statement = BatchStatement {
        statement: StatementRef::Prepared(vec![7; 16].into()),
        values: vec![],
    };
    let requests = [
        Request::Options(Options),
        Request::Startup(Startup {
            options: vec![("CQL_VERSION".to_owned(), "3.0.0".to_owned())],
        }),
        Request::Register(Register {
            events: vec![EventType::SchemaChange],
        }),
        Request::Prepare(Prepare {
            query: "SELECT * FROM t".to_owned(),
            keyspace: Some("ks".to_owned()),
        }),
        Request::Query(Box::new(Query {
            query: "SELECT * FROM t".to_owned(),
            parameters: parameters.clone(),
        })),
        Request::Execute(Box::new(Execute {
            id: vec![7; 16].into(),
            result_metadata_id: Some(vec![8; 16].into()),
            parameters: parameters.clone(),
        })),
        Request::Batch(Box::new(Batch {
            statements: vec![statement; 3],
            parameters,
            ..Batch::default()
        })),
    ];
    let types = [
        CqlType::map(
            CqlType::TEXT,
            CqlType::tuple(vec![CqlType::DATE, CqlType::vector(CqlType::INT, 3)]),
            false,
        ),
        CqlType::DURATION,
    ];
    let columns = types
        .into_iter()
        .map(|ty| ColumnSpec::new("ks", "t", "c", ty))
        .collect();
    let mut builder = RowsBuilder::new(2);
    for _ in 0..6 {
        builder.push(Some(b"value"));
    }
    let rows = Rows::new(
        std::sync::Arc::new(ResultMetadata::new(columns)),
        builder.finish(),
    );
    let responses = [
        Response::Supported(Supported::served("3.4.7")),
        Response::Error(crate::error::CqlError::Unprepared(vec![1; 16])),
        Response::Result(response::QueryResult::Rows(rows)),
    ];
    let encoder = OutputEncoder::unstarted();
    let mut seeds = Vec::new();
    for request in requests {
        let mut out = BytesMut::new();
        encoder.request(version, 1, &RequestMessage::new(request), &mut out);
        seeds.push(out);
    }
    for response in responses {
        let mut out = BytesMut::new();
        encoder.response(version, 1, &response.into(), &mut out);
        seeds.push(out);
    }
    seeds
}

fn damage(bytes: &mut Vec<u8>, random: &mut StdRng) {
    for _ in 0..random.random_range(0..4) {
        if bytes.is_empty() {
            return;
        }
        let position = random.random_range(0..bytes.len());
        match random.random_range(0..5) {
            0 => bytes[position] = random.random(),
            1 => bytes[position] ^= 1 << random.random_range(0..8),
            2 => bytes.truncate(position),
            3 => bytes.insert(position, random.random()),
            _ => bytes[position] = *[0, 0x7f, 0x80, 0xff].get(random.random_range(0..4)).unwrap(),
        }
    }
}

#[test]
fn damaged_bytes_do_not_panic() {
    let seconds = std::env::var("HELENUS_FUZZ_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1.0);
    let seed = std::env::var("HELENUS_FUZZ_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(rand::random);
    println!("HELENUS_FUZZ_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let seeds: Vec<_> = ProtocolVersion::ALL
        .map(|version| (version, seeds(version)))
        .into();
    while Instant::now() < end {
        let (version, envelopes) = &seeds[random.random_range(0..seeds.len())];
        let mut bytes = envelopes[random.random_range(0..envelopes.len())].to_vec();
        damage(&mut bytes, &mut random);
        let compression =
            [None, Some(Compression::Lz4), Some(Compression::Snappy)][random.random_range(0..3)];
        read_all(&bytes, *version, compression, false);
        // The damaged bytes are sent in a segment with valid checksums, so that the code behind the checksums is reached.
        let mut wire = BytesMut::new();
        OutputEncoder::started(*version, compression).wrap(&bytes, &mut wire);
        read_all(&wire, *version, compression, true);
        let mut wire = wire.to_vec();
        damage(&mut wire, &mut random);
        read_all(&wire, *version, compression, true);
        if let Some(compression) = compression {
            let _ = compression.decompress(&bytes, crate::frame::MAX_BODY_LEN);
        }
    }
}
