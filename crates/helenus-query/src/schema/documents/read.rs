//! Reading of schema documents.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::ast::Operator;
use helenus_cql::types::class_name::parse_class_name;
use helenus_cql::types::{CqlType, NativeType, UserType, UserTypeField};
use helenus_row::{ColumnId, Order, TableId};

use super::origin::{read_index_origin, read_origin};
use super::{
    AggregateDoc, ConstraintDoc, FunctionDoc, IndexDoc, KeyspaceDoc, MaskDoc, TableDoc, TypeDoc, UserTypeDoc,
};
use crate::schema::constraint::{Constraint, ConstraintKind};
use crate::schema::{
    Column, ColumnMask, Compact, DroppedColumn, EntryTable, Index, IndexKind, IndexTarget, IndexTargetKind,
    Keyspace, Replication, Table, TableBuilder, TableKind, UserAggregate, UserFunction, View,
};

/// The user types of a keyspace: documents that are still to be read, and types that have been read.
struct TypeReader<'a> {
    keyspace: &'a str,
    documents: BTreeMap<&'a str, &'a UserTypeDoc>,
    done: BTreeMap<String, Arc<UserType>>,
}

impl TypeReader<'_> {
    fn user_type(&mut self, name: &str, depth: usize) -> Result<Arc<UserType>, String> {
        if let Some(done) = self.done.get(name) {
            return Ok(done.clone());
        }
        let document = *self
            .documents
            .get(name)
            .ok_or_else(|| format!("no user type {name}"))?;
        let mut fields = Vec::with_capacity(document.fields.len());
        for (field, ty) in &document.fields {
            fields.push(UserTypeField {
                name: field.clone(),
                ty: self.ty(ty, depth + 1)?,
            });
        }
        let definition = Arc::new(UserType {
            keyspace: self.keyspace.to_owned(),
            name: name.to_owned(),
            fields,
        });
        self.done.insert(name.to_owned(), definition.clone());
        Ok(definition)
    }

    fn ty(&mut self, document: &TypeDoc, depth: usize) -> Result<CqlType, String> {
        if depth > 128 {
            return Err("types are nested too deeply".to_owned());
        }
        let depth = depth + 1;
        Ok(match document {
            TypeDoc::Native(name) if name == NativeType::Empty.name() => CqlType::EMPTY,
            TypeDoc::Native(name) => {
                CqlType::Native(NativeType::from_name(name).ok_or_else(|| format!("no type {name}"))?)
            }
            TypeDoc::List(element, frozen) => CqlType::list(self.ty(element, depth)?, *frozen),
            TypeDoc::Set(element, frozen) => CqlType::set(self.ty(element, depth)?, *frozen),
            TypeDoc::Map(key, value, frozen) => {
                CqlType::map(self.ty(key, depth)?, self.ty(value, depth)?, *frozen)
            }
            TypeDoc::Tuple(elements) => {
                let elements = elements.iter().map(|element| self.ty(element, depth));
                CqlType::tuple(elements.collect::<Result<Vec<_>, _>>()?)
            }
            TypeDoc::UserType(name, frozen) => CqlType::Udt {
                definition: self.user_type(name, depth)?,
                frozen: *frozen,
            },
            TypeDoc::Vector(element, dimension) => {
                CqlType::vector(self.ty(element, depth)?, u32::from(*dimension))
            }
            TypeDoc::WideVector(element, dimension) => CqlType::vector(self.ty(element, depth)?, *dimension),
            TypeDoc::Custom(name) => parse_class_name(name).ok_or_else(|| format!("no type {name}"))?,
        })
    }

    fn all(&mut self, documents: &[TypeDoc]) -> Result<Vec<CqlType>, String> {
        documents.iter().map(|document| self.ty(document, 0)).collect()
    }
}

