use super::*;

#[test]
fn metadata_is_omitted_only_if_the_client_knows_it() {
    let column = ColumnSpec::new("ks", "t", "v", CqlType::INT);
    let current = ResultMetadata::new(vec![column]);
    let id = current.id();
    let of = |known: Option<&[u8]>, skip, version| PageMetadata::of_executed(&current, known, skip, version);
    let nothing = PageMetadata::default();
    let skipped = PageMetadata {
        skip: true,
        ..PageMetadata::default()
    };
    let changed = PageMetadata {
        new_metadata_id: Some(Bytes::copy_from_slice(&id)),
        ..PageMetadata::default()
    };
    for version in [ProtocolVersion::V5, ProtocolVersion::V6] {
        assert_eq!(of(Some(&id), true, version), skipped);
        assert_eq!(of(Some(&id), false, version), nothing);
        for known in [None, Some(&b"an older id"[..])] {
            assert_eq!(of(known, true, version), changed);
            assert_eq!(of(known, false, version), changed);
        }
    }
    for version in [ProtocolVersion::V3, ProtocolVersion::V4] {
        assert_eq!(of(Some(&id), true, version), skipped);
        assert_eq!(of(Some(&id), false, version), nothing);
        for known in [None, Some(&b"an older id"[..])] {
            assert_eq!(of(known, true, version), nothing);
        }
    }
}
