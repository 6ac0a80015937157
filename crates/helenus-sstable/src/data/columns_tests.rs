use super::*;
use crate::error::ErrorKind;

fn read(bytes: &[u8], columns: usize) -> Result<Vec<usize>, SstableError> {
    let mut cursor = Cursor::new(bytes, "test", 0);
    let subset = Subset::read(&mut cursor, columns)?;
    assert!(cursor.is_empty());
    Ok((0..columns)
        .filter(|position| subset.contains(*position))
        .collect())
}

/// Derived by hand from `Columns.Serializer`: set bits are absent columns; from 64 columns on, there are lists.
#[test]
fn subsets_have_cassandras_bytes() {
    assert_eq!(read(&[0], 3), Ok(vec![0, 1, 2]));
    assert_eq!(read(&[0b101], 3), Ok(vec![1]));
    assert_eq!(read(&[0b111], 3), Ok(vec![]));
    // 62 of 64 are absent, so the two present ones are listed.
    assert_eq!(read(&[62, 3, 63], 64), Ok(vec![3, 63]));
    // 2 of 70 are absent, so they are listed.
    let expected: Vec<usize> = (1..69).collect();
    assert_eq!(read(&[2, 0, 69], 70), Ok(expected));
    // Exactly half: the absent ones are listed.
    let half: Vec<u8> = [32].into_iter().chain(0..32).collect();
    assert_eq!(read(&half, 64), Ok((32..64).collect()));
}

#[test]
fn columns_outside_the_header_are_refused() {
    for (bytes, columns) in [
        (vec![0b1000], 3),
        (vec![1], 0),
        (vec![65], 64),
        (vec![2, 0, 70], 70),
    ] {
        assert_eq!(read(&bytes, columns).unwrap_err().kind, ErrorKind::Corrupt);
    }
}
