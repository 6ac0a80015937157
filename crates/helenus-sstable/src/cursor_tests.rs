use super::*;

fn vint(bytes: &[u8]) -> Result<u64, SstableError> {
    Cursor::new(bytes, "test", 0).vint("number")
}

/// Derived by hand from `VIntCoding.writeUnsignedVInt`: n extra bytes set the n highest bits of the first.
#[test]
fn vints_have_cassandras_bytes() {
    let golden: [(&[u8], u64); 12] = [
        (&[0x00], 0),
        (&[0x7f], 127),
        (&[0x80, 0x80], 128),
        (&[0xbf, 0xff], 16_383),
        (&[0xc0, 0x40, 0x00], 16_384),
        (&[0xdf, 0xff, 0xff], 2_097_151),
        (&[0xe0, 0x20, 0x00, 0x00], 2_097_152),
        (&[0xf0, 0x10, 0x00, 0x00, 0x00], 268_435_456),
        (&[0xf8, 0x08, 0x00, 0x00, 0x00, 0x00], 34_359_738_368),
        (&[0xfe, 0x02, 0, 0, 0, 0, 0, 0], 1 << 49),
        (&[0xff, 0x01, 0, 0, 0, 0, 0, 0, 0], 1 << 56),
        (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], u64::MAX),
    ];
    for (bytes, value) in golden {
        assert_eq!(vint(bytes), Ok(value), "{bytes:?}");
        let mut written = Vec::new();
        crate::test_writer::put_vint(&mut written, value);
        assert_eq!(written, bytes);
    }
}

#[test]
fn cut_vint_needs_the_missing_bytes() {
    let error = vint(&[0xf0, 0x10]).unwrap_err();
    assert_eq!((error.kind, error.needed), (ErrorKind::Truncated, 5));
    assert_eq!(vint(&[]).unwrap_err().needed, 1);
}

#[test]
fn length_above_int_is_refused() {
    let mut cursor = Cursor::new(&[0xff; 9], "test", 7);
    let error = cursor.vint_bytes("name").unwrap_err();
    assert_eq!((error.kind, error.offset), (ErrorKind::Corrupt, Some(7)));
}

#[test]
fn item_over_limit_is_refused_before_it_is_complete() {
    let mut cursor = Cursor::limited(&[0x40, 1, 2], "test", 0, 16);
    assert_eq!(cursor.vint_bytes("value").unwrap_err().kind, ErrorKind::Limit);
    let mut cursor = Cursor::limited(&[0x08, 1, 2], "test", 0, 16);
    assert_eq!(cursor.vint_bytes("value").unwrap_err().kind, ErrorKind::Truncated);
}

#[test]
fn position_counts_from_the_start() {
    let mut cursor = Cursor::new(&[0, 2, b'a', b'b', 9], "test", 100);
    assert_eq!(cursor.utf("text"), Ok("ab"));
    assert_eq!(
        (cursor.consumed(), cursor.position(), cursor.remaining()),
        (4, 104, 1)
    );
}