pub(crate) fn read_keyspace(document: KeyspaceDoc, entry_table: EntryTable) -> Result<Keyspace, String> {
    let mut types = TypeReader {
        keyspace: &document.name,
        documents: document.types.iter().map(|ty| (ty.name.as_str(), ty)).collect(),
        done: BTreeMap::new(),
    };
    for ty in &document.types {
        types.user_type(&ty.name, 0)?;
    }
    let mut tables = BTreeMap::new();
    for table in &document.tables {
        let table = read_table(&document.name, table, &mut types, entry_table)?;
        tables.insert(table.name.clone(), Arc::new(table));
    }
    let mut functions = BTreeMap::new();
    for function in &document.functions {
        let function = read_function(&document.name, function, &mut types)?;
        functions.insert(function.signature(), Arc::new(function));
    }
    let mut aggregates = BTreeMap::new();
    for aggregate in &document.aggregates {
        let aggregate = read_aggregate(&document.name, aggregate, &mut types)?;
        aggregates.insert(aggregate.signature(), Arc::new(aggregate));
    }
    let types = types.done;
    Ok(Keyspace {
        replication: Replication::new(document.class, document.options),
        durable_writes: document.durable_writes,
        is_virtual: false,
        types,
        tables,
        functions,
        aggregates,
        id: document.id,
        name: document.name,
    })
}

/// Reads a function. Its body is compiled at the first call.
fn read_function(
    keyspace: &str,
    document: &FunctionDoc,
    types: &mut TypeReader<'_>,
) -> Result<UserFunction, String> {
    let mut arguments = Vec::with_capacity(document.arguments.len());
    for (name, ty) in &document.arguments {
        arguments.push((name.clone(), types.ty(ty, 0)?));
    }
    Ok(UserFunction::new(
        keyspace,
        &document.name,
        arguments,
        types.ty(&document.returns, 0)?,
        document.is_called_on_null,
        &document.language,
        &document.body,
    ))
}

fn read_aggregate(
    keyspace: &str,
    document: &AggregateDoc,
    types: &mut TypeReader<'_>,
) -> Result<UserAggregate, String> {
    Ok(UserAggregate {
        keyspace: keyspace.to_owned(),
        name: document.name.clone(),
        arg_types: types.all(&document.arg_types)?,
        state_function: document.state_function.clone(),
        state_type: types.ty(&document.state_type, 0)?,
        final_function: document.final_function.clone(),
        initial: document.initial.clone().map(Bytes::from),
        returns: types.ty(&document.returns, 0)?,
    })
}

/// Reads a table of a keyspace whose types are known.
pub(crate) fn read_table_into(
    keyspace: &Keyspace,
    document: &TableDoc,
    entry_table: EntryTable,
) -> Result<Table, String> {
    let mut types = TypeReader {
        keyspace: &keyspace.name,
        documents: BTreeMap::new(),
        done: keyspace.types.clone(),
    };
    read_table(&keyspace.name, document, &mut types, entry_table)
}

