//! Tests against bytes recorded from Apache Cassandra 5.0.5.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::request::{Options, Startup};
use super::response::{
    ChangeKind, Event, Prepared, QueryResult, Ready, SchemaChange, SchemaTarget, Supported,
};
use super::*;
use crate::error::{Consistency, CqlError, Failure, WriteType};
use crate::types::class_name::{class_name, parse_class_name};
use crate::types::{CqlType, UserType, UserTypeField};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(|byte| (byte as char).to_digit(16).unwrap() as u8)
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn encoded(version: ProtocolVersion, stream: i16, message: &ResponseMessage) -> Vec<u8> {
    let mut out = BytesMut::new();
    OutputEncoder::unstarted().response(version, stream, message, &mut out);
    out.to_vec()
}

fn body(version: ProtocolVersion, response: Response) -> Vec<u8> {
    encoded(version, 1, &response.into())[9..].to_vec()
}

fn error_body(version: ProtocolVersion, error: CqlError) -> Vec<u8> {
    body(version, Response::Error(error))
}

fn user_type() -> CqlType {
    let fields = vec![
        UserTypeField {
            name: "a".to_owned(),
            ty: CqlType::INT,
        },
        UserTypeField {
            name: "b".to_owned(),
            ty: CqlType::list(CqlType::TEXT, true),
        },
    ];
    let definition = Arc::new(UserType {
        keyspace: "wire".to_owned(),
        name: "u".to_owned(),
        fields,
    });
    CqlType::Udt {
        definition,
        frozen: true,
    }
}

#[test]
fn ready_and_supported() {
    assert_eq!(
        encoded(ProtocolVersion::V4, 1, &Response::Ready(Ready).into()),
        hex("840000010200000000")
    );
    let supported = body(
        ProtocolVersion::V4,
        Response::Supported(Supported::served("3.4.7")),
    );
    let expected =
        "0003 0011 50524f544f434f4c5f56455253494f4e53 0004 0004 332f7633 0004 342f7634 0004 352f7635 0009 362f76362d62657461
        000b 434f4d5052455353494f4e 0002 0006 736e61707079 0003 6c7a34
        000b 43514c5f56455253494f4e 0001 0005 332e342e37";
    assert_eq!(supported, hex(expected));
}

#[test]
fn options_request() {
    let mut input = BytesMut::from(&hex("040000010500000000")[..]);
    let mut decoder = Decoder::new(Direction::Request, MAX_BODY_LEN);
    let envelope = decoder.decode(&mut input).unwrap().unwrap();
    assert_eq!(envelope.header.stream, 1);
    assert_eq!(
        RequestMessage::decode(envelope).unwrap().request,
        Request::Options(Options)
    );
}

#[test]
fn startup_request() {
    let bytes = hex("05 00 0000 01 00000016 0001 000b 43514c5f56455253494f4e 0005 332e302e30");
    let mut decoder = Decoder::new(Direction::Request, MAX_BODY_LEN);
    let envelope = decoder.decode(&mut BytesMut::from(&bytes[..])).unwrap().unwrap();
    let message = RequestMessage::decode(envelope).unwrap();
    let Request::Startup(startup) = &message.request else {
        panic!("{message:?}")
    };
    assert_eq!(startup.get(Startup::CQL_VERSION), Some("3.0.0"));
    let mut out = BytesMut::new();
    OutputEncoder::unstarted().request(ProtocolVersion::V5, 0, &message, &mut out);
    assert_eq!(&out[..], &bytes[..]);
}

#[test]
fn unknown_versions_are_refused_in_the_drivers_words() {
    let mut decoder = Decoder::new(Direction::Request, MAX_BODY_LEN);
    let error = decoder
        .decode(&mut BytesMut::from(&[66u8, 0, 0, 0, 5, 0, 0, 0, 0][..]))
        .unwrap_err();
    assert_eq!(error.version, ProtocolVersion::V5);
    let text =
        "Invalid or unsupported protocol version (66); supported versions are (3/v3, 4/v4, 5/v5, 6/v6-beta)";
    assert_eq!(error.error, CqlError::Protocol(text.to_owned()));
}

