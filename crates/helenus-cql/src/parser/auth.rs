//! Statements that grant, revoke and list permissions.

use super::{Parsed, Parser};
use crate::ast::{
    GrantRole, ListPermissions, ListRoles, ListedRoles, Permission, PermissionsStatement, Resource,
    Statement, applicable,
};
use crate::lexer::Kind;

impl Parser<'_> {
    /// Parses rules `grantPermissionsStatement`, `grantRoleStatement`.
    pub(super) fn grant(&mut self) -> Parsed<Statement> {
        if self.grants_permissions(Kind::To)? {
            Ok(Statement::GrantPermissions(self.permissions_statement(Kind::To)?))
        } else {
            Ok(Statement::GrantRole(self.role_statement(Kind::To)?))
        }
    }

    /// Parses rules `revokePermissionsStatement`, `revokeRoleStatement`.
    pub(super) fn revoke(&mut self) -> Parsed<Statement> {
        if self.grants_permissions(Kind::From)? {
            Ok(Statement::RevokePermissions(
                self.permissions_statement(Kind::From)?,
            ))
        } else {
            Ok(Statement::RevokeRole(self.role_statement(Kind::From)?))
        }
    }

    /// Returns true if the statement is about permissions, and false if it is about a role.
    fn grants_permissions(&self, preposition: Kind) -> Parsed<bool> {
        let kind = self.kind_at(1);
        match kind {
            Kind::All | Kind::Unmask | Kind::SelectMasked => match self.kind_at(2) {
                next if next == preposition => Ok(false),
                Kind::On | Kind::Comma | Kind::Permission | Kind::Permissions => Ok(true),
                _ => Err(self.no_viable_at(2)),
            },
            _ if permission_of(kind).is_some() => Ok(true),
            _ if kind.is_ident() || kind.is_string() || kind == Kind::QuestionMark => Ok(false),
            _ => Err(self.no_viable_at(1)),
        }
    }

    fn role_statement(&mut self, preposition: Kind) -> Parsed<GrantRole> {
        self.advance();
        let role = self.role_name()?;
        self.expect(preposition)?;
        Ok(GrantRole {
            role,
            grantee: self.role_name()?,
        })
    }

    fn permissions_statement(&mut self, preposition: Kind) -> Parsed<PermissionsStatement> {
        self.advance();
        let permissions = self.permissions()?;
        self.expect(Kind::On)?;
        let resource = self.resource()?;
        self.expect(preposition)?;
        let role = self.role_name()?;
        let permissions = self.applicable(permissions, &resource)?;
        Ok(PermissionsStatement {
            permissions,
            resource,
            role,
        })
    }

    /// Returns the permissions that the resource has. At least one must remain.
    fn applicable(&self, mut permissions: Vec<Permission>, resource: &Resource) -> Parsed<Vec<Permission>> {
        let (class, applicable) = resource_permissions(resource);
        permissions.retain(|permission| applicable.contains(permission));
        if permissions.is_empty() {
            return Err(self.recognition_error(format!(
                "Resource type {class} does not support any of the requested permissions"
            )));
        }
        Ok(permissions)
    }

    /// Parses rule `permissionOrAll`. The permissions are in Cassandra's order, each once.
    fn permissions(&mut self) -> Parsed<Vec<Permission>> {
        if self.accept(Kind::All) {
            self.accept(Kind::Permissions);
            return Ok(Permission::ALL.to_vec());
        }
        let mut permissions = self.comma_separated(|parser| {
            let Some(permission) = permission_of(parser.kind()) else {
                return Err(parser.mismatched_set());
            };
            parser.advance();
            parser.accept(Kind::Permission);
            Ok(permission)
        })?;
        permissions.sort_unstable();
        permissions.dedup();
        Ok(permissions)
    }

    /// Parses rule `resource`.
    fn resource(&mut self) -> Parsed<Resource> {
        let next = self.kind_at(1);
        let next_is_name = next.is_ident() || next == Kind::QuestionMark;
        match self.kind() {
            Kind::All => self.resource_of_all(),
            Kind::Keyspace => {
                self.advance();
                Ok(Resource::Keyspace(self.keyspace_name()?))
            }
            Kind::ColumnFamily | Kind::Table => {
                self.advance();
                Ok(Resource::Table(self.table_name()?))
            }
            Kind::Role if next_is_name || next.is_string() => {
                self.advance();
                Ok(Resource::Role(self.role_name()?))
            }
            Kind::Function if next_is_name || self.is_function_name_at(1) => {
                self.advance();
                Ok(Resource::Function {
                    name: self.function_name()?,
                    arg_types: self.types_in_parentheses()?,
                })
            }
            Kind::MBean | Kind::MBeans if next.is_string() => {
                let plural = self.at(Kind::MBeans);
                self.advance();
                self.mbean(plural)
            }
            _ => Ok(Resource::Table(self.table_name()?)),
        }
    }

    fn resource_of_all(&mut self) -> Parsed<Resource> {
        let resource = match self.kind_at(1) {
            Kind::Keyspaces => Resource::AllKeyspaces,
            Kind::Roles => Resource::AllRoles,
            Kind::MBeans => Resource::AllMBeans,
            Kind::Tables | Kind::ColumnFamilies => {
                self.advance();
                self.advance();
                self.expect_all(&[Kind::In, Kind::Keyspace])?;
                return Ok(Resource::AllTables(self.keyspace_name()?));
            }
            Kind::Functions => {
                self.advance();
                self.advance();
                if !self.accept(Kind::In) {
                    return Ok(Resource::AllFunctions);
                }
                self.expect(Kind::Keyspace)?;
                return Ok(Resource::AllFunctionsIn(self.keyspace_name()?));
            }
            Kind::To
            | Kind::From
            | Kind::Of
            | Kind::NoRecursive
            | Kind::Dot
            | Kind::Eof
            | Kind::Semicolon => {
                return Ok(Resource::Table(self.table_name()?));
            }
            _ => return Err(self.no_viable_at(1)),
        };
        self.advance();
        self.advance();
        Ok(resource)
    }

    fn mbean(&mut self, plural: bool) -> Parsed<Resource> {
        let name = self.expect_string()?;
        match name.as_str() {
            "" => return Err(self.recognition_error("Empty JMX object name supplied")),
            "*:*" => return Err(self.recognition_error("Please use ALL MBEANS instead of wildcard pattern")),
            _ => {}
        }
        if !name.contains(':') {
            return Err(self.recognition_error(format!("{name} is not a valid JMX object name")));
        }
        if plural && !name.contains(['*', '?']) {
            return Err(self.recognition_error(format!(
                "Plural form used, but non-pattern JMX object name specified ({name})"
            )));
        }
        Ok(Resource::MBean(name))
    }

    /// Parses rules `listUsersStatement`, `listRolesStatement`, `listSuperUsersStatement`, `listPermissionsStatement`.
    pub(super) fn list(&mut self) -> Parsed<Statement> {
        match self.kind_at(1) {
            Kind::Users => {
                self.advance();
                self.advance();
                Ok(Statement::ListRoles(ListRoles {
                    listed: ListedRoles::Users,
                    of_role: None,
                    recursive: false,
                }))
            }
            Kind::Superusers => {
                self.advance();
                self.advance();
                Ok(Statement::ListRoles(ListRoles {
                    listed: ListedRoles::Superusers,
                    of_role: None,
                    recursive: false,
                }))
            }
            Kind::Roles => {
                self.advance();
                self.advance();
                Ok(Statement::ListRoles(ListRoles {
                    listed: ListedRoles::Roles,
                    of_role: self.of_role()?,
                    recursive: !self.accept(Kind::NoRecursive),
                }))
            }
            kind if kind == Kind::All || permission_of(kind).is_some() => {
                self.advance();
                let permissions = self.permissions()?;
                let resource = if self.accept(Kind::On) {
                    Some(self.resource()?)
                } else {
                    None
                };
                Ok(Statement::ListPermissions(ListPermissions {
                    permissions,
                    resource,
                    of_role: self.of_role()?,
                    recursive: !self.accept(Kind::NoRecursive),
                }))
            }
            _ => Err(self.no_viable_at(1)),
        }
    }

    fn of_role(&mut self) -> Parsed<Option<String>> {
        if !self.accept(Kind::Of) {
            return Ok(None);
        }
        self.role_name().map(Some)
    }
}

