//! LIST of service levels, in ScyllaDB's columns.

use bytes::Bytes;
use helenus_cql::ast::ListServiceLevels;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value::Duration as CqlDuration;

use super::{RoleContext, service_level};
use crate::response::{ColumnSpec, Response, ResultMetadata, Rows, RowsBuilder};
use crate::rows::cells::text;
use crate::schema::roles::service_level::{RATE_OPTION, TIMEOUT_OPTION};
use crate::schema::roles::{EffectiveLevel, Role, ServiceLevel};

type Cells<const N: usize> = [Option<Bytes>; N];

/// Returns the answer to a LIST statement.
///
/// # Errors
/// The level or role does not exist.
pub(crate) fn list(ctx: &RoleContext<'_>, listed: &ListServiceLevels) -> Result<Response, CqlError> {
    let access = ctx.access();
    let existing = |role: &str| ctx.existing(role, format!("Role {role}"));
    Ok(match listed {
        ListServiceLevels::One(name) => levels([service_level::existing(access, name)?].into_iter()),
        ListServiceLevels::All => levels(access.service_levels.values()),
        ListServiceLevels::AttachedTo(role) => attachments([existing(role)?.as_ref()].into_iter()),
        ListServiceLevels::AllAttached => attachments(access.roles.values().map(|role| role.as_ref())),
        ListServiceLevels::EffectiveOf(role) => effective(&access.effective_level(&existing(role)?.name)),
    })
}

fn levels<'a>(levels: impl Iterator<Item = &'a ServiceLevel>) -> Response {
    let row = |level: &ServiceLevel| {
        let rate = level.max_requests_per_second.map(i64::from);
        let rate = rate.map(|rate| Bytes::copy_from_slice(&rate.to_be_bytes()));
        let timeout = level.timeout.map(|timeout| duration(timeout).to_bytes());
        [text(&level.name), rate, timeout]
    };
    let columns = [
        ("service_level", CqlType::TEXT),
        (RATE_OPTION, CqlType::BIGINT),
        (TIMEOUT_OPTION, CqlType::DURATION),
    ];
    table("service_levels", columns, levels.map(row))
}

fn duration(timeout: std::time::Duration) -> CqlDuration {
    CqlDuration::new(0, 0, i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX))
}

/// Returns the roles with a level of their own.
fn attachments<'a>(roles: impl Iterator<Item = &'a Role>) -> Response {
    let row = |role: &Role| {
        let level = role.service_level.as_ref()?;
        Some([text(&role.name), text(level)])
    };
    let columns = [("role", CqlType::TEXT), ("service_level", CqlType::TEXT)];
    table("role_attributes", columns, roles.filter_map(row))
}

/// Returns each limit with the level that it comes from.
fn effective(level: &EffectiveLevel) -> Response {
    let rate = level.max_requests_per_second.as_ref();
    let rate = rate.map(|rate| (RATE_OPTION, &rate.level, rate.limit.to_string()));
    let timeout = level.timeout.as_ref();
    let timeout = timeout.map(|timeout| {
        (
            TIMEOUT_OPTION,
            &timeout.level,
            duration(timeout.limit).to_string(),
        )
    });
    let rows = [rate, timeout].into_iter().flatten();
    let columns = [
        ("service_level_option", CqlType::TEXT),
        ("effective_service_level", CqlType::TEXT),
        ("value", CqlType::TEXT),
    ];
    let rows = rows.map(|(option, level, value)| [text(option), text(level), text(&value)]);
    table("effective_service_level", columns, rows)
}

fn table<const N: usize>(
    name: &str,
    columns: [(&str, CqlType); N],
    rows: impl Iterator<Item = Cells<N>>,
) -> Response {
    let mut builder = RowsBuilder::new(N);
    for row in rows {
        for cell in row {
            builder.push(cell.as_deref());
        }
    }
    let columns = columns.map(|(column, ty)| ColumnSpec::new("system_auth", name, column, ty));
    Response::Rows(Rows {
        metadata: ResultMetadata::new(columns.to_vec()).into(),
        content: builder.finish(),
        paging_state: None,
    })
}
