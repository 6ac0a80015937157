//! Names of Cassandra's folders: `<table>-<id in 32 hexadecimal digits>` (`db.Directories`).

use uuid::Uuid;

/// The folder of one generation of a table: a table that is dropped and created again gets a new id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFolderName {
    pub table: String,
    pub id: Uuid,
}

impl TableFolderName {
    /// Parses the name of a folder. `None` if it isn't that of a table.
    pub fn parse(name: &str) -> Option<TableFolderName> {
        let (table, id) = name.rsplit_once('-')?;
        let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if table.is_empty() || !is_id {
            return None;
        }
        Some(TableFolderName {
            table: table.to_owned(),
            id: Uuid::try_parse(id).ok()?,
        })
    }
}

/// Returns the time at which a table's id was made, in units that only compare. `None` if the id isn't a time UUID.
pub fn creation_time(id: Uuid) -> Option<u64> {
    (id.get_version_num() == 1)
        .then(|| id.get_timestamp())
        .flatten()
        .map(|timestamp| timestamp.to_gregorian().0)
}
