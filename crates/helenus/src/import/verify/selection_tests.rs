use super::*;

fn selection(keys: &[&str], partition_keys: usize) -> Selection {
    let keys = keys.iter().map(|name| ((*name).to_owned(), CqlType::INT));
    let column = Selected {
        id: ColumnId(0),
        name: "v".to_owned(),
        ty: CqlType::INT,
        is_static: false,
    };
    Selection::of(
        TableName::new("ks", "t"),
        keys.collect(),
        partition_keys,
        vec![column],
        false,
    )
}

fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

#[test]
fn statements_select_times_with_values() {
    let statements = selection(&["a", "B", "c"], 2).statements;
    assert_eq!(
        statements.range,
        "SELECT a, \"B\", c, writetime(v), ttl(v), v FROM ks.t WHERE token(a, \"B\") > ? AND token(a, \"B\") <= ?"
    );
    assert!(statements.row.ends_with("WHERE a = ? AND \"B\" = ? AND c = ?"));
    assert!(
        statements
            .first_row
            .ends_with("WHERE a = ? AND \"B\" = ? LIMIT 1")
    );
}

#[test]
fn rows_without_last_clustering_are_read_by_prefix() {
    let selection = selection(&["a", "b", "c"], 1);
    let key = int(1);
    let statement = |clustering: &[Bytes]| {
        let (statement, values) = selection.row_statement(&key, Some(clustering)).unwrap();
        let (_, filter) = statement.split_once("WHERE ").unwrap();
        (filter.to_owned(), values.len())
    };
    assert_eq!(statement(&[]), ("a = ? LIMIT 1".to_owned(), 1));
    assert_eq!(statement(&[int(2)]), ("a = ? AND b = ? LIMIT 1".to_owned(), 2));
    assert_eq!(
        statement(&[int(2), int(3)]),
        ("a = ? AND b = ? AND c = ?".to_owned(), 3)
    );
}

#[test]
fn keys_have_the_form_of_sstables() {
    let selection = selection(&["a", "b", "c"], 2);
    let row = vec![Some(int(1)), Some(int(2)), Some(int(3)), None, None, None];
    let row = selection.decode(row, 0).unwrap();
    assert_eq!(&*row.key, [0, 4, 0, 0, 0, 1, 0, 0, 4, 0, 0, 0, 2, 0]);
    assert_eq!(selection.key_values(&row.key).unwrap(), [int(1), int(2)]);
    assert_eq!(row.clustering, Some(vec![int(3)]));
    assert_eq!(
        selection.key_text(&row.key, row.clustering.as_deref()),
        "a = 1, b = 2, c = 3"
    );
}

#[test]
fn row_without_clustering_has_only_statics() {
    let row = vec![Some(int(1)), None, None, None, None];
    assert_eq!(selection(&["a", "c"], 1).decode(row, 0).unwrap().clustering, None);
}
