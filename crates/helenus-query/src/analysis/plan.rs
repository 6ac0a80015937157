//! Planning: a parsed statement becomes a plan. Names are resolved against a schema snapshot, terms are typed, and restrictions are
//! checked. Nothing here uses the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use helenus_cql::ast;
use helenus_cql::error::{CqlError, WriteType};
use helenus_cql::types::CqlType;
use uuid::Uuid;

use super::modification::{BatchPlan, InsertRowsPlan, ModificationPlan};
use super::select::SelectPlan;
use super::transaction::TransactionPlan;
use super::{PlainKey, PlanContext};
use crate::request::{Markers, User};
use crate::response::ResultMetadata;
use crate::schema::roles::{Resource, is_about_roles};
use crate::schema::{Schema, Table};

/// A statement ready to run any number of times. The commonest plans lie where they are looked for, not a memory access further.
#[derive(Debug)]
pub enum Plan {
    Select(SelectPlan),
    Modification(ModificationPlan),
    InsertRows(Box<InsertRowsPlan>),
    Batch(Box<BatchPlan>),
    Transaction(Box<TransactionPlan>),
    /// A statement that is resolved when it runs: DDL, USE, TRUNCATE, DESCRIBE, roles.
    Direct(Box<DirectPlan>),
}

/// A statement and the keyspace of its unqualified names.
#[derive(Debug)]
pub struct DirectPlan {
    pub statement: ast::Statement,
    pub keyspace: Option<String>,
}

impl Plan {
    /// Returns Cassandra's name for such a write.
    pub fn write_type(&self) -> WriteType {
        match self {
            Plan::Modification(plan) => plan.write_type(),
            Plan::InsertRows(_) => WriteType::UnloggedBatch,
            Plan::Batch(plan) => plan.write_type(),
            Plan::Transaction(plan) => plan.write_type().unwrap_or(WriteType::Simple),
            Plan::Select(_) | Plan::Direct(_) => WriteType::Simple,
        }
    }

    /// Returns true if a masked column is selected.
    fn selects_masked(&self) -> bool {
        match self {
            Plan::Select(plan) => plan.selects_masked(),
            Plan::Transaction(plan) => plan.selects_masked(),
            Plan::Modification(_) | Plan::InsertRows(_) | Plan::Batch(_) | Plan::Direct(_) => false,
        }
    }

    /// Returns true for statements about roles, users, permissions and identities.
    pub fn is_about_roles(&self) -> bool {
        matches!(self, Plan::Direct(plan) if is_about_roles(&plan.statement))
    }

    /// Makes those checks of a planned statement that Cassandra makes after planning.
    ///
    /// # Errors
    /// Cassandra's.
    pub fn validate(&self) -> Result<(), CqlError> {
        match self {
            Plan::Modification(plan) => plan.validate(),
            Plan::Batch(plan) => plan.modifications().try_for_each(ModificationPlan::validate),
            Plan::Transaction(plan) => plan.validate(),
            Plan::Select(_) | Plan::InsertRows(_) | Plan::Direct(_) => Ok(()),
        }
    }
}

/// The version of a keyspace that a historic read uses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AsOfKey {
    Snapshot {
        tag: String,
        keyspace: String,
    },
    /// An earlier time, in milliseconds since the Unix epoch.
    Time {
        time_ms: i64,
        keyspace: String,
    },
}

/// A read as of an earlier time.
#[derive(Clone, Debug)]
pub struct AsOfRead {
    pub key: AsOfKey,
    /// [`Keyspace::id`](crate::schema::Keyspace::id) of the keyspace at that time.
    pub keyspace_id: Option<Uuid>,
    /// The table as of that time. For a view, its base table.
    pub base: Arc<Table>,
}

/// A plan with the metadata that PREPARE returns. The fields that every request needs come first.
#[derive(Debug)]
#[repr(C)]
pub struct Planned {
    /// [`Schema::generation`] of the schema that the plan was made for.
    pub generation: u64,
    pub plan: Plan,
    pub markers: Markers,
    /// The key of the only partition that the statement is about. `None` if there may be others, or the key is computed.
    pub(crate) key: Option<PlainKey>,
    /// Markers that give the partition key, for drivers that route by token.
    pub partition_key_indexes: Vec<u16>,
    /// The result's columns. `None` if the statement does not always return rows.
    pub result: Option<Arc<ResultMetadata>>,
    /// The user-defined functions that the plan calls.
    pub executed: Vec<Resource>,
    /// The plan for roles without the permission to see masked values. `None` if no masked columns are selected.
    pub masked: Option<Arc<Planned>>,
    /// The earlier time that is read. `None` if the statement is about the current data.
    pub as_of: Option<AsOfRead>,
    /// Id of the user that was last allowed to run the statement.
    allowed: AtomicU64,
}

