//! Statements about roles: their checks (`validate` of Cassandra's statements) and their effects (Cassandra's `CassandraRoleManager`).

use std::collections::BTreeSet;

use helenus_cql::ast::{self, RoleOptions, Statement};
use helenus_cql::error::CqlError;

use super::credentials::CREDENTIAL_LEN_MAX;
use super::{RoleContext, grant, password, service_level};
use crate::schema::roles::{Resource, Role, Roles};

/// Checks a statement before it is prepared or run, as Cassandra does.
///
/// # Errors
/// Cassandra's error.
pub(crate) fn validate(ctx: &RoleContext<'_>, statement: &Statement) -> Result<(), CqlError> {
    match statement {
        Statement::CreateRole(statement) => validate_create(ctx, statement),
        Statement::AlterRole(statement) => validate_alter(ctx, statement),
        Statement::DropRole(statement) => {
            let user = ctx.named_user()?;
            if !statement.if_exists {
                ctx.existing(&statement.name, &statement.name)?;
            }
            match user == statement.name {
                true => Err(CqlError::invalid("Cannot DROP primary role for current login")),
                false => Ok(()),
            }
        }
        Statement::GrantRole(statement) | Statement::RevokeRole(statement) => {
            ctx.named_user()?;
            ctx.existing(&statement.role, &statement.role)?;
            ctx.existing(&statement.grantee, &statement.grantee).map(drop)
        }
        Statement::GrantPermissions(statement) => {
            let resource = grant::validate(ctx, statement)?;
            grant::check_system(&resource, &statement.permissions)
        }
        Statement::RevokePermissions(statement) => grant::validate(ctx, statement).map(drop),
        Statement::ListRoles(statement) => {
            ctx.named_user()?;
            of_role(ctx, statement.of_role.as_deref())
        }
        Statement::ListPermissions(statement) => {
            ctx.named_user()?;
            if let Some(resource) = &statement.resource {
                let resource = grant::resource(ctx, resource)?;
                if !resource.exists(ctx.schema) {
                    return Err(CqlError::invalid(format!("{resource} doesn't exist")));
                }
            }
            of_role(ctx, statement.of_role.as_deref())
        }
        Statement::AddIdentity(statement) => {
            ctx.named_user()?;
            if ctx.access().role(&statement.role).is_none() {
                return Err(CqlError::invalid(format!(
                    "Can not add identity for non-existent role '{}'",
                    statement.role
                )));
            }
            match !statement.if_not_exists && ctx.access().identities.contains_key(&statement.identity) {
                true => Err(CqlError::invalid(format!(
                    "{} already exists",
                    statement.identity
                ))),
                false => Ok(()),
            }
        }
        Statement::DropIdentity(statement) => {
            ctx.named_user()?;
            match statement.if_exists || ctx.access().identities.contains_key(&statement.identity) {
                true => Ok(()),
                false => Err(CqlError::invalid(format!(
                    "identity '{}' doesn't exist",
                    statement.identity
                ))),
            }
        }
        Statement::ServiceLevel(statement) => service_level::validate(ctx, statement),
        _ => Ok(()),
    }
}

fn of_role(ctx: &RoleContext<'_>, name: Option<&str>) -> Result<(), CqlError> {
    name.map_or(Ok(()), |name| {
        ctx.existing(name, Resource::Role(name.to_owned())).map(drop)
    })
}

fn validate_create(ctx: &RoleContext<'_>, statement: &ast::CreateRole) -> Result<(), CqlError> {
    let options = &statement.options;
    validate_options(ctx, options)?;
    if statement.name.is_empty() {
        return Err(CqlError::invalid("Role name can't be an empty string"));
    }
    refuse_longer("Role name", statement.name.len())?;
    validate_access(ctx, options)?;
    ctx.named_user()?;
    match !statement.if_not_exists && ctx.access().role(&statement.name).is_some() {
        true => Err(CqlError::invalid(format!("{} already exists", statement.name))),
        false => Ok(()),
    }
}

fn validate_alter(ctx: &RoleContext<'_>, statement: &ast::AlterRole) -> Result<(), CqlError> {
    let options = &statement.options;
    validate_options(ctx, options)?;
    let is_empty = *options == RoleOptions::default();
    if is_empty {
        return Err(CqlError::invalid("ALTER [ROLE|USER] can't be empty"));
    }
    validate_access(ctx, options)?;
    ctx.named_user()?;
    match statement.if_exists {
        true => Ok(()),
        false => ctx
            .existing(&statement.name, format!("Role {}", statement.name))
            .map(drop),
    }
}

