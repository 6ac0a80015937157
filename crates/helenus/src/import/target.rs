//! The target: connections to its nodes, and its schema.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use helenus_cql::frame::QueryParameters;
use helenus_cql::frame::response::{QueryResult, Response};
use helenus_cql::parser::parse_type;
use helenus_cql::types::{CqlType, UserType, UserTypeField};
use helenus_cql::value::read_elements;
use helenus_import::TableName;
use helenus_import::schema::{ColumnRole, ColumnShape, LiveSchema, TableShape, resolve_type};

use crate::shell::client::{Client, Login, Server, in_words};
use crate::shell::interrupt::Interrupt;
use crate::shell::{ConnectionArgs, with_port};

/// The nodes that take the rows.
pub struct Target {
    pub servers: Vec<Server>,
    pub login: Login,
    client: Client,
}

/// A row of a system table, by the names of its columns. Nulls are absent.
pub type SystemRow = BTreeMap<String, (CqlType, Bytes)>;

impl Target {
    /// Connects to the first of these nodes that answers. The password is read from the terminal if it is needed.
    pub fn connect(hosts: &[String], connection: &ConnectionArgs, interrupt: &Interrupt) -> Result<Target> {
        let encryption = connection.encryption()?;
        let servers: Vec<Server> = hosts
            .iter()
            .map(|host| Server {
                address: with_port(host),
                encryption: encryption.clone(),
                interrupt: interrupt.clone(),
            })
            .collect();
        let mut login = connection.login();
        let client = connect_any(&servers, &mut login)?;
        Ok(Target {
            servers,
            login,
            client,
        })
    }

    /// Runs a statement that returns no rows.
    pub fn execute(&mut self, text: &str) -> Result<()> {
        let parameters = QueryParameters::default();
        self.client.query(text, parameters, false).map_err(in_words)?;
        Ok(())
    }

    /// Returns the connection to the first node.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Returns true if the table has a row.
    pub fn has_rows(&mut self, name: &TableName) -> Result<bool> {
        Ok(!self.select(&format!("SELECT * FROM {name} LIMIT 1"))?.is_empty())
    }

    /// Reads the schema from the system tables.
    pub fn read_schema(&mut self) -> Result<LiveSchema> {
        let mut schema = LiveSchema::default();
        for row in self.select("SELECT keyspace_name FROM system_schema.keyspaces")? {
            schema.keyspaces.insert(text(&row, "keyspace_name")?);
        }
        for table in ["local", "peers"] {
            for row in self.select(&format!("SELECT data_center FROM system.{table}"))? {
                // A node that is just joining may have none.
                if row.contains_key("data_center") {
                    schema.data_centers.insert(text(&row, "data_center")?);
                }
            }
        }
        self.read_types(&mut schema)?;
        self.read_tables(&mut schema)?;
        for row in self.select("SELECT keyspace_name, view_name FROM system_schema.views")? {
            schema.views.insert(name(&row, "view_name")?);
        }
        for row in self.select("SELECT keyspace_name, index_name FROM system_schema.indexes")? {
            let index = name(&row, "index_name")?;
            schema.indexes.insert((index.keyspace, index.table));
        }
        for (table, column) in [("functions", "function_name"), ("aggregates", "aggregate_name")] {
            let query = format!("SELECT keyspace_name, {column} FROM system_schema.{table}");
            for row in self.select(&query)? {
                let function = name(&row, column)?;
                schema.functions.insert((function.keyspace, function.table));
            }
        }
        Ok(schema)
    }

    /// Reads the user types, in an order in which each type comes after those that it consists of.
    fn read_types(&mut self, schema: &mut LiveSchema) -> Result<()> {
        let query = "SELECT keyspace_name, type_name, field_names, field_types FROM system_schema.types";
        let mut waiting = self.select(query)?;
        while !waiting.is_empty() {
            let before = waiting.len();
            let mut later = Vec::new();
            for row in waiting {
                match user_type(schema, &row)? {
                    Some(definition) => schema.types.insert(definition),
                    None => later.push(row),
                }
            }
            if later.len() == before {
                bail!("the server's user types refer to unknown types; run `DESCRIBE TYPES` on it");
            }
            waiting = later;
        }
        Ok(())
    }

    fn read_tables(&mut self, schema: &mut LiveSchema) -> Result<()> {
        for row in self.select("SELECT keyspace_name, table_name, flags FROM system_schema.tables")? {
            let flags = texts(&row, "flags")?;
            let has = |flag: &str| flags.iter().any(|known| known == flag);
            let name = name(&row, "table_name")?;
            let shape = TableShape {
                is_compact: has("dense") || !has("compound"),
                ..TableShape::default()
            };
            schema.tables.insert(name, shape);
        }
        let query = "SELECT keyspace_name, table_name, column_name, kind, position, type, clustering_order \
                     FROM system_schema.columns";
        for row in self.select(query)? {
            let name = name(&row, "table_name")?;
            let column = column(schema, &name.keyspace, &row).with_context(|| format!("table {name}"))?;
            let Some(shape) = schema.tables.get_mut(&name) else {
                // The columns of views are in the same table.
                continue;
            };
            let column_name = text(&row, "column_name")?;
            shape.columns.insert(column_name, column);
        }
        let query =
            "SELECT keyspace_name, table_name, column_name, dropped_time FROM system_schema.dropped_columns";
        for row in self.select(query)? {
            if let Some(shape) = schema.tables.get_mut(&name(&row, "table_name")?) {
                let dropped_ms = i64::from_be_bytes(fixed(&row, "dropped_time")?);
                let column = text(&row, "column_name")?;
                shape.dropped.insert(column, dropped_ms.saturating_mul(1000));
            }
        }
        Ok(())
    }

