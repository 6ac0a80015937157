//! INSERT JSON (Cassandra's `Json`).

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::{ast, value};

use super::operation::{Action, Operation};
use crate::analysis::EvalContext;
use crate::analysis::functions::json::is_statements_own;
use crate::analysis::restrictions::bounds::partition_key;
use crate::analysis::restrictions::restriction::{null_column, unset_column};
use crate::analysis::terms::Term;
use crate::java_order;
use crate::request::BoundValue;
use crate::rows::PartitionKey;
use crate::schema::Table;

/// The source of the document.
#[derive(Clone, Debug)]
pub struct JsonSource {
    marker: Option<usize>,
    /// The values of a document that is in the text of the statement. `None` if a marker stands for the document.
    constant: Option<JsonValues>,
    default_unset: bool,
}

/// The document that is used for an unset value.
static NOTHING: Bytes = Bytes::new();

/// A value for each column of the table, in the order of the table's columns.
pub type JsonValues = Vec<BoundValue>;

/// The row of a document.
pub struct JsonRow {
    pub partition: PartitionKey,
    pub clustering: Vec<Bytes>,
    pub operations: Vec<Operation>,
}

impl JsonSource {
    pub fn plan(table: &Table, insert: &ast::InsertJson) -> Result<JsonSource, CqlError> {
        // Cassandra reads each column of the table from the document, even hidden ones.
        if table.is_static_compact() {
            let hidden = table
                .clustering()
                .first()
                .map_or("", |column| column.name.as_str());
            return Err(CqlError::invalid(format!(
                "Undefined column name {hidden} in table {}",
                table.full_name()
            )));
        }
        let (marker, constant) = match &insert.json {
            ast::JsonValue::Marker(index) => (Some(*index), None),
            ast::JsonValue::Text(text) => (None, Some(decode(table, text, insert.default_unset)?)),
        };
        Ok(JsonSource {
            marker,
            constant,
            default_unset: insert.default_unset,
        })
    }

    /// Returns the row for the values of one request.
    pub fn row(&self, table: &Table, eval: &EvalContext<'_>) -> Result<JsonRow, CqlError> {
        if let Some(values) = &self.constant {
            return json_row(table, values);
        }
        let bound = self.marker.and_then(|index| eval.values.get(index));
        let text = match bound {
            Some(BoundValue::Set(bytes)) => bytes,
            Some(BoundValue::Null) => return Err(CqlError::invalid("Got null for INSERT JSON values")),
            Some(BoundValue::Unset) | None => &NOTHING,
        };
        let text = std::str::from_utf8(text).map_err(|_| CqlError::invalid("String didn't validate."))?;
        json_row(table, &decode(table, text, self.default_unset)?)
    }
}

fn decode(table: &Table, text: &str, default_unset: bool) -> Result<JsonValues, CqlError> {
    let not_a_map = |error: &str| {
        let class = match error {
            _ if error.starts_with("No content to map") => {
                "com.fasterxml.jackson.databind.exc.MismatchedInputException: "
            }
            _ if error.starts_with("Unrecognized token") => "com.fasterxml.jackson.core.JsonParseException: ",
            _ => "",
        };
        CqlError::invalid(format!(
            "Could not decode JSON string as a map: {class}{error}. (String was: {text})"
        ))
    };
    let no_map = |kind: &str, token: &str| {
        not_a_map(&format!(
            "com.fasterxml.jackson.databind.exc.MismatchedInputException: Cannot deserialize value of type \
             `java.util.LinkedHashMap<java.lang.Object,java.lang.Object>` from {kind} (token `JsonToken.{token}`)\n {}",
            value::json_reader::beginning(text)
        ))
    };
    // The end of the array is not checked, because every array is refused.
    if text
        .trim_start_matches(value::json_reader::BLANKS)
        .starts_with('[')
    {
        return Err(no_map("Array value", "START_ARRAY"));
    }
    let document = match value::parse_json(text).map_err(|error| not_a_map(&error.to_string()))? {
        serde_json::Value::Object(map) => value::json::fold_names(&map),
        serde_json::Value::Null => return Err(CqlError::invalid("Got null for INSERT JSON values")),
        serde_json::Value::String(string) => {
            return Err(not_a_map(&format!(
                "com.fasterxml.jackson.databind.exc.MismatchedInputException: Cannot construct instance of \
                 `java.util.LinkedHashMap` (although at least one Creator exists): no String-argument constructor/factory \
                 method to deserialize from String value ('{string}')\n {}",
                value::json_reader::beginning(text)
            )));
        }
        other => {
            let (kind, token) = match other {
                serde_json::Value::Bool(true) => ("Boolean value", "VALUE_TRUE"),
                serde_json::Value::Bool(false) => ("Boolean value", "VALUE_FALSE"),
                serde_json::Value::Number(number) if number.is_f64() => {
                    ("Floating-point value", "VALUE_NUMBER_FLOAT")
                }
                _ => ("Integer value", "VALUE_NUMBER_INT"),
            };
            return Err(no_map(kind, token));
        }
    };
    let mut values = vec![BoundValue::Unset; table.columns.len()];
    // If several values can't be decoded, the error names the first one in the order of Cassandra's hash table of columns.
    let in_order = java_order::by_name(table.columns.iter().zip(&mut values).collect(), |(column, _)| {
        column.name.as_str()
    });
    for (column, value) in in_order {
        *value = match document.get(&column.name) {
            None if default_unset => BoundValue::Unset,
            None | Some(serde_json::Value::Null) => BoundValue::Null,
            Some(json) => match value::from_json(&column.ty, json) {
                Ok(Some(bytes)) => BoundValue::Set(bytes),
                Ok(None) => BoundValue::Null,
                Err(error) if is_statements_own(&error) => {
                    return Err(CqlError::invalid(error));
                }
                Err(error) => {
                    return Err(CqlError::invalid(format!(
                        "Error decoding JSON value for {}: {error}",
                        column.name
                    )));
                }
            },
        };
    }
    if let Some(unknown) = document.keys().find(|name| table.column(name).is_none()) {
        return Err(CqlError::invalid(format!(
            "JSON values map contains unrecognized column: {unknown}"
        )));
    }
    Ok(values)
}

fn json_row(table: &Table, values: &[BoundValue]) -> Result<JsonRow, CqlError> {
    let mut keys = Vec::new();
    let mut partition = None;
    let mut operations = Vec::new();
    for (place, (column, value)) in table.columns.iter().zip(values).enumerate() {
        if place == table.partition_key_count {
            partition = Some(partition_key(&keys)?);
            keys.clear();
        }
        let set = |value| Operation::new(place, column, Action::Set(Term::Constant(value)));
        match value {
            BoundValue::Set(bytes) if column.is_primary_key() => keys.push(bytes.clone()),
            BoundValue::Null if column.is_primary_key() => return Err(null_column(table, &[place])),
            BoundValue::Unset if column.is_primary_key() => return Err(unset_column(table, &[place])),
            BoundValue::Set(bytes) => operations.push(set(Some(bytes.clone()))),
            BoundValue::Null => operations.push(set(None)),
            BoundValue::Unset => {}
        }
    }
    let (partition, clustering) = match partition {
        Some(partition) => (partition, keys),
        None => (partition_key(&keys)?, Vec::new()),
    };
    Ok(JsonRow {
        partition,
        clustering,
        operations,
    })
}
