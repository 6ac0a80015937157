//! Planning: a parsed statement becomes a plan. Names are resolved against a schema snapshot, terms are typed, and restrictions are
//! checked. Then a plan is bound to the values of a request. Nothing here uses the store or other nodes.

pub(crate) mod assignable;
pub(crate) mod consistency;
pub(crate) mod constraint;
pub(crate) mod context;
pub(crate) mod definition_check;
pub mod functions;
pub(crate) mod history_masks;
pub(crate) mod mask;
pub(crate) mod modification;
pub(crate) mod plain_key;
pub mod plan;
pub(crate) mod planned_batch;
pub(crate) mod prepared;
pub mod restrictions;
pub mod select;
pub mod selection;
pub mod terms;
pub(crate) mod transaction;
pub(crate) mod types;

pub use context::{EvalContext, PlanContext, column_spec};
pub(crate) use plain_key::PlainKey;
pub use plan::{DirectPlan, Plan, Planned, plan};
pub use planned_batch::PlannedBatch;
pub use prepared::{BatchStatement, Prepared};