/// Checks the options of a role (Cassandra's `RoleOptions.validate`).
fn validate_options(ctx: &RoleContext<'_>, options: &RoleOptions) -> Result<(), CqlError> {
    let has_passwords = ctx.control.authenticates;
    let unsupported = [
        // A generated password is one of the options by now.
        ("GENERATED_PASSWORD", options.generated_password && !has_passwords),
        ("PASSWORD", options.password.is_some() && !has_passwords),
        (
            "HASHED_PASSWORD",
            options.hashed_password.is_some() && !has_passwords,
        ),
        ("OPTIONS", options.options.is_some()),
    ];
    if let Some((option, _)) = unsupported.iter().find(|(_, is_refused)| *is_refused) {
        return Err(CqlError::invalid(format!(
            "org.apache.cassandra.auth.CassandraRoleManager doesn't support {option}"
        )));
    }
    validate_passwords(options)
}

fn validate_passwords(options: &RoleOptions) -> Result<(), CqlError> {
    if let Some(hash) = &options.hashed_password {
        match password::cost(hash) {
            None => {
                return Err(CqlError::invalid(
                    "Invalid hashed password value. Please use jBcrypt.",
                ));
            }
            Some(cost) if cost > password::COST_MAX => {
                return Err(CqlError::invalid(format!(
                    "Invalid hashed password value: its cost is {cost}, and the highest that logins are checked with is {}",
                    password::COST_MAX
                )));
            }
            Some(_) => {}
        }
    }
    let len = options.password.as_ref().map_or(0, String::len);
    refuse_longer("Password", len)
}

/// Refuses a name or password with which a client could not log in, because it is too long.
fn refuse_longer(what: &str, len: usize) -> Result<(), CqlError> {
    match len > CREDENTIAL_LEN_MAX {
        true => Err(CqlError::invalid(format!(
            "{what} can't be longer than {CREDENTIAL_LEN_MAX} bytes, and this one has {len}"
        ))),
        false => Ok(()),
    }
}

/// Checks the data centers and CIDR groups of a role (Cassandra's `DCPermissions.validate` and `CIDRPermissions.validate`).
fn validate_access(ctx: &RoleContext<'_>, options: &RoleOptions) -> Result<(), CqlError> {
    if let Some(ast::Access::Named(named)) = &options.datacenters {
        let unknown: Vec<&str> = named
            .iter()
            .filter(|name| !ctx.data_centers.contains(name))
            .map(String::as_str)
            .collect();
        if !unknown.is_empty() {
            return Err(CqlError::invalid(format!(
                "Invalid value(s) for DATACENTERS '[{}]',All values must be valid datacenters",
                unknown.join(", ")
            )));
        }
    }
    match &options.cidrs {
        Some(ast::Access::Named(named)) => Err(CqlError::invalid(format!(
            "Invalid CIDR group(s): [{}]. Available CIDR Groups are: []",
            named.join(", ")
        ))),
        _ => Ok(()),
    }
}

/// Returns the roles after a statement, with warnings. The roles are `None` if the statement changes nothing. Passwords must have been
/// hashed before.
///
/// # Errors
/// Cassandra's error.
pub(crate) fn apply(
    ctx: &RoleContext<'_>,
    statement: &Statement,
) -> Result<(Option<Roles>, Vec<String>), CqlError> {
    let access = ctx.access();
    let changed = match statement {
        Statement::CreateRole(statement) => match access.role(&statement.name) {
            Some(_) => None,
            None => Some(create(ctx, statement)),
        },
        Statement::AlterRole(statement) => match access.role(&statement.name) {
            Some(role) => {
                refuse_datacenters(&statement.options)?;
                Some(access.with_role(with_options(role, &statement.options)))
            }
            None => None,
        },
        Statement::DropRole(statement) => access
            .role(&statement.name)
            .map(|_| without_role(access, &statement.name)),
        Statement::GrantRole(statement) => Some(grant_role(ctx, statement)?),
        Statement::RevokeRole(statement) => Some(revoke_role(ctx, statement)?),
        Statement::GrantPermissions(statement) => return grant::grant(ctx, statement),
        Statement::RevokePermissions(statement) => return grant::revoke(ctx, statement),
        Statement::ServiceLevel(statement) => service_level::apply(ctx, statement)?,
        Statement::AddIdentity(statement) => {
            let mut access = access.clone();
            let entry = access.identities.entry(statement.identity.clone());
            entry.or_insert_with(|| statement.role.clone());
            Some(access)
        }
        Statement::DropIdentity(statement) => {
            let mut access = access.clone();
            access.identities.remove(&statement.identity);
            Some(access)
        }
        _ => None,
    };
    Ok((changed, Vec::new()))
}

