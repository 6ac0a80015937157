use helenus_cql::parser::parse_type;
use helenus_sstable::test_writer::TestTable;

use super::*;
use crate::schema::{ColumnShape, UserTypes, resolve_type};

fn sstable(table: &TestTable) -> SsTable {
    table.open(table.folder(&[])).unwrap()
}

fn column(role: ColumnRole, ty: &str) -> ColumnShape {
    let ty = resolve_type(&UserTypes::default(), "ks", &parse_type(ty).unwrap()).unwrap();
    ColumnShape {
        role,
        ty,
        is_descending: false,
    }
}

fn shape(columns: &[(&str, ColumnRole, &str)]) -> TableShape {
    let columns = columns
        .iter()
        .map(|(name, role, ty)| ((*name).to_owned(), column(*role, ty)));
    TableShape {
        columns: columns.collect(),
        ..TableShape::default()
    }
}

fn standard(value: &str) -> TableShape {
    shape(&[
        ("k", ColumnRole::PartitionKey(0), "text"),
        ("c", ColumnRole::Clustering(0), "int"),
        ("v", ColumnRole::Regular, value),
    ])
}

fn layout(sstables: &mut [SsTable], target: Option<&TableShape>) -> Result<TableLayout, String> {
    let known = KnownTable { target, source: None };
    TableLayout::new(&TableName::new("ks", "t"), sstables, known).map_err(|error| error.to_string())
}

fn table(regular: &[(&str, &'static str)]) -> TestTable {
    TestTable {
        regular_columns: regular
            .iter()
            .map(|(name, ty)| ((*name).to_owned(), *ty))
            .collect(),
        ..TestTable::new(Version::Nb)
    }
}

#[test]
fn columns_of_all_files_are_listed_in_the_order_of_rows() {
    let one = table(&[("b", "Int32Type"), ("a", "SetType(Int32Type)")]);
    let two = TestTable {
        static_columns: vec![("s".to_owned(), "MapType(UTF8Type,UTF8Type)")],
        ..table(&[("c", "AsciiType"), ("Q q", "UTF8Type")])
    };
    let layout = layout(&mut [sstable(&one), sstable(&two)], None).unwrap();
    assert_eq!(
        layout.statement(),
        "INSERT INTO ks.t (s, \"Q q\", b, c, a) ROWS ?"
    );
    assert!(!layout.is_counter);
    let none = table(&[]);
    assert_eq!(
        super::TableLayout::new(
            &TableName::new("ks", "T"),
            &mut [sstable(&none)],
            KnownTable::default()
        )
        .unwrap()
        .statement(),
        "INSERT INTO ks.\"T\" () ROWS ?"
    );
}

#[test]
fn types_that_do_not_fit_are_refused_by_name() {
    let file = table(&[("v", "Int32Type")]);
    let refused = layout(&mut [sstable(&file)], Some(&standard("text"))).unwrap_err();
    for part in [
        "nb-1-big",
        "ks.t",
        "column v has the type int",
        "text in the schema",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    let ascii = table(&[("v", "AsciiType")]);
    let fitting = layout(&mut [sstable(&ascii)], Some(&standard("text"))).unwrap();
    assert_eq!(fitting.columns[0].ty, CqlType::TEXT);
    let mut dropped = standard("text");
    dropped.dropped.insert("v".to_owned(), 5);
    let without = layout(&mut [sstable(&file)], Some(&dropped)).unwrap();
    assert!(without.columns.is_empty() && without.left_out[0].name == "v");
}

#[test]
fn keys_that_differ_are_refused() {
    let file = table(&[]);
    let mut other = standard("int");
    other.columns.get_mut("c").unwrap().is_descending = true;
    let refused = layout(&mut [sstable(&file)], Some(&other)).unwrap_err();
    assert!(refused.contains("clustering column c is ascending"), "{refused}");
    let two = shape(&[
        ("k", ColumnRole::PartitionKey(0), "text"),
        ("l", ColumnRole::PartitionKey(1), "text"),
        ("c", ColumnRole::Clustering(0), "int"),
    ]);
    let refused = layout(&mut [sstable(&file)], Some(&two)).unwrap_err();
    assert!(refused.contains("partition key is (text)"), "{refused}");
    let composite = TestTable {
        key: "CompositeType(UTF8Type,UTF8Type)",
        ..table(&[])
    };
    layout(&mut [sstable(&composite)], Some(&two)).unwrap();
    let reversed = TestTable {
        clustering: vec!["ReversedType(Int32Type)"],
        ..table(&[])
    };
    let refused = layout(&mut [sstable(&file), sstable(&reversed)], None).unwrap_err();
    assert!(refused.contains("clustering columns differ"), "{refused}");
}

#[test]
fn user_types_of_3_11_are_frozen_as_the_schema_says() {
    let file = TestTable {
        version: Version::Me,
        ..table(&[("v", "UserType(ks,61,62:Int32Type)")])
    };
    let mut opened = [sstable(&file)];
    let free = layout(&mut opened, None).unwrap();
    assert!(free.columns[0].ty.is_multicell());
    let mut frozen = standard("int");
    frozen.columns.get_mut("v").unwrap().ty = free.columns[0].ty.freeze();
    let frozen = layout(&mut opened, Some(&frozen)).unwrap();
    assert!(!frozen.columns[0].ty.is_multicell());
    assert!(!opened[0].header().regular_columns[0].is_complex);
}
