//! Definitions of the system keyspaces and their tables, parsed once from CREATE TABLE statements.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use helenus_cql::ast::{self, PropertyValue, Statement};
use helenus_cql::error::CqlError;
use helenus_cql::parser::parse_statement;
use helenus_row::{ColumnId, Order, TableId};
use uuid::Uuid;

use super::registry::TABLES;
use crate::schema::{
    Column, ColumnKind, Keyspace, Replication, Schema, Table, TableBuilder, TableKind, TableOptions,
};

/// A system keyspace.
pub struct SystemKeyspace {
    pub name: &'static str,
    /// Class of the replication strategy. Empty for keyspaces that are virtual in Cassandra too.
    strategy: &'static str,
    replication_factor: &'static str,
    definitions: &'static str,
    /// True if every authenticated role may read all tables, because drivers and tools read them.
    pub(super) is_public: bool,
}

/// The system keyspaces. Those that are virtual in Cassandra come last.
pub const SYSTEM_KEYSPACES: [SystemKeyspace; 7] = [
    SystemKeyspace {
        name: "system",
        strategy: "LocalStrategy",
        replication_factor: "",
        definitions: include_str!("definitions/system.cql"),
        is_public: false,
    },
    SystemKeyspace {
        name: "system_schema",
        strategy: "LocalStrategy",
        replication_factor: "",
        definitions: include_str!("definitions/system_schema.cql"),
        is_public: true,
    },
    SystemKeyspace {
        name: "system_auth",
        strategy: "SimpleStrategy",
        replication_factor: "1",
        definitions: include_str!("definitions/system_auth.cql"),
        is_public: false,
    },
    SystemKeyspace {
        name: "system_distributed",
        strategy: "SimpleStrategy",
        replication_factor: "3",
        definitions: include_str!("definitions/system_distributed.cql"),
        is_public: false,
    },
    SystemKeyspace {
        name: "system_traces",
        strategy: "SimpleStrategy",
        replication_factor: "2",
        definitions: include_str!("definitions/system_traces.cql"),
        is_public: true,
    },
    SystemKeyspace {
        name: "system_views",
        strategy: "",
        replication_factor: "",
        definitions: include_str!("definitions/system_views.cql"),
        is_public: false,
    },
    SystemKeyspace {
        name: "system_virtual_schema",
        strategy: "",
        replication_factor: "",
        definitions: include_str!("definitions/system_virtual_schema.cql"),
        is_public: true,
    },
];

/// Returns all system keyspaces with their tables. `is_shared` is true for a node on a shared store.
pub(crate) fn keyspaces(is_shared: bool) -> Vec<Keyspace> {
    static ALONE: LazyLock<Vec<Keyspace>> = LazyLock::new(|| read_all(false));
    static SHARED: LazyLock<Vec<Keyspace>> = LazyLock::new(|| read_all(true));
    match is_shared {
        true => SHARED.clone(),
        false => ALONE.clone(),
    }
}

fn read_all(is_shared: bool) -> Vec<Keyspace> {
    SYSTEM_KEYSPACES
        .iter()
        .map(|keyspace| read(keyspace, is_shared).expect("the definitions are part of the program"))
        .collect()
}

fn read(keyspace: &SystemKeyspace, is_shared: bool) -> Result<Keyspace, CqlError> {
    let mut tables = BTreeMap::new();
    let of_cassandra = keyspace.definitions.split_inclusive(';');
    let own = TABLES
        .iter()
        .filter(|table| table.keyspace == keyspace.name && (is_shared || !table.is_of_shared_store))
        .filter_map(|table| table.definition);
    for text in of_cassandra.chain(own) {
        if text.trim().is_empty() {
            continue;
        }
        if let Statement::CreateTable(statement) = parse_statement(text)?.statement
            && statement
                .table
                .keyspace
                .as_ref()
                .is_some_and(|name| name.as_str() == keyspace.name)
        {
            let table = table(keyspace.name, &statement)?;
            tables.insert(table.name.clone(), Arc::new(table));
        }
    }
    let mut options = BTreeMap::new();
    if !keyspace.replication_factor.is_empty() {
        options.insert(
            "replication_factor".to_owned(),
            keyspace.replication_factor.to_owned(),
        );
    }
    let class = match keyspace.strategy {
        "" => "LocalStrategy",
        strategy => strategy,
    };
    Ok(Keyspace {
        name: keyspace.name.to_owned(),
        id: None,
        replication: Replication::new(class.to_owned(), options),
        durable_writes: true,
        is_virtual: true,
        types: BTreeMap::new(),
        tables,
        functions: BTreeMap::new(),
        aggregates: BTreeMap::new(),
    })
}

fn table(keyspace: &str, statement: &ast::CreateTable) -> Result<Table, CqlError> {
    let no_types = Schema {
        version: Uuid::nil(),
        generation: 0,
        document_version: 0,
        next_table_number: 0,
        keyspaces: BTreeMap::new(),
        access: Arc::default(),
        snapshots: Arc::default(),
        journal: Arc::default(),
    };
    let partition_key = statement.partition_key.as_deref().unwrap_or_default();
    let place = |name: &ast::Ident, among: &[ast::Ident]| among.iter().position(|key| key == name);
    let mut columns = Vec::with_capacity(statement.columns.len());
    for (number, definition) in statement.columns.iter().enumerate() {
        let name = &definition.name;
        let (kind, position) = if let Some(position) = place(name, partition_key) {
            (ColumnKind::PartitionKey, position)
        } else if let Some(position) = place(name, &statement.clustering_columns) {
            (ColumnKind::Clustering, position)
        } else if definition.is_static {
            (ColumnKind::Static, 0)
        } else {
            (ColumnKind::Regular, 0)
        };
        let descending = statement
            .clustering_order
            .iter()
            .any(|order| order.column == *name && order.descending);
        columns.push(Column {
            name: name.0.clone(),
            ty: crate::analysis::types::resolve_type(&no_types, keyspace, &definition.ty)?,
            kind,
            position,
            id: ColumnId(number as _),
            order: if descending { Order::Desc } else { Order::Asc },
            mask: None,
            constraints: Arc::default(),
        });
    }
    let mut properties = statement.properties.clone();
    let id = match properties.get("id") {
        Some(PropertyValue::Text(text)) => Uuid::parse_str(text).unwrap_or_default(),
        _ => Uuid::nil(),
    };
    properties.0.retain(|(name, _)| name != "id");
    let next_column_id = ColumnId(columns.len() as _);
    let builder = TableBuilder {
        keyspace: keyspace.to_owned(),
        name: statement.table.name.0.clone(),
        id,
        incarnation: None,
        number: TableId(0),
        kind: TableKind::Virtual,
        compact: None,
        options: crate::schema::table_options::apply(&properties, TableOptions::default())?,
        columns,
        next_column_id,
        dropped_columns: BTreeMap::new(),
        indexes: Vec::new(),
        views: Vec::new(),
        view: None,
        origin: None,
        adopts_origin: false,
        cdc_log_of: None,
    };
    Ok(builder.build())
}
