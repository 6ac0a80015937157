//! A request whose statements have plans, from the client's frame to the node that executes it.

use std::sync::Arc;

use helenus_cql::ast::BatchKind;
use helenus_cql::error::WriteType;
use helenus_cql::frame::forwarded::Share;

use crate::analysis::modification::ModificationPlan;
use crate::analysis::modification::batch::write_type as batch_write_type;
use crate::analysis::{BatchStatement, Plan, Planned, PlannedBatch, Prepared};
use crate::request::{BoundValue, ClientFrame};

/// The text of a request.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    Text(&'a str),
    Prepared(&'a Prepared),
    Batch(BatchKind, &'a [BatchStatement]),
}

/// A request: the client's frame, the plan, and the part of it that a node executes.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub frame: ClientFrame<'a>,
    pub source: Source<'a>,
    pub(crate) work: RequestWork<'a>,
    /// The keyspace of unqualified names.
    pub keyspace: Option<&'a str>,
    /// True if masked columns are shown masked.
    pub masks: bool,
    /// Version of the schema of the plan. The owner's schema must not be older.
    pub schema_version: u64,
    /// The token by which the request is routed. `None` if it is not known, or the request is about several partitions.
    pub token: Option<i64>,
    /// The timestamp of writes that the first node has chosen for all parts of the request, in microseconds since 1970.
    pub timestamp_us: Option<i64>,
    /// The partitions that the executing node modifies. `None` for all.
    pub share: Option<&'a Share>,
    /// True if the owner is known not to know the prepared statement, so that it gets the text at once.
    pub sends_texts: bool,
}

/// The statement or batch to run.
#[derive(Clone, Copy)]
pub(crate) enum RequestWork<'a> {
    Statement {
        planned: &'a Arc<Planned>,
        values: &'a [BoundValue],
    },
    /// A BATCH message.
    Batch(&'a PlannedBatch),
}

impl<'a> Request<'a> {
    /// Returns a whole request as its client sent it.
    pub(crate) fn new(
        frame: ClientFrame<'a>,
        source: Source<'a>,
        work: RequestWork<'a>,
        keyspace: Option<&'a str>,
        schema_version: u64,
    ) -> Request<'a> {
        Request {
            frame,
            source,
            work,
            keyspace,
            masks: false,
            schema_version,
            token: None,
            timestamp_us: None,
            share: None,
            sends_texts: false,
        }
    }

    /// Returns true for writes that may be repeated without another effect: all of their cells are known, and they have a timestamp.
    pub(crate) fn is_repeatable(&self) -> bool {
        let is_dated = self.frame.parameters.timestamp_us.is_some();
        let has_time = |one: &ModificationPlan| is_dated || one.has_timestamp();
        let is_repeatable = |one: &ModificationPlan| one.is_repeatable() && has_time(one);
        match self.work {
            RequestWork::Statement { planned, .. } => match &planned.plan {
                Plan::Select(_) | Plan::Transaction(_) | Plan::Direct(_) => false,
                Plan::InsertRows(_) => true,
                Plan::Modification(plan) => is_repeatable(plan),
                Plan::Batch(plan) => plan.modifications().all(is_repeatable),
            },
            RequestWork::Batch(batch) => batch.modifications().all(is_repeatable),
        }
    }
}

impl RequestWork<'_> {
    /// Returns the token of the only partition that the request is about. `None` if it is only known once the values are bound.
    pub(crate) fn token(&self) -> Option<i64> {
        match self {
            RequestWork::Statement { planned, values } => planned.key.as_ref()?.token(values),
            RequestWork::Batch(_) => None,
        }
    }

    /// Returns the kind of write. `None` if the request only reads.
    pub(crate) fn write_type(&self) -> Option<WriteType> {
        match self {
            RequestWork::Statement { planned, .. } => match &planned.plan {
                Plan::Select(_) | Plan::Direct(_) => None,
                Plan::Transaction(plan) => plan.write_type(),
                Plan::Batch(plan) if plan.modifications().any(|one| one.is_conditional()) => {
                    Some(WriteType::Cas)
                }
                write @ (Plan::Modification(_) | Plan::InsertRows(_) | Plan::Batch(_)) => {
                    Some(write.write_type())
                }
            },
            RequestWork::Batch(plan) if plan.modifications().any(|one| one.is_conditional()) => {
                Some(WriteType::Cas)
            }
            RequestWork::Batch(plan) => Some(batch_write_type(plan.kind)),
        }
    }

    /// Returns true if the answer depends on stored rows.
    pub(crate) fn reads(&self) -> bool {
        matches!(self.write_type(), None | Some(WriteType::Cas))
    }

    pub(crate) fn is_counter(&self) -> bool {
        self.write_type() == Some(WriteType::Counter)
    }
}
