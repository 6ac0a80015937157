//! What identifies a prepared statement, and in which keyspaces it means the same.

use helenus_cql::ast;
use md5::{Digest, Md5};

/// True if the statement means the same in every keyspace.
pub(crate) fn is_qualified(statement: &ast::Statement) -> bool {
    let is_qualified = |name: &ast::QualifiedName| name.keyspace.is_some();
    let is_batched_qualified = |modification: &ast::Modification| match modification {
        ast::Modification::Insert(insert) => is_qualified(&insert.table),
        ast::Modification::InsertJson(insert) => is_qualified(&insert.table),
        ast::Modification::Update(update) => is_qualified(&update.table),
        ast::Modification::Delete(delete) => is_qualified(&delete.table),
    };
    match statement {
        ast::Statement::Select(select) => is_qualified(&select.table),
        ast::Statement::Insert(insert) => is_qualified(&insert.table),
        ast::Statement::InsertJson(insert) => is_qualified(&insert.table),
        ast::Statement::Update(update) => is_qualified(&update.table),
        ast::Statement::Delete(delete) => is_qualified(&delete.table),
        ast::Statement::Truncate(table) => is_qualified(table),
        ast::Statement::Batch(batch) => batch.statements.iter().all(is_batched_qualified),
        _ => false,
    }
}

/// True for statements that name tables, with their keyspace or without.
pub(crate) fn names_tables(statement: &ast::Statement) -> bool {
    matches!(
        statement,
        ast::Statement::Select(_)
            | ast::Statement::Insert(_)
            | ast::Statement::InsertJson(_)
            | ast::Statement::Update(_)
            | ast::Statement::Delete(_)
            | ast::Statement::Truncate(_)
            | ast::Statement::Batch(_)
    )
}

/// What Cassandra says of a statement that means another thing in another keyspace, prepared or run in the one that is `used`.
pub(crate) fn use_warning(used: Option<&str>, keyspace: Option<&str>, id: &[u8; 16]) -> String {
    let (used, keyspace) = (used.unwrap_or("null"), keyspace.unwrap_or("null"));
    let id = u128::from_be_bytes(*id);
    format!(
        "`USE <keyspace>` with prepared statements is considered to be an anti-pattern due to ambiguity in non-qualified \
         table names. Please consider removing instances of `Session#setKeyspace(<keyspace>)`, `Session#execute(\"USE \
         <keyspace>\")` and `cluster.newSession(<keyspace>)` from your code, and always use fully qualified table names \
         (e.g. <keyspace>.<table>). Keyspace used: {used}, statement keyspace: {keyspace}, statement id: {id:032x}"
    )
}

/// md5 of keyspace and text (Cassandra's `QueryProcessor.computeId`).
pub(crate) fn prepared_id(keyspace: Option<&str>, text: &str) -> [u8; 16] {
    let mut hasher = Md5::new();
    hasher.update(keyspace.unwrap_or_default());
    hasher.update(text);
    hasher.finalize().into()
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
