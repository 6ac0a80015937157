//! CREATE, ALTER and DROP TYPE.

use std::collections::BTreeSet;
use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_cql::identifier::quote_qualified;
use helenus_cql::types::{CqlType, UserType, UserTypeField};

use super::{Applied, Change, DdlContext, Effect, unchanged};
use crate::analysis::types::{check_parts, resolve_type};
use crate::java_order::by_name;
use crate::response::{ChangeKind, SchemaTarget};
use crate::schema::{
    Column, ColumnMask, DroppedColumn, Index, Keyspace, Schema, Table, UserAggregate, UserFunction,
};

pub fn create(ctx: &DdlContext<'_>, statement: &ast::CreateType) -> Applied {
    let keyspace_name = ctx.keyspace_of(&statement.name)?;
    let keyspace = ctx.keyspace_to_change(keyspace_name)?;
    let name = statement.name.name.as_str();
    if keyspace.types.contains_key(name) {
        return match statement.if_not_exists {
            true => unchanged(),
            false => Err(CqlError::invalid(format!(
                "A user type with name '{name}' already exists"
            ))),
        };
    }
    let mut names = BTreeSet::new();
    for (field, _) in &statement.fields {
        if !names.insert(field.as_str()) {
            return Err(CqlError::invalid(format!(
                "Duplicate field name '{field}' in type '{name}'"
            )));
        }
    }
    statement.fields.iter().try_for_each(|(_, ty)| check_field(ty))?;
    let mut fields: Vec<UserTypeField> = Vec::with_capacity(statement.fields.len());
    for (field, ty) in &statement.fields {
        fields.push(UserTypeField {
            name: field.0.clone(),
            ty: resolve_type(ctx.schema, keyspace_name, ty)?,
        });
    }
    let mut keyspace = Keyspace::clone(keyspace);
    let definition = Arc::new(UserType {
        keyspace: keyspace_name.to_owned(),
        name: name.to_owned(),
        fields,
    });
    check_size(&definition)?;
    keyspace.types.insert(name.to_owned(), definition);
    let schema = ctx.schema.with_keyspace(keyspace);
    Ok(Effect::Changed(Change::new(
        schema,
        ChangeKind::Created,
        keyspace_name,
        SchemaTarget::Type(name.to_owned()),
    )))
}

/// Refuses a type that has too many parts because of nested types.
fn check_size(definition: &Arc<UserType>) -> Result<(), CqlError> {
    check_parts(&CqlType::Udt {
        definition: definition.clone(),
        frozen: false,
    })
}

/// Refuses a field that is a counter or a non-frozen user type. As in Cassandra, this comes before the type's name is resolved.
fn check_field(ty: &ast::TypeName) -> Result<(), CqlError> {
    match ty {
        ast::TypeName::Native(native) if CqlType::Native(*native).is_counter() => {
            Err(CqlError::invalid("A user type cannot contain counters"))
        }
        ast::TypeName::UserType(_) => Err(CqlError::invalid("A user type cannot contain non-frozen UDTs")),
        _ => Ok(()),
    }
}

pub fn alter(ctx: &DdlContext<'_>, statement: &ast::AlterType) -> Applied {
    let keyspace_name = ctx.keyspace_of(&statement.name)?;
    ctx.modifiable(keyspace_name)?;
    let name = statement.name.name.as_str();
    let found = ctx
        .schema
        .keyspace(keyspace_name)
        .and_then(|keyspace| Some((keyspace, keyspace.types.get(name)?)));
    let Some((keyspace, current)) = found else {
        return match statement.if_exists {
            true => unchanged(),
            false => Err(CqlError::invalid(format!(
                "Type {keyspace_name}.{name} doesn't exist"
            ))),
        };
    };
    let changed = match &statement.change {
        ast::TypeChange::AlterField { .. } => {
            return Err(CqlError::invalid("Altering field types is no longer supported"));
        }
        ast::TypeChange::AddField {
            if_not_exists,
            field,
            ty,
        } => {
            check_field(ty)?;
            if current.field_index(field.as_str()).is_some() {
                return match if_not_exists {
                    true => unchanged(),
                    false => Err(CqlError::invalid(format!(
                        "Cannot add field {field} to type {}: a field with name {field} already exists",
                        quote_qualified(&current.keyspace, &current.name)
                    ))),
                };
            }
            add_field(ctx, keyspace, current, field, ty)?
        }
        ast::TypeChange::RenameFields { if_exists, fields } => {
            check_no_initial_value(keyspace, current)?;
            match rename_fields(current, *if_exists, fields)? {
                Some(changed) => changed,
                None => return unchanged(),
            }
        }
    };
    let changed = replace_type(keyspace, Arc::new(changed));
    changed.types.values().try_for_each(check_size)?;
    let schema = ctx.schema.with_keyspace(changed);
    Ok(Effect::Changed(Change::new(
        schema,
        ChangeKind::Updated,
        keyspace_name,
        SchemaTarget::Type(name.to_owned()),
    )))
}

