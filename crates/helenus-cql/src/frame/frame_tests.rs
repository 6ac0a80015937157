//! Shows that messages are read as they were written, for every version and compression, in pieces of any length.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::request::{
    AuthResponse, Batch, BatchKind, BatchStatement, Execute, Options, Prepare, Query, Register, Startup,
    StatementRef,
};
use super::response::{
    AuthChallenge, AuthSuccess, Authenticate, ChangeKind, Event, EventType, PageMetadata, Prepared,
    QueryResult, Ready, SchemaChange, SchemaTarget, StatusChange, Supported, TopologyChange,
};
use super::*;
use crate::error::{Consistency, CqlError, Failure, LimitedOperation, WriteType};
use crate::types::{CqlType, NativeType};

fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z_ é]{0,12}"
}

fn version() -> impl Strategy<Value = ProtocolVersion> {
    proptest::sample::select(&ProtocolVersion::ALL[..])
}

fn compression() -> impl Strategy<Value = Option<Compression>> {
    prop_oneof![
        Just(None),
        Just(Some(Compression::Lz4)),
        Just(Some(Compression::Snappy))
    ]
}

fn consistency() -> impl Strategy<Value = Consistency> {
    (0u16..=0x0b).prop_map(|code| Consistency::from_code(code).unwrap())
}

/// Returns random bound values. Unset becomes null in v3.
fn value() -> impl Strategy<Value = BoundValue> {
    prop_oneof![
        bytes().prop_map(BoundValue::Set),
        Just(BoundValue::Null),
        Just(BoundValue::Unset)
    ]
}

fn parameters() -> impl Strategy<Value = QueryParameters> {
    let values = prop_oneof![
        vec(value(), 0..5).prop_map(BoundValues::from),
        vec((name(), value()), 1..5).prop_map(BoundValues::Named),
    ];
    let timestamp = option::of(any::<i64>().prop_map(|timestamp| timestamp.max(i64::MIN + 1)));
    let first = (
        consistency(),
        values,
        any::<bool>(),
        option::of(any::<i32>()),
        option::of(bytes()),
    );
    let second = (
        option::of(consistency()),
        timestamp,
        option::of(name()),
        option::of(any::<i32>()),
    );
    (first, second).prop_map(|(first, second)| {
        let (consistency, values, skip_metadata, page_size, paging_state) = first;
        let (serial_consistency, timestamp_us, keyspace, now_s) = second;
        QueryParameters {
            version: ProtocolVersion::default(),
            consistency,
            values,
            skip_metadata,
            page_size,
            paging_state,
            serial_consistency,
            timestamp_us,
            keyspace,
            now_s: now_s.map(i64::from),
        }
    })
}

fn batch() -> impl Strategy<Value = Batch> {
    let statement = prop_oneof![
        name().prop_map(StatementRef::Query),
        bytes().prop_map(StatementRef::Prepared)
    ];
    let statements = vec(
        (statement, vec(value(), 0..3)).prop_map(|(statement, values)| BatchStatement { statement, values }),
        0..4,
    );
    let kind = prop_oneof![
        Just(BatchKind::Logged),
        Just(BatchKind::Unlogged),
        Just(BatchKind::Counter)
    ];
    (kind, statements, parameters()).prop_map(|(kind, statements, parameters)| Batch {
        kind,
        statements,
        parameters,
    })
}