#[test]
fn wrong_headers() {
    let refusal = |bytes: &str| {
        let mut decoder = Decoder::new(Direction::Request, MAX_BODY_LEN);
        decoder
            .decode(&mut BytesMut::from(&hex(bytes)[..]))
            .unwrap_err()
            .error
            .to_string()
    };
    assert_eq!(refusal("040000014200000000"), "Unknown opcode 66");
    assert_eq!(
        refusal("840000010500000000"),
        "Wrong protocol direction (expected REQUEST, got RESPONSE) for opcode 5 (OPTIONS)"
    );
    assert_eq!(
        refusal("040000010800000000"),
        "Wrong protocol direction (expected RESPONSE, got REQUEST) for opcode 8 (RESULT)"
    );
    assert_eq!(
        refusal("040000010512c00000"),
        "Request is too big: length 314572809 exceeds maximum allowed length 268435456."
    );
}

#[test]
fn parameters_in_cassandras_words() {
    let refusal = |parameters: &str| {
        let mut body = hex("00000001 61");
        body.extend(hex(parameters));
        let header = Header {
            version: ProtocolVersion::V4,
            flags: Flags::default(),
            stream: 0,
            opcode: Opcode::Query,
        };
        RequestMessage::decode(Envelope {
            header,
            body: body.into(),
        })
        .unwrap_err()
        .to_string()
    };
    assert_eq!(refusal("0001 01 0001 fffffffd"), "Invalid ByteBuf length -3");
    assert_eq!(refusal("0042 00"), "Unknown code 66 for a consistency level");
    assert_eq!(
        refusal("0001 20 8000000000000000"),
        "Out of bound timestamp, must be in [-9223372036854775807, 9223372036854775807] (got -9223372036854775808)"
    );
}

#[test]
fn errors() {
    use ProtocolVersion::{V3, V4, V5};
    let missing = CqlError::Invalid("table nope does not exist".to_owned());
    assert_eq!(
        error_body(V4, missing),
        hex("00002200 0019 7461626c65206e6f706520646f6573206e6f74206578697374")
    );
    let exists = CqlError::AlreadyExists {
        message: "Cannot add existing keyspace \"wire\"".to_owned(),
        keyspace: "wire".to_owned(),
        table: String::new(),
    };
    let expected = "00002400 0023 43616e6e6f7420616464206578697374696e67206b65797370616365202277697265220004776972650000";
    assert_eq!(error_body(V4, exists), hex(expected));
    let unprepared = error_body(V4, CqlError::Unprepared(b"abcd".to_vec()));
    assert_eq!(&unprepared[..6], &hex("00002500 00d5")[..]);
    assert!(unprepared.ends_with(b"cache)\x00\x04abcd"));

    let unknown = CqlError::CasWriteUnknown {
        message: "m".to_owned(),
        consistency: Consistency::Serial,
        received: 1,
        block_for: 2,
    };
    assert_eq!(
        error_body(V5, unknown.clone()),
        hex("00001700 0001 6d 0008 00000001 00000002")
    );
    let older = error_body(V4, unknown);
    assert_eq!(&older[..4], &hex("00001100")[..]);
    assert!(older.ends_with(&hex("0008 00000001 00000002 0003 434153")));

    let failure = CqlError::WriteFailure {
        message: "m".to_owned(),
        consistency: Consistency::One,
        received: 0,
        block_for: 1,
        failures: vec![Failure {
            endpoint: "127.0.0.1".parse().unwrap(),
            code: 2,
        }],
        write_type: WriteType::Simple,
    };
    let simple = "0006 53494d504c45";
    assert_eq!(
        error_body(V5, failure.clone()),
        hex(&format!(
            "00001500 0001 6d 0001 00000000 00000001 00000001 04 7f000001 0002 {simple}"
        ))
    );
    assert_eq!(
        error_body(V4, failure.clone()),
        hex(&format!(
            "00001500 0001 6d 0001 00000000 00000001 00000001 {simple}"
        ))
    );
    let text = "Operation timed out - received only 0 responses.";
    let mut expected = hex("00001100 0030");
    expected.extend(text.bytes());
    expected.extend(hex(&format!("0001 00000000 00000001 {simple}")));
    assert_eq!(error_body(V3, failure), expected);
}