fn add_field(
    ctx: &DdlContext<'_>,
    keyspace: &Keyspace,
    current: &UserType,
    field: &ast::Ident,
    ty: &ast::TypeName,
) -> Result<UserType, CqlError> {
    let written = ty;
    let ty = resolve_type(ctx.schema, &keyspace.name, written)?;
    let shown = match written {
        ast::TypeName::Custom(class) if class.contains('.') => format!("'{class}'"),
        _ => qualified_type(&ty),
    };
    if ty.references_udt(&keyspace.name, &current.name) {
        return Err(CqlError::invalid(format!(
            "Cannot add new field {field} of type {shown} to user type {} as it would create a circular reference",
            quote_qualified(&current.keyspace, &current.name)
        )));
    }
    let in_partition_key = as_created(keyspace, |table| {
        let mut columns = table.partition_key().iter();
        columns.any(|column| column.ty.references_udt(&keyspace.name, &current.name))
    });
    if !in_partition_key.is_empty() {
        let names: Vec<String> = in_partition_key.iter().map(|table| table.full_name()).collect();
        return Err(CqlError::invalid(format!(
            "Cannot add new field {field} of type {} to user type {}.{} as the type is being used in partition key by \
             the following tables: {}",
            shown,
            keyspace.name,
            current.name,
            names.join(", ")
        )));
    }
    let mut changed = current.clone();
    changed.fields.push(UserTypeField {
        name: field.0.clone(),
        ty,
    });
    Ok(changed)
}

/// Returns a type as text, with its user types qualified, as Cassandra shows raw types.
fn qualified_type(ty: &CqlType) -> String {
    let (shown, frozen) = match ty {
        CqlType::Udt {
            definition,
            frozen: true,
        } => (format!("{}.{}", definition.keyspace, definition.name), true),
        CqlType::List { element, frozen } => (format!("list<{}>", qualified_type(element)), *frozen),
        CqlType::Set { element, frozen } => (format!("set<{}>", qualified_type(element)), *frozen),
        CqlType::Map { key, value, frozen } => (
            format!("map<{}, {}>", qualified_type(key), qualified_type(value)),
            *frozen,
        ),
        CqlType::Tuple(elements) => {
            let elements: Vec<String> = elements.iter().map(qualified_type).collect();
            (format!("tuple<{}>", elements.join(", ")), false)
        }
        other => (other.to_string(), false),
    };
    if frozen { format!("frozen<{shown}>") } else { shown }
}

/// Refuses to alter a type if an aggregate has an INITCOND of that type. Cassandra stores INITCOND as a literal with the names of the
/// fields.
fn check_no_initial_value(keyspace: &Keyspace, ty: &UserType) -> Result<(), CqlError> {
    let has_value = |aggregate: &&Arc<UserAggregate>| {
        aggregate.initial.is_some() && aggregate.state_type.references_udt(&ty.keyspace, &ty.name)
    };
    let aggregates: Vec<String> = keyspace
        .aggregates
        .values()
        .filter(has_value)
        .map(|aggregate| format!("{}.{}", aggregate.keyspace, aggregate.name))
        .collect();
    match aggregates.is_empty() {
        true => Ok(()),
        false => Err(CqlError::invalid(format!(
            "Cannot alter user type {}.{} as it is still used in INITCOND by aggregates {}",
            ty.keyspace,
            ty.name,
            aggregates.join(", ")
        ))),
    }
}

