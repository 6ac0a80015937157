//! `length` and `octet_length` (Cassandra's `LengthFcts`).

use bytes::Bytes;
use helenus_cql::types::{CqlType, NativeType};

use super::NativeFunction;

/// Returns `length` of text, and `octet_length` of every native type.
pub fn functions() -> Vec<NativeFunction> {
    let octet_lengths = NativeType::ALL.into_iter().map(|native| {
        NativeFunction::new(
            "octet_length",
            [CqlType::Native(native)],
            CqlType::INT,
            |args, _| {
                Ok(args
                    .first()
                    .and_then(Option::as_ref)
                    .map(|value| int(value.len())))
            },
        )
    });
    let length = NativeFunction::new("length", [CqlType::TEXT], CqlType::INT, |args, _| {
        let value = args.first().and_then(Option::as_ref);
        Ok(value.map(|value| int(text_length(value))))
    });
    octet_lengths.chain([length]).collect()
}

/// Returns the length of text in UTF-16 code units, as Java counts it.
pub(crate) fn text_length(value: &[u8]) -> usize {
    String::from_utf8_lossy(value).encode_utf16().count()
}

fn int(length: usize) -> Bytes {
    let length = i32::try_from(length).unwrap_or(i32::MAX);
    Bytes::copy_from_slice(&length.to_be_bytes())
}