fn read_table(
    keyspace: &str,
    document: &TableDoc,
    types: &mut TypeReader<'_>,
    entry_table: EntryTable,
) -> Result<Table, String> {
    let mut columns = Vec::with_capacity(document.columns.len());
    for column in &document.columns {
        columns.push(Column {
            name: column.name.clone(),
            ty: types.ty(&column.ty, 0)?,
            kind: column.kind.into(),
            position: column.position,
            id: ColumnId(column.id),
            order: if column.descending {
                Order::Desc
            } else {
                Order::Asc
            },
            mask: match &column.mask {
                Some(mask) => Some(Arc::new(read_mask(mask, types)?)),
                None => None,
            },
            constraints: Arc::default(),
        });
        if let Some(read) = columns.last_mut() {
            let constraints = column.constraints.iter();
            let constraints = constraints.map(|constraint| read_constraint(read, constraint));
            read.constraints = constraints.collect::<Result<_, _>>()?;
        }
    }
    let mut dropped_columns = BTreeMap::new();
    for column in &document.dropped_columns {
        let dropped = DroppedColumn {
            name: column.name.clone(),
            ty: types.ty(&column.ty, 0)?,
            kind: column.kind.into(),
            id: column.id.map(ColumnId),
            dropped_time_us: column.dropped_time_us,
            mask: match &column.mask {
                Some(mask) => Some(Arc::new(read_mask(mask, types)?)),
                None => None,
            },
        };
        dropped_columns.insert(column.name.clone(), dropped);
    }
    let mut builder = TableBuilder {
        keyspace: keyspace.to_owned(),
        name: document.name.clone(),
        id: document.id,
        incarnation: document.incarnation,
        number: TableId(document.number),
        kind: match &document.view {
            Some(_) => TableKind::View,
            None => TableKind::Stored,
        },
        compact: document.compact.map(Compact::from),
        options: document.options.clone().unwrap_or_default(),
        columns,
        next_column_id: ColumnId(document.next_column_id),
        dropped_columns,
        indexes: Vec::new(),
        views: Vec::new(),
        // The filter is added later, because the base table may not have been read yet.
        view: document.view.as_ref().map(|view| {
            Arc::new(View {
                base_table: view.base_table.clone(),
                base_table_id: view.base_table_id,
                include_all_columns: view.include_all_columns,
                where_clause: view.where_clause.clone(),
                filter: Vec::new(),
                is_built: view.is_built,
            })
        }),
        origin: read_origin(&document.origins),
        adopts_origin: document.adopts_origin,
        cdc_log_of: document.cdc_log_of.clone(),
    };
    let base = builder.clone().build();
    for index in &document.indexes {
        builder
            .indexes
            .push(Arc::new(read_index(&base, document, index, entry_table)?));
    }
    Ok(builder.build())
}

fn read_constraint(column: &Column, document: &ConstraintDoc) -> Result<Constraint, String> {
    let unknown = |what: &str| {
        format!(
            "the column {} has a constraint with the unknown {what} {document:?}",
            column.name
        )
    };
    let kind = ConstraintKind::named(&document.constraint).ok_or_else(|| unknown("name"))?;
    let comparison = match &document.comparison {
        Some((symbol, term)) => {
            let operator = Operator::comparison(symbol).ok_or_else(|| unknown("operator"))?;
            Some((operator, term.clone()))
        }
        None => None,
    };
    Constraint::new(&column.name, &column.ty, kind, comparison).map_err(|error| error.to_string())
}

fn read_mask(document: &MaskDoc, types: &mut TypeReader<'_>) -> Result<ColumnMask, String> {
    let mut arguments = Vec::with_capacity(document.arguments.len());
    for (ty, value) in &document.arguments {
        arguments.push((types.ty(ty, 0)?, value.clone().map(Bytes::from)));
    }
    Ok(ColumnMask {
        keyspace: document.keyspace.clone(),
        name: document.name.clone(),
        arguments,
    })
}

fn read_index(
    base: &Table,
    of: &TableDoc,
    document: &IndexDoc,
    entry_table: EntryTable,
) -> Result<Index, String> {
    let unknown = |what: &str| format!("index {} has an unknown {what}", document.name);
    let target = IndexTarget {
        column: document.column.clone(),
        kind: IndexTargetKind::from_name(&document.target).ok_or_else(|| unknown("target"))?,
    };
    let mut table = entry_table(
        base,
        &document.name,
        &target,
        TableId(document.number),
        document.table_id,
    )
    .map_err(|error| error.to_string())?;
    table.origin = read_index_origin(&of.origins, &document.origin_numbers);
    let order = document.is_ordered.then(|| base.column(&target.column)).flatten();
    let has_old_entries = target.may_have_trailing_nulls(base) && !document.omits_trailing_nulls;
    Ok(Index {
        name: document.name.clone(),
        kind: IndexKind::from_name(&document.kind).ok_or_else(|| unknown("kind"))?,
        options: document.options.clone(),
        is_on_text: target.is_on_text(base),
        order: order.map(|(_, column)| column.ty.clone()),
        has_posting_lists: document.has_posting_lists,
        target,
        table: Arc::new(table),
        is_complete: document.is_complete && !has_old_entries,
        has_old_entries,
    })
}