fn rename_fields(
    current: &UserType,
    if_exists: bool,
    renames: &[(ast::Ident, ast::Ident)],
) -> Result<Option<UserType>, CqlError> {
    let mut changed = current.clone();
    for (from, to) in by_name(renames.iter().collect(), |(from, _)| from.as_str()) {
        // All renames take effect at once, so that they use the names before the statement.
        let position = current
            .fields
            .iter()
            .position(|field| field.name == from.as_str());
        let Some(position) = position else {
            if if_exists {
                continue;
            }
            return Err(CqlError::invalid(format!(
                "Unkown field {from} in user type {}",
                quote_qualified(&current.keyspace, &current.name)
            )));
        };
        if let Some(field) = changed.fields.get_mut(position) {
            field.name = to.0.clone();
        }
    }
    let has_changed = changed != *current;
    for (position, field) in changed.fields.iter().enumerate() {
        if changed
            .fields
            .iter()
            .take(position)
            .any(|before| before.name == field.name)
        {
            return Err(CqlError::invalid(format!(
                "Duplicate field name {} in type {}",
                field.name, current.keyspace
            )));
        }
    }
    Ok(has_changed.then_some(changed))
}

/// Returns the keyspace with a user type replaced wherever it is used.
fn replace_type(keyspace: &Keyspace, changed: Arc<UserType>) -> Keyspace {
    let mut result = keyspace.clone();
    for definition in result.types.values_mut() {
        *definition = replace_in_definition(definition, &changed);
    }
    for table in result.tables.values_mut() {
        let uses = |column: &Arc<Column>| column.ty.references_udt(&changed.keyspace, &changed.name);
        if table.columns.iter().any(uses) || !table.dropped_columns.is_empty() {
            *table = Arc::new(replace_in_table(table, &changed));
        }
    }
    for function in result.functions.values_mut() {
        if function.references_udt(&changed.keyspace, &changed.name) {
            *function = Arc::new(replace_in_function(function, &changed));
        }
    }
    for aggregate in result.aggregates.values_mut() {
        if aggregate.references_udt(&changed.keyspace, &changed.name) {
            *aggregate = Arc::new(replace_in_aggregate(aggregate, &changed));
        }
    }
    result
}

fn replace_in_function(function: &UserFunction, changed: &Arc<UserType>) -> UserFunction {
    let replace = |(name, ty): &(String, CqlType)| (name.clone(), replace_in_type(ty, changed));
    UserFunction::new(
        &function.keyspace,
        &function.name,
        function.arguments.iter().map(replace).collect(),
        replace_in_type(&function.returns, changed),
        function.is_called_on_null,
        &function.language,
        &function.body,
    )
}

fn replace_in_aggregate(aggregate: &UserAggregate, changed: &Arc<UserType>) -> UserAggregate {
    let replace = |ty: &CqlType| replace_in_type(ty, changed);
    UserAggregate {
        arg_types: aggregate.arg_types.iter().map(replace).collect(),
        state_type: replace(&aggregate.state_type),
        returns: replace(&aggregate.returns),
        ..aggregate.clone()
    }
}

fn replace_in_mask(mask: &ColumnMask, changed: &Arc<UserType>) -> ColumnMask {
    let mut mask = mask.clone();
    for (ty, _) in &mut mask.arguments {
        *ty = replace_in_type(ty, changed);
    }
    mask
}

fn replace_in_table(table: &Table, changed: &Arc<UserType>) -> Table {
    let mut builder = table.to_builder();
    for column in &mut builder.columns {
        column.ty = replace_in_type(&column.ty, changed);
        let masked = column.mask.as_deref().map(|mask| replace_in_mask(mask, changed));
        column.mask = masked.map(Arc::new);
    }
    for DroppedColumn { ty, .. } in builder.dropped_columns.values_mut() {
        *ty = replace_in_type(ty, changed);
    }
    for index in &mut builder.indexes {
        let hidden = Arc::new(replace_in_table(&index.table, changed));
        *index = Arc::new(Index {
            table: hidden,
            ..Index::clone(index)
        });
    }
    builder.build()
}

fn replace_in_definition(definition: &Arc<UserType>, changed: &Arc<UserType>) -> Arc<UserType> {
    if definition.keyspace == changed.keyspace && definition.name == changed.name {
        return changed.clone();
    }
    let uses = |field: &UserTypeField| field.ty.references_udt(&changed.keyspace, &changed.name);
    if !definition.fields.iter().any(uses) {
        return definition.clone();
    }
    let replace = |field: &UserTypeField| UserTypeField {
        name: field.name.clone(),
        ty: replace_in_type(&field.ty, changed),
    };
    Arc::new(UserType {
        fields: definition.fields.iter().map(replace).collect(),
        ..UserType::clone(definition)
    })
}

