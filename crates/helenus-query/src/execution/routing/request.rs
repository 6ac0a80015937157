//! Requests whose statements have plans.

use std::sync::Arc;

use helenus_cql::error::WriteType;

use crate::analysis::modification::ModificationPlan;
use crate::analysis::modification::batch::write_type as batch_write_type;
use crate::analysis::{Plan, Planned, PlannedBatch};
use crate::cluster::Source;
use crate::execution::DirectStatements;
use crate::execution::timing::Timing;
use crate::request::{BoundValue, ClientState, QueryOptions};

/// A request whose statements have plans.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    /// The executor of statements that concern no rows.
    pub direct: &'a dyn DirectStatements,
    pub client: &'a ClientState,
    /// The keyspace of unqualified names.
    pub keyspace: Option<&'a str>,
    pub source: Source<'a>,
    pub work: RequestWork<'a>,
    pub options: &'a QueryOptions,
    /// The running statement, as its first attempt is measured. Further attempts are measured from their own beginning.
    pub timing: Timing,
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

impl RequestWork<'_> {
    /// Returns the kind of write. `None` if the request only reads.
    pub(crate) fn write_type(&self) -> Option<WriteType> {
        match self {
            RequestWork::Statement { planned, .. } => match &planned.plan {
                Plan::Select(_) | Plan::Direct(_) => None,
                Plan::Batch(plan) if plan.modifications().any(|one| one.is_conditional()) => {
                    Some(WriteType::Cas)
                }
                write @ (Plan::Modification(_) | Plan::Batch(_)) => Some(write.write_type()),
            },
            RequestWork::Batch(plan) if plan.modifications().any(|one| one.is_conditional()) => {
                Some(WriteType::Cas)
            }
            RequestWork::Batch(plan) => Some(batch_write_type(plan.kind)),
        }
    }

    /// Returns true if the answer depends on stored rows.
    pub(crate) fn reads(&self) -> bool {
        !self.is_direct() && matches!(self.write_type(), None | Some(WriteType::Cas))
    }

    /// Returns true for statements that concern no rows, such as changes of the schema. They have deadlines of their own.
    pub(crate) fn is_direct(&self) -> bool {
        match self {
            RequestWork::Statement { planned, .. } => matches!(planned.plan, Plan::Direct(_)),
            RequestWork::Batch(_) => false,
        }
    }

    pub(crate) fn is_counter(&self) -> bool {
        self.write_type() == Some(WriteType::Counter)
    }

    /// Returns true for writes that may be repeated without another effect: all of their cells are known, and the client has given their
    /// timestamp.
    pub(crate) fn is_repeatable(&self, options: &QueryOptions) -> bool {
        let has_time = |one: &ModificationPlan| options.timestamp_us.is_some() || one.has_timestamp();
        let is_repeatable = |one: &ModificationPlan| one.is_repeatable() && has_time(one);
        match self {
            RequestWork::Statement { planned, .. } => match &planned.plan {
                Plan::Select(_) | Plan::Direct(_) => false,
                Plan::Modification(plan) => is_repeatable(plan),
                Plan::Batch(plan) => plan.modifications().all(is_repeatable),
            },
            RequestWork::Batch(batch) => batch.modifications().all(is_repeatable),
        }
    }
}
