//! Statements that change the schema.

use super::{AsOf, FunctionName, Ident, QualifiedName, Relation, SelectItem, Term, TypeName};

/// The value of a property in a WITH clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropertyValue {
    /// A constant (its raw text: of a string, without quotes) or a bare keyword.
    Text(String),
    /// `{'class': 'SimpleStrategy', ...}` with the raw texts, in the order written; keys are unique.
    Map(Vec<(String, String)>),
}

/// The properties of a WITH clause, in the order written; names are unique, in lower case unless quoted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties(pub Vec<(String, PropertyValue)>);

impl Properties {
    pub fn get(&self, name: &str) -> Option<&PropertyValue> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateKeyspace {
    pub name: Ident,
    pub if_not_exists: bool,
    pub properties: Properties,
}

/// `CREATE KEYSPACE … AS COPY OF`, which Cassandra does not have.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyKeyspace {
    pub name: Ident,
    pub if_not_exists: bool,
    /// What is copied.
    pub origin: Ident,
    /// As it was then.
    pub as_of: Option<AsOf>,
    /// Other options stay those of the origin.
    pub properties: Properties,
}

/// `CREATE TABLE … AS COPY OF`, which Cassandra does not have.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyTable {
    pub table: QualifiedName,
    pub if_not_exists: bool,
    /// What is copied.
    pub origin: QualifiedName,
    /// As it was then.
    pub as_of: Option<AsOf>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AlterKeyspace {
    pub name: Ident,
    pub if_exists: bool,
    pub properties: Properties,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DropKeyspace {
    pub name: Ident,
    pub if_exists: bool,
}

/// `MASKED WITH function(args)`; `MASKED WITH DEFAULT` is `system.mask_default()`.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnMask {
    pub function: FunctionName,
    pub args: Vec<Term>,
}

/// A column in CREATE TABLE or ALTER TABLE ADD.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    pub name: Ident,
    pub ty: TypeName,
    pub is_static: bool,
    pub mask: Option<ColumnMask>,
}

/// Order of one clustering column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusteringOrder {
    pub column: Ident,
    pub descending: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    pub table: QualifiedName,
    pub if_not_exists: bool,
    /// In the order written; names are unique.
    pub columns: Vec<ColumnDefinition>,
    /// None when no primary key was given.
    pub partition_key: Option<Vec<Ident>>,
    pub clustering_columns: Vec<Ident>,
    pub clustering_order: Vec<ClusteringOrder>,
    pub compact_storage: bool,
    pub properties: Properties,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    pub table: QualifiedName,
    pub if_exists: bool,
    pub change: TableChange,
}

/// What ALTER TABLE does.
#[derive(Clone, Debug, PartialEq)]
pub enum TableChange {
    /// `ALTER c TYPE t`: Cassandra parses it, then refuses it.
    AlterType {
        column: Ident,
        ty: TypeName,
    },
    /// `ALTER c MASKED WITH ...` or, with no mask, `ALTER c DROP MASKED`.
    Mask {
        column: Ident,
        if_exists: bool,
        mask: Option<ColumnMask>,
    },
    Add {
        if_not_exists: bool,
        columns: Vec<ColumnDefinition>,
    },
    Drop {
        if_exists: bool,
        columns: Vec<Ident>,
        /// USING TIMESTAMP, in microseconds.
        timestamp: Option<i64>,
    },
    Rename {
        if_exists: bool,
        /// From, to.
        columns: Vec<(Ident, Ident)>,
    },
    DropCompactStorage,
    Properties(Properties),
}

#[derive(Clone, Debug, PartialEq)]
pub struct DropTable {
    pub table: QualifiedName,
    pub if_exists: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateType {
    pub name: QualifiedName,
    pub if_not_exists: bool,
    /// In the order written; a name may stand twice.
    pub fields: Vec<(Ident, TypeName)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AlterType {
    pub name: QualifiedName,
    pub if_exists: bool,
    pub change: TypeChange,
}

/// What ALTER TYPE does.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeChange {
    /// Cassandra parses it, then refuses it.
    AlterField { field: Ident, ty: TypeName },
    AddField {
        if_not_exists: bool,
        field: Ident,
        ty: TypeName,
    },
    RenameFields {
        if_exists: bool,
        /// From, to.
        fields: Vec<(Ident, Ident)>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct DropType {
    pub name: QualifiedName,
    pub if_exists: bool,
}

/// Which part of a column an index is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexTargetKind {
    /// The bare column: the values, of a collection too.
    Simple,
    /// `VALUES(c)`
    Values,
    /// `KEYS(c)`
    Keys,
    /// `ENTRIES(c)`
    Entries,
    /// `FULL(c)`
    Full,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexTarget {
    pub column: Ident,
    pub kind: IndexTargetKind,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    /// `CREATE CUSTOM INDEX`
    pub custom: bool,
    pub if_not_exists: bool,
    pub name: Option<Ident>,
    pub table: QualifiedName,
    /// May be empty: custom indexes may have no target.
    pub targets: Vec<IndexTarget>,
    /// `USING 'class'`
    pub using: Option<String>,
    pub properties: Properties,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DropIndex {
    pub name: QualifiedName,
    pub if_exists: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    pub view: QualifiedName,
    pub if_not_exists: bool,
    pub base: QualifiedName,
    /// Empty for `*`.
    pub items: Vec<SelectItem>,
    pub relations: Vec<Relation>,
    pub partition_key: Vec<Ident>,
    pub clustering_columns: Vec<Ident>,
    pub clustering_order: Vec<ClusteringOrder>,
    pub properties: Properties,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AlterView {
    pub view: QualifiedName,
    pub if_exists: bool,
    pub properties: Properties,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DropView {
    pub view: QualifiedName,
    pub if_exists: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateFunction {
    pub name: FunctionName,
    pub or_replace: bool,
    pub if_not_exists: bool,
    pub args: Vec<(Ident, TypeName)>,
    pub called_on_null_input: bool,
    pub returns: TypeName,
    /// In lower case.
    pub language: String,
    pub body: String,
}

/// DROP FUNCTION and DROP AGGREGATE.
#[derive(Clone, Debug, PartialEq)]
pub struct DropFunction {
    pub name: FunctionName,
    pub if_exists: bool,
    /// None when no parentheses were given.
    pub arg_types: Option<Vec<TypeName>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateAggregate {
    pub name: FunctionName,
    pub or_replace: bool,
    pub if_not_exists: bool,
    pub arg_types: Vec<TypeName>,
    pub state_function: Ident,
    pub state_type: TypeName,
    pub final_function: Option<Ident>,
    pub initial_condition: Option<Term>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateTrigger {
    pub name: Ident,
    pub if_not_exists: bool,
    pub table: QualifiedName,
    /// The class of the trigger.
    pub using: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DropTrigger {
    pub name: Ident,
    pub if_exists: bool,
    pub table: QualifiedName,
}
