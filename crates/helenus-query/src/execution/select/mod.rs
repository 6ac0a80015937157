//! Execution of SELECT: binds the values of a request, reads partition by partition ([`source`]), and collects pages ([`output`]).

pub(crate) mod count;
pub(crate) mod output;
pub(crate) mod part_owners;
pub(crate) mod part_ranges;
pub(crate) mod part_work;
pub(crate) mod partition_reader;
pub(crate) mod parts;
pub(crate) mod point;
pub(crate) mod row_parts;
pub(crate) mod run;
pub(crate) mod size;
mod skipping;
pub(crate) mod source;
pub(crate) mod stored_row;
pub(crate) mod tombstones;
pub(crate) mod virtual_read;

#[cfg(test)]
mod nearest_tests;
pub(crate) mod open_source;
#[cfg(test)]
mod select_tests;
#[cfg(test)]
mod value_order_tests;

use std::sync::Arc;

use helenus_cql::error::Consistency;

use crate::analysis::select::SelectPlan;
use crate::analysis::select::paging::PagingState;
use crate::analysis::{EvalContext, Planned};
use crate::cluster::Request;
use crate::index::read::probe::ProbeLimits;
use crate::storage::ExecutionContext;

/// One execution of a SELECT.
pub(crate) struct SelectExecution<'a> {
    pub context: &'a Arc<ExecutionContext>,
    /// The planned statement that contains `plan`.
    pub planned: &'a Arc<Planned>,
    pub plan: &'a SelectPlan,
    pub ctx: EvalContext<'a>,
    pub now_s: i64,
    pub resume: Option<PagingState>,
    pub is_paged: bool,
    pub consistency: Consistency,
    pub probe: ProbeLimits,
    /// Remaining rows of LIMIT.
    pub rows_max: u32,
    /// The request that is sent to other nodes for their parts. `None` if this node reads everything.
    pub request: Option<&'a Request<'a>>,
    pub warnings: Vec<String>,
}