fn event_type() -> impl Strategy<Value = EventType> {
    prop_oneof![
        Just(EventType::TopologyChange),
        Just(EventType::StatusChange),
        Just(EventType::SchemaChange)
    ]
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        vec((name(), name()), 0..4).prop_map(|options| Request::Startup(Startup { options })),
        Just(Request::Options(Options)),
        vec(event_type(), 0..4).prop_map(|events| Request::Register(Register { events })),
        ("\\PC{0,300}", parameters())
            .prop_map(|(query, parameters)| Request::Query(Box::new(Query { query, parameters }))),
        ("\\PC{0,30}", option::of(name()))
            .prop_map(|(query, keyspace)| Request::Prepare(Prepare { query, keyspace })),
        (bytes(), option::of(bytes()), parameters()).prop_map(|(id, result_metadata_id, parameters)| {
            Request::Execute(Box::new(Execute {
                id,
                result_metadata_id,
                parameters,
            }))
        }),
        batch().prop_map(|batch| Request::Batch(Box::new(batch))),
        option::of(bytes()).prop_map(|token| Request::AuthResponse(AuthResponse { token })),
    ]
}

fn native() -> impl Strategy<Value = CqlType> {
    proptest::sample::select(&NativeType::ALL[..]).prop_map(CqlType::Native)
}

/// Returns types as they are read back: the outermost type is not frozen, inner ones are.
fn column_type() -> impl Strategy<Value = CqlType> {
    let nested = native().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|element| CqlType::list(element, true)),
            inner.clone().prop_map(|element| CqlType::set(element, true)),
            (inner.clone(), inner.clone()).prop_map(|(key, value)| CqlType::map(key, value, true)),
            vec(inner, 1..3).prop_map(CqlType::tuple),
        ]
    });
    let user_type = (name(), vec((name(), nested.clone()), 0..3)).prop_map(|(name, fields)| {
        let fields = fields
            .into_iter()
            .map(|(name, ty)| crate::types::UserTypeField { name, ty })
            .collect();
        let definition = Arc::new(crate::types::UserType {
            keyspace: "ks".to_owned(),
            name,
            fields,
        });
        CqlType::Udt {
            definition,
            frozen: false,
        }
    });
    prop_oneof![
        native(),
        nested.clone().prop_map(|element| CqlType::list(element, false)),
        (native(), 1..200_000u32).prop_map(|(element, dimension)| CqlType::vector(element, dimension)),
        user_type,
    ]
}

fn columns() -> impl Strategy<Value = Vec<ColumnSpec>> {
    let column = (prop_oneof!["a", "b"], name(), column_type())
        .prop_map(|(table, name, ty)| ColumnSpec::new("ks", table, name, ty));
    vec(column, 1..5)
}

fn rows() -> impl Strategy<Value = Rows> {
    let cells = vec(vec(option::of(bytes()), 5), 0..6);
    (columns(), cells, any::<bool>(), option::of(bytes())).prop_map(|(columns, cells, skip, paging_state)| {
        let mut builder = RowsBuilder::new(columns.len());
        for row in &cells {
            for cell in row.iter().take(columns.len()) {
                builder.push(cell.as_deref());
            }
        }
        Rows {
            metadata: Arc::new(ResultMetadata::new(columns)),
            page: PageMetadata {
                skip,
                paging_state,
                new_metadata_id: None,
            },
            content: builder.finish(),
        }
    })
}

fn schema_change() -> impl Strategy<Value = SchemaChange> {
    let change = prop_oneof![
        Just(ChangeKind::Created),
        Just(ChangeKind::Updated),
        Just(ChangeKind::Dropped)
    ];
    let target = prop_oneof![
        Just(SchemaTarget::Keyspace),
        name().prop_map(SchemaTarget::Table),
        name().prop_map(SchemaTarget::Type),
        (name(), vec(name(), 0..3)).prop_map(|(name, arg_types)| SchemaTarget::Function { name, arg_types }),
        (name(), vec(name(), 0..3)).prop_map(|(name, arg_types)| SchemaTarget::Aggregate { name, arg_types }),
    ];
    (change, name(), target).prop_map(|(change, keyspace, target)| SchemaChange {
        change,
        keyspace,
        target,
    })
}