    /// Returns the rows of a query.
    pub fn select(&mut self, query: &str) -> Result<Vec<SystemRow>> {
        let parameters = QueryParameters::default();
        let answer = self.client.query(query, parameters, false);
        let answer = answer.map_err(in_words).with_context(|| query.to_owned())?;
        let Response::Result(QueryResult::Rows(rows)) = answer.response else {
            bail!(
                "the server answered '{query}' with {:?}",
                answer.response.opcode()
            );
        };
        let columns = &rows.metadata.columns;
        let named = |row: Vec<Option<Bytes>>| {
            let cells = columns.iter().zip(row);
            cells
                .filter_map(|(column, cell)| Some((column.name.to_string(), (column.ty.clone(), cell?))))
                .collect()
        };
        Ok(rows.content.iter().map(named).collect())
    }
}

/// Connects to the first node that answers. Fails with the error of the last one.
fn connect_any(servers: &[Server], login: &mut Login) -> Result<Client> {
    let mut failure = anyhow!("give the address of a node, as HOST or HOST:PORT");
    for server in servers {
        match server.connect(login) {
            Ok(client) => return Ok(client),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn cell<'r>(row: &'r SystemRow, column: &str) -> Result<&'r (CqlType, Bytes)> {
    row.get(column).ok_or_else(|| {
        anyhow!("the server's system tables lack {column}; use Cassandra 3.11 or later, ScyllaDB or Helenus")
    })
}

/// Returns a text of a system table.
pub fn text(row: &SystemRow, column: &str) -> Result<String> {
    Ok(String::from_utf8_lossy(&cell(row, column)?.1).into_owned())
}

fn fixed<const N: usize>(row: &SystemRow, column: &str) -> Result<[u8; N]> {
    let bytes = &cell(row, column)?.1;
    let found = bytes.len();
    <[u8; N]>::try_from(&**bytes).map_err(|_| anyhow!("{column} has {found} bytes; {N} are expected"))
}

/// Returns the texts of a list or a set. A null is an empty one.
fn texts(row: &SystemRow, column: &str) -> Result<Vec<String>> {
    let Some((ty, bytes)) = row.get(column) else {
        return Ok(Vec::new());
    };
    let elements = read_elements(ty, bytes).map_err(|problem| anyhow!("{column}: {problem}"))?;
    let text = |element: &[u8]| String::from_utf8_lossy(element).into_owned();
    Ok(elements.into_iter().map(text).collect())
}

fn name(row: &SystemRow, column: &str) -> Result<TableName> {
    Ok(TableName::new(text(row, "keyspace_name")?, text(row, column)?))
}

/// Returns a user type. `None` if it contains one that isn't read yet.
fn user_type(schema: &LiveSchema, row: &SystemRow) -> Result<Option<UserType>> {
    let name = name(row, "type_name")?;
    let mut definition = UserType {
        keyspace: name.keyspace,
        name: name.table,
        fields: Vec::new(),
    };
    let fields = texts(row, "field_names")?
        .into_iter()
        .zip(texts(row, "field_types")?);
    for (field, ty) in fields {
        let parsed = parse_type(&ty).map_err(|error| anyhow!("field {field}: {error}"))?;
        let Ok(ty) = resolve_type(&schema.types, &definition.keyspace, &parsed) else {
            return Ok(None);
        };
        definition.fields.push(UserTypeField { name: field, ty });
    }
    Ok(Some(definition))
}

fn column(schema: &LiveSchema, keyspace: &str, row: &SystemRow) -> Result<ColumnShape> {
    let ty = text(row, "type")?;
    // The type without values can't be declared, but is shown.
    let ty = match ty.as_str() {
        "empty" => CqlType::EMPTY,
        declared => {
            let parsed = parse_type(declared).map_err(|error| anyhow!("{error}"))?;
            resolve_type(&schema.types, keyspace, &parsed).map_err(|problem| anyhow!(problem))?
        }
    };
    let position = usize::try_from(i32::from_be_bytes(fixed(row, "position")?)).unwrap_or(0);
    let role = match text(row, "kind")?.as_str() {
        "partition_key" => ColumnRole::PartitionKey(position),
        "clustering" => ColumnRole::Clustering(position),
        "static" => ColumnRole::Static,
        _ => ColumnRole::Regular,
    };
    Ok(ColumnShape {
        role,
        ty,
        is_descending: text(row, "clustering_order")? == "desc",
    })
}
