//! DESCRIBE, which the server answers since Cassandra 4.

use super::{FunctionName, Ident, QualifiedName};

#[derive(Clone, Debug, PartialEq)]
pub struct Describe {
    pub target: DescribeTarget,
    /// WITH INTERNALS
    pub with_internals: bool,
}

/// The subject of a DESCRIBE.
#[derive(Clone, Debug, PartialEq)]
pub enum DescribeTarget {
    Cluster,
    /// `[FULL] SCHEMA`. FULL includes the system keyspaces.
    Schema {
        full: bool,
    },
    Keyspaces,
    /// `[ONLY] KEYSPACE [name]`. Without a name, the keyspace in use.
    Keyspace {
        name: Option<Ident>,
        only: bool,
    },
    Tables,
    Table(QualifiedName),
    Index(QualifiedName),
    View(QualifiedName),
    Types,
    Type(QualifiedName),
    Functions,
    Function(FunctionName),
    Aggregates,
    Aggregate(FunctionName),
    /// `DESCRIBE name`: a keyspace, or else a table, index or view.
    Generic(QualifiedName),
}