impl Planned {
    /// Returns true if a user is known to be allowed to run the statement in the schema that it was planned for.
    pub fn is_allowed(&self, user: &User) -> bool {
        self.allowed.load(Ordering::Relaxed) == user.id()
    }

    /// Records that a user is allowed to run the statement.
    pub fn allow(&self, user: &User) {
        self.allowed.store(user.id(), Ordering::Relaxed);
    }
}

/// Maximum number of types in the markers and the result of a statement, as [`CqlType::expanded_count`] counts them.
const METADATA_PARTS_MAX: usize = 100_000;

/// Refuses a statement whose metadata would be too large. Metadata contains the whole definition of a user type for each column that has
/// it.
fn check_metadata(markers: &Markers, result: Option<&ResultMetadata>) -> Result<(), CqlError> {
    let columns = result.into_iter().flat_map(|result| &result.columns);
    let mut left = METADATA_PARTS_MAX;
    for ty in columns.map(|column| &column.ty).chain(markers.types()) {
        let count = match ty {
            CqlType::Native(_) => 1,
            ty => ty.expanded_count(left),
        };
        left = left.checked_sub(count).ok_or_else(|| {
            CqlError::invalid(format!(
                "The columns and markers of the statement are made of more than {METADATA_PARTS_MAX} types, those of the fields of \
                 user types counted, which is the limit; name fewer columns"
            ))
        })?;
    }
    Ok(())
}

/// Makes the plan of a statement.
pub fn plan(
    schema: &Schema,
    keyspace: Option<&str>,
    parsed: &ast::ParsedStatement,
) -> Result<Planned, CqlError> {
    let mut planned = plan_as_seen(schema, keyspace, parsed, false)?;
    if planned.plan.selects_masked() {
        planned.masked = Some(Arc::new(plan_as_seen(schema, keyspace, parsed, true)?));
    }
    Ok(planned)
}

/// Makes the plan of a statement, with or without masks.
fn plan_as_seen(
    schema: &Schema,
    keyspace: Option<&str>,
    parsed: &ast::ParsedStatement,
    masks: bool,
) -> Result<Planned, CqlError> {
    let names = parsed
        .bind_markers
        .iter()
        .map(|marker| marker.name.as_ref().map(|name| name.0.clone()))
        .collect();
    let mut ctx = PlanContext::new(schema, keyspace, Markers::new(names));
    ctx.masks = masks;
    let mut result = None;
    let mut partition_key_count = 0;
    let plan = match &parsed.statement {
        ast::Statement::Select(statement) => {
            let plan = super::select::plan(&mut ctx, statement)?;
            result = Some(plan.metadata().clone());
            partition_key_count = plan.table().partition_key_count;
            Plan::Select(plan)
        }
        ast::Statement::Insert(_)
        | ast::Statement::InsertJson(_)
        | ast::Statement::Update(_)
        | ast::Statement::Delete(_) => {
            let plan = super::modification::plan(&mut ctx, &parsed.statement)?;
            partition_key_count = plan.table().partition_key_count;
            Plan::Modification(plan)
        }
        ast::Statement::InsertRows(statement) => {
            Plan::InsertRows(Box::new(InsertRowsPlan::plan(&mut ctx, statement)?))
        }
        ast::Statement::Batch(statement) => {
            let plan = super::modification::plan_batch(&mut ctx, statement)?;
            partition_key_count = plan.routed_by().map_or(0, |table| table.partition_key_count);
            Plan::Batch(Box::new(plan))
        }
        ast::Statement::Transaction(statement) => {
            let plan = super::transaction::plan::plan(&mut ctx, statement)?;
            result = plan.metadata().cloned();
            Plan::Transaction(Box::new(plan))
        }
        other => {
            super::definition_check::check(other, keyspace, !ctx.markers.is_empty())?;
            if let ast::Statement::Truncate(name) = other {
                ctx.table(name)?;
            }
            Plan::Direct(Box::new(DirectPlan {
                statement: other.clone(),
                keyspace: keyspace.map(str::to_owned),
            }))
        }
    };
    let (mut markers, executed) = (ctx.markers, ctx.executed.into_inner());
    check_metadata(&markers, result.as_deref())?;
    let partition_key_indexes = match partition_key_count {
        0 => Vec::new(),
        count => markers.partition_key_indexes(count),
    };
    markers.finish();
    Ok(Planned {
        executed,
        masked: None,
        as_of: None,
        allowed: AtomicU64::new(0),
        partition_key_indexes,
        key: match &plan {
            Plan::Select(plan) => PlainKey::of_select(plan),
            Plan::Modification(plan) => PlainKey::of_modification(plan),
            Plan::InsertRows(_) | Plan::Batch(_) | Plan::Transaction(_) | Plan::Direct(_) => None,
        },
        plan,
        markers,
        result,
        generation: schema.generation,
    })
}
