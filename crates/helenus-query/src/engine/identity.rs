//! The identity of prepared statements, and their dependence on the keyspace in use.

use helenus_cql::ast;
use md5::{Digest, Md5};

use crate::analysis::prepared::TableNames;

/// Returns whether a statement names its tables with their keyspaces.
pub(crate) fn table_names(statement: &ast::Statement) -> TableNames {
    let table = match statement {
        ast::Statement::Select(select) => &select.table,
        ast::Statement::Insert(insert) => &insert.table,
        ast::Statement::InsertJson(insert) => &insert.table,
        ast::Statement::InsertRows(insert) => &insert.table,
        ast::Statement::Update(update) => &update.table,
        ast::Statement::Delete(delete) => &delete.table,
        ast::Statement::Truncate(table) => table,
        ast::Statement::Batch(batch) => {
            let is_qualified = batch
                .statements
                .iter()
                .map(ast::Modification::table)
                .all(is_qualified);
            return names(is_qualified, true);
        }
        ast::Statement::Transaction(transaction) => {
            return names(transaction.tables().all(is_qualified), false);
        }
        _ => return TableNames::None,
    };
    names(is_qualified(table), false)
}

fn names(is_qualified: bool, is_batch: bool) -> TableNames {
    match is_qualified {
        true => TableNames::Qualified,
        false => TableNames::Unqualified { is_batch },
    }
}

fn is_qualified(name: &ast::QualifiedName) -> bool {
    name.keyspace.is_some()
}

/// Returns Cassandra's warning about a statement whose meaning depends on the keyspace in use, which is `used`.
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

/// Returns the MD5 digest of the keyspace and the text (Cassandra's `QueryProcessor.computeId`).
pub(crate) fn prepared_id(keyspace: Option<&str>, text: &str) -> [u8; 16] {
    let mut hasher = Md5::new();
    hasher.update(keyspace.unwrap_or_default());
    hasher.update(text);
    hasher.finalize().into()
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
