//! Backups: a store as of one consistent cut, in another place. Reading a backup needs neither the store nor a node.
//!
//! ```text
//! helenus-backup.json               the store whose backups these are
//! helenus-backup-running.json       exists while a node backs up
//! backups/<name>.json               one backup: the schema, the tablets and the list of their files
//! tablets/<id>/compacted/<id>.sst   SSTables, as in the store, shared by all backups that need them
//! tablets/<id>/manifest/<n>.manifest  manifests, as SlateDB writes them
//! ```
//!
//! SSTables never change and their names are never used again, so a file that is there already is not copied again. The document of a
//! backup is written last: an interrupted backup does not exist, and the next one reuses its files. In a location with a key, all but the
//! first two are encrypted. `docs/data-layout.md` describes the documents.

pub(crate) mod copying;
mod digest;
pub(crate) mod document;
mod encrypted;
mod history;
pub(crate) mod key;
pub(crate) mod location;
mod opening;
pub(crate) mod retention;
mod running;
mod sealed;
mod stored_files;
pub(crate) mod verification;
