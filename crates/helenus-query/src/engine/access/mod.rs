//! Access control: roles, their passwords and their permissions (Cassandra's package `auth`).
//!
//! Roles and permissions are part of the [`Schema`](crate::schema::Schema). They are written down with it, are the same on every node, and
//! take effect with the next request.

pub(crate) mod as_of;
pub(crate) mod authorize;
pub(crate) mod credentials;
pub(crate) mod ensure;
mod generated;
pub(crate) mod grant;
pub(crate) mod list;
pub(crate) mod login_limiter;
pub(crate) mod password;
pub(crate) mod role;
pub(crate) mod service_level;
pub(crate) mod service_level_lists;

pub use credentials::Credentials;
pub(crate) use credentials::PasswordAuthenticator;

pub(crate) use authorize::authorize;
pub(crate) use generated::with_generated;
pub(crate) use grant::{created, kept};
pub(crate) use list::list;
pub(crate) use role::{apply, validate, with_hash};

use std::sync::Arc;

use helenus_cql::error::CqlError;

use crate::schema::Schema;
use crate::schema::roles::{Role, Roles};

/// The access control that applies to clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessControl {
    /// True if clients must authenticate with a password (Cassandra's `PasswordAuthenticator`).
    pub authenticates: bool,
    /// True if clients need permissions (Cassandra's `CassandraAuthorizer`).
    pub authorizes: bool,
}

/// The context of a statement about roles.
pub(crate) struct RoleContext<'a> {
    pub control: AccessControl,
    pub schema: &'a Schema,
    /// The data center of each node.
    pub data_centers: &'a [String],
    /// The authenticated role. `None` if authentication is off.
    pub user: Option<&'a str>,
    /// The keyspace in use. `None` if there is none.
    pub keyspace: Option<&'a str>,
}
impl RoleContext<'_> {
    pub(crate) fn access(&self) -> &Roles {
        &self.schema.access
    }

    /// Returns the authenticated role, or refuses the statement without one (Cassandra's `ensureNotAnonymous`).
    pub(crate) fn named_user(&self) -> Result<&str, CqlError> {
        self.user.ok_or_else(|| {
            CqlError::Unauthorized(
                "You have to be logged in and not anonymous to perform this request".to_owned(),
            )
        })
    }

    /// Returns the role of that name, which must exist. The error names the role as `shown`.
    pub(crate) fn existing(&self, name: &str, shown: impl std::fmt::Display) -> Result<&Arc<Role>, CqlError> {
        self.access()
            .role(name)
            .ok_or_else(|| CqlError::invalid(format!("{shown} doesn't exist")))
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
