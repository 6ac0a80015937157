use std::sync::Arc;

use super::*;
use crate::schema::roles::Role;

fn level(name: &str, rate: Option<u32>, timeout_ms: Option<u64>) -> ServiceLevel {
    ServiceLevel {
        name: name.to_owned(),
        max_requests_per_second: rate,
        timeout: timeout_ms.map(Duration::from_millis),
    }
}

fn role(name: &str, member_of: &[&str], level: Option<&str>) -> Role {
    Role {
        name: name.to_owned(),
        member_of: member_of.iter().map(|name| (*name).to_owned()).collect(),
        service_level: level.map(str::to_owned),
        ..Role::default()
    }
}

fn roles(roles: Vec<Role>, levels: Vec<ServiceLevel>) -> Roles {
    Roles {
        roles: roles
            .into_iter()
            .map(|role| (role.name.clone(), Arc::new(role)))
            .collect(),
        service_levels: levels
            .into_iter()
            .map(|level| (level.name.clone(), level))
            .collect(),
        ..Roles::default()
    }
}

/// Returns the rate and the timeout in milliseconds, each with its level.
fn limits(roles: &Roles, role: &str) -> (Option<(u32, String)>, Option<(u128, String)>) {
    let effective = roles.effective_level(role);
    let rate = effective.max_requests_per_second;
    let timeout = effective.timeout;
    (
        rate.map(|rate| (rate.limit, rate.level)),
        timeout.map(|timeout| (timeout.limit.as_millis(), timeout.level)),
    )
}

#[test]
fn the_least_limits_of_all_roles_win() {
    let roles = roles(
        vec![
            role("app", &["team"], Some("gold")),
            role("team", &["all"], Some("slow")),
            role("all", &[], Some("wide")),
            role("other", &[], None),
        ],
        vec![
            level("gold", Some(1_000), Some(500)),
            level("slow", Some(5_000), Some(100)),
            level("wide", Some(100), None),
        ],
    );
    assert_eq!(
        limits(&roles, "app"),
        (Some((100, "wide".to_owned())), Some((100, "slow".to_owned())))
    );
    assert_eq!(limits(&roles, "all"), (Some((100, "wide".to_owned())), None));
    assert_eq!(limits(&roles, "other"), (None, None));
    assert_eq!(limits(&roles, "nobody"), (None, None));
}

#[test]
fn of_equal_limits_that_of_the_role_itself_is_named() {
    let roles = roles(
        vec![role("app", &["a"], Some("own")), role("a", &[], Some("granted"))],
        vec![level("own", Some(7), None), level("granted", Some(7), Some(1))],
    );
    assert_eq!(
        limits(&roles, "app"),
        (Some((7, "own".to_owned())), Some((1, "granted".to_owned())))
    );
}

#[test]
fn dropped_service_level_limits_no_role() {
    let roles = roles(vec![role("app", &[], Some("gone"))], Vec::new());
    assert_eq!(limits(&roles, "app"), (None, None));
}
