//! DESCRIBE statements, which the server answers for cqlsh (Cassandra's `DescribeStatement`).

pub(crate) mod element;
pub(crate) mod text;

use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use helenus_cql::ast::{self, DescribeTarget};
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value::{pack_list, pack_map};

use super::Engine;
use super::system::SYSTEM_KEYSPACES;
use crate::request::{ClientState, QueryParameters};
use crate::response::{ColumnSpec, Outcome, Response, Rows};
use crate::schema::Schema;
use element::Element;

/// Executes a DESCRIBE statement.
pub async fn execute(
    engine: &Arc<Engine>,
    client: &ClientState,
    statement: &ast::Describe,
    parameters: &QueryParameters,
) -> Result<Outcome, CqlError> {
    let schema = engine.schema();
    let keyspace = client.keyspace.as_deref();
    let offset = offset(parameters, &schema)?;
    let (metadata, rows) = match &statement.target {
        DescribeTarget::Cluster => cluster(engine, keyspace),
        target => {
            let elements = element::describe(&schema, keyspace, target)?;
            let is_list = is_list(target);
            let rows = elements
                .iter()
                .skip(offset)
                .take(page_size(parameters))
                .map(|element| element_row(element, is_list, statement.with_internals))
                .collect();
            (element_columns(is_list), rows)
        }
    };
    let more = rows.len() == page_size(parameters);
    let next = more.then(|| paging_state(&schema, offset + rows.len()));
    Ok(Response::Rows(Rows::of_values(metadata, &rows, next)).into())
}

/// Returns true for the forms whose answer is only names.
fn is_list(target: &DescribeTarget) -> bool {
    matches!(
        target,
        DescribeTarget::Keyspaces
            | DescribeTarget::Tables
            | DescribeTarget::Types
            | DescribeTarget::Functions
            | DescribeTarget::Aggregates
    )
}

fn page_size(parameters: &QueryParameters) -> usize {
    parameters
        .page_size
        .and_then(|size| usize::try_from(size).ok())
        .filter(|size| *size > 0)
        .unwrap_or(usize::MAX)
}

fn column(name: &str, ty: CqlType) -> ColumnSpec {
    ColumnSpec::new("system", "describe", name, ty)
}

fn element_columns(is_list: bool) -> Vec<ColumnSpec> {
    let mut names = vec!["keyspace_name", "type", "name"];
    if !is_list {
        names.push("create_statement");
    }
    names
        .into_iter()
        .map(|name| column(name, CqlType::TEXT))
        .collect()
}

fn element_row(element: &Element<'_>, is_list: bool, with_internals: bool) -> Vec<Bytes> {
    let mut row = vec![
        Bytes::from(element.keyspace_name()),
        Bytes::from(element.type_name()),
        Bytes::from(element.quoted_name()),
    ];
    if !is_list {
        row.push(Bytes::from(element.create_statement(with_internals)));
    }
    row
}

/// Returns the answer to DESCRIBE CLUSTER. If a user's keyspace is in use, the answer includes the owners of all ranges.
fn cluster(engine: &Engine, keyspace: Option<&str>) -> (Vec<ColumnSpec>, Vec<Vec<Bytes>>) {
    let mut columns: Vec<ColumnSpec> = ["cluster", "partitioner", "snitch"]
        .into_iter()
        .map(|name| column(name, CqlType::TEXT))
        .collect();
    let mut row = vec![
        Bytes::from(engine.node.cluster_name.clone()),
        Bytes::from("Murmur3Partitioner"),
        Bytes::from("DynamicEndpointSnitch"),
    ];
    let is_system = |name: &str| SYSTEM_KEYSPACES.iter().any(|keyspace| keyspace.name == name);
    if keyspace.is_some_and(|name| !is_system(name)) {
        let ty = CqlType::map(CqlType::TEXT, CqlType::list(CqlType::TEXT, false), false);
        columns.push(column("range_ownership", ty));
        let ring = super::system::ring(engine);
        let ranges = ring.iter().map(|(token, address, port)| {
            let owner = pack_list([format!("{address}/{address}:{port}")]);
            (token.to_string(), owner)
        });
        row.push(pack_map(&CqlType::TEXT, ranges));
    }
    (columns, vec![row])
}

/// Returns the paging state: the schema's version, and the number of elements returned so far.
fn paging_state(schema: &Schema, offset: usize) -> Bytes {
    let mut state = BytesMut::with_capacity(24);
    state.put_slice(schema.version.as_bytes());
    state.put_u64(offset as u64);
    state.freeze()
}

fn offset(parameters: &QueryParameters, schema: &Schema) -> Result<usize, CqlError> {
    let Some(mut state) = parameters.paging_state.clone() else {
        return Ok(0);
    };
    if state.len() != 24 {
        return Err(CqlError::invalid("Invalid paging state."));
    }
    if state.split_to(16) != schema.version.as_bytes().as_slice() {
        return Err(CqlError::invalid(
            "The schema has changed since the previous page of the DESCRIBE statement result. \
             Please retry the DESCRIBE statement.",
        ));
    }
    usize::try_from(state.get_u64()).map_err(|_| CqlError::invalid("Invalid paging state."))
}

/// Returns the answer in the format of the conformance suite. `None` if the answer depends on the node.
#[cfg(test)]
pub(crate) fn recorded(
    schema: &Schema,
    keyspace: Option<&str>,
    statement: &ast::Describe,
) -> Option<Result<Vec<String>, CqlError>> {
    if statement.target == DescribeTarget::Cluster {
        return None;
    }
    let is_list = is_list(&statement.target);
    let head = match is_list {
        true => "rows system.describe | keyspace_name text | type text | name text",
        false => "rows system.describe | keyspace_name text | type text | name text | create_statement text",
    };
    let line = |element: &Element<'_>| {
        let values = element_row(element, is_list, statement.with_internals);
        let quote = |value: &Bytes| {
            let text = String::from_utf8_lossy(value)
                .replace('\'', "''")
                .replace('\n', "\\n");
            format!("'{text}'")
        };
        format!("| {}", values.iter().map(quote).collect::<Vec<_>>().join(" | "))
    };
    let answer = element::describe(schema, keyspace, &statement.target).map(|elements| {
        std::iter::once(head.to_owned())
            .chain(elements.iter().map(line))
            .collect()
    });
    Some(answer)
}

#[cfg(test)]
#[path = "describe_tests.rs"]
mod tests;