fn error() -> impl Strategy<Value = CqlError> {
    let counts = (name(), consistency(), any::<i32>(), any::<i32>()).boxed();
    let failures = vec(
        (any::<std::net::IpAddr>(), any::<u16>()).prop_map(|(endpoint, code)| Failure { endpoint, code }),
        0..3,
    );
    prop_oneof![
        name().prop_map(CqlError::Server),
        name().prop_map(CqlError::Overloaded),
        name().prop_map(CqlError::Invalid),
        name().prop_map(CqlError::Truncate),
        (name(), any::<bool>()).prop_map(|(message, is_read)| CqlError::RateLimited {
            message,
            operation: match is_read {
                true => LimitedOperation::Read,
                false => LimitedOperation::Write,
            },
        }),
        bytes().prop_map(|id| CqlError::Unprepared(id.to_vec())),
        counts
            .clone()
            .prop_map(|(message, consistency, required, alive)| CqlError::Unavailable {
                message,
                consistency,
                required,
                alive
            }),
        (counts.clone(), any::<bool>()).prop_map(
            |((message, consistency, received, block_for), data_present)| {
                CqlError::ReadTimeout {
                    message,
                    consistency,
                    received,
                    block_for,
                    data_present,
                }
            }
        ),
        counts.clone().prop_map(
            |(message, consistency, received, block_for)| CqlError::WriteTimeout {
                message,
                consistency,
                received,
                block_for,
                write_type: WriteType::Cas
            }
        ),
        counts.clone().prop_map(
            |(message, consistency, received, block_for)| CqlError::CasWriteUnknown {
                message,
                consistency,
                received,
                block_for
            }
        ),
        (counts, failures).prop_map(|((message, consistency, received, block_for), failures)| {
            CqlError::WriteFailure {
                message,
                consistency,
                received,
                block_for,
                failures,
                write_type: WriteType::UnloggedBatch,
            }
        }),
        (name(), name(), vec(name(), 0..3)).prop_map(|(message, function, arg_types)| {
            CqlError::FunctionFailure {
                message,
                keyspace: "ks".to_owned(),
                function,
                arg_types,
            }
        }),
        (name(), name()).prop_map(|(message, table)| CqlError::AlreadyExists {
            message,
            keyspace: "ks".to_owned(),
            table
        }),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        any::<std::net::SocketAddr>()
            .prop_map(|node| Event::TopologyChange(TopologyChange::MovedNode, unscoped(node))),
        any::<std::net::SocketAddr>()
            .prop_map(|node| Event::StatusChange(StatusChange::Down, unscoped(node))),
        schema_change().prop_map(Event::SchemaChange),
    ]
}

fn unscoped(node: std::net::SocketAddr) -> std::net::SocketAddr {
    std::net::SocketAddr::new(node.ip(), node.port())
}

fn prepared() -> impl Strategy<Value = Prepared> {
    (bytes(), bytes(), columns(), vec(any::<u16>(), 0..3), columns()).prop_map(
        |(id, result_metadata_id, columns, partition_key_indexes, result_columns)| Prepared {
            id,
            result_metadata_id,
            metadata: Arc::new(PreparedMetadata {
                columns,
                partition_key_indexes,
            }),
            result_metadata: Arc::new(ResultMetadata::new(result_columns)),
        },
    )
}

fn response() -> impl Strategy<Value = Response> {
    prop_oneof![
        error().prop_map(Response::Error),
        Just(Response::Ready(Ready)),
        name().prop_map(|authenticator| Response::Authenticate(Authenticate { authenticator })),
        vec((name(), vec(name(), 0..3)), 0..3).prop_map(|options| Response::Supported(Supported { options })),
        Just(Response::Result(QueryResult::Void)),
        rows().prop_map(|rows| Response::Result(QueryResult::Rows(rows))),
        name().prop_map(|keyspace| Response::Result(QueryResult::SetKeyspace(keyspace))),
        prepared().prop_map(|prepared| Response::Result(QueryResult::Prepared(prepared))),
        schema_change().prop_map(|change| Response::Result(QueryResult::SchemaChange(change))),
        event().prop_map(Response::Event),
        option::of(bytes()).prop_map(|token| Response::AuthChallenge(AuthChallenge { token })),
        option::of(bytes()).prop_map(|token| Response::AuthSuccess(AuthSuccess { token })),
    ]
}

