use super::*;

/// Returns the checksum that a file must have.
fn checksum(text: &str) -> String {
    let at = text.find(",\n  \"checksum\"").unwrap();
    format!(
        "{:08x}",
        crate::checksum::crc32c(format!("{}\n}}\n", &text[..at]).as_bytes())
    )
}

#[test]
fn format_bytes() {
    let format = Format::new(uuid::Uuid::from_u128(1), 2);
    let text = String::from_utf8(format.encode()).unwrap();
    let expected = format!(
        r#"{{
  "format": 3,
  "store_id": "00000000-0000-0000-0000-000000000001",
  "written_by": "helenus {}",
  "tablets": [
    {{
      "id": 1,
      "first": -9223372036854775808,
      "last": -1
    }},
    {{
      "id": 2,
      "first": 0,
      "last": 9223372036854775807
    }}
  ],
  "checksum": "{}"
}}
"#,
        env!("CARGO_PKG_VERSION"),
        checksum(&text)
    );
    assert_eq!(text, expected);
    assert_eq!(
        Format::decode(text.as_bytes(), "FORMAT", FORMAT_VERSION).unwrap(),
        format
    );
}

#[test]
fn a_log_apart_is_named() {
    let plain = Format::new(uuid::Uuid::from_u128(1), 2);
    let apart = plain.clone().with_log_store("s3://log/here".into());
    let text = String::from_utf8(apart.encode()).unwrap();
    let plain = String::from_utf8(plain.encode()).unwrap();
    let expected = plain.replace(&checksum(&plain), &checksum(&text)).replace(
        "  \"tablets\"",
        "  \"log_store\": \"s3://log/here\",\n  \"tablets\"",
    );
    assert_eq!(text, expected);
    assert_eq!(
        Format::decode(text.as_bytes(), "FORMAT", FORMAT_VERSION).unwrap(),
        apart
    );
}

#[test]
fn older_formats_are_read_without_a_checksum() {
    for number in [1, 2, 3] {
        let mut format = Format::new(uuid::Uuid::from_u128(1), 2);
        format.format = number;
        let text = String::from_utf8(checksummed_json::plain(&format)).unwrap();
        let read = Format::decode(text.as_bytes(), "FORMAT", FORMAT_VERSION);
        assert_eq!(read.is_ok(), number < 3, "{number}: {read:?}");
    }
}

#[test]
fn any_flipped_bit_that_changes_something_is_noticed() {
    let format = Format::new(uuid::Uuid::from_u128(1), 2);
    let bytes = format.encode();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            if let Ok(read) = Format::decode(&damaged, "FORMAT", FORMAT_VERSION) {
                assert_eq!(read, format, "byte {at}, bit {bit}");
            }
        }
    }
}

#[test]
fn newer_format_is_refused_in_words() {
    let error = Format::decode(br#"{"format": 9, "what": "ever"}"#, "FORMAT", FORMAT_VERSION).unwrap_err();
    assert_eq!(
        error.to_string(),
        "this store was written by format 9, this binary understands up to 3: upgrade Helenus to open it"
    );
}

#[test]
fn tablets_with_a_gap_are_refused() {
    let mut format = Format::new(uuid::Uuid::from_u128(1), 3);
    format.tablets.remove(1);
    assert!(matches!(
        Format::decode(&format.encode(), "FORMAT", FORMAT_VERSION),
        Err(StoreError::Corrupt { .. })
    ));
    assert!(matches!(
        Format::decode(b"{", "FORMAT", FORMAT_VERSION),
        Err(StoreError::Corrupt { .. })
    ));
}
