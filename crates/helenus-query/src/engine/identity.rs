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

/// What Cassandra says of a statement that means another thing in another keyspace.
pub(crate) fn use_warning(keyspace: &str, id: &[u8; 16]) -> String {
    let id = u128::from_be_bytes(*id);
    format!(
        "`USE <keyspace>` with prepared statements is considered to be an anti-pattern due to ambiguity in non-qualified \
         table names. Please consider removing instances of `Session#setKeyspace(<keyspace>)`, `Session#execute(\"USE \
         <keyspace>\")` and `cluster.newSession(<keyspace>)` from your code, and always use fully qualified table names \
         (e.g. <keyspace>.<table>). Keyspace used: {keyspace}, statement keyspace: {keyspace}, statement id: {id:032x}"
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
