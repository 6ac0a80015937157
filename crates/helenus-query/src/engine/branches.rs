//! Branches: keyspaces and tables that are made as copies of others, with the rows of these at one moment, and share their files.
//!
//! The rows of the moment lie in pinned tablets, as those of a snapshot of tables in use do. The schema names them as the origin of each table
//! of the branch, and keeps them pinned as long as such a table is there, in use or in a snapshot.

use std::collections::BTreeSet;
use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_tablet::Store;

use super::Engine;
use super::ddl::branch::{Branch, Copy, Source};
use super::ddl::{self, Change, DdlContext, difference, role_changes};
use super::guardrails;
use super::past::time_of;
use super::system;
use crate::execution::backfill::{self, SchemaChanges};
use crate::request::ClientState;
use crate::response::{Outcome, Response, SchemaChange};
use crate::schema::Keyspace;
use crate::storage::agreement::await_schema_agreement;

/// What the statement has done.
struct Made {
    event: SchemaChange,
    events: Vec<SchemaChange>,
    warnings: Vec<String>,
}

impl Engine {
    /// Runs a statement that makes a branch.
    ///
    /// # Errors
    /// What is to be copied is not there, the name is in use, or the tablets of this store can't be pinned ([`CqlError::Invalid`] and others of
    /// statements that change the schema).
    pub(super) async fn branch(
        self: &Arc<Self>,
        client: &ClientState,
        keyspace: Option<&str>,
        statement: &ast::Statement,
    ) -> Result<Outcome, CqlError> {
        let Some(copy) = Copy::of(statement) else {
            return Err(CqlError::Server("the statement makes no branch".to_owned()));
        };
        let Some(made) = self.make_branch(client, keyspace, statement, copy).await? else {
            return Ok(Response::Void.into());
        };
        let mut warnings = made.warnings;
        warnings.extend(await_schema_agreement(&self.context).await?);
        ddl::announce(self, made.events);
        // Of indexes and views that were not complete at the moment.
        let schemas: Arc<dyn SchemaChanges> = self.clone();
        backfill::resume(&self.context, &schemas);
        Ok(Response::SchemaChange(made.event).with(warnings))
    }

    /// None if IF NOT EXISTS finds the name in use.
    async fn make_branch(
        self: &Arc<Self>,
        client: &ClientState,
        keyspace: Option<&str>,
        statement: &ast::Statement,
        copy: Copy<'_>,
    ) -> Result<Option<Made>, CqlError> {
        let user = client.user.as_deref().map(|user| user.name.as_str());
        // Nothing that is not written down yet may be let go meanwhile.
        let _pinning = self.pinning.lock().await;
        // The tables are those of the moment that is pinned.
        let _changing = self.ddl.lock().await;
        let before = self.schema();
        let ctx = DdlContext::new(self, &before, user, keyspace);
        if !copy.is_to_be_made(&ctx)? {
            return Ok(None);
        }
        let (source, pinned, is_new) = match copy.time() {
            Some(literal) => {
                let of = self.schema_then(time_of(literal)?).await?;
                let keyspace = Keyspace::clone(of.schema.require_keyspace(copy.origin(&ctx)?)?);
                let Source { keyspace, .. } = copy.source(&ctx, Some(keyspace))?;
                copy.permitted(&ctx, &keyspace)?;
                let then = self.then(of, std::slice::from_ref(&keyspace)).await?;
                (keyspace, self.pin_then(&then).await?, true)
            }
            None => {
                let Source { keyspace, pinned } = copy.source(&ctx, None)?;
                copy.permitted(&ctx, &keyspace)?;
                match pinned {
                    Some(pinned) => (keyspace, pinned, false),
                    None => (keyspace, self.pin(false).await?.tablets.into(), true),
                }
            }
        };
        let written = async {
            loop {
                let before = self.schema();
                let ctx = DdlContext::new(self, &before, user, keyspace);
                let source = copy.permitted(&ctx, &source)?;
                let branch = copy.make(&ctx, &source, &pinned)?;
                if let Some(made) = self.write_branch(&ctx, client, statement, branch).await? {
                    return Ok(Some(made));
                }
            }
        };
        let written = written.await;
        if is_new && written.is_err() {
            self.unpin().await;
        }
        written
    }

    /// None if another node has changed the schema meanwhile.
    async fn write_branch(
        self: &Arc<Self>,
        ctx: &DdlContext<'_>,
        client: &ClientState,
        statement: &ast::Statement,
        branch: Branch,
    ) -> Result<Option<Made>, CqlError> {
        let Change {
            mut schema,
            event,
            mut warnings,
            ..
        } = branch.change;
        let limits = self.limits();
        if let Some(mut guard) = guardrails::guard_of(&limits.guardrails, ctx.schema, client.user.as_deref())
        {
            guardrails::schema_changes::check_outcome(&mut guard, statement, ctx.keyspace, &schema)?;
            warnings.splice(0..0, guard.warnings);
        }
        self.know_headers(&branch.numbers).await?;
        schema.access = Arc::new(role_changes::after(ctx, &schema, statement));
        let made = Made {
            event,
            events: difference::events(ctx.schema, &schema),
            warnings,
        };
        Ok(ddl::commit(self, ctx.schema, schema).await?.then_some(made))
    }
}

/// Returns the names of the tables of a store that have an origin, those of snapshots among them.
///
/// # Errors
/// The schema can't be read.
pub async fn of_store(store: &Store) -> Result<Vec<String>, CqlError> {
    let schema = ddl::load(store, system::keyspaces).await?;
    let names: BTreeSet<String> = schema.branches().map(|table| table.full_name()).collect();
    Ok(names.into_iter().collect())
}
