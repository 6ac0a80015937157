//! From a parsed statement to a plan: names resolved against a schema snapshot, terms typed, restrictions checked.
//! Nothing here touches the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use helenus_cql::ast;
use helenus_cql::error::{CqlError, WriteType};
use helenus_cql::types::CqlType;
use uuid::Uuid;

use super::PlanContext;
use super::modification::{BatchPlan, ModificationPlan};
use super::select::SelectPlan;
use crate::request::{Markers, User};
use crate::response::ResultMetadata;
use crate::schema::roles::{Resource, is_about_roles};
use crate::schema::{Schema, Table};

/// A statement ready to run, many times over.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "the commonest lie where they are looked for, not a memory access further"
)]
pub enum Plan {
    Select(SelectPlan),
    Modification(ModificationPlan),
    Batch(Box<BatchPlan>),
    /// Everything that is resolved when it runs: DDL, USE, TRUNCATE, DESCRIBE, roles.
    Direct(Box<DirectPlan>),
}

/// A statement and where its unqualified names are.
#[derive(Debug)]
pub struct DirectPlan {
    pub statement: ast::Statement,
    pub keyspace: Option<String>,
}

impl Plan {
    /// What Cassandra calls such a write.
    pub fn write_type(&self) -> WriteType {
        match self {
            Plan::Modification(plan) => plan.write_type(),
            Plan::Batch(plan) => plan.write_type(),
            Plan::Select(_) | Plan::Direct(_) => WriteType::Simple,
        }
    }

    /// Returns true for statements about roles, users, permissions and identities.
    pub fn is_about_roles(&self) -> bool {
        matches!(self, Plan::Direct(plan) if is_about_roles(&plan.statement))
    }

    /// What is wrong with a statement that can be planned, where Cassandra says so later than that.
    ///
    /// # Errors
    /// Cassandra's.
    pub fn validate(&self) -> Result<(), CqlError> {
        match self {
            Plan::Modification(plan) => plan.validate(),
            Plan::Batch(plan) => plan.modifications().try_for_each(ModificationPlan::validate),
            Plan::Select(_) | Plan::Direct(_) => Ok(()),
        }
    }
}

/// What of the past a statement reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PastKey {
    Snapshot {
        tag: String,
        keyspace: String,
    },
    /// In milliseconds since the Unix epoch.
    Time {
        time_ms: i64,
        keyspace: String,
    },
}

/// A read of an earlier time.
#[derive(Clone, Debug)]
pub struct PastRead {
    pub key: PastKey,
    /// [`Keyspace::id`](crate::schema::Keyspace::id) of the keyspace at that time.
    pub keyspace_id: Option<Uuid>,
    /// The table that is read as it was, or of a view the base table.
    pub base: Arc<Table>,
}

/// A plan and what PREPARE tells about it. What every request looks at comes first.
#[derive(Debug)]
#[repr(C)]
pub struct Planned {
    /// [`Schema::generation`] that the plan was made against.
    pub generation: u64,
    pub plan: Plan,
    pub markers: Markers,
    /// Markers that give the partition key, for drivers that route by token.
    pub partition_key_indexes: Vec<u16>,
    /// The result's columns, for statements that always answer with rows.
    pub result: Option<Arc<ResultMetadata>>,
    /// The functions of users that it calls.
    pub executed: Vec<Resource>,
    /// The same for those who may not see what masks hide, if it selects masked columns.
    pub masked: Option<Arc<Planned>>,
    /// The earlier time that it reads. `None` if it is about today.
    pub past: Option<PastRead>,
    /// The user that was allowed to run it last.
    allowed: AtomicU64,
}

impl Planned {
    /// Whether a user is known to be allowed to run it, in the schema that it was planned in.
    pub fn is_allowed(&self, user: &User) -> bool {
        self.allowed.load(Ordering::Relaxed) == user.id()
    }

    /// Takes note that a user is allowed to run it.
    pub fn allow(&self, user: &User) {
        self.allowed.store(user.id(), Ordering::Relaxed);
    }
}

/// How many types the markers and the result of a statement may be made of, as [`CqlType::expanded_count`] counts them.
const METADATA_PARTS_MAX: usize = 100_000;

/// Refuses a statement whose metadata would be too large: user types are written out in it, for each column anew.
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
    if matches!(&planned.plan, Plan::Select(plan) if plan.selects_masked()) {
        planned.masked = Some(Arc::new(plan_as_seen(schema, keyspace, parsed, true)?));
    }
    Ok(planned)
}

/// Makes the plan of a statement for those who see what masks hide, or for those who see the masks.
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
        ast::Statement::Batch(statement) => {
            let plan = super::modification::plan_batch(&mut ctx, statement)?;
            partition_key_count = plan.routed_by().map_or(0, |table| table.partition_key_count);
            Plan::Batch(Box::new(plan))
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
        past: None,
        allowed: AtomicU64::new(0),
        partition_key_indexes,
        plan,
        markers,
        result,
        generation: schema.generation,
    })
}