#[test]
fn schema_change_result_and_event() {
    let change = SchemaChange {
        change: ChangeKind::Updated,
        keyspace: "wire".to_owned(),
        target: SchemaTarget::Table("t".to_owned()),
    };
    let result = Response::Result(QueryResult::SchemaChange(change.clone()));
    assert_eq!(
        encoded(ProtocolVersion::V4, 1, &result.into()),
        hex("84000001080000001d 00000005 0007 55504441544544 0005 5441424c45 0004 77697265 0001 74")
    );
    let event = Response::Event(Event::SchemaChange(change));
    let expected = "8400ffff0c00000028 000d534348454d415f4348414e4745 000755504441544544 00055441424c45 000477697265 000174";
    assert_eq!(encoded(ProtocolVersion::V4, -1, &event.into()), hex(expected));
}

#[test]
fn set_keyspace() {
    let result = Response::Result(QueryResult::SetKeyspace("wire".to_owned()));
    assert_eq!(body(ProtocolVersion::V4, result), hex("00000003 0004 77697265"));
}

#[test]
fn prepared() {
    let column = |name: &str, ty| ColumnSpec::new("wire", "t", name, ty);
    let columns = vec![column("k", CqlType::INT), column("m", CqlType::TEXT)];
    let select = Prepared {
        id: hex("a18da32cfcee5b5d6185d49ea4c943b6").into(),
        result_metadata_id: Bytes::new(),
        metadata: Arc::new(PreparedMetadata {
            columns: vec![column("k", CqlType::INT)],
            partition_key_indexes: vec![0],
        }),
        result_metadata: Arc::new(ResultMetadata::new(columns.clone())),
    };
    let expected =
        "000000040010a18da32cfcee5b5d6185d49ea4c943b6000000010000000100000001000000047769726500017400016b
        0009000000010000000200047769726500017400016b000900016d000d";
    let response = Response::Result(QueryResult::Prepared(select));
    assert_eq!(body(ProtocolVersion::V4, response), hex(expected));

    let insert = Prepared {
        id: hex("d493fef1ce6d63fb6e3115ac54ee4f67").into(),
        result_metadata_id: Bytes::new(),
        metadata: Arc::new(PreparedMetadata {
            columns,
            partition_key_indexes: vec![0],
        }),
        result_metadata: Arc::default(),
    };
    let expected =
        "000000040010d493fef1ce6d63fb6e3115ac54ee4f67000000010000000200000001000000047769726500017400016b
        000900016d000d0000000400000000";
    let response = Response::Result(QueryResult::Prepared(insert));
    assert_eq!(body(ProtocolVersion::V4, response), hex(expected));
    assert_eq!(
        ResultMetadata::default().id().to_vec(),
        hex("d41d8cd98f00b204e9800998ecf8427e")
    );
}

