//! Tests of select clauses against recorded answers of Cassandra 5.0.5. `cassandra_selections.tsv` has the text between SELECT and FROM,
//! and then the name, type and value of each result column, or the error. The row that was read is in `cassandra_row.tsv`.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::types::{NativeType, UserType, UserTypeField};
use helenus_cql::value::text::parse_hex;
use helenus_cql::value::{hex, read_map};
use helenus_row::{ColumnId, Order, TableId};
use uuid::Uuid;

use super::*;
use crate::clock::SystemClock;
use crate::request::Markers;
use crate::rows::CellView;
use crate::schema::{
    Column, ColumnKind, Keyspace, Replication, Schema, TableBuilder, TableKind, TableOptions,
};

const ANSWERS: &str = include_str!("cassandra_selections.tsv");
const ROW: &str = include_str!("cassandra_row.tsv");
const KEYSPACE: &str = "values_t";
/// The write times of the row, and of the later changes to two of its columns.
const FIRST_WRITE: i64 = 1_000;
const SECOND_WRITE: i64 = 2_000;
const THIRD_WRITE: i64 = 3_000;

fn user_type() -> Arc<UserType> {
    let field = |name: &str, ty| UserTypeField {
        name: name.to_owned(),
        ty,
    };
    let fields = vec![field("a", CqlType::INT), field("b", CqlType::TEXT)];
    Arc::new(UserType {
        keyspace: KEYSPACE.to_owned(),
        name: "u".to_owned(),
        fields,
    })
}

fn columns() -> Vec<(&'static str, CqlType)> {
    let native = |name| CqlType::Native(NativeType::from_name(name).unwrap());
    let udt = |frozen| CqlType::Udt {
        definition: user_type(),
        frozen,
    };
    let mut columns: Vec<(&str, CqlType)> = [
        ("k", "int"),
        ("c", "int"),
        ("ts_c", "timestamp"),
        ("a", "ascii"),
        ("bi", "bigint"),
        ("bl", "blob"),
        ("bo", "boolean"),
        ("da", "date"),
        ("de", "decimal"),
        ("d", "double"),
        ("du", "duration"),
        ("f", "float"),
        ("i", "inet"),
        ("n", "int"),
        ("n2", "int"),
        ("si", "smallint"),
        ("t", "text"),
        ("ti", "time"),
        ("ts", "timestamp"),
        ("tu", "timeuuid"),
        ("ty", "tinyint"),
        ("uu", "uuid"),
        ("v", "varint"),
        ("nul", "int"),
        ("nult", "text"),
        ("Up", "int"),
        ("big", "varint"),
    ]
    .into_iter()
    .map(|(name, ty)| (name, native(ty)))
    .collect();
    columns.extend([
        ("l", CqlType::list(CqlType::INT, false)),
        ("s", CqlType::set(CqlType::INT, false)),
        ("m", CqlType::map(CqlType::TEXT, CqlType::INT, false)),
        ("fl", CqlType::list(CqlType::INT, true)),
        ("fs", CqlType::set(CqlType::TEXT, true)),
        ("fm", CqlType::map(CqlType::INT, CqlType::TEXT, true)),
        ("ud", udt(false)),
        ("fu", udt(true)),
        ("tp", CqlType::tuple(vec![CqlType::INT, CqlType::TEXT])),
        ("vec", CqlType::vector(CqlType::FLOAT, 3)),
        ("vec2", CqlType::vector(CqlType::FLOAT, 2)),
        ("md", CqlType::map(CqlType::INT, CqlType::DOUBLE, false)),
        ("em", CqlType::list(CqlType::INT, false)),
        ("mts", CqlType::map(CqlType::TEXT, CqlType::INT, false)),
    ]);
    columns
}

