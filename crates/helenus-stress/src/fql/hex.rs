//! Bytes as fqltool shows them (`net.openhft.chronicle.bytes.Bytes.toHexString`): rows of sixteen, as numbers and as characters.

use std::fmt::Write;

const WIDTH: usize = 16;
/// Maximum bytes of a value that are shown.
const SHOWN_MAX: usize = 1024;

/// Appends a value. Rows that are equal to the one before are shown as dots.
pub fn push_value(out: &mut String, value: &[u8]) {
    let shown = value.get(..SHOWN_MAX).unwrap_or(value);
    let rows = shown.len().div_ceil(WIDTH);
    let mut before: Option<&[u8]> = None;
    let mut is_left_out = false;
    for (number, row) in shown.chunks(WIDTH).enumerate() {
        let is_last = number + 1 == rows;
        if before == Some(row) && !is_last {
            is_left_out = true;
            continue;
        }
        if std::mem::take(&mut is_left_out) {
            out.push_str("........\n");
        }
        push_row(out, number * WIDTH, row);
        before = Some(row);
    }
    if shown.len() < value.len() {
        out.push_str("... truncated\n");
    }
}

fn push_row(out: &mut String, offset: usize, row: &[u8]) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{offset:08x}");
    for place in 0..WIDTH {
        if place == WIDTH / 2 {
            out.push(' ');
        }
        let _ = match row.get(place) {
            Some(byte) => write!(out, " {byte:02X}"),
            None => write!(out, "   "),
        };
    }
    out.push(' ');
    for place in 0..WIDTH {
        if place == WIDTH / 2 {
            out.push(' ');
        }
        out.push(match row.get(place) {
            Some(byte @ b' '..=126) => char::from(*byte),
            Some(_) => '\u{b7}',
            None => ' ',
        });
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &[u8]) -> String {
        let mut out = String::new();
        push_value(&mut out, value);
        out
    }

    #[test]
    fn rows_have_numbers_and_characters() {
        let expected = "00000000 00 00 00 01 61 62 63 7F  C3 BC 7E 20             \u{b7}\u{b7}\u{b7}\u{b7}abc\u{b7} \u{b7}\u{b7}~     \n";
        assert_eq!(shown(b"\0\0\0\x01abc\x7f\xc3\xbc~ "), expected);
        assert_eq!(shown(b""), "");
    }

    #[test]
    fn equal_rows_are_dots_and_long_values_are_cut() {
        let lines = shown(&[b'a'; 70]);
        let starts: Vec<_> = lines.lines().map(|line| &line[..8]).collect();
        assert_eq!(starts, ["00000000", "........", "00000040"]);
        assert!(shown(&[7; 1025]).ends_with("\n... truncated\n"));
        assert!(!shown(&[7; 1024]).contains("truncated"));
    }
}
