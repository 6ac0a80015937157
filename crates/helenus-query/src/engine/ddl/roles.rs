//! Statements about roles. They are queued with statements that change the schema, because roles are part of the schema document.

use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;

use super::{data_centers, queue};
use crate::engine::{Engine, access};
use crate::request::ClientState;
use crate::response::{Outcome, Response};

/// Runs a statement that changes or lists roles.
pub(crate) async fn manage(
    engine: &Arc<Engine>,
    client: &ClientState,
    keyspace: Option<&str>,
    statement: &ast::Statement,
) -> Result<Outcome, CqlError> {
    let schema = engine.schema();
    let data_centers = data_centers(engine);
    let ctx = engine.role_context(&schema, &data_centers, client, keyspace);
    let (statement, generated) = access::with_generated(statement);
    access::validate(&ctx, &statement)?;
    if let Some(listed) = access::list(&ctx, &statement) {
        return Ok(listed?.into());
    }
    let statement = access::with_hash(statement.into_owned()).await?;
    let done = queue::run(engine, client, keyspace, statement.clone()).await?;
    // The role may have existed, so that nothing was generated.
    let answer = match generated.takes_effect(&statement, &engine.schema().access) {
        true => generated.answer(),
        false => Response::Void,
    };
    Ok(answer.with(done.warnings))
}

/// Creates the superuser `cassandra`, with the password `cassandra` that users of Cassandra know. With `password`, creates it or changes
/// its password.
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
        is_name_generated: false,
        // Another node may have created the role first.
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