/// Refuses data centers, which only Cassandra's `CassandraNetworkAuthorizer` supports.
fn refuse_datacenters(options: &RoleOptions) -> Result<(), CqlError> {
    match options.datacenters {
        Some(_) => Err(CqlError::invalid(
            "ACCESS TO DATACENTERS operations not supported by AllowAllNetworkAuthorizer",
        )),
        None => Ok(()),
    }
}

fn create(ctx: &RoleContext<'_>, statement: &ast::CreateRole) -> Roles {
    let role = Role {
        name: statement.name.clone(),
        ..Role::default()
    };
    let access = ctx.access().with_role(with_options(&role, &statement.options));
    match ctx.user.filter(|_| ctx.control.authorizes) {
        Some(user) => access.granted(user, &Resource::Role(statement.name.clone())),
        None => access,
    }
}

fn with_options(role: &Role, options: &RoleOptions) -> Role {
    Role {
        can_login: options.login.unwrap_or(role.can_login),
        is_superuser: options.superuser.unwrap_or(role.is_superuser),
        salted_hash: options
            .hashed_password
            .clone()
            .or_else(|| role.salted_hash.clone()),
        ..role.clone()
    }
}

fn without_role(access: &Roles, name: &str) -> Roles {
    let dropped = Resource::Role(name.to_owned());
    let mut access = access.with_each(|role| {
        let knows = role.member_of.contains(name) || role.permissions.contains_key(&dropped);
        knows.then(|| {
            let mut role = role.clone();
            role.member_of.remove(name);
            role.permissions.remove(&dropped);
            role
        })
    });
    access.roles.remove(name);
    access.identities.retain(|_, role| role != name);
    access
}

/// Returns the roles with the grantee's memberships changed.
fn with_membership(access: &Roles, grantee: &Role, change: impl Fn(&mut BTreeSet<String>)) -> Roles {
    let mut grantee = grantee.clone();
    change(&mut grantee.member_of);
    access.with_role(grantee)
}

fn grant_role(ctx: &RoleContext<'_>, statement: &ast::GrantRole) -> Result<Roles, CqlError> {
    let (role, grantee) = (statement.role.as_str(), statement.grantee.as_str());
    let access = ctx.access();
    let is_among = |name: &str, of: &str| access.all_of(of).iter().any(|found| found.name == name);
    let is_member = |member: &str, of: &str| Err(CqlError::invalid(format!("{member} is a member of {of}")));
    if is_among(role, grantee) {
        return is_member(grantee, role);
    }
    if is_among(grantee, role) {
        return is_member(role, grantee);
    }
    let member = ctx.existing(grantee, grantee)?;
    Ok(with_membership(access, member, |member_of| {
        member_of.insert(role.to_owned());
    }))
}

fn revoke_role(ctx: &RoleContext<'_>, statement: &ast::GrantRole) -> Result<Roles, CqlError> {
    let (role, grantee) = (statement.role.as_str(), statement.grantee.as_str());
    let member = ctx.existing(grantee, grantee)?;
    if role != grantee && !member.member_of.contains(role) {
        return Err(CqlError::invalid(format!("{grantee} is not a member of {role}")));
    }
    Ok(with_membership(ctx.access(), member, |member_of| {
        member_of.remove(role);
    }))
}

/// Returns the statement with its password replaced by a hash.
///
/// # Errors
/// The password can't be hashed.
pub(crate) async fn with_hash(mut statement: Statement) -> Result<Statement, CqlError> {
    let (Statement::CreateRole(ast::CreateRole { options, .. })
    | Statement::AlterRole(ast::AlterRole { options, .. })) = &mut statement
    else {
        return Ok(statement);
    };
    if let Some(password) = options.password.take() {
        // Hashing takes about 50 ms of a core, and must not delay other requests.
        let hashed = helenus_tablet::threads::spawn_blocking(move || password::hash(&password)).await;
        let gone = |error| CqlError::Server(format!("the password was not hashed: {error}"));
        options.hashed_password = Some(hashed.map_err(gone)??);
    }
    Ok(statement)
}
