//! Authentication and authorization of the engine's clients.

use std::net::IpAddr;
use std::sync::Arc;

use helenus_cql::ast::Permission;
use helenus_cql::error::CqlError;
use uuid::Uuid;

use super::Engine;
use super::access::{self, AccessControl, Credentials, PasswordAuthenticator, RoleContext};
use super::service_levels::RoleServices;
use crate::analysis::plan::AsOfRead;
use crate::analysis::{Plan, Planned};
use crate::boxed;
use crate::request::{ClientState, User};
use crate::schema::Schema;
use crate::schema::roles::Resource;

/// Authentication and authorization of clients.
pub(crate) struct ClientAccess {
    pub control: AccessControl,
    pub authenticator: PasswordAuthenticator,
    pub role_services: RoleServices,
}

impl ClientAccess {
    pub fn new(control: AccessControl) -> ClientAccess {
        ClientAccess {
            control,
            authenticator: PasswordAuthenticator::default(),
            role_services: RoleServices::default(),
        }
    }
}

impl Engine {
    /// Returns true if clients must log in before they are served.
    pub fn authenticates(&self) -> bool {
        self.access.control.authenticates
    }

    /// Authenticates a client from that address by its credentials.
    ///
    /// # Errors
    /// [`CqlError::BadCredentials`], with Cassandra's message.
    #[boxed]
    pub async fn log_in(&self, address: IpAddr, token: &[u8]) -> Result<Arc<User>, CqlError> {
        let credentials = Credentials::from_token(token)?;
        self.access
            .authenticator
            .authenticate(&self.schema().access, address, credentials)
            .await
    }

    /// Returns true if a user may stay connected: the role still exists, and may still log in.
    pub fn may_stay(&self, user: &str) -> bool {
        self.schema().access.role(user).is_some_and(|role| role.can_login)
    }

    /// Returns true if a user may read a table. Without a table, the user must be a superuser. Always true if authorization is off.
    pub fn may_read(&self, user: Option<&User>, table: Option<(&str, &str)>) -> bool {
        if !self.access.control.authorizes {
            return true;
        }
        let user = user.map_or("", |user| user.name.as_str());
        let access = &self.schema().access;
        match table {
            Some((keyspace, table)) => {
                access.may(user, Permission::Select, &Resource::table(keyspace, table))
            }
            None => access.is_superuser(user),
        }
    }

    /// Returns true if a user may read the table of that name and id. If that table has been dropped, the user must be a superuser, as
    /// without a table.
    pub fn may_read_same(&self, user: Option<&User>, table: Option<(&str, &str)>, id: Option<Uuid>) -> bool {
        let schema = self.schema();
        let is_there = |(keyspace, name): &(&str, &str)| {
            let today = schema.table(keyspace, name).map(|table| table.id);
            today.is_some() && today == id
        };
        self.may_read(user, table.filter(is_there))
    }

    /// Ends the connections of users that may no longer log in.
    pub(crate) fn end_strangers(&self) {
        if self.access.control.authenticates {
            self.clients.end_unless(|user| self.may_stay(user));
        }
    }

    /// Makes `cassandra` a superuser with that password. Without a password, this happens only if there are no roles, and the password is
    /// `cassandra` too.
    ///
    /// # Errors
    /// The change can't be written.
    pub async fn make_superuser(self: &Arc<Self>, password: Option<&str>) -> Result<(), CqlError> {
        if password.is_some() || self.schema().access.roles.is_empty() {
            super::ddl::make_superuser(self, password).await?;
        }
        Ok(())
    }

    pub(crate) fn role_context<'a>(
        &self,
        schema: &'a Schema,
        data_centers: &'a [String],
        client: &'a ClientState,
        keyspace: Option<&'a str>,
    ) -> RoleContext<'a> {
        RoleContext {
            control: self.access.control,
            schema,
            data_centers,
            user: client.user.as_deref().map(|user| user.name.as_str()),
            keyspace,
        }
    }

    /// Returns true if masking is on: columns may be masked, and masks are applied.
    pub(crate) fn masks_columns(&self) -> bool {
        self.context.limits().dynamic_data_masking_enabled
    }

    /// Returns the plan for a client, and true if it masks values because the client has no permission to see them.
    pub(super) fn masked_for<'p>(
        &self,
        client: &ClientState,
        planned: &'p Arc<Planned>,
    ) -> (&'p Arc<Planned>, bool) {
        let masked = planned.masked.as_ref();
        match masked.filter(|masked| self.hides(client, masked, planned.as_of.as_ref())) {
            Some(masked) => (masked, true),
            None => (planned, false),
        }
    }

    /// Returns true if masks hide some of the values that the plan reads from the client.
    fn hides(&self, client: &ClientState, masked: &Planned, as_of: Option<&AsOfRead>) -> bool {
        let shown = match &masked.plan {
            Plan::Select(plan) => Some(plan),
            Plan::Transaction(plan) => plan.returned_select(),
            Plan::Modification(_) | Plan::InsertRows(_) | Plan::Batch(_) | Plan::Direct(_) => None,
        };
        let Some(plan) = shown else {
            return false;
        };
        if !self.access.control.authorizes || !self.masks_columns() {
            return false;
        }
        let schema = self.schema();
        let on = access::as_of::on_table(&schema, as_of, plan.table());
        let user = client.user.as_deref().map_or("", |user| user.name.as_str());
        !schema.access.may(user, Permission::Unmask, &on)
    }

    /// Refuses a statement that the client may not run.
    pub(super) fn authorize(
        &self,
        client: &ClientState,
        keyspace: Option<&str>,
        planned: &Planned,
    ) -> Result<(), CqlError> {
        let user = client.user.as_deref();
        if !planned.plan.is_about_roles()
            && (!self.access.control.authorizes || user.is_some_and(|user| planned.is_allowed(user)))
        {
            return Ok(());
        }
        let schema = self.schema();
        let ctx = self.role_context(&schema, &[], client, keyspace);
        access::authorize(&ctx, user, planned)
    }
}