fn table() -> Table {
    let columns = columns().into_iter().enumerate().map(|(position, (name, ty))| {
        let (kind, position) = match name {
            "k" => (ColumnKind::PartitionKey, 0),
            "c" => (ColumnKind::Clustering, 0),
            "ts_c" => (ColumnKind::Clustering, 1),
            _ => (ColumnKind::Regular, position),
        };
        let position = if kind == ColumnKind::Regular { 0 } else { position };
        let id = ColumnId(1);
        Column {
            name: name.to_owned(),
            mask: None,
            constraints: Arc::default(),
            ty,
            kind,
            position,
            id,
            order: Order::Asc,
        }
    });
    TableBuilder {
        keyspace: KEYSPACE.to_owned(),
        name: "t".to_owned(),
        id: Uuid::nil(),
        incarnation: None,
        number: TableId(1),
        kind: TableKind::Stored,
        compact: None,
        options: TableOptions::default(),
        columns: columns.collect(),
        next_column_id: ColumnId(1),
        dropped_columns: BTreeMap::new(),
        indexes: Vec::new(),
        views: Vec::new(),
        view: None,
        origin: None,
        adopts_origin: false,
        cdc_log_of: None,
    }
    .build()
}

fn schema(table: &Arc<Table>) -> Schema {
    let keyspace = Keyspace {
        name: KEYSPACE.to_owned(),
        id: None,
        replication: Replication::new("SimpleStrategy".to_owned(), BTreeMap::new()),
        durable_writes: true,
        is_virtual: false,
        types: BTreeMap::from([("u".to_owned(), user_type())]),
        tables: BTreeMap::from([("t".to_owned(), table.clone())]),
        functions: BTreeMap::new(),
        aggregates: BTreeMap::new(),
    };
    Schema {
        version: Uuid::nil(),
        generation: 1,
        document_version: 0,
        next_table_number: 2,
        keyspaces: BTreeMap::from([(KEYSPACE.to_owned(), Arc::new(keyspace))]),
        access: std::sync::Arc::default(),
        snapshots: Arc::default(),
        journal: std::sync::Arc::default(),
    }
}

struct Row {
    table: Arc<Table>,
    values: BTreeMap<&'static str, Bytes>,
}

impl Row {
    fn read(table: &Arc<Table>) -> Row {
        let values = ROW.lines().filter_map(|line| {
            let (name, value) = line.split_once('\t')?;
            Some((name, parse_hex(value.strip_prefix("0x")?).unwrap()))
        });
        Row {
            table: table.clone(),
            values: values.collect(),
        }
    }

    fn timestamp_of(column: &str, path: &[u8]) -> i64 {
        match (column, path) {
            ("mts", b"z") => THIRD_WRITE,
            ("mts", _) => SECOND_WRITE,
            ("ud", [0, 1]) => THIRD_WRITE,
            _ => FIRST_WRITE,
        }
    }
}

impl RowView for Row {
    fn value(&self, column: usize) -> Option<Bytes> {
        self.values.get(self.table.columns[column].name.as_str()).cloned()
    }

    fn cells(&self, place: usize) -> Vec<CellView> {
        let column = &self.table.columns[place];
        let Some(value) = self.value(place) else {
            return Vec::new();
        };
        let cell = |path: Option<Bytes>| CellView {
            timestamp_us: Row::timestamp_of(&column.name, path.as_deref().unwrap_or_default()),
            path,
            value: Bytes::new(),
            ttl_s: None,
        };
        if !column.ty.is_multicell() {
            return vec![cell(None)];
        }
        match &column.ty {
            CqlType::Udt { .. } => {
                let fields = helenus_cql::value::read_tuple(&column.ty, &value).unwrap();
                let fields = fields
                    .into_iter()
                    .enumerate()
                    .filter(|(_, field)| field.is_some());
                fields
                    .map(|(at, _)| cell(Some(Bytes::copy_from_slice(&(at as u16).to_be_bytes()))))
                    .collect()
            }
            CqlType::Map { .. } => {
                let entries = read_map(&column.ty, &value).unwrap();
                entries
                    .into_iter()
                    .map(|(key, _)| cell(Some(Bytes::copy_from_slice(key))))
                    .collect()
            }
            _ => {
                let count = helenus_cql::value::pack::collection_size(&value);
                (0..count).map(|_| cell(Some(Bytes::new()))).collect()
            }
        }
    }
}

