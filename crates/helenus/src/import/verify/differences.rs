//! Differences in words, and as JSON.

use helenus_cql::identifier::quote_identifier;
use helenus_cql::types::CqlType;
use helenus_import::table::TableLayout;
use helenus_import::verify::{Difference, Place, SourceCell, TargetCell};
use serde_json::{Value, json};

use crate::table_reading::shown;

/// A difference that a second look confirmed.
pub struct Named {
    table: String,
    key: String,
    column: Option<String>,
    problem: &'static str,
    source: Option<String>,
    target: Option<String>,
}

impl Named {
    pub fn new(layout: &TableLayout, key: String, difference: &Difference) -> Named {
        let place = difference.place.as_ref();
        let ty = place.and_then(|place| Some(value_type(layout, place)?.clone()));
        let deleted = || {
            let deleted_us = difference.deleted_us?;
            Some(format!("deleted at {deleted_us}"))
        };
        let source = difference.source.as_ref();
        let target = difference.target.as_ref();
        Named {
            table: layout.name.to_string(),
            key,
            column: place.map(|place| column_text(layout, place)),
            problem: difference.kind.words(),
            source: source.map(|cell| source_text(ty.as_ref(), cell)).or_else(deleted),
            target: target.map(|cell| target_text(ty.as_ref(), cell)),
        }
    }

    pub fn text(&self) -> String {
        let column = self.column.as_ref().map(|column| format!(", column {column}"));
        let mut line = format!(
            "{}: {}{}: {}",
            self.table,
            self.key,
            column.unwrap_or_default(),
            self.problem
        );
        if let Some(source) = &self.source {
            line += &format!("; source: {source}");
        }
        if let Some(target) = &self.target {
            line += &format!("; target: {target}");
        }
        line
    }

    pub fn json(&self) -> Value {
        json!({
            "table": self.table,
            "key": self.key,
            "column": self.column,
            "problem": self.problem,
            "source": self.source,
            "target": self.target,
        })
    }
}

fn source_text(ty: Option<&CqlType>, cell: &SourceCell) -> String {
    let value = ty.map(|ty| shown(ty, &cell.value)).unwrap_or_default();
    timed(value, Some(cell.written_us), cell.expires_at_s)
}

fn target_text(ty: Option<&CqlType>, cell: &TargetCell) -> String {
    let value = ty.map(|ty| shown(ty, &cell.value)).unwrap_or_default();
    timed(value, cell.written_us, cell.expires_at_s)
}

fn timed(mut text: String, written_us: Option<i64>, expires_at_s: Option<i64>) -> String {
    if let Some(written_us) = written_us {
        text += &format!(" written at {written_us}");
    }
    if let Some(expires_at_s) = expires_at_s {
        text += &format!(" expiring at {expires_at_s}");
    }
    text.trim_start().to_owned()
}

/// Returns the type of the cell's value. `None` for elements of sets, whose value is their path.
fn value_type<'l>(layout: &'l TableLayout, place: &Place) -> Option<&'l CqlType> {
    let ty = &layout.columns.get(place.column.0 as usize)?.ty;
    let Some(path) = &place.path else {
        return Some(ty);
    };
    match ty {
        CqlType::List { element, .. } => Some(element),
        CqlType::Map { value, .. } => Some(value),
        CqlType::Udt { definition, .. } => Some(&definition.fields.get(field(path))?.ty),
        CqlType::Set { .. }
        | CqlType::Native(_)
        | CqlType::Tuple(_)
        | CqlType::Vector { .. }
        | CqlType::Custom(_) => None,
    }
}

fn column_text(layout: &TableLayout, place: &Place) -> String {
    let Some(column) = layout.columns.get(place.column.0 as usize) else {
        return String::new();
    };
    let name = quote_identifier(&column.name);
    let Some(path) = &place.path else {
        return name;
    };
    match &column.ty {
        CqlType::Set { element, .. } => format!("{name}[{}]", shown(element, path)),
        CqlType::Map { key, .. } => format!("{name}[{}]", shown(key, path)),
        CqlType::Udt { definition, .. } => {
            let field = definition.fields.get(field(path));
            let field = field.map(|field| quote_identifier(&field.name));
            format!("{name}.{}", field.unwrap_or_default())
        }
        CqlType::List { .. }
        | CqlType::Native(_)
        | CqlType::Tuple(_)
        | CqlType::Vector { .. }
        | CqlType::Custom(_) => format!("an element of {name}"),
    }
}

fn field(path: &[u8]) -> usize {
    let position = path.try_into().map_or(u16::MAX, u16::from_be_bytes);
    usize::from(position)
}
