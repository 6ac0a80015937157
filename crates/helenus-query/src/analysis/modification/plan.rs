//! Planning of a parsed INSERT, UPDATE or DELETE (Cassandra's `ModificationStatement.Parsed` and its subclasses).

use std::collections::HashSet;
use std::sync::Arc;

use helenus_cql::ast::{self, Operator, Relation};
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;

use super::ModificationPlan;
use super::attributes::Attributes;
use super::conditions::Conditions;
use super::constrained::check_present;
use super::json::JsonSource;
use super::operation::{self, Operation};
use crate::analysis::PlanContext;
use crate::analysis::modification::columns::existing;
use crate::analysis::restrictions::{RestrictionOptions, StatementKind, StatementRestrictions};
use crate::response::ColumnSpec;
use crate::schema::{Table, constraint};

fn invalid<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

/// Plans one modification.
pub fn plan(ctx: &mut PlanContext<'_>, statement: &ast::Modification) -> Result<ModificationPlan, CqlError> {
    let mut plan = match statement {
        ast::Modification::Insert(insert) => plan_insert(ctx, insert),
        ast::Modification::InsertJson(insert) => plan_insert_json(ctx, insert),
        ast::Modification::Update(update) => plan_update(ctx, update),
        ast::Modification::Delete(delete) => plan_delete(ctx, delete),
    }?;
    plan.is_volatile = ctx.is_volatile;
    Ok(plan)
}

/// The parts that all kinds of modifications have. The other parts are filled in later.
struct ModificationPlanBuilder {
    table: Arc<Table>,
    kind: StatementKind,
    attributes: Attributes,
    conditions: Conditions,
}

impl ModificationPlanBuilder {
    fn new(
        ctx: &mut PlanContext<'_>,
        name: &ast::QualifiedName,
        kind: StatementKind,
        using: &ast::UsingClause,
        condition: &ast::IfClause,
    ) -> Result<ModificationPlanBuilder, CqlError> {
        let table = ctx.table(name)?.clone();
        let attributes = Attributes::plan(ctx, using, Some(&table))?;
        let conditions = Conditions::plan(ctx, &table, condition, &attributes)?;
        Ok(ModificationPlanBuilder {
            table,
            kind,
            attributes,
            conditions,
        })
    }

    /// Makes the plan, with the checks of `ModificationStatement`'s constructor.
    fn finish(
        self,
        restrictions: StatementRestrictions,
        operations: Vec<Operation>,
        json: Option<JsonSource>,
    ) -> Result<ModificationPlan, CqlError> {
        let ModificationPlanBuilder {
            table,
            kind,
            attributes,
            conditions,
        } = self;
        if !conditions.is_empty() {
            if table.is_counter {
                return invalid("Conditional updates are not supported on counter tables");
            }
            if attributes.has_timestamp() {
                return invalid("Cannot provide custom timestamp for conditional updates");
            }
        }
        if kind != StatementKind::Delete && json.is_none() {
            check_present(&table, &operations)?;
        }
        Ok(ModificationPlan::new(
            table,
            kind,
            restrictions,
            operations,
            attributes,
            conditions,
            json,
        ))
    }

    fn is_static_only(&self, operations: &[Operation]) -> bool {
        // A DELETE without columns deletes rows, whatever columns its conditions test.
        if operations.is_empty() && self.kind == StatementKind::Delete {
            return false;
        }
        let regular = operations.iter().any(|operation| !operation.is_static)
            || self.conditions.applies_to_regular(&self.table);
        let statics = operations.iter().any(|operation| operation.is_static)
            || self.conditions.applies_to_static(&self.table);
        !regular && statics
    }
}

/// Begins the plan of an INSERT, whether its values are given one by one or as JSON.
fn insert_draft(
    ctx: &mut PlanContext<'_>,
    table: &ast::QualifiedName,
    using: &ast::UsingClause,
    if_not_exists: bool,
) -> Result<ModificationPlanBuilder, CqlError> {
    let condition = if if_not_exists {
        ast::IfClause::NotExists
    } else {
        ast::IfClause::None
    };
    let draft = ModificationPlanBuilder::new(ctx, table, StatementKind::Insert, using, &condition)?;
    if draft.table.is_counter {
        return invalid("INSERT statements are not allowed on counter tables, use UPDATE instead");
    }
    Ok(draft)
}

fn plan_insert(ctx: &mut PlanContext<'_>, insert: &ast::Insert) -> Result<ModificationPlan, CqlError> {
    let draft = insert_draft(ctx, &insert.table, &insert.using, insert.if_not_exists)?;
    let table = draft.table.clone();
    if insert.columns.is_empty() {
        return invalid("No columns provided to INSERT");
    }
    if insert.columns.len() != insert.values.len() {
        return invalid("Unmatched column names/values");
    }
    let mut named = HashSet::with_capacity(insert.columns.len());
    if !insert.columns.iter().all(|name| named.insert(name.as_str())) {
        return invalid("The column names contains duplicates");
    }
    let mut relations = Vec::new();
    let mut operations = Vec::new();
    let mut sets_clustering = false;
    for (name, value) in insert.columns.iter().zip(&insert.values) {
        let (place, column) = existing(&table, name)?;
        if column.is_primary_key() {
            sets_clustering |= place >= table.partition_key_count;
            relations.push(Relation::Column {
                column: name.clone(),
                operator: Operator::Eq,
                term: value.clone(),
            });
        } else {
            operations.push(operation::plan_set(ctx, &table, place, column, value)?);
        }
    }
    let options = RestrictionOptions {
        is_static_only: !sets_clustering && draft.is_static_only(&operations),
        ..RestrictionOptions::default()
    };
    let restrictions = StatementRestrictions::new(ctx, StatementKind::Insert, &table, &relations, options)?;
    mark_partition_key(ctx, &table, &relations);
    draft.finish(restrictions, operations, None)
}

