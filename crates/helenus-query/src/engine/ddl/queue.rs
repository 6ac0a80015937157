//! A queue of statements that change the schema. The statement that gets the lock executes all waiting statements, and writes their changes
//! down together.

use std::borrow::Cow;
use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{Change, ChangeResult, DdlContext, Effect, apply, commit, difference, role_changes, truncate};
use crate::engine::Engine;
use crate::engine::guardrails;
use crate::request::{ClientState, User};
use crate::schema::Schema;
use crate::schema::cdc_log::with_logs;
use crate::storage::agreement::await_schema_agreement;

/// Maximum number of statements that are written down together.
const TOGETHER_MAX: usize = 256;

type Answer = Result<ChangeResult, CqlError>;

/// A waiting statement.
struct QueuedChange {
    statement: ast::Statement,
    keyspace: Option<String>,
    user: Option<Arc<User>>,
    answer: oneshot::Sender<Answer>,
}

/// The waiting statements.
#[derive(Default)]
pub(crate) struct DdlQueue(Mutex<Vec<QueuedChange>>);

impl DdlQueue {
    fn take(&self) -> Vec<QueuedChange> {
        let mut waiting = self.0.lock();
        let count = waiting.len().min(TOGETHER_MAX);
        waiting.drain(..count).collect()
    }
}

/// Runs a statement, and perhaps others that were queued before it.
pub(crate) async fn run(
    engine: &Arc<Engine>,
    client: &ClientState,
    keyspace: Option<&str>,
    statement: ast::Statement,
) -> Answer {
    let (answer, mut answered) = oneshot::channel();
    let updates = &engine.schema_updates;
    updates.queue.0.lock().push(QueuedChange {
        statement,
        keyspace: keyspace.map(str::to_owned),
        user: client.user.clone(),
        answer,
    });
    loop {
        tokio::select! {
            biased;
            done = &mut answered => {
                return done.unwrap_or_else(|_| Err(CqlError::Server("the schema change was given up".to_owned())));
            }
            changing = updates.changing.lock() => {
                let together = updates.queue.take();
                if together.is_empty() {
                    // Another caller has executed this statement and is about to answer it.
                    drop(changing);
                    let done = (&mut answered).await;
                    return done.unwrap_or_else(|_| Err(CqlError::Server("the schema change was given up".to_owned())));
                }
                let written = write(engine, &together).await;
                drop(changing);
                finish(engine, together, written).await;
            }
        }
    }
}

/// Waits until all nodes agree, and answers the statements.
async fn finish(engine: &Arc<Engine>, together: Vec<QueuedChange>, written: Result<Written, CqlError>) {
    let answers: Vec<Answer> = match written {
        Ok(Written { answers, is_changed }) => {
            let warnings = match is_changed {
                true => await_schema_agreement(&engine.context).await,
                false => Ok(Vec::new()),
            };
            let with_warnings = |done: ChangeResult| {
                let mut done = done;
                done.warnings.extend(warnings.clone()?);
                Ok(done)
            };
            answers
                .into_iter()
                .map(|answer| answer.and_then(with_warnings))
                .collect()
        }
        Err(error) => together.iter().map(|_| Err(error.clone())).collect(),
    };
    for (waiting, answer) in together.into_iter().zip(answers) {
        // Sending fails if the client is gone.
        let _ = waiting.answer.send(answer);
    }
}

struct Written {
    answers: Vec<Answer>,
    is_changed: bool,
}

/// Applies the statements one after the other, and writes the resulting schema down.
async fn write(engine: &Arc<Engine>, together: &[QueuedChange]) -> Result<Written, CqlError> {
    loop {
        let before = engine.schema();
        let mut schema = Schema::clone(&before);
        let mut is_changed = false;
        let mut answers = Vec::with_capacity(together.len());
        for waiting in together {
            answers.push(match change(engine, &schema, waiting) {
                Ok((next, done)) => {
                    is_changed |= next.is_some();
                    schema = next.unwrap_or(schema);
                    Ok(done)
                }
                Err(error) => Err(error),
            });
        }
        if !is_changed || commit(engine, &before, schema).await? {
            return Ok(Written { answers, is_changed });
        }
    }
}

/// Returns the schema after a statement, with the statement's result. The schema is `None` if the statement does not change it.
fn change(
    engine: &Arc<Engine>,
    schema: &Schema,
    waiting: &QueuedChange,
) -> Result<(Option<Schema>, ChangeResult), CqlError> {
    let before = schema;
    let user = waiting.user.as_deref().map(|user| user.name.as_str());
    let ctx = DdlContext::new(engine, schema, user, waiting.keyspace.as_deref());
    if crate::schema::roles::is_about_roles(&waiting.statement) {
        return role_changes::apply(&ctx, &waiting.statement);
    }
    let mut statement = Cow::Borrowed(&waiting.statement);
    let mut guard = guardrails::guard_of(
        &engine.context.limits().guardrails,
        schema,
        waiting.user.as_deref(),
    );
    if let Some(guard) = &mut guard {
        guardrails::schema_changes::check_statement(guard, statement.to_mut())?;
    }
    if let ast::Statement::Truncate(name) = statement.as_ref() {
        let truncated = truncate::truncate(&ctx, name)?;
        return Ok((Some(truncated), ChangeResult::default()));
    }
    let mut effect = apply(&ctx, &statement)?;
    if let Some(mut guard) = guard {
        if let Effect::Changed(change) = &effect {
            let keyspace = waiting.keyspace.as_deref();
            guardrails::schema_changes::check_outcome(&mut guard, &statement, keyspace, &change.schema)?;
        }
        let (Effect::Changed(Change { warnings, .. }) | Effect::Unchanged(warnings)) = &mut effect;
        warnings.splice(0..0, guard.warnings);
    }
    Ok(match effect {
        Effect::Changed(Change {
            mut schema,
            event,
            warnings,
            to_build,
        }) => {
            schema = with_logs(before, schema, ctx.now_us)?;
            schema.access = Arc::new(role_changes::after(&ctx, &schema, &waiting.statement));
            let done = ChangeResult {
                events: difference::events(before, &schema),
                event: Some(event),
                warnings,
                to_build,
            };
            (Some(schema), done)
        }
        Effect::Unchanged(warnings) => {
            let done = ChangeResult {
                warnings,
                ..ChangeResult::default()
            };
            (None, done)
        }
    })
}
