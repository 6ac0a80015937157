//! Branches: keyspaces and tables that are made as copies of others. A branch begins with the rows of its origin at a consistent cut, and
//! shares the files.
//!
//! The rows of the cut are in pinned tablets, like those of a snapshot of tables in use. In the schema, the pinned tablets are the origin
//! of each table of the branch. They stay pinned as long as a table with that origin exists, in use or in a snapshot.

use std::collections::BTreeSet;
use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_tablet::Store;

use super::Engine;
use super::as_of::time_of;
use super::ddl::branch::{Branch, Copy, Source};
use super::ddl::{self, Change, DdlContext, difference, role_changes};
use super::guardrails;
use super::system;
use crate::execution::backfill::{self, SchemaChanges};
use crate::request::ClientState;
use crate::response::{Outcome, Response, SchemaChange};
use crate::schema::Keyspace;
use crate::schema::cdc_log::with_logs;
use crate::storage::agreement::await_schema_agreement;

/// The result of a statement that has made a branch.
struct Made {
    event: SchemaChange,
    events: Vec<SchemaChange>,
    warnings: Vec<String>,
}

impl Engine {
    /// Runs a statement that makes a branch.
    ///
    /// # Errors
    /// [`CqlError::Invalid`] if the origin does not exist, or if the tablets of this store can't be pinned. Other errors are those of
    /// statements that change the schema, such as a name that is in use.
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
        self.schema_updates.announce(made.events);
        // Indexes and views that were not complete at the cut are built further.
        let schemas: Arc<dyn SchemaChanges> = self.clone();
        backfill::resume(&self.context, &schemas);
        Ok(Response::SchemaChange(made.event).with(warnings))
    }

    /// Makes a branch. `None` if the name is in use and the statement has IF NOT EXISTS.
    async fn make_branch(
        self: &Arc<Self>,
        client: &ClientState,
        keyspace: Option<&str>,
        statement: &ast::Statement,
        copy: Copy<'_>,
    ) -> Result<Option<Made>, CqlError> {
        let user = client.user.as_deref().map(|user| user.name.as_str());
        // The lock prevents others from unpinning the tablets before the schema names them.
        let _pinning = self.cuts.pinning.lock().await;
        // No change of the schema may come between the choice of the tables and the pin.
        let _changing = self.schema_updates.changing.lock().await;
        let before = self.schema();
        let ctx = DdlContext::new(self, &before, user, keyspace);
        if !copy.is_to_be_made(&ctx)? {
            return Ok(None);
        }
        let (source, pinned, is_new) = match copy.time() {
            Some(literal) => {
                let of = self.schema_as_of(time_of(literal)?).await?;
                let keyspace = Keyspace::clone(of.schema.require_keyspace(copy.origin(&ctx)?)?);
                let Source { keyspace, .. } = copy.source(&ctx, Some(keyspace))?;
                copy.permitted(&ctx, &keyspace)?;
                let earlier = self.tables_as_of(of, std::slice::from_ref(&keyspace)).await?;
                (keyspace, self.pin_as_of(&earlier).await?, true)
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

    /// Writes the schema with the branch. `None` if another node changed the schema concurrently.
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
        schema = with_logs(ctx.schema, schema, ctx.now_us)?;
        schema.access = Arc::new(role_changes::after(ctx, &schema, statement));
        let made = Made {
            event,
            events: difference::events(ctx.schema, &schema),
            warnings,
        };
        Ok(ddl::commit(self, ctx.schema, schema).await?.then_some(made))
    }
}

/// Returns the names of the tables of a store that have an origin, including tables of snapshots.
///
/// # Errors
/// The schema can't be read.
pub async fn of_store(store: &Store) -> Result<Vec<String>, CqlError> {
    let schema = ddl::load(store, system::keyspaces).await?;
    let names: BTreeSet<String> = schema.branches().map(|table| table.full_name()).collect();
    Ok(names.into_iter().collect())
}
