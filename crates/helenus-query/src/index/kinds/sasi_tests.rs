use super::is_sasi;

#[test]
fn the_short_class_name_is_taken_in_any_case() {
    for class in [
        "SASIIndex",
        "sasiindex",
        "SASIINDEX",
        "org.apache.cassandra.index.sasi.SASIIndex",
    ] {
        assert!(is_sasi(class), "{class}");
    }
    for class in [
        "sasi",
        "org.apache.cassandra.index.sasi.sasiindex",
        "foo.SASIIndex",
        "",
    ] {
        assert!(!is_sasi(class), "{class}");
    }
}
