//! The syntax tree of CQL 3.4.7, as Cassandra 5.0's grammar (`Parser.g`) defines the language.
//!
//! The tree is not resolved: names may not exist and types may not fit. Bind markers are numbered in the order of the text.
//! [`ParsedStatement::bind_markers`] has the way in which each was written.

mod auth;
mod constraint;
mod describe;
mod display;
mod map_order;
mod modification;
mod name;
mod schema;
mod select;
mod service_level;
mod term;
mod transaction;
mod type_name;

pub use auth::*;
pub use constraint::*;
pub use describe::*;
pub use display::cast_function;
pub use modification::*;
pub use name::*;
pub use schema::*;
pub use select::*;
pub use service_level::*;
pub use term::*;
pub use transaction::*;
pub use type_name::*;

/// A statement with its bind markers, in the order of their indexes.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedStatement {
    pub statement: Statement,
    pub bind_markers: Vec<BindMarker>,
}

/// A bind marker: `?`, whose name is `None`, or `:name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindMarker {
    pub name: Option<Ident>,
}

/// Any CQL statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    Select(Box<Select>),
    Insert(Box<Insert>),
    InsertJson(Box<InsertJson>),
    InsertRows(Box<InsertRows>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Batch(Box<Batch>),
    Transaction(Box<Transaction>),
    Use(Ident),
    Truncate(QualifiedName),

    CreateKeyspace(CreateKeyspace),
    CopyKeyspace(CopyKeyspace),
    AlterKeyspace(AlterKeyspace),
    DropKeyspace(DropKeyspace),
    CreateTable(Box<CreateTable>),
    CreateTableLike(Box<CreateTableLike>),
    CopyTable(Box<CopyTable>),
    AlterTable(Box<AlterTable>),
    DropTable(DropTable),
    CreateType(CreateType),
    AlterType(AlterType),
    DropType(DropType),
    CreateIndex(Box<CreateIndex>),
    DropIndex(DropIndex),
    CreateView(Box<CreateView>),
    AlterView(AlterView),
    DropView(DropView),
    CreateFunction(Box<CreateFunction>),
    DropFunction(DropFunction),
    CreateAggregate(Box<CreateAggregate>),
    DropAggregate(DropFunction),
    CreateTrigger(CreateTrigger),
    DropTrigger(DropTrigger),

    GrantPermissions(PermissionsStatement),
    RevokePermissions(PermissionsStatement),
    ListPermissions(ListPermissions),
    GrantRole(GrantRole),
    RevokeRole(GrantRole),
    CreateRole(CreateRole),
    AlterRole(AlterRole),
    DropRole(DropRole),
    ListRoles(ListRoles),
    AddIdentity(AddIdentity),
    DropIdentity(DropIdentity),
    ServiceLevel(ServiceLevelStatement),

    Describe(Describe),
}