/// Sends messages through an encoder, and in pieces of `piece_len` bytes through a decoder.
fn transmit(
    direction: Direction,
    version: ProtocolVersion,
    compression: Option<Compression>,
    piece_len: usize,
    write: impl Fn(&OutputEncoder, &mut BytesMut),
) -> Vec<Envelope> {
    let encoder = OutputEncoder::started(version, compression);
    let (mut envelopes, mut wire) = (BytesMut::new(), BytesMut::new());
    write(&encoder, &mut envelopes);
    encoder.wrap(&envelopes, &mut wire);
    let mut decoder = Decoder::new(direction, MAX_BODY_LEN);
    decoder.start(version, compression);
    let (mut input, mut read) = (BytesMut::new(), Vec::new());
    for piece in wire.chunks(piece_len) {
        input.extend_from_slice(piece);
        while let Some(envelope) = decoder.decode(&mut input).unwrap() {
            read.push(envelope);
        }
    }
    assert!(input.is_empty());
    read
}

/// Returns the request without the parts that the version can't express.
fn request_in(version: ProtocolVersion, request: &Request) -> Request {
    let mut request = request.clone();
    let older = version < ProtocolVersion::V5;
    let parameters_in = |parameters: &mut QueryParameters| {
        parameters.version = version;
        if older {
            parameters.keyspace = None;
            parameters.now_s = None;
        }
        match &mut parameters.values {
            BoundValues::None => {}
            BoundValues::Positional(values) => values_in(version, values),
            BoundValues::Named(values) => values_in(version, values.iter_mut().map(|(_, value)| value)),
        }
    };
    match &mut request {
        Request::Query(query) => parameters_in(&mut query.parameters),
        Request::Prepare(prepare) if older => prepare.keyspace = None,
        Request::Execute(execute) => {
            parameters_in(&mut execute.parameters);
            execute.result_metadata_id = if older {
                None
            } else {
                Some(execute.result_metadata_id.take().unwrap_or_default())
            };
        }
        Request::Batch(batch) => {
            parameters_in(&mut batch.parameters);
            for statement in &mut batch.statements {
                values_in(version, &mut statement.values);
            }
        }
        _ => {}
    }
    request
}

fn values_in<'v>(version: ProtocolVersion, values: impl IntoIterator<Item = &'v mut BoundValue>) {
    for value in values {
        if version < ProtocolVersion::V4 && *value == BoundValue::Unset {
            *value = BoundValue::Null;
        }
    }
}

/// Returns true if the version can express the whole response.
fn survives(version: ProtocolVersion, response: &Response) -> bool {
    match response {
        Response::Error(CqlError::WriteFailure { failures, .. }) => {
            version >= ProtocolVersion::V5 || (version == ProtocolVersion::V4 && failures.is_empty())
        }
        Response::Error(CqlError::CasWriteUnknown { .. }) => version >= ProtocolVersion::V5,
        Response::Error(CqlError::FunctionFailure { .. }) => version >= ProtocolVersion::V4,
        Response::Result(QueryResult::Rows(rows)) => !rows.page.skip,
        Response::Result(QueryResult::Prepared(_)) => version >= ProtocolVersion::V5,
        Response::Result(QueryResult::SchemaChange(change))
        | Response::Event(Event::SchemaChange(change)) => {
            let v4 = matches!(
                change.target,
                SchemaTarget::Function { .. } | SchemaTarget::Aggregate { .. }
            );
            !v4 || version >= ProtocolVersion::V4
        }
        _ => true,
    }
}

