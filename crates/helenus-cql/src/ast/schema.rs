//! Statements that change the schema.

use super::{
    AsOf, ColumnConstraint, FunctionName, Ident, QualifiedName, Relation, SelectItem, Term, TypeName,
};

/// The value of a property in a WITH clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropertyValue {
    /// A constant or a bare keyword. A constant is stored as written; a string, without its quotes.
    Text(String),
    /// `{'class': 'SimpleStrategy', ...}` with the texts as written, in the order written. Keys are unique.
    Map(Vec<(String, String)>),
}

/// The properties of a WITH clause, in the order written. Names are unique, and in lower case unless quoted.
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
    /// The keyspace that is copied.
    pub origin: Ident,
    /// The snapshot or time whose state is copied. `None` for the current state.
    pub as_of: Option<AsOf>,
    /// Options that replace those of the origin. The other options are copied.
    pub properties: Properties,
}

/// `CREATE TABLE … LIKE` (Cassandra 6).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTableLike {
    pub table: QualifiedName,
    pub if_not_exists: bool,
    /// The table whose definition is copied.
    pub source: QualifiedName,
    /// True if the indexes are copied, too (`WITH INDEXES`).
    pub copies_indexes: bool,
    /// Options that replace those of the source.
    pub properties: Properties,
}

/// `CREATE TABLE … AS COPY OF`, which Cassandra does not have.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyTable {
    pub table: QualifiedName,
    pub if_not_exists: bool,
    /// The table that is copied.
    pub origin: QualifiedName,
    /// The snapshot or time whose state is copied. `None` for the current state.
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

/// `MASKED WITH function(args)`. `MASKED WITH DEFAULT` is `system.mask_default()`.
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
    /// The conditions of CHECK. Empty if there are none.
    pub constraints: Vec<ColumnConstraint>,
}

/// The order of one clustering column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusteringOrder {
    pub column: Ident,
    pub descending: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    pub table: QualifiedName,
    pub if_not_exists: bool,
    /// The columns, in the order written. Names are unique.
    pub columns: Vec<ColumnDefinition>,
    /// The columns of the partition key. `None` if no primary key was given.
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

/// The change of an ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
pub enum TableChange {
    /// `ALTER c TYPE t`, which Cassandra parses and then refuses.
    AlterType {
        column: Ident,
        ty: TypeName,
    },
    /// `ALTER c MASKED WITH ...`, or `ALTER c DROP MASKED` if there is no mask.
    Mask {
        column: Ident,
        if_exists: bool,
        mask: Option<ColumnMask>,
    },
    /// `ALTER c CHECK ...`, or `ALTER c DROP CHECK` if there are no constraints.
    Constrain {
        column: Ident,
        if_exists: bool,
        constraints: Vec<ColumnConstraint>,
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
        /// Pairs of the old and the new name.
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
    /// The fields, in the order written. A name may occur twice.
    pub fields: Vec<(Ident, TypeName)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AlterType {
    pub name: QualifiedName,
    pub if_exists: bool,
    pub change: TypeChange,
}

/// The change of an ALTER TYPE.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeChange {
    /// `ALTER field TYPE t`, which Cassandra parses and then refuses.
    AlterField { field: Ident, ty: TypeName },
    AddField {
        if_not_exists: bool,
        field: Ident,
        ty: TypeName,
    },
    RenameFields {
        if_exists: bool,
        /// Pairs of the old and the new name.
        fields: Vec<(Ident, Ident)>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct DropType {
    pub name: QualifiedName,
    pub if_exists: bool,
}

/// The part of a column that an index covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexTargetKind {
    /// The bare column: its value, or the values of a collection.
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
    /// True for `CREATE CUSTOM INDEX`.
    pub custom: bool,
    pub if_not_exists: bool,
    pub name: Option<Ident>,
    pub table: QualifiedName,
    /// The targets. Custom indexes may have none.
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
    /// The selected items. Empty for `*`.
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
    /// The language, in lower case.
    pub language: String,
    pub body: String,
}

/// DROP FUNCTION and DROP AGGREGATE.
#[derive(Clone, Debug, PartialEq)]
pub struct DropFunction {
    pub name: FunctionName,
    pub if_exists: bool,
    /// The types of the arguments. `None` if no parentheses were given.
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
