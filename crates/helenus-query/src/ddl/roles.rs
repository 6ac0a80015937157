//! Statements about roles, users and permissions. Everybody is anonymous, as with Cassandra's `AllowAllAuthenticator`; so nobody may run them, and
//! what they are told depends on what is looked at first: whether they may, what is asked for, or who they are.

use helenus_cql::ast::{self, Access, Statement};
use helenus_cql::error::CqlError;

/// True for a statement that [`refusal`] answers.
pub(crate) fn is_about_roles(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::CreateRole(_)
            | Statement::AlterRole(_)
            | Statement::DropRole(_)
            | Statement::GrantRole(_)
            | Statement::RevokeRole(_)
            | Statement::GrantPermissions(_)
            | Statement::RevokePermissions(_)
            | Statement::ListRoles(_)
            | Statement::ListPermissions(_)
            | Statement::AddIdentity(_)
            | Statement::DropIdentity(_)
    )
}

/// What Cassandra answers to such a statement.
pub(crate) fn refusal(statement: &Statement, data_centers: &[String]) -> CqlError {
    let refused = match statement {
        Statement::CreateRole(statement) => created(statement, data_centers),
        Statement::AlterRole(statement) => altered(statement),
        _ => Ok(()),
    };
    refused.err().unwrap_or_else(|| {
        CqlError::Unauthorized(
            "You have to be logged in and not anonymous to perform this request".to_owned(),
        )
    })
}

fn unauthorized(message: &str) -> Result<(), CqlError> {
    Err(CqlError::Unauthorized(message.to_owned()))
}

fn created(statement: &ast::CreateRole, data_centers: &[String]) -> Result<(), CqlError> {
    if statement.options.superuser == Some(true) {
        return unauthorized("Only superusers can create a role with superuser status");
    }
    supported(&statement.options)?;
    if statement.name.is_empty() {
        return Err(CqlError::invalid("Role name can't be an empty string"));
    }
    if let Some(Access::Named(named)) = &statement.options.datacenters {
        let unknown: Vec<&str> = named
            .iter()
            .filter(|name| !data_centers.contains(name))
            .map(String::as_str)
            .collect();
        if !unknown.is_empty() {
            return Err(CqlError::invalid(format!(
                "Invalid value(s) for DATACENTERS '[{}]',All values must be valid datacenters",
                unknown.join(", ")
            )));
        }
    }
    match &statement.options.cidrs {
        Some(Access::Named(named)) => Err(CqlError::invalid(format!(
            "Invalid CIDR group(s): [{}]. Available CIDR Groups are: []",
            named.join(", ")
        ))),
        _ => Ok(()),
    }
}

fn altered(statement: &ast::AlterRole) -> Result<(), CqlError> {
    let options = &statement.options;
    if options.superuser.is_some() {
        return unauthorized("Only superusers are allowed to alter superuser status");
    }
    if options.datacenters.is_some() {
        return unauthorized("Only superusers are allowed to alter access to datacenters.");
    }
    if options.cidrs.is_some() {
        return unauthorized("Only superusers are allowed to alter access from CIDR groups.");
    }
    supported(options)?;
    match options.login {
        None => Err(CqlError::invalid("ALTER [ROLE|USER] can't be empty")),
        Some(_) => Ok(()),
    }
}

/// Options that need an authenticator.
fn supported(options: &ast::RoleOptions) -> Result<(), CqlError> {
    let unsupported = [
        ("PASSWORD", options.password.is_some()),
        ("HASHED_PASSWORD", options.hashed_password.is_some()),
        ("OPTIONS", options.options.is_some()),
    ];
    match unsupported.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(CqlError::invalid(format!(
            "org.apache.cassandra.auth.CassandraRoleManager doesn't support {option}"
        ))),
        None => Ok(()),
    }
}
