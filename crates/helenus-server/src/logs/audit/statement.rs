//! The name of a statement in the audit log, and its subject (`getAuditLogContext` of Cassandra's statements).

use helenus_cql::ast::{ListedRoles, QualifiedName, ServiceLevelStatement, Statement};
use helenus_cql::parser::parse_statement;

use super::entry::{Entry, EntryKind};

/// The subject of a statement.
#[derive(Default)]
struct Subject {
    keyspace: Option<String>,
    scope: Option<String>,
}

/// Returns the entry of a statement. `used` is the keyspace in use. A statement that cannot be parsed is logged as failed.
pub(super) fn entry(text: &str, used: Option<&str>) -> Entry {
    let text = text.trim();
    let Ok(parsed) = parse_statement(text) else {
        return Entry::new(EntryKind::RequestFailure, text.to_owned());
    };
    let (name, category) = kind(&parsed.statement);
    let subject = subject(&parsed.statement);
    Entry {
        keyspace: subject.keyspace.or_else(|| used.map(str::to_owned)),
        scope: subject.scope,
        ..Entry::new(EntryKind::Statement(name, category), text.to_owned())
    }
}

/// Returns the name and the category of a statement.
fn kind(statement: &Statement) -> (&'static str, &'static str) {
    match statement {
        Statement::Select(_) => ("SELECT", "QUERY"),
        Statement::Insert(_) | Statement::InsertJson(_) | Statement::InsertRows(_) | Statement::Update(_) => {
            ("UPDATE", "DML")
        }
        Statement::Delete(_) => ("DELETE", "DML"),
        Statement::Batch(_) => ("BATCH", "DML"),
        Statement::Transaction(_) => ("TRANSACTION", "DML"),
        Statement::Use(_) => ("USE_KEYSPACE", "OTHER"),
        Statement::Truncate(_) => ("TRUNCATE", "DDL"),
        Statement::CreateKeyspace(_) | Statement::CopyKeyspace(_) => ("CREATE_KEYSPACE", "DDL"),
        Statement::AlterKeyspace(_) => ("ALTER_KEYSPACE", "DDL"),
        Statement::DropKeyspace(_) => ("DROP_KEYSPACE", "DDL"),
        Statement::CreateTable(_) | Statement::CopyTable(_) => ("CREATE_TABLE", "DDL"),
        Statement::CreateTableLike(_) => ("CREATE_TABLE_LIKE", "DDL"),
        Statement::AlterTable(_) => ("ALTER_TABLE", "DDL"),
        Statement::DropTable(_) => ("DROP_TABLE", "DDL"),
        Statement::CreateType(_) => ("CREATE_TYPE", "DDL"),
        Statement::AlterType(_) => ("ALTER_TYPE", "DDL"),
        Statement::DropType(_) => ("DROP_TYPE", "DDL"),
        Statement::CreateIndex(_) => ("CREATE_INDEX", "DDL"),
        Statement::DropIndex(_) => ("DROP_INDEX", "DDL"),
        Statement::CreateView(_) => ("CREATE_VIEW", "DDL"),
        Statement::AlterView(_) => ("ALTER_VIEW", "DDL"),
        Statement::DropView(_) => ("DROP_VIEW", "DDL"),
        Statement::CreateFunction(_) => ("CREATE_FUNCTION", "DDL"),
        Statement::DropFunction(_) => ("DROP_FUNCTION", "DDL"),
        Statement::CreateAggregate(_) => ("CREATE_AGGREGATE", "DDL"),
        Statement::DropAggregate(_) => ("DROP_AGGREGATE", "DDL"),
        Statement::CreateTrigger(_) => ("CREATE_TRIGGER", "DDL"),
        Statement::DropTrigger(_) => ("DROP_TRIGGER", "DDL"),
        Statement::GrantPermissions(_) | Statement::GrantRole(_) => ("GRANT", "DCL"),
        Statement::RevokePermissions(_) | Statement::RevokeRole(_) => ("REVOKE", "DCL"),
        Statement::ListPermissions(_) => ("LIST_PERMISSIONS", "DCL"),
        Statement::ListRoles(list) if list.listed == ListedRoles::Superusers => ("LIST_SUPERUSERS", "DCL"),
        Statement::ListRoles(_) => ("LIST_ROLES", "DCL"),
        Statement::CreateRole(_) => ("CREATE_ROLE", "DCL"),
        Statement::AlterRole(_) => ("ALTER_ROLE", "DCL"),
        Statement::DropRole(_) => ("DROP_ROLE", "DCL"),
        Statement::AddIdentity(_) => ("CREATE_IDENTITY", "DCL"),
        Statement::DropIdentity(_) => ("DROP_IDENTITY", "DCL"),
        Statement::ServiceLevel(statement) => (service_level_name(statement), "DCL"),
        Statement::Describe(_) => ("DESCRIBE", "OTHER"),
    }
}

