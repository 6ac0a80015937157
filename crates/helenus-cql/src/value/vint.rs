//! Variable-length integers as Cassandra's `VIntCoding` writes them: the number of leading one bits of the
//! first byte is the number of bytes that follow.

/// Appends an unsigned integer.
pub fn write_unsigned(out: &mut Vec<u8>, value: u64) {
    let significant = (64 - value.leading_zeros()).max(1) as usize;
    let extra = if significant > 56 {
        8
    } else {
        (significant - 1) / 7
    };
    let bytes = value.to_be_bytes();
    if extra == 8 {
        out.push(0xFF);
        out.extend_from_slice(&bytes);
        return;
    }
    let marker = !(0xFFu16 >> extra) as u8;
    let start = bytes.len() - extra - 1;
    let mut tail = bytes.into_iter().skip(start);
    if let Some(first) = tail.next() {
        out.push(first | marker);
    }
    out.extend(tail);
}

/// Appends a signed integer, zigzag encoded.
pub fn write_signed(out: &mut Vec<u8>, value: i64) {
    write_unsigned(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Reads an unsigned integer. Returns the integer and the number of its bytes. `None` if there are too few bytes.
pub fn read_unsigned(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let extra = first.leading_ones() as usize;
    let mut value = if extra >= 8 {
        0
    } else {
        u64::from(first & (0xFF >> extra))
    };
    for byte in bytes.get(1..=extra)? {
        value = (value << 8) | u64::from(*byte);
    }
    Some((value, extra + 1))
}

/// Reads a zigzag encoded signed integer. Returns the integer and the number of its bytes. `None` if there are too few bytes.
pub fn read_signed(bytes: &[u8]) -> Option<(i64, usize)> {
    let (raw, len) = read_unsigned(bytes)?;
    Some((((raw >> 1) as i64) ^ -((raw & 1) as i64), len))
}