fn permission_of(kind: Kind) -> Option<Permission> {
    Some(match kind {
        Kind::Create => Permission::Create,
        Kind::Alter => Permission::Alter,
        Kind::Drop => Permission::Drop,
        Kind::Select => Permission::Select,
        Kind::Modify => Permission::Modify,
        Kind::Authorize => Permission::Authorize,
        Kind::Describe => Permission::Describe,
        Kind::Execute => Permission::Execute,
        Kind::Unmask => Permission::Unmask,
        Kind::SelectMasked => Permission::SelectMasked,
        _ => return None,
    })
}

/// Returns the resource's Java class, and the permissions that can be granted on it.
fn resource_permissions(resource: &Resource) -> (&'static str, &'static [Permission]) {
    match resource {
        Resource::AllKeyspaces | Resource::Keyspace(_) | Resource::AllTables(_) => {
            ("DataResource", applicable::KEYSPACE)
        }
        Resource::Table(_) => ("DataResource", applicable::TABLE),
        Resource::AllRoles => ("RoleResource", applicable::ALL_ROLES),
        Resource::Role(_) => ("RoleResource", applicable::ROLE),
        Resource::AllFunctions | Resource::AllFunctionsIn(_) => ("FunctionResource", applicable::FUNCTIONS),
        Resource::Function { .. } => ("FunctionResource", applicable::FUNCTION),
        Resource::AllMBeans | Resource::MBean(_) => ("JMXResource", applicable::MBEAN),
    }
}