/// Checks a column of every type, as v3 and v4 describe it.
#[test]
fn rows_of_every_type() {
    let tuple = CqlType::tuple(vec![CqlType::INT, CqlType::TEXT]);
    let types = [
        ("k", CqlType::INT),
        ("a", CqlType::ASCII),
        ("b", CqlType::BIGINT),
        ("c", CqlType::BLOB),
        ("d", CqlType::BOOLEAN),
        ("e", CqlType::DATE),
        ("f", CqlType::DECIMAL),
        ("g", CqlType::DOUBLE),
        ("h", CqlType::DURATION),
        ("i", CqlType::FLOAT),
        ("j", CqlType::INET),
        ("l", CqlType::SMALLINT),
        ("m", CqlType::TEXT),
        ("n", CqlType::TIME),
        ("o", CqlType::TIMESTAMP),
        ("p", CqlType::TIMEUUID),
        ("q", CqlType::TINYINT),
        ("r", CqlType::UUID),
        ("s", CqlType::VARINT),
        ("v", CqlType::vector(CqlType::FLOAT, 3)),
        ("w", CqlType::list(CqlType::INT, false)),
        ("x", CqlType::set(tuple, false)),
        ("y", CqlType::map(CqlType::TEXT, user_type(), false)),
        ("z", user_type()),
    ];
    let columns = types
        .into_iter()
        .map(|(name, ty)| ColumnSpec::new("wire", "t", name, ty))
        .collect();
    let rows = Rows::new(
        Arc::new(ResultMetadata::new(columns)),
        RowsBuilder::new(24).finish(),
    );
    let v4 = "00000002000000010000001800047769726500017400016b000900016100010001620002000163000300016400040001650011000166000600016700070001680000002c6f72672e6170616368652e63617373616e6472612e64622e6d61727368616c2e4475726174696f6e54797065000169000800016a001000016c001300016d000d00016e001200016f000b000170000f0001710014000172000c000173000e000176000000596f72672e6170616368652e63617373616e6472612e64622e6d61727368616c2e566563746f7254797065286f72672e6170616368652e63617373616e6472612e64622e6d61727368616c2e466c6f617454797065202c203329000177002000090001780022003100020009000d0001790021000d0030000477697265000175000200016100090001620020000d00017a0030000477697265000175000200016100090001620020000d00000000";
    let v3 = "00000002000000010000001800047769726500017400016b000900016100010001620002000163000300016400040001650000002e6f72672e6170616368652e63617373616e6472612e64622e6d61727368616c2e53696d706c654461746554797065000166000600016700070001680000002c6f72672e6170616368652e63617373616e6472612e64622e6d61727368616c2e4475726174696f6e54797065000169000800016a001000016c000000296f72672e6170616368652e63617373616e6472612e64622e6d61727368616c2e53686f72745479706500016d000d00016e000000286f72672e6170616368652e63617373616e6472612e64622e6d61727368616c2e54696d655479706500016f000b000170000f000171000000286f72672e6170616368652e63617373616e6472612e64622e6d61727368616c2e4279746554797065000172000c000173000e000176000000596f72672e6170616368652e63617373616e6472612e64622e6d61727368616c2e566563746f7254797065286f72672e6170616368652e63617373616e6472612e64622e6d61727368616c2e466c6f617454797065202c203329000177002000090001780022003100020009000d0001790021000d0030000477697265000175000200016100090001620020000d00017a0030000477697265000175000200016100090001620020000d00000000";
    let response = Response::Result(QueryResult::Rows(rows));
    assert_eq!(body(ProtocolVersion::V4, response.clone()), hex(v4));
    assert_eq!(body(ProtocolVersion::V3, response), hex(v3));
}

#[test]
fn warnings_and_tracing_and_a_cell() {
    let mut builder = RowsBuilder::new(1);
    builder.push(Some(&[0; 8]));
    let columns = vec![ColumnSpec::new("wire", "t", "count", CqlType::BIGINT)];
    let rows = Rows::new(Arc::new(ResultMetadata::new(columns)), builder.finish());
    let mut message = ResponseMessage::from(Response::Result(QueryResult::Rows(rows)));
    message.warnings = vec!["Aggregation query used without partition key".to_owned()];
    let rows = "0000000200000001000000010004776972650001740005636f756e74000200000001000000080000000000000000";
    let warning =
        "0001002c4167677265676174696f6e207175657279207573656420776974686f757420706172746974696f6e206b6579";
    assert_eq!(
        encoded(ProtocolVersion::V4, 1, &message),
        hex(&format!("84080001080000005e{warning}{rows}"))
    );
    assert_eq!(
        encoded(ProtocolVersion::V3, 1, &message),
        hex(&format!("83000001080000002e{rows}"))
    );
    message.tracing_id = Some(uuid::Uuid::from_u128(0x0f857070_e525_11f1_b9fb_f76cefa7a69b));
    let traced = encoded(ProtocolVersion::V3, 1, &message);
    assert_eq!(
        traced,
        hex(&format!(
            "83020001080000003e 0f857070e52511f1b9fbf76cefa7a69b {rows}"
        ))
    );
}

