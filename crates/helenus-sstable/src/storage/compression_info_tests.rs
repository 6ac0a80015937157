use super::*;

/// Returns bytes derived by hand from `CompressionMetadata.Writer.writeHeader`: chunks of 8 bytes, 20 bytes of data.
fn golden(version: Version) -> Vec<u8> {
    let mut bytes = b"\0\x0dLZ4Compressor\0\0\0\x01\0\x01a\0\x01b\0\0\0\x08".to_vec();
    if version.has_max_compressed_length() {
        bytes.extend(6_i32.to_be_bytes());
    }
    bytes.extend(20_i64.to_be_bytes());
    bytes.extend(3_i32.to_be_bytes());
    for offset in [0_i64, 14, 26] {
        bytes.extend(offset.to_be_bytes());
    }
    bytes
}

#[test]
fn file_is_decoded_in_each_version() {
    for version in Version::ALL {
        let info = CompressionInfo::decode(version, &golden(version).into()).unwrap();
        assert_eq!(
            (info.compressor, info.chunk_len, info.data_len),
            (Compressor::Lz4, 8, 20)
        );
        let limit = if version < Version::Na { usize::MAX } else { 6 };
        assert_eq!(info.max_compressed_len, limit);
        assert_eq!(info.chunks(), 3);
        let last = Chunk {
            offset: 26,
            stored_len: 10,
            data_len: 4,
        };
        assert_eq!(info.chunk(2, 36), Ok(Some(last)));
        assert_eq!(info.chunk(1, 36).unwrap().unwrap().stored_len, 12);
        assert_eq!(info.chunk(3, 36), Ok(None));
        assert_eq!(info.chunk(2, 26).unwrap_err().kind, ErrorKind::Corrupt);
        assert_eq!(info.chunk(2, 20).unwrap_err().kind, ErrorKind::Truncated);
    }
}

#[test]
fn cut_file_is_refused_everywhere() {
    let bytes = Bytes::from(golden(Version::Nb));
    for len in 0..bytes.len() {
        assert!(
            CompressionInfo::decode(Version::Nb, &bytes.slice(..len)).is_err(),
            "{len}"
        );
    }
}

#[test]
fn unknown_compressor_and_wrong_counts_are_refused() {
    let mut unknown = golden(Version::Nb);
    unknown[2] = b'X';
    let error = CompressionInfo::decode(Version::Nb, &unknown.into()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.to_string().contains("XZ4Compressor"), "{error}");
    let mut count = golden(Version::Nb);
    // A count of 2, with 2 offsets.
    let place = count.len() - 3 * 8 - 1;
    count[place] = 2;
    count.truncate(place + 1 + 2 * 8);
    assert!(CompressionInfo::decode(Version::Nb, &count.into()).is_err());
}

#[test]
fn raw_chunk_loses_its_padding() {
    let info = CompressionInfo::decode(Version::Nb, &golden(Version::Nb).into()).unwrap();
    let mut stored = b"data\0\0".to_vec();
    stored.extend(crc32fast::hash(&stored).to_be_bytes());
    let chunk = info.chunk(2, 36).unwrap().unwrap();
    let mut out = Vec::new();
    info.decompress(&chunk, &stored, &mut out).unwrap();
    assert_eq!(out, b"data");
    stored[0] ^= 1;
    assert_eq!(
        info.decompress(&chunk, &stored, &mut out).unwrap_err().kind,
        ErrorKind::Checksum
    );
}

/// A compaction writes a chunk after the data, of which only the checksum matters.
#[test]
fn chunk_after_the_data_is_empty() {
    let mut bytes = golden(Version::Nb);
    let place = bytes.len() - 3 * 8 - 1;
    bytes[place] = 4;
    bytes.extend(36_i64.to_be_bytes());
    let info = CompressionInfo::decode(Version::Nb, &bytes.into()).unwrap();
    let chunk = info.chunk(3, 45).unwrap().unwrap();
    let expected = Chunk {
        offset: 36,
        stored_len: 9,
        data_len: 0,
    };
    assert_eq!((chunk, info.chunk(4, 45)), (expected, Ok(None)));
    let mut stored = b"\0\0\0\0\0".to_vec();
    stored.extend(crc32fast::hash(&stored).to_be_bytes());
    let mut out = b"before".to_vec();
    info.decompress(&chunk, &stored, &mut out).unwrap();
    assert!(out.is_empty());
    stored[0] = 1;
    let error = info.decompress(&chunk, &stored, &mut out).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Checksum);
}
