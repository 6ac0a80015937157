//! Values in messages.

use bytes::Bytes;
use helenus_cql::types::CqlType;
use helenus_cql::value::{hex, to_cql_literal};

/// Characters of a value that are shown.
const SHOWN_MAX: usize = 100;

/// Returns a value as CQL, cut if it is long. Bytes that are no value of the type are shown in hexadecimal.
pub fn shown(ty: &CqlType, value: &Bytes) -> String {
    let text = to_cql_literal(ty, value).unwrap_or_else(|_| hex(value));
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}… ({} bytes)", text.get(..end).unwrap_or_default(), value.len()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut() {
        assert_eq!(shown(&CqlType::INT, &Bytes::from_static(&[0, 0, 0, 7])), "7");
        let long = Bytes::from(vec![b'x'; 500]);
        let text = shown(&CqlType::TEXT, &long);
        assert!(
            text.starts_with("'xxx") && text.ends_with("… (500 bytes)"),
            "{text}"
        );
        assert_eq!(text.chars().filter(|letter| *letter == 'x').count(), 99);
    }
}