fn plan_insert_json(
    ctx: &mut PlanContext<'_>,
    insert: &ast::InsertJson,
) -> Result<ModificationPlan, CqlError> {
    let draft = insert_draft(ctx, &insert.table, &insert.using, insert.if_not_exists)?;
    let table = draft.table.clone();
    if let ast::JsonValue::Marker(index) = &insert.json {
        let spec = ColumnSpec::new(
            table.keyspace.as_str(),
            table.name.as_str(),
            "[json]",
            CqlType::TEXT,
        );
        ctx.markers.set(*index, spec);
    }
    let source = JsonSource::plan(&table, insert)?;
    let restrictions = StatementRestrictions::none(StatementKind::Insert, &table);
    draft.finish(restrictions, Vec::new(), Some(source))
}

fn plan_update(ctx: &mut PlanContext<'_>, update: &ast::Update) -> Result<ModificationPlan, CqlError> {
    let draft = ModificationPlanBuilder::new(
        ctx,
        &update.table,
        StatementKind::Update,
        &update.using,
        &update.condition,
    )?;
    let table = draft.table.clone();
    let mut operations = Vec::new();
    for assignment in &update.assignments {
        let (place, column) = existing(&table, &assignment.column)?;
        if column.is_primary_key() {
            return invalid(format!("PRIMARY KEY part {} found in SET part", column.name));
        }
        operations.push(operation::plan_assignment(
            ctx,
            &table,
            place,
            column,
            &assignment.operation,
            !draft.conditions.is_empty() || ctx.is_in_transaction(),
        )?);
    }
    let restrictions = where_clause(ctx, &draft, &update.relations, &operations)?;
    draft.finish(restrictions, operations, None)
}

fn plan_delete(ctx: &mut PlanContext<'_>, delete: &ast::Delete) -> Result<ModificationPlan, CqlError> {
    let draft = ModificationPlanBuilder::new(
        ctx,
        &delete.table,
        StatementKind::Delete,
        &delete.using,
        &delete.condition,
    )?;
    let table = draft.table.clone();
    let mut operations = Vec::new();
    for deletion in &delete.deletions {
        let (ast::Deletion::Column(name)
        | ast::Deletion::Element { column: name, .. }
        | ast::Deletion::Field { column: name, .. }) = deletion;
        let (place, column) = existing(&table, name)?;
        if column.is_primary_key() {
            return invalid(format!(
                "Invalid identifier {} for deletion (should not be a PRIMARY KEY part)",
                column.name
            ));
        }
        if column.refuses_null() {
            return Err(constraint::null(&column.name));
        }
        operations.push(operation::plan_deletion(ctx, &table, place, column, deletion)?);
    }
    let restrictions = where_clause(ctx, &draft, &delete.relations, &operations)?;
    let plan = draft.finish(restrictions, operations, None)?;
    check_conditional_delete(&plan)?;
    Ok(plan)
}

fn where_clause(
    ctx: &mut PlanContext<'_>,
    draft: &ModificationPlanBuilder,
    relations: &[Relation],
    operations: &[Operation],
) -> Result<StatementRestrictions, CqlError> {
    if relations
        .iter()
        .any(|relation| matches!(relation, Relation::CustomIndex { .. }))
    {
        return invalid(
            "Custom index expressions cannot be used in WHERE clauses for UPDATE or DELETE statements",
        );
    }
    let options = RestrictionOptions {
        is_static_only: draft.is_static_only(operations),
        ..RestrictionOptions::default()
    };
    let restrictions = StatementRestrictions::new(ctx, draft.kind, &draft.table, relations, options)?;
    mark_partition_key(ctx, &draft.table, relations);
    Ok(restrictions)
}

/// Checks that a conditional DELETE names whole rows, unless it is about static columns only.
fn check_conditional_delete(plan: &ModificationPlan) -> Result<(), CqlError> {
    let restrictions = &plan.restrictions;
    let all_equal = restrictions.partition.has_only_equality(&plan.table)
        && restrictions.clustering.len() == plan.table.clustering_count
        && restrictions.clustering.has_only_equality();
    if plan.conditions.is_empty() || all_equal {
        return Ok(());
    }
    let (statics, regulars) = plan.operation_kinds();
    if regulars || !statics {
        return invalid(
            "DELETE statements must restrict all PRIMARY KEY columns with equality relations in order to delete non static columns",
        );
    }
    if plan.conditions.applies_to_regular(&plan.table) {
        return invalid(
            "DELETE statements must restrict all PRIMARY KEY columns with equality relations in order to use IF condition on non static columns",
        );
    }
    Ok(())
}

/// Records which markers give the partition key, for drivers that route by token.
fn mark_partition_key(ctx: &mut PlanContext<'_>, table: &Table, relations: &[Relation]) {
    for relation in relations {
        let Relation::Column {
            column,
            operator: Operator::Eq,
            term: ast::Term::Marker(index),
        } = relation
        else {
            continue;
        };
        if let Some((place, _)) = table.column(column.as_str())
            && place < table.partition_key_count
        {
            ctx.markers.set_partition_key(*index, place);
        }
    }
}
