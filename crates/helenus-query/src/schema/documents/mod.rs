//! The whole schema as JSON: writing and reading. [`journal`] decides when a whole schema is written.

pub(crate) mod formats;
pub(crate) mod journal;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::class_name::class_name;
use helenus_cql::types::{CqlType, UserType};
use helenus_row::Order;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::constraint::Constraint;
use super::roles::{Role, Roles};
use super::{
    Column, ColumnKind, ColumnMask, Compact, DroppedColumn, Index, Keyspace, Table, TableOptions,
    UserAggregate, UserFunction, View,
};
use crate::schema::{EntryTable, Schema};

#[derive(Serialize, Deserialize)]
struct SchemaDoc {
    format: u32,
    next_table_number: u32,
    keyspaces: Vec<KeyspaceDoc>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    roles: Vec<RoleDoc>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    identities: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    service_levels: Vec<ServiceLevelDoc>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    snapshots: Vec<SnapshotDoc>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct KeyspaceDoc {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<Uuid>,
    class: String,
    options: BTreeMap<String, String>,
    durable_writes: bool,
    types: Vec<UserTypeDoc>,
    tables: Vec<TableDoc>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    functions: Vec<FunctionDoc>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    aggregates: Vec<AggregateDoc>,
}

#[derive(Serialize, Deserialize)]
struct FunctionDoc {
    name: String,
    arguments: Vec<(String, TypeDoc)>,
    returns: TypeDoc,
    is_called_on_null: bool,
    language: String,
    body: String,
}

#[derive(Serialize, Deserialize)]
struct AggregateDoc {
    name: String,
    arg_types: Vec<TypeDoc>,
    state_function: String,
    state_type: TypeDoc,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    final_function: Option<String>,
    /// The serialized value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    initial: Option<Vec<u8>>,
    returns: TypeDoc,
}

#[derive(Serialize, Deserialize)]
struct UserTypeDoc {
    name: String,
    fields: Vec<(String, TypeDoc)>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TypeDoc {
    Native(String),
    List(Box<TypeDoc>, bool),
    Set(Box<TypeDoc>, bool),
    Map(Box<TypeDoc>, Box<TypeDoc>, bool),
    Tuple(Vec<TypeDoc>),
    /// The name of a user type in the document's keyspace, and whether it is frozen.
    UserType(String, bool),
    Vector(Box<TypeDoc>, u16),
    /// A vector with more dimensions than `Vector` can hold.
    WideVector(Box<TypeDoc>, u32),
    /// The name of the type's class.
    Custom(String),
}

#[derive(Serialize, Deserialize)]
pub(crate) struct TableDoc {
    name: String,
    id: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    incarnation: Option<Uuid>,
    number: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    compact: Option<CompactDoc>,
    next_column_id: u32,
    columns: Vec<ColumnDoc>,
    /// The table's options. `None` if all are Cassandra 5.0's defaults, which would otherwise be most of the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    options: Option<TableOptions>,
    #[serde(default)]
    dropped_columns: Vec<DroppedColumnDoc>,
    #[serde(default)]
    indexes: Vec<IndexDoc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    view: Option<ViewDoc>,
    /// The places of the rows with which a branch begins. Empty if the table is not a branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    origins: Vec<OriginDoc>,
    /// True if these rows are being copied into the table itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    adopts_origin: bool,
    /// Name of the table whose captured changes this table contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cdc_log_of: Option<String>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CompactDoc {
    Static,
    Dense,
}

#[derive(Serialize, Deserialize)]
struct ViewDoc {
    base_table: String,
    base_table_id: Uuid,
    include_all_columns: bool,
    where_clause: String,
    is_built: bool,
}

#[derive(Serialize, Deserialize)]
struct ColumnDoc {
    name: String,
    ty: TypeDoc,
    kind: KindDoc,
    position: usize,
    id: u32,
    #[serde(default)]
    descending: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mask: Option<MaskDoc>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    constraints: Vec<ConstraintDoc>,
}

/// A condition of CHECK.
#[derive(Debug, Serialize, Deserialize)]
struct ConstraintDoc {
    constraint: String,
    /// The operator, and the right side as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    comparison: Option<(String, String)>,
}

#[derive(Serialize, Deserialize)]
struct MaskDoc {
    keyspace: String,
    name: String,
    /// Types and serialized values.
    arguments: Vec<(TypeDoc, Option<Vec<u8>>)>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KindDoc {
    PartitionKey,
    Clustering,
    Static,
    Regular,
}

#[derive(Serialize, Deserialize)]
struct DroppedColumnDoc {
    name: String,
    ty: TypeDoc,
    kind: KindDoc,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<u32>,
    dropped_time_us: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mask: Option<MaskDoc>,
}

#[derive(Serialize, Deserialize)]
struct IndexDoc {
    name: String,
    kind: String,
    options: BTreeMap<String, String>,
    column: String,
    target: String,
    table_id: Uuid,
    number: u32,
    is_complete: bool,
    /// True if the entries are in the order of the values.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_ordered: bool,
    /// True if the entries are in posting lists, with the vectors.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_posting_lists: bool,
    /// True if the entries omit trailing nulls of tuples and user types. Entries of older binaries contain them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    omits_trailing_nulls: bool,
    /// Table numbers of the entries in the origins of the table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    origin_numbers: Vec<u32>,
}

mod origin;
mod pinned;
pub(crate) mod read;
pub(crate) mod rename;
pub(crate) mod role;
pub(crate) mod service_level;
pub(crate) mod snapshot;

use origin::{OriginDoc, index_numbers, origin_docs};
pub(crate) use pinned::PinnedDoc;
pub(crate) use read::{read_keyspace, read_table_into};
pub(crate) use role::RoleDoc;
pub(crate) use service_level::ServiceLevelDoc;
pub(crate) use snapshot::{SnapshotDoc, read_snapshot};

impl From<&CqlType> for TypeDoc {
    fn from(ty: &CqlType) -> TypeDoc {
        let boxed = |ty: &CqlType| Box::new(TypeDoc::from(ty));
        match ty {
            CqlType::Native(native) => TypeDoc::Native(native.name().to_owned()),
            CqlType::List { element, frozen } => TypeDoc::List(boxed(element), *frozen),
            CqlType::Set { element, frozen } => TypeDoc::Set(boxed(element), *frozen),
            CqlType::Map { key, value, frozen } => TypeDoc::Map(boxed(key), boxed(value), *frozen),
            CqlType::Tuple(elements) => TypeDoc::Tuple(elements.iter().map(TypeDoc::from).collect()),
            CqlType::Udt { definition, frozen } => TypeDoc::UserType(definition.name.clone(), *frozen),
            CqlType::Vector { element, dimension } => match u16::try_from(*dimension) {
                Ok(dimension) => TypeDoc::Vector(boxed(element), dimension),
                Err(_) => TypeDoc::WideVector(boxed(element), *dimension),
            },
            CqlType::Custom(_) => TypeDoc::Custom(class_name(ty)),
        }
    }
}

impl From<Compact> for CompactDoc {
    fn from(compact: Compact) -> CompactDoc {
        match compact {
            Compact::Static => CompactDoc::Static,
            Compact::Dense => CompactDoc::Dense,
        }
    }
}

impl From<CompactDoc> for Compact {
    fn from(compact: CompactDoc) -> Compact {
        match compact {
            CompactDoc::Static => Compact::Static,
            CompactDoc::Dense => Compact::Dense,
        }
    }
}

impl From<ColumnKind> for KindDoc {
    fn from(kind: ColumnKind) -> KindDoc {
        match kind {
            ColumnKind::PartitionKey => KindDoc::PartitionKey,
            ColumnKind::Clustering => KindDoc::Clustering,
            ColumnKind::Static => KindDoc::Static,
            ColumnKind::Regular => KindDoc::Regular,
        }
    }
}

impl From<KindDoc> for ColumnKind {
    fn from(kind: KindDoc) -> ColumnKind {
        match kind {
            KindDoc::PartitionKey => ColumnKind::PartitionKey,
            KindDoc::Clustering => ColumnKind::Clustering,
            KindDoc::Static => ColumnKind::Static,
            KindDoc::Regular => ColumnKind::Regular,
        }
    }
}

pub(super) fn keyspace_doc(keyspace: &Keyspace) -> KeyspaceDoc {
    KeyspaceDoc {
        tables: keyspace.tables.values().map(|table| table_doc(table)).collect(),
        ..keyspace_head(keyspace)
    }
}

/// Returns the document of a keyspace with its types, functions and aggregates, but without its tables.
pub(crate) fn keyspace_head(keyspace: &Keyspace) -> KeyspaceDoc {
    let user_type = |ty: &Arc<UserType>| UserTypeDoc {
        name: ty.name.clone(),
        fields: ty
            .fields
            .iter()
            .map(|field| (field.name.clone(), TypeDoc::from(&field.ty)))
            .collect(),
    };
    KeyspaceDoc {
        name: keyspace.name.clone(),
        id: keyspace.id,
        class: keyspace.replication.class.clone(),
        options: keyspace.replication.options.clone(),
        durable_writes: keyspace.durable_writes,
        types: keyspace.types.values().map(user_type).collect(),
        tables: Vec::new(),
        functions: keyspace.functions.values().map(|of| function_doc(of)).collect(),
        aggregates: keyspace.aggregates.values().map(|of| aggregate_doc(of)).collect(),
    }
}

fn function_doc(function: &UserFunction) -> FunctionDoc {
    let argument = |(name, ty): &(String, CqlType)| (name.clone(), TypeDoc::from(ty));
    FunctionDoc {
        name: function.name.clone(),
        arguments: function.arguments.iter().map(argument).collect(),
        returns: TypeDoc::from(&function.returns),
        is_called_on_null: function.is_called_on_null,
        language: function.language.clone(),
        body: function.body.clone(),
    }
}

fn aggregate_doc(aggregate: &UserAggregate) -> AggregateDoc {
    AggregateDoc {
        name: aggregate.name.clone(),
        arg_types: aggregate.arg_types.iter().map(TypeDoc::from).collect(),
        state_function: aggregate.state_function.clone(),
        state_type: TypeDoc::from(&aggregate.state_type),
        final_function: aggregate.final_function.clone(),
        initial: aggregate.initial.as_ref().map(|value| value.to_vec()),
        returns: TypeDoc::from(&aggregate.returns),
    }
}

fn mask_doc(mask: &ColumnMask) -> MaskDoc {
    let argument = |(ty, value): &(CqlType, Option<Bytes>)| {
        let value = value.as_ref().map(|value| value.to_vec());
        (TypeDoc::from(ty), value)
    };
    MaskDoc {
        keyspace: mask.keyspace.clone(),
        name: mask.name.clone(),
        arguments: mask.arguments.iter().map(argument).collect(),
    }
}

fn constraint_doc(constraint: &Constraint) -> ConstraintDoc {
    let comparison = constraint.comparison.as_ref();
    ConstraintDoc {
        constraint: constraint.kind.name().to_owned(),
        comparison: comparison.map(|(operator, term)| (operator.symbol().to_owned(), term.clone())),
    }
}

pub(crate) fn table_doc(table: &Table) -> TableDoc {
    let column = |column: &Arc<Column>| ColumnDoc {
        name: column.name.clone(),
        ty: TypeDoc::from(&column.ty),
        kind: column.kind.into(),
        position: column.position,
        id: column.id.0,
        descending: column.order == Order::Desc,
        mask: column.mask.as_deref().map(mask_doc),
        constraints: column.constraints.iter().map(constraint_doc).collect(),
    };
    let dropped = |column: &DroppedColumn| DroppedColumnDoc {
        name: column.name.clone(),
        ty: TypeDoc::from(&column.ty),
        kind: column.kind.into(),
        id: column.id.map(|id| id.0),
        dropped_time_us: column.dropped_time_us,
        mask: column.mask.as_deref().map(mask_doc),
    };
    let index = |index: &Arc<Index>| IndexDoc {
        name: index.name.clone(),
        kind: index.kind.name().to_owned(),
        options: index.options.clone(),
        column: index.target.column.clone(),
        target: index.target.kind.name().to_owned(),
        table_id: index.table.id,
        number: index.table.number.0,
        is_complete: index.is_complete,
        is_ordered: index.order.is_some(),
        has_posting_lists: index.has_posting_lists,
        omits_trailing_nulls: !index.has_old_entries && index.target.may_have_trailing_nulls(table),
        origin_numbers: index_numbers(index.table.origin.as_ref()),
    };
    let view = |view: &Arc<View>| ViewDoc {
        base_table: view.base_table.clone(),
        base_table_id: view.base_table_id,
        include_all_columns: view.include_all_columns,
        where_clause: view.where_clause.clone(),
        is_built: view.is_built,
    };
    TableDoc {
        name: table.name.clone(),
        id: table.id,
        incarnation: table.incarnation,
        number: table.number.0,
        compact: table.compact.map(CompactDoc::from),
        next_column_id: table.next_column_id.0,
        columns: table.columns.iter().map(column).collect(),
        options: (table.options != TableOptions::default()).then(|| table.options.clone()),
        dropped_columns: table.dropped_columns.values().map(dropped).collect(),
        indexes: table.indexes.iter().map(index).collect(),
        view: table.view.as_ref().map(view),
        origins: origin_docs(table.origin.as_ref()),
        adopts_origin: table.adopts_origin,
        cdc_log_of: table.cdc_log_of.clone(),
    }
}

/// Encodes the schema without computed keyspaces (the system keyspaces).
pub fn encode(schema: &Schema) -> Result<Vec<u8>, CqlError> {
    let service_levels = schema.access.service_levels.values();
    let snapshots = schema
        .snapshots
        .values()
        .map(|snapshot| SnapshotDoc::from(snapshot.as_ref()));
    let document = SchemaDoc {
        format: formats::of_base(schema),
        next_table_number: schema.next_table_number,
        keyspaces: schema
            .keyspaces
            .values()
            .filter(|keyspace| !keyspace.is_virtual)
            .map(|keyspace| keyspace_doc(keyspace))
            .collect(),
        roles: schema
            .access
            .roles
            .values()
            .map(|role| RoleDoc::from(role.as_ref()))
            .collect(),
        identities: schema.access.identities.clone(),
        service_levels: service_levels.map(ServiceLevelDoc::from).collect(),
        snapshots: snapshots.collect(),
    };
    serde_json::to_vec(&document)
        .map_err(|error| CqlError::Server(format!("can't write the schema: {error}")))
}

/// Returns the format that a document declares. The first line of the document suffices.
pub(crate) fn format(line: &str) -> Result<u32, serde_json::Error> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    serde_json::from_str(line).map(|found: Format| found.format)
}

/// Reads a whole schema. Views and their base tables are not linked yet.
pub(crate) fn read(bytes: &[u8], schema: &mut Schema, entry_table: EntryTable) -> Result<(), CqlError> {
    let damaged = |error: String| CqlError::Server(format!("the schema document is damaged: {error}"));
    let document: SchemaDoc = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
    if document.format > formats::BASE {
        return Err(CqlError::Server(format!(
            "the schema was written in format {}, and this binary understands up to {}: use a newer helenus",
            document.format,
            formats::BASE
        )));
    }
    schema.next_table_number = document.next_table_number;
    for keyspace in document.keyspaces {
        let keyspace = read_keyspace(keyspace, entry_table).map_err(damaged)?;
        schema.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
    }
    let roles = document.roles.into_iter().map(Role::try_from);
    let roles = roles.map(|role| role.map(|role| (role.name.clone(), Arc::new(role))));
    schema.access = Arc::new(Roles {
        roles: roles.collect::<Result<_, String>>().map_err(damaged)?,
        identities: document.identities,
        service_levels: service_level::by_name(document.service_levels),
    });
    let mut snapshots = BTreeMap::new();
    for snapshot in document.snapshots {
        let snapshot = read_snapshot(snapshot, entry_table).map_err(damaged)?;
        snapshots.insert(snapshot.key(), Arc::new(snapshot));
    }
    schema.snapshots = Arc::new(snapshots);
    Ok(())
}