fn replace_in_type(ty: &CqlType, changed: &Arc<UserType>) -> CqlType {
    match ty {
        CqlType::Udt { definition, frozen } => CqlType::Udt {
            definition: replace_in_definition(definition, changed),
            frozen: *frozen,
        },
        other => other.map_elements(&|element| replace_in_type(element, changed)),
    }
}

pub fn drop(ctx: &DdlContext<'_>, statement: &ast::DropType) -> Applied {
    let keyspace_name = ctx.keyspace_of(&statement.name)?;
    ctx.modifiable(keyspace_name)?;
    let name = statement.name.name.as_str();
    let keyspace = ctx
        .schema
        .keyspace(keyspace_name)
        .filter(|keyspace| keyspace.types.contains_key(name));
    let Some(keyspace) = keyspace else {
        return match statement.if_exists {
            true => unchanged(),
            false => Err(CqlError::invalid(format!(
                "Type '{keyspace_name}.{name}' doesn't exist"
            ))),
        };
    };
    let still_used = |by: &str, names: Vec<&str>| {
        CqlError::invalid(format!(
            "Cannot drop user type '{keyspace_name}.{name}' as it is still used by {by} {}",
            names.join(", ")
        ))
    };
    let functions = functions_with(keyspace, name);
    if !functions.is_empty() {
        return Err(still_used(
            "functions",
            functions.iter().map(String::as_str).collect(),
        ));
    }
    let types: Vec<&str> = keyspace
        .types
        .values()
        .filter(|ty| {
            ty.name != name
                && ty
                    .fields
                    .iter()
                    .any(|field| field.ty.references_udt(keyspace_name, name))
        })
        .map(|ty| ty.name.as_str())
        .collect();
    if !types.is_empty() {
        return Err(still_used("user types", types));
    }
    let uses = |column: &Arc<Column>| column.ty.references_udt(keyspace_name, name);
    let tables: Vec<&str> = as_created(keyspace, |table| {
        !table.is_view() && table.columns.iter().any(uses)
    })
    .into_iter()
    .map(|table| table.name.as_str())
    .collect();
    if !tables.is_empty() {
        return Err(still_used("tables", tables));
    }
    let mut keyspace = Keyspace::clone(keyspace);
    keyspace.types.remove(name);
    forget_dropped_columns(&mut keyspace, keyspace_name, name);
    let schema = Schema::clone(ctx.schema).with_keyspace(keyspace);
    Ok(Effect::Changed(Change::new(
        schema,
        ChangeKind::Dropped,
        keyspace_name,
        SchemaTarget::Type(name.to_owned()),
    )))
}

/// Returns the fitting tables and then views of a keyspace in the order of their creation, as Cassandra lists them.
fn as_created(keyspace: &Keyspace, fits: impl Fn(&Table) -> bool) -> Vec<&Arc<Table>> {
    let mut found: Vec<&Arc<Table>> = keyspace.tables.values().filter(|table| fits(table)).collect();
    found.sort_by_key(|table| (table.is_view(), table.number));
    found
}

/// Returns the functions and aggregates that use a type of their keyspace.
fn functions_with(keyspace: &Keyspace, name: &str) -> Vec<String> {
    let functions = keyspace.functions.values();
    let functions = functions.filter(|function| function.references_udt(&keyspace.name, name));
    let aggregates = keyspace.aggregates.values();
    let aggregates = aggregates.filter(|aggregate| aggregate.references_udt(&keyspace.name, name));
    functions
        .map(|function| format!("{}.{}", keyspace.name, function.name))
        .chain(aggregates.map(|aggregate| format!("{}.{}", keyspace.name, aggregate.name)))
        .collect()
}

/// Removes the records of dropped columns of a dropped type. They could not be written any more, and cells of dropped columns are never
/// read.
fn forget_dropped_columns(keyspace: &mut Keyspace, keyspace_name: &str, name: &str) {
    for table in keyspace.tables.values_mut() {
        let gone = |column: &DroppedColumn| column.ty.references_udt(keyspace_name, name);
        if table.dropped_columns.values().any(gone) {
            let mut builder = table.to_builder();
            builder.dropped_columns.retain(|_, column| !gone(column));
            *table = Arc::new(builder.build());
        }
    }
}