#[test]
fn metadata_can_be_skipped() {
    let columns = vec![
        ColumnSpec::new("wire", "t", "k", CqlType::INT),
        ColumnSpec::new("wire", "t", "m", CqlType::TEXT),
    ];
    let mut rows = Rows::new(
        Arc::new(ResultMetadata::new(columns)),
        RowsBuilder::new(2).finish(),
    );
    rows.page.skip = true;
    let response = Response::Result(QueryResult::Rows(rows));
    assert_eq!(
        body(ProtocolVersion::V4, response),
        hex("00000002000000050000000200000000")
    );
}

#[test]
fn class_names() {
    let marshal = |text: &str| text.replace('~', "org.apache.cassandra.db.marshal.");
    let nested = |frozen| CqlType::list(CqlType::INT, frozen);
    let cases = [
        (
            CqlType::vector(nested(false), 2),
            "~VectorType(~ListType(~Int32Type) , 2)",
        ),
        (
            CqlType::vector(nested(true), 2),
            "~VectorType(~FrozenType(~ListType(~Int32Type)) , 2)",
        ),
        (
            CqlType::vector(CqlType::DURATION, 2),
            "~VectorType(~DurationType , 2)",
        ),
        (
            CqlType::vector(user_type(), 2),
            "~VectorType(~FrozenType(~UserType(wire,75,61:~Int32Type,62:~ListType(~UTF8Type))) , 2)",
        ),
        (
            CqlType::vector(CqlType::tuple(vec![CqlType::INT, CqlType::TEXT]), 1),
            "~VectorType(~TupleType(~Int32Type,~UTF8Type) , 1)",
        ),
    ];
    for (ty, name) in cases {
        assert_eq!(class_name(&ty), marshal(name));
        let parsed = parse_class_name(&marshal(name)).unwrap();
        assert_eq!(class_name(&parsed), marshal(name));
    }
    assert_eq!(parse_class_name("ReversedType(Int32Type)"), Some(CqlType::INT));
    assert_eq!(parse_class_name("org.example.MyType"), None);
    assert_eq!(parse_class_name(&"ListType(".repeat(10_000)), None);
}

/// Checks a self-contained segment that Cassandra sent, with an ERROR inside.
#[test]
fn segment() {
    let bytes = hex(
        "7100022b3714 8500000000000000680000000a0062343934343531323420696e76616c69642c20756e7265636f76657261626c6520
         435243206d69736d6174636820646574656374656420696e206672616d65206865616465722e205265616420313238312c20436f6d
         70757465642032333132313936 fc34fb7d",
    );
    let mut decoder = Decoder::new(Direction::Response, MAX_BODY_LEN);
    decoder.start(ProtocolVersion::V5, None);
    let mut input = BytesMut::from(&bytes[..]);
    let envelope = decoder.decode(&mut input).unwrap().unwrap();
    assert!(input.is_empty());
    let message = ResponseMessage::decode(envelope).unwrap();
    assert!(
        matches!(&message.response, Response::Error(CqlError::Protocol(_))),
        "{message:?}"
    );
    let encoder = OutputEncoder::started(ProtocolVersion::V5, None);
    let (mut envelopes, mut out) = (BytesMut::new(), BytesMut::new());
    encoder.response(ProtocolVersion::V5, 0, &message, &mut envelopes);
    encoder.wrap(&envelopes, &mut out);
    assert_eq!(&out[..], &bytes[..]);
}
