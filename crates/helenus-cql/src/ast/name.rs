//! Names of columns, tables and functions.

use std::borrow::Borrow;
use std::fmt;

use crate::identifier::quote_identifier;

/// An identifier as it is stored: without quotes, and in lower case unless it was quoted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ident(pub String);

impl Ident {
    pub fn new(name: impl Into<String>) -> Ident {
        Ident(name.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name as CQL text, quoted where necessary.
    pub fn to_cql(&self) -> String {
        quote_identifier(&self.0)
    }
}

impl Borrow<str> for Ident {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Ident {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Ident {
    fn from(name: &str) -> Ident {
        Ident(name.to_owned())
    }
}

impl PartialEq<str> for Ident {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Ident {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Display for Ident {
    /// Writes the bare name, without quotes (Cassandra's `ColumnIdentifier.toString`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a table, view, index or user type, with an optional keyspace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QualifiedName {
    pub keyspace: Option<Ident>,
    pub name: Ident,
}

impl fmt::Display for QualifiedName {
    /// Writes the bare names, without quotes (Cassandra's `QualifiedName.toString`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.keyspace {
            Some(keyspace) => write!(f, "{keyspace}.{}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

/// The name of a function or aggregate. Without a keyspace, native functions are looked up first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FunctionName {
    pub keyspace: Option<Ident>,
    pub name: Ident,
}

impl FunctionName {
    pub fn native(name: &str) -> FunctionName {
        FunctionName {
            keyspace: Some(Ident::from("system")),
            name: Ident::from(name),
        }
    }
}

impl fmt::Display for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.keyspace {
            Some(keyspace) => write!(f, "{keyspace}.{}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}
