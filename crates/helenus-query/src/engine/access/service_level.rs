//! Statements about service levels: their authorization, their checks and their effects.

use std::time::Duration;

use helenus_cql::ast::{ListServiceLevels, ServiceLevelOption, ServiceLevelStatement};
use helenus_cql::error::CqlError;
use helenus_cql::value::Duration as CqlDuration;

use super::RoleContext;
use super::credentials::CREDENTIAL_LEN_MAX;
use crate::schema::roles::service_level::{RATE_OPTION, TIMEOUT_OPTION};
use crate::schema::roles::{Role, Roles, ServiceLevel};

/// Maximum timeout, as in ScyllaDB.
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Refuses a statement that its user may not run. Superusers may change and list levels, and every role may list its own.
///
/// # Errors
/// [`CqlError::Unauthorized`]
pub(crate) fn may_manage(ctx: &RoleContext<'_>, statement: &ServiceLevelStatement) -> Result<(), CqlError> {
    let user = ctx.named_user()?;
    let own = match statement {
        ServiceLevelStatement::List(
            ListServiceLevels::AttachedTo(role) | ListServiceLevels::EffectiveOf(role),
        ) => Some(role),
        _ => None,
    };
    let access = ctx.access();
    let is_own = own.is_some_and(|own| access.all_of(user).iter().any(|role| role.name == *own));
    if is_own || access.is_superuser(user) {
        return Ok(());
    }
    Err(CqlError::Unauthorized(match statement {
        ServiceLevelStatement::List(_) => {
            "Only superusers are allowed to list service levels, except for those of their own roles"
                .to_owned()
        }
        _ => "Only superusers are allowed to change service levels".to_owned(),
    }))
}

/// Checks a statement without applying it.
///
/// # Errors
/// [`CqlError::Invalid`]
pub(crate) fn validate(ctx: &RoleContext<'_>, statement: &ServiceLevelStatement) -> Result<(), CqlError> {
    ctx.named_user()?;
    apply(ctx, statement).map(drop)
}

/// Returns the roles after a statement. `None` if it changes nothing.
///
/// # Errors
/// [`CqlError::Invalid`]
pub(crate) fn apply(
    ctx: &RoleContext<'_>,
    statement: &ServiceLevelStatement,
) -> Result<Option<Roles>, CqlError> {
    let access = ctx.access();
    Ok(match statement {
        ServiceLevelStatement::Create(statement) => {
            let new = ServiceLevel {
                name: checked_name(&statement.name)?.to_owned(),
                ..ServiceLevel::default()
            };
            let level = with_options(&new, &statement.options)?;
            match access.service_levels.get(&statement.name) {
                Some(_) if statement.if_not_exists => None,
                Some(_) => {
                    return Err(CqlError::invalid(format!(
                        "Service level {} already exists",
                        statement.name
                    )));
                }
                None => Some(with_level(access, level)),
            }
        }
        ServiceLevelStatement::Alter(statement) => {
            let level = existing(access, &statement.name)?;
            Some(with_level(access, with_options(level, &statement.options)?))
        }
        ServiceLevelStatement::Drop(statement) => match existing(access, &statement.name) {
            Ok(_) => Some(without_level(access, &statement.name)),
            Err(_) if statement.if_exists => None,
            Err(error) => return Err(error),
        },
        ServiceLevelStatement::Attach { level, role } => {
            existing(access, level)?;
            let role = ctx.existing(role, format!("Role {role}"))?;
            Some(access.with_role(attached(role, Some(level.clone()))))
        }
        ServiceLevelStatement::Detach { role } => {
            let role = ctx.existing(role, format!("Role {role}"))?;
            let has_level = role.service_level.is_some();
            has_level.then(|| access.with_role(attached(role, None)))
        }
        ServiceLevelStatement::List(list) => {
            match list {
                ListServiceLevels::One(name) => existing(access, name).map(drop)?,
                ListServiceLevels::AttachedTo(role) | ListServiceLevels::EffectiveOf(role) => {
                    ctx.existing(role, format!("Role {role}")).map(drop)?;
                }
                ListServiceLevels::All | ListServiceLevels::AllAttached => {}
            }
            None
        }
    })
}

pub(super) fn existing<'a>(access: &'a Roles, name: &str) -> Result<&'a ServiceLevel, CqlError> {
    let level = access.service_levels.get(name);
    level.ok_or_else(|| CqlError::invalid(format!("Service level {name} doesn't exist")))
}

fn checked_name(name: &str) -> Result<&str, CqlError> {
    match name.len() {
        0 => Err(CqlError::invalid("The name of a service level can't be empty")),
        len if len > CREDENTIAL_LEN_MAX => Err(CqlError::invalid(format!(
            "The name of a service level can't be longer than {CREDENTIAL_LEN_MAX} bytes, and this one has {len}"
        ))),
        _ => Ok(name),
    }
}

fn with_level(access: &Roles, level: ServiceLevel) -> Roles {
    let mut access = access.clone();
    access.service_levels.insert(level.name.clone(), level);
    access
}

fn without_level(access: &Roles, name: &str) -> Roles {
    let mut access = access.with_each(|role| {
        let has_level = role.service_level.as_deref() == Some(name);
        has_level.then(|| attached(role, None))
    });
    access.service_levels.remove(name);
    access
}

fn attached(role: &Role, level: Option<String>) -> Role {
    Role {
        service_level: level,
        ..role.clone()
    }
}

/// Returns the level with the declared options changed.
fn with_options(level: &ServiceLevel, options: &[ServiceLevelOption]) -> Result<ServiceLevel, CqlError> {
    let mut level = level.clone();
    for option in options {
        let value = option.value.as_deref();
        match option.name.as_str() {
            RATE_OPTION => level.max_requests_per_second = value.map(rate).transpose()?,
            TIMEOUT_OPTION => level.timeout = value.map(timeout).transpose()?,
            name => {
                return Err(CqlError::invalid(format!(
                    "Unknown option '{name}' of a service level: the options are {RATE_OPTION} and {TIMEOUT_OPTION}"
                )));
            }
        }
    }
    Ok(level)
}

/// Parses a rate. 0 is refused, because a role with this rate could not even request another level.
fn rate(text: &str) -> Result<u32, CqlError> {
    let rate = text.parse().ok().filter(|rate| *rate > 0);
    rate.ok_or_else(|| {
        CqlError::invalid(format!(
            "Invalid value '{text}' for {RATE_OPTION}: it must be a whole number from 1 to {}, or null",
            u32::MAX
        ))
    })
}

fn timeout(text: &str) -> Result<Duration, CqlError> {
    let declared = CqlDuration::parse(text).ok().filter(|declared| {
        declared.months == 0 && declared.days == 0 && declared.has_millisecond_precision()
    });
    let timeout = declared.and_then(|declared| u64::try_from(declared.nanoseconds).ok());
    let timeout = timeout.map(Duration::from_nanos);
    let timeout = timeout.filter(|timeout| !timeout.is_zero() && *timeout <= TIMEOUT_MAX);
    timeout.ok_or_else(|| {
        CqlError::invalid(format!(
            "Invalid value '{text}' for {TIMEOUT_OPTION}: it must be a duration of whole milliseconds from 1ms to 24h, \
             or null"
        ))
    })
}

#[cfg(test)]
#[path = "service_level_tests.rs"]
mod tests;
