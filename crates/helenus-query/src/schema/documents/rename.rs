//! Renaming of keyspaces with everything in them.

use super::{keyspace_doc, read_keyspace};
use crate::schema::{EntryTable, Keyspace};

/// Returns a copy of a keyspace under another name. Its types, functions and masks refer to the new name. Views and their base tables are
/// not linked yet.
///
/// # Errors
/// A text that names the part of the keyspace that cannot be read.
pub(crate) fn renamed(keyspace: &Keyspace, name: &str, entry_table: EntryTable) -> Result<Keyspace, String> {
    let mut document = keyspace_doc(keyspace);
    let columns = document.tables.iter_mut().flat_map(|table| &mut table.columns);
    let masks = columns.filter_map(|column| column.mask.as_mut());
    for mask in masks.filter(|mask| mask.keyspace == keyspace.name) {
        mask.keyspace = name.to_owned();
    }
    document.name = name.to_owned();
    read_keyspace(document, entry_table)
}
