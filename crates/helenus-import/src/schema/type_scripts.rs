//! The user types of all schema.cql, in an order in which they can be created.

use helenus_cql::ast::{CreateType, Ident, Statement, TypeName};
use helenus_cql::types::{UserType, UserTypeField};

use super::resolve::{UserTypes, resolve_type};
use super::script::{Script, no_keyspace, table_name};
use crate::error::ImportError;
use crate::table_name::TableName;

/// CREATE TYPE.
#[derive(Clone, Debug)]
pub struct TypeScript {
    /// Keyspace and name of the type.
    pub name: TableName,
    pub text: String,
}

/// A statement of a file.
struct Found<'a> {
    path: &'a str,
    name: TableName,
    text: &'a str,
    create: &'a CreateType,
}

/// Returns CREATE TYPE of all types, and the types. Cassandra writes types in the order of the columns that use them, so a type may come before the
/// types of its fields.
///
/// # Errors
/// If a name has no keyspace, or the type of a field is unknown.
pub fn defined_types(scripts: &[Script]) -> Result<(Vec<TypeScript>, UserTypes), ImportError> {
    let mut left = largest(scripts)?;
    let mut types = UserTypes::default();
    let mut ordered = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let count = left.len();
        let mut waiting = Vec::new();
        let mut problem = None;
        for found in left {
            match found.definition(&types) {
                Ok(definition) => {
                    types.insert(definition);
                    let text = found.text.to_owned();
                    ordered.push(TypeScript {
                        name: found.name,
                        text,
                    });
                }
                Err(error) => {
                    problem.get_or_insert(error);
                    waiting.push(found);
                }
            }
        }
        // The rest can't be resolved after a round without a new type.
        if let Some(problem) = problem
            && waiting.len() == count
        {
            return Err(problem);
        }
        left = waiting;
    }
    Ok((ordered, types))
}

/// Returns a statement for each type, in the order of the files. Snapshots of different tables have the same types, and a later snapshot may have more
/// fields: that with the most is used.
fn largest(scripts: &[Script]) -> Result<Vec<Found<'_>>, ImportError> {
    let mut chosen: Vec<Found<'_>> = Vec::new();
    for script in scripts {
        for statement in script.statements.iter().filter(|of| !of.is_of_system()) {
            let Statement::CreateType(create) = &statement.statement else {
                continue;
            };
            let found = Found {
                path: &script.path,
                name: table_name(&create.name)
                    .ok_or_else(|| refused(&script.path, &no_keyspace(&create.name.to_string())))?,
                text: &statement.text,
                create,
            };
            match chosen.iter_mut().find(|known| known.name == found.name) {
                Some(known) if known.create.fields.len() < create.fields.len() => *known = found,
                Some(_) => {}
                None => chosen.push(found),
            }
        }
    }
    Ok(chosen)
}

fn refused(path: &str, problem: &str) -> ImportError {
    ImportError::Refused(format!("{path}: {problem}"))
}

impl Found<'_> {
    /// Returns the type.
    ///
    /// # Errors
    /// If the type of a field is unknown.
    fn definition(&self, types: &UserTypes) -> Result<UserType, ImportError> {
        let field = |(field, ty): &(_, _)| self.field(types, field, ty);
        Ok(UserType {
            keyspace: self.name.keyspace.clone(),
            name: self.name.table.clone(),
            fields: self.create.fields.iter().map(field).collect::<Result<_, _>>()?,
        })
    }

    fn field(&self, types: &UserTypes, field: &Ident, ty: &TypeName) -> Result<UserTypeField, ImportError> {
        let ty = resolve_type(types, &self.name.keyspace, ty).map_err(|problem| {
            refused(
                self.path,
                &format!("type {}, field {field}: {problem}", self.name),
            )
        })?;
        Ok(UserTypeField {
            name: field.as_str().to_owned(),
            ty,
        })
    }
}