proptest! {
    #[test]
    fn requests_round_trip(
        version in version(),
        compression in compression(),
        piece_len in 1usize..2000,
        requests in vec((any::<i16>(), any::<bool>(), option::of(vec((name(), option::of(bytes())), 0..3)), request()), 1..4),
    ) {
        let message = |(_, tracing, payload, request): &(i16, bool, Option<CustomPayload>, Request)| RequestMessage {
            tracing: *tracing,
            custom_payload: payload.clone().filter(|_| version >= ProtocolVersion::V4),
            request: request.clone(),
        };
        let read = transmit(Direction::Request, version, compression, piece_len, |encoder, out| {
            for sent in &requests {
                encoder.request(version, sent.0, &message(sent), out);
            }
        });
        prop_assert_eq!(read.len(), requests.len());
        for (envelope, sent) in read.into_iter().zip(&requests) {
            prop_assert_eq!(envelope.header.stream, sent.0);
            let mut expected = message(sent);
            expected.request = request_in(version, &expected.request);
            prop_assert_eq!(RequestMessage::decode(envelope).unwrap(), expected);
        }
    }

    #[test]
    fn responses_round_trip(
        version in version(),
        compression in compression(),
        piece_len in 1usize..2000,
        warnings in vec(name(), 0..3),
        tracing_id in option::of(any::<u128>().prop_map(uuid::Uuid::from_u128)),
        response in response(),
    ) {
        let warnings = if version >= ProtocolVersion::V4 { warnings } else { Vec::new() };
        let message = ResponseMessage { tracing_id, warnings, custom_payload: None, response };
        let mut read = transmit(Direction::Response, version, compression, piece_len, |encoder, out| {
            encoder.response(version, 7, &message, out);
        });
        let read = ResponseMessage::decode(read.pop().unwrap()).unwrap();
        if survives(version, &message.response) {
            prop_assert_eq!(read, message);
        } else {
            prop_assert_eq!(read.warnings, message.warnings);
        }
    }
}

#[test]
fn an_envelope_of_several_segments() {
    for compression in [None, Some(Compression::Lz4)] {
        for len in [131_000, 131_062, 131_063, 1_000_000] {
            let noise: Vec<u8> = (0..len)
                .map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
                .collect();
            let token = Some(Bytes::from(noise));
            let large = RequestMessage::new(Request::AuthResponse(AuthResponse { token }));
            let small = RequestMessage::new(Request::Options(Options));
            let messages = [&small, &large, &small, &small];
            let read = transmit(
                Direction::Request,
                ProtocolVersion::V5,
                compression,
                10_000,
                |encoder, out| {
                    for message in messages {
                        encoder.request(ProtocolVersion::V5, 3, message, out);
                    }
                },
            );
            let read: Vec<_> = read
                .into_iter()
                .map(|envelope| RequestMessage::decode(envelope).unwrap())
                .collect();
            assert!(read.iter().eq(messages));
        }
    }
}

#[test]
fn a_claimed_length_gets_no_memory() {
    for compression in [Compression::Lz4, Compression::Snappy] {
        assert!(
            compression
                .decompress(&[0x0f, 0xff, 0xff, 0xff, 0, 0, 0], MAX_BODY_LEN)
                .is_err()
        );
        assert!(compression.decompress(&[], MAX_BODY_LEN).is_err());
    }
}

#[test]
fn texts_are_cut_at_a_character() {
    let long = "é".repeat(40_000);
    let message = ResponseMessage::from(Response::Error(CqlError::Server(long)));
    let mut read = transmit(
        Direction::Response,
        ProtocolVersion::V4,
        None,
        1 << 20,
        |encoder, out| {
            encoder.response(ProtocolVersion::V4, 0, &message, out);
        },
    );
    let read = ResponseMessage::decode(read.pop().unwrap()).unwrap();
    let Response::Error(CqlError::Server(text)) = read.response else {
        panic!("{read:?}")
    };
    assert_eq!(text, "é".repeat(32_767));
}
