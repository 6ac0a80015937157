use super::*;

fn shown(class: &str) -> String {
    let parsed = ColumnType::parse(class).unwrap();
    format!("{}{}", parsed.ty, if parsed.is_reversed { " desc" } else { "" })
}

#[test]
fn class_names_become_types() {
    let package = |text: &str| text.replace('~', PACKAGE);
    for (class, expected) in [
        ("~UTF8Type", "text"),
        ("~ReversedType(~TimestampType)", "timestamp desc"),
        ("ReversedType(Int32Type)", "int desc"),
        ("~ListType(~UTF8Type)", "list<text>"),
        (
            "~FrozenType(~MapType(~UTF8Type,~LongType))",
            "frozen<map<text, bigint>>",
        ),
        ("~VectorType(~FloatType , 3)", "vector<float, 3>"),
        (
            "~TupleType(~Int32Type,~ListType(~Int32Type))",
            "frozen<tuple<int, frozen<list<int>>>>",
        ),
        ("~UserType(ks,61646472,7a6970:~Int32Type)", "addr"),
        ("~EmptyType", "empty"),
        (
            "~PartitionerDefinedOrder(org.apache.cassandra.dht.Murmur3Partitioner)",
            "blob",
        ),
        ("~CounterColumnType", "counter"),
    ] {
        assert_eq!(shown(&package(class)), expected);
    }
    let composite = ColumnType::parse(&package("~CompositeType(~UTF8Type,~Int32Type)")).unwrap();
    assert_eq!((composite.value_len(), composite.is_complex()), (None, false));
    let dynamic = ColumnType::parse(&package("~DynamicCompositeType(a=>~UTF8Type,b=>~LongType)"));
    assert!(dynamic.is_some());
    assert_eq!(ColumnType::parse("com.example.OurType"), None);
    assert_eq!(ColumnType::parse(&package("~ListType(")), None);
}

#[test]
fn lengths_are_those_of_cassandra() {
    let len = |class: &str| ColumnType::parse(class).unwrap().value_len();
    for (class, expected) in [
        ("BooleanType", Some(1)),
        ("Int32Type", Some(4)),
        ("FloatType", Some(4)),
        ("LongType", Some(8)),
        ("DoubleType", Some(8)),
        ("TimestampType", Some(8)),
        ("DateType", Some(8)),
        ("UUIDType", Some(16)),
        ("TimeUUIDType", Some(16)),
        ("LexicalUUIDType", Some(16)),
        ("ReversedType(UUIDType)", Some(16)),
        ("VectorType(FloatType, 3)", Some(12)),
        ("VectorType(UTF8Type, 3)", None),
        ("ByteType", None),
        ("ShortType", None),
        ("SimpleDateType", None),
        ("TimeType", None),
        ("CounterColumnType", None),
        ("InetAddressType", None),
        ("ListType(Int32Type)", None),
        ("TupleType(Int32Type)", None),
    ] {
        assert_eq!(len(class), expected, "{class}");
    }
}

#[test]
fn part_of_a_key_is_frozen() {
    let user = ColumnType::parse("UserType(ks,61,62:Int32Type)").unwrap();
    assert!(user.is_complex());
    assert!(!user.frozen().is_complex());
}