/// Returns the type without the word frozen, which drivers don't see.
fn plain(ty: &CqlType) -> String {
    match ty {
        CqlType::Native(native) => native.name().to_owned(),
        CqlType::List { element, .. } => format!("list<{}>", plain(element)),
        CqlType::Set { element, .. } => format!("set<{}>", plain(element)),
        CqlType::Map { key, value, .. } => format!("map<{}, {}>", plain(key), plain(value)),
        CqlType::Tuple(elements) => {
            let elements: Vec<String> = elements.iter().map(plain).collect();
            format!("tuple<{}>", elements.join(", "))
        }
        CqlType::Udt { definition, .. } => definition.name.clone(),
        CqlType::Vector { element, dimension } => format!("vector<{}, {dimension}>", plain(element)),
        CqlType::Custom(_) => ty.to_string(),
    }
}

fn select(schema: &Schema, table: &Arc<Table>, row: &Row, clause: &str) -> Result<String, CqlError> {
    let statement = format!("SELECT {clause} FROM t WHERE k=1");
    let parsed = helenus_cql::parser::parse_statement(&statement)?;
    let ast::Statement::Select(statement) = parsed.statement else {
        panic!("{statement}")
    };
    let mut ctx = PlanContext::new(schema, Some(KEYSPACE), Markers::new(Vec::new()));
    let options = SelectionOptions {
        is_json: statement.json,
        is_grouped: false,
    };
    let selection = Selection::new(&mut ctx, table, &statement.items, options)?;
    let eval = EvalContext {
        values: &[],
        clock: &SystemClock,
        protocol_version: 5,
    };
    let mut out = RowsBuilder::new(selection.metadata().columns.len());
    let mut collector = selection.collector(eval)?;
    collector.add(row)?;
    collector.finish(&mut out)?;
    let content = out.finish();
    let cells = content.iter().next().unwrap();
    let shown = selection
        .metadata()
        .columns
        .iter()
        .zip(cells)
        .map(|(spec, value)| {
            let value = value.map_or("null".to_owned(), |value| format!("0x{}", hex(&value)));
            format!("{}|{}|{value}", spec.name, plain(&spec.ty))
        });
    Ok(shown.collect::<Vec<_>>().join(" ; "))
}

fn kind(error: &CqlError) -> &'static str {
    match error {
        CqlError::Syntax(_) => "SyntaxException",
        CqlError::Invalid(_) => "InvalidRequest",
        CqlError::FunctionFailure { .. } => "FunctionFailure",
        _ => "ServerError",
    }
}

/// Returns the message without its signatures, because a hash map decides their order in Cassandra.
fn comparable(message: &str) -> &str {
    let end = ["(known type signatures", "(can be matched by"]
        .iter()
        .find_map(|part| message.find(part));
    message.get(..end.unwrap_or(message.len())).unwrap_or(message)
}

#[test]
fn answers_are_those_of_cassandra() {
    let table = Arc::new(table());
    let (schema, row) = (schema(&table), Row::read(&table));
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in ANSWERS.lines() {
        let (clause, expected) = line.split_once('\t').unwrap();
        count += 1;
        let (got, matches) = match select(&schema, &table, &row, clause) {
            Ok(got) => {
                let matches = got == expected;
                (got, matches)
            }
            Err(error) => {
                let got = format!("ERR {} {error}", kind(&error));
                let matches = match kind(&error) {
                    // Any error is accepted where Cassandra fails internally. Messages of the parser are not compared, because the parser
                    // has its own tests.
                    _ if expected.starts_with("ERR ServerError") => true,
                    "SyntaxException" => expected.starts_with("ERR SyntaxException"),
                    _ => comparable(&got) == comparable(expected),
                };
                (got, matches)
            }
        };
        if !matches {
            wrong.push(format!("{clause}\n  want {expected}\n  got  {got}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
