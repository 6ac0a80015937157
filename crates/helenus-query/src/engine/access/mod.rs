//! Who may do what: roles, their passwords, what they are granted (Cassandra's package `auth`).
//!
//! Roles and permissions are a part of the [`Schema`](crate::schema::Schema): written down with it, the same on every node, and in force with
//! the next request.

pub(crate) mod authorize;
pub(crate) mod credentials;
pub(crate) mod ensure;
pub(crate) mod grant;
pub(crate) mod list;
pub(crate) mod login_limiter;
pub(crate) mod password;
pub(crate) mod past;
pub(crate) mod role;
pub(crate) mod service_level;
pub(crate) mod service_level_lists;

pub use credentials::Credentials;
pub(crate) use credentials::PasswordAuthenticator;

pub(crate) use authorize::authorize;
pub(crate) use grant::{created, kept};
pub(crate) use list::list;
pub(crate) use role::{apply, validate, with_hash};

use std::sync::Arc;

use helenus_cql::error::CqlError;

use crate::schema::Schema;
use crate::schema::roles::{Role, Roles};

/// What is asked of clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessControl {
    /// Clients must say who they are, with a password (Cassandra's `PasswordAuthenticator`).
    pub authenticates: bool,
    /// Clients may do what they are granted (Cassandra's `CassandraAuthorizer`).
    pub authorizes: bool,
}

/// What a statement about roles is looked at with.
pub(crate) struct RoleContext<'a> {
    pub control: AccessControl,
    pub schema: &'a Schema,
    /// The data center of each node.
    pub data_centers: &'a [String],
    /// Who asks; none if nobody is asked who he is.
    pub user: Option<&'a str>,
    /// The keyspace in use.
    pub keyspace: Option<&'a str>,
}
impl RoleContext<'_> {
    pub(crate) fn access(&self) -> &Roles {
        &self.schema.access
    }

    /// `ensureNotAnonymous`
    pub(crate) fn named_user(&self) -> Result<&str, CqlError> {
        self.user.ok_or_else(|| {
            CqlError::Unauthorized(
                "You have to be logged in and not anonymous to perform this request".to_owned(),
            )
        })
    }

    /// Refuses a role that is not there, shown in a way.
    pub(crate) fn existing(&self, name: &str, shown: impl std::fmt::Display) -> Result<&Arc<Role>, CqlError> {
        self.access()
            .role(name)
            .ok_or_else(|| CqlError::invalid(format!("{shown} doesn't exist")))
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
