use super::*;

#[test]
fn sizes_have_at_most_two_decimals() {
    assert_eq!(file_size(0), "0 bytes");
    assert_eq!(file_size(1023), "1023 bytes");
    assert_eq!(file_size(1024), "1 KiB");
    assert_eq!(file_size(106_834), "104.33 KiB");
    assert_eq!(file_size(100 << 20), "100 MiB");
    assert_eq!(file_size(3 << 29), "1.5 GiB");
    assert_eq!(file_size(5 << 40), "5 TiB");
}

#[test]
fn columns_have_one_space_or_two_between_them() {
    let rows = [["a", "bb"], ["ccc", "d"]].map(|row| row.map(str::to_owned));
    assert_eq!(columns(&rows), "a   bb\nccc d \n");
    assert_eq!(columns_apart(&rows), "a    bb\nccc  d \n");
}

#[test]
fn a_document_is_written_as_yaml() {
    let document = serde_json::json!({
        "Pools": { "Native-Transport": { "Active": 1 }, "1:2": {} },
        "History": [{ "id": "x", "bytes": 2 }, { "id": "{1:2}", "bytes": 3 }],
        "None": [],
    });
    let yaml = "\
Pools:
  Native-Transport:
    Active: 1
  \"1:2\": {}
History:
- id: \"x\"
  bytes: 2
- id: \"{1:2}\"
  bytes: 3
None: []
";
    assert_eq!(Format::Yaml.text(&document), yaml);
}
