//! Backups: a store as it was at one moment, in another place, which needs neither the store nor a node to be read.
//!
//! ```text
//! helenus-backup.json               whose backups these are
//! helenus-backup-running.json       there while a node backs up
//! backups/<name>.json               one backup: the schema, the tablets and the files that it is made of
//! tablets/<id>/compacted/<id>.sst   SSTables, as in the store, which all backups that have them share
//! tablets/<id>/manifest/<n>.manifest  manifests, as SlateDB writes them
//! ```
//!
//! SSTables never change and their names are never used again: a file that is there already is not copied once more. The document of a backup
//! is written last, so a backup that was cut off is none, and the next one finds its files. In a place with a key, all but the first two are encrypted. `docs/data-layout.md` has the documents.

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