fn service_level_name(statement: &ServiceLevelStatement) -> &'static str {
    match statement {
        ServiceLevelStatement::Create(_) => "CREATE_SERVICE_LEVEL",
        ServiceLevelStatement::Alter(_) => "ALTER_SERVICE_LEVEL",
        ServiceLevelStatement::Drop(_) => "DROP_SERVICE_LEVEL",
        ServiceLevelStatement::Attach { .. } => "ATTACH_SERVICE_LEVEL",
        ServiceLevelStatement::Detach { .. } => "DETACH_SERVICE_LEVEL",
        ServiceLevelStatement::List(_) => "LIST_SERVICE_LEVELS",
    }
}

fn subject(statement: &Statement) -> Subject {
    let of_keyspace = |keyspace: &helenus_cql::ast::Ident| Subject {
        keyspace: Some(keyspace.0.clone()),
        scope: None,
    };
    match statement {
        Statement::Use(name) => of_keyspace(name),
        Statement::CreateKeyspace(statement) => of_keyspace(&statement.name),
        Statement::CopyKeyspace(statement) => of_keyspace(&statement.name),
        Statement::AlterKeyspace(statement) => of_keyspace(&statement.name),
        Statement::DropKeyspace(statement) => of_keyspace(&statement.name),
        statement => qualified(statement).map_or_else(Subject::default, |name| Subject {
            keyspace: name.keyspace.as_ref().map(|keyspace| keyspace.0.clone()),
            scope: Some(name.name.0.clone()),
        }),
    }
}

/// Returns the qualified name of a statement's subject. `None` if it has no such name.
fn qualified(statement: &Statement) -> Option<&QualifiedName> {
    Some(match statement {
        Statement::Select(statement) => &statement.table,
        Statement::Insert(statement) => &statement.table,
        Statement::InsertJson(statement) => &statement.table,
        Statement::InsertRows(statement) => &statement.table,
        Statement::Update(statement) => &statement.table,
        Statement::Delete(statement) => &statement.table,
        Statement::Batch(batch) => batch.statements.first()?.table(),
        Statement::Transaction(transaction) => transaction.tables().next()?,
        Statement::Truncate(name) => name,
        Statement::CreateTable(statement) => &statement.table,
        Statement::CreateTableLike(statement) => &statement.table,
        Statement::CopyTable(statement) => &statement.table,
        Statement::AlterTable(statement) => &statement.table,
        Statement::DropTable(statement) => &statement.table,
        Statement::CreateType(statement) => &statement.name,
        Statement::AlterType(statement) => &statement.name,
        Statement::CreateIndex(statement) => &statement.table,
        Statement::DropIndex(statement) => &statement.name,
        Statement::CreateView(statement) => &statement.view,
        Statement::AlterView(statement) => &statement.view,
        Statement::DropView(statement) => &statement.view,
        _ => return None,
    })
}
