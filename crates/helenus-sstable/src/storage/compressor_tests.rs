use super::*;
use crate::test_writer::compress;

const ALL: [Compressor; 5] = [
    Compressor::Lz4,
    Compressor::Snappy,
    Compressor::Deflate,
    Compressor::Zstd,
    Compressor::Noop,
];

#[test]
fn chunks_survive_a_round_trip() {
    let content: Vec<u8> = (0..10_000_u32).map(|number| (number / 7 % 251) as u8).collect();
    for compressor in ALL {
        let chunk = compress(compressor, &content);
        let mut out = vec![0; content.len()];
        assert_eq!(compressor.decompress(&chunk, &mut out), Ok(()), "{compressor:?}");
        assert_eq!(out, content);
    }
}

#[test]
fn other_lengths_are_refused() {
    let content = [b'x'; 1000];
    for compressor in ALL {
        let chunk = compress(compressor, &content);
        for len in [999, 1001] {
            let mut out = vec![0; len];
            assert!(
                compressor.decompress(&chunk, &mut out).is_err(),
                "{compressor:?} {len}"
            );
        }
        for cut in [0, 1, 3, chunk.len() - 1] {
            let mut out = vec![0; content.len()];
            assert!(
                compressor.decompress(&chunk[..cut], &mut out).is_err(),
                "{compressor:?} {cut}"
            );
        }
    }
}

/// Derived by hand from `LZ4Compressor` and the LZ4 block format: the length, a token of 5 literals, the literals.
#[test]
fn lz4_has_cassandras_bytes() {
    let mut out = [0; 5];
    let chunk = b"\x05\0\0\0\x50hello";
    assert_eq!(Compressor::Lz4.decompress(chunk, &mut out), Ok(()));
    assert_eq!(&out, b"hello");
}
