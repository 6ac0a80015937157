//! Statements about roles take their turn with those that change the schema, and are written down with it.

use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;

use super::queue::{self, Done};
use super::{DdlContext, data_centers};
use crate::access::{self, Access};
use crate::engine::Engine;
use crate::request::ClientState;
use crate::response::{Outcome, Response};
use crate::schema::Schema;

/// Runs a statement about roles, or answers what one lists.
pub(super) async fn manage(
    engine: &Arc<Engine>,
    client: &ClientState,
    keyspace: Option<&str>,
    statement: &ast::Statement,
) -> Result<Outcome, CqlError> {
    let schema = engine.schema();
    let data_centers = data_centers(engine);
    let ctx = engine.role_context(&schema, &data_centers, client, keyspace);
    access::validate(&ctx, statement)?;
    if let Some(listed) = access::list(&ctx, statement) {
        return Ok(listed?.into());
    }
    let statement = access::with_hash(statement.clone()).await?;
    let done = queue::run(engine, client, keyspace, statement).await?;
    Ok(Response::Void.with(done.warnings))
}

/// Makes the superuser that a store without roles has in Cassandra, whose name and password its users know; or gives it another password.
pub(crate) async fn make_superuser(engine: &Arc<Engine>, password: Option<&str>) -> Result<(), CqlError> {
    const NAME: &str = "cassandra";
    let options = ast::RoleOptions {
        password: Some(password.unwrap_or(NAME).to_owned()),
        superuser: Some(true),
        login: Some(true),
        ..ast::RoleOptions::default()
    };
    let create = ast::Statement::CreateRole(ast::CreateRole {
        name: NAME.to_owned(),
        // Another node may be first.
        if_not_exists: true,
        options: options.clone(),
    });
    let alter = ast::Statement::AlterRole(ast::AlterRole {
        name: NAME.to_owned(),
        if_exists: true,
        options,
    });
    let statements = match password {
        Some(_) => vec![create, alter],
        None => vec![create],
    };
    for statement in statements {
        let statement = access::with_hash(statement).await?;
        queue::run(engine, &ClientState::default(), None, statement).await?;
    }
    match password {
        Some(_) => tracing::info!("the superuser {NAME} has the password of the settings"),
        None => tracing::warn!("made the superuser {NAME} with the password {NAME}: give it another one"),
    }
    Ok(())
}

/// What a statement about roles makes of them. They may have changed since it was looked at first.
pub(super) fn apply(
    ctx: &DdlContext<'_>,
    statement: &ast::Statement,
) -> Result<Result<(Schema, Done), Done>, CqlError> {
    let (access, warnings) = access::apply(&ctx.roles(), statement)?;
    let done = Done {
        warnings,
        ..Done::default()
    };
    Ok(match access {
        Some(access) => {
            let mut schema = ctx.schema.clone();
            schema.access = Arc::new(access);
            Ok((schema, done))
        }
        None => Err(done),
    })
}

/// The roles after a change of the schema: who made something may do everything with it, and nothing is granted on what is gone.
pub(super) fn after(ctx: &DdlContext<'_>, after: &Schema, statement: &ast::Statement) -> Access {
    let access = access::dropped(after);
    let Some(user) = ctx.user.filter(|_| ctx.control.authorizes) else {
        return access;
    };
    let made = access::created(ctx.schema, after, ctx.keyspace, statement);
    made.iter()
        .fold(access, |access, made| access.granted(user, made))
}
