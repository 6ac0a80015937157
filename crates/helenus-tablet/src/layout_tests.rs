use super::*;

#[test]
fn ring_is_covered() {
    for count in [1, 2, 3, 7, 16] {
        let ranges = TokenRange::split_ring(count);
        assert_eq!(ranges.len(), count);
        assert_eq!(ranges[0].first, i64::MIN);
        assert_eq!(ranges[count - 1].last, i64::MAX);
        for pair in ranges.windows(2) {
            assert_eq!(pair[0].last.wrapping_add(1), pair[1].first);
        }
    }
}

#[test]
fn format_bytes() {
    let format = Format::new(uuid::Uuid::from_u128(1), 2);
    let text = String::from_utf8(format.encode()).unwrap();
    let expected = format!(
        r#"{{
  "format": 1,
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
  ]
}}
"#,
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(text, expected);
    assert_eq!(Format::decode(text.as_bytes(), "FORMAT").unwrap(), format);
}

#[test]
fn a_log_apart_makes_another_format() {
    let plain = Format::new(uuid::Uuid::from_u128(1), 2);
    let apart = plain.clone().with_log_store("s3://log/here".into());
    let text = String::from_utf8(apart.encode()).unwrap();
    let expected = String::from_utf8(plain.encode())
        .unwrap()
        .replace("\"format\": 1", "\"format\": 2")
        .replace(
            "  \"tablets\"",
            "  \"log_store\": \"s3://log/here\",\n  \"tablets\"",
        );
    assert_eq!(text, expected);
    assert_eq!(Format::decode(text.as_bytes(), "FORMAT").unwrap(), apart);
}

#[test]
fn newer_format_is_refused_in_words() {
    let error = Format::decode(br#"{"format": 9, "what": "ever"}"#, "FORMAT").unwrap_err();
    assert_eq!(
        error.to_string(),
        "this store was written by format 9, this binary understands up to 2: upgrade Helenus to open it"
    );
}

#[test]
fn tablets_with_a_gap_are_refused() {
    let mut format = Format::new(uuid::Uuid::from_u128(1), 3);
    format.tablets.remove(1);
    assert!(matches!(
        Format::decode(&format.encode(), "FORMAT"),
        Err(StoreError::Corrupt { .. })
    ));
    assert!(matches!(
        Format::decode(b"{", "FORMAT"),
        Err(StoreError::Corrupt { .. })
    ));
}
