//! Checks whether backups can be restored: reads all of their files, and reports each one that is damaged or missing.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, stream};
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt};

use super::copying::FILES;
use super::digest::digest;
use super::document::{BackupDocument, BackupFile};
use super::history::check_logs;
use super::location::BackupLocation;
use super::stored_files::stored_files;
use crate::error::{StoreError, chain};
use crate::metadata::slatedb_layout::{manifest_path, tablet_of_manifest};
use crate::tablet::pin::PinnedTablet;

/// A damaged or missing file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BackupProblem {
    pub path: String,
    pub what: String,
    /// The backups that can't be restored because of it.
    pub backups: Vec<String>,
}

/// Result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifiedBackups {
    /// Names of the verified backups, from old to new.
    pub backups: Vec<String>,
    pub files: u64,
    pub bytes: u64,
    /// The problems, sorted by path.
    pub problems: Vec<BackupProblem>,
    /// Results for the times between consecutive backups, from old to new. Only backups with history are included.
    pub times: Vec<VerifiedTimes>,
}

/// The times between two backups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedTimes {
    /// Times of the cuts of the two backups, in milliseconds since the Unix epoch.
    pub from_ms: i64,
    pub to_ms: i64,
    /// Reason why not all of these times can be restored. `None` if they can.
    pub problem: Option<String>,
}

/// Checks of documents whose content only the crates above understand. Each returns a description of the problem.
pub struct BackupChecks {
    /// Check of a backup's document. Its files are verified separately.
    pub backup: fn(&BackupDocument) -> Result<(), String>,
    /// Check of the times between two backups. Logs and files are verified separately.
    pub times: fn(&[BackupDocument; 2]) -> Result<(), String>,
}

/// Returns the path of the manifest that lists the SSTables of a tablet.
pub fn manifest_of(tablet: &PinnedTablet) -> String {
    manifest_path(tablet.id, tablet.manifest).to_string()
}

impl BackupLocation {
    /// Verifies one backup, or all backups and the times between them.
    ///
    /// # Errors
    /// There is no such backup, or the location can't be read at all.
    pub async fn verify(
        &self,
        name: Option<&str>,
        checks: &BackupChecks,
    ) -> Result<VerifiedBackups, StoreError> {
        let mut verified = VerifiedBackups::default();
        let documents = match name {
            Some(name) => vec![self.find(Some(name)).await?],
            None => {
                let listed = self.list().await?;
                verified
                    .problems
                    .extend(listed.unreadable.into_iter().map(unreadable));
                listed.documents
            }
        };
        if let Err(error) = self.store_id().await {
            let backups = names(&documents);
            let what = error.to_string();
            verified.problems.push(BackupProblem {
                path: self.to_string(),
                what,
                backups,
            });
        }
        verified.backups = names(&documents);
        for document in &documents {
            if let Err(what) = (checks.backup)(document) {
                verified.problems.push(problem_of(
                    document,
                    &format!("backups/{}.json", document.name),
                    what,
                ));
            }
        }
        self.verify_files(&documents, &mut verified).await;
        for document in &documents {
            self.verify_tablets(document, &mut verified).await;
        }
        for pair in documents.windows(2) {
            if let [begin, end] = pair {
                let times = self.verify_times(begin, end, checks, &verified.problems).await;
                verified.times.extend(times);
            }
        }
        verified.problems.sort();
        Ok(verified)
    }

    async fn verify_files(&self, documents: &[BackupDocument], verified: &mut VerifiedBackups) {
        let mut files: BTreeMap<&BackupFile, Vec<String>> = BTreeMap::new();
        for document in documents {
            for file in &document.files {
                files.entry(file).or_default().push(document.name.clone());
            }
        }
        verified.files = files.len() as u64;
        verified.bytes = files.keys().map(|file| file.bytes).sum();
        let checks = files.into_iter().map(|(file, backups)| async move {
            let what = self.problem_of_file(file).await?;
            let path = file.path.clone();
            Some(BackupProblem { path, what, backups })
        });
        let mut checks = stream::iter(checks).buffer_unordered(FILES);
        while let Some(problem) = checks.next().await {
            verified.problems.extend(problem);
        }
    }

    /// Returns a description of what is wrong with a file. `None` if the file is intact.
    async fn problem_of_file(&self, file: &BackupFile) -> Option<String> {
        let path = Path::from(file.path.as_str());
        let bytes = match self.objects.head(&path).await {
            Ok(found) => found.size,
            Err(Error::NotFound { .. }) => return Some("it is missing".to_owned()),
            Err(error) => return Some(format!("it can't be read: {}", chain(&error))),
        };
        if bytes != file.bytes {
            return Some(format!(
                "it is damaged: it has {bytes} bytes instead of {}",
                file.bytes
            ));
        }
        match digest(&self.objects, &path, bytes, None).await {
            Ok(sha256) if sha256 == file.sha256 => None,
            Ok(_) => Some("it is damaged: it does not match its checksum".to_owned()),
            Err(error) => Some(format!("it can't be read: {error}")),
        }
    }

    /// Checks whether all times between two backups can be restored. `None` if one of the two has no history.
    async fn verify_times(
        &self,
        begin: &BackupDocument,
        end: &BackupDocument,
        checks: &BackupChecks,
        problems: &[BackupProblem],
    ) -> Option<VerifiedTimes> {
        let (before, history) = (begin.content.history.as_ref()?, end.content.history.as_ref()?);
        let is_bad = |problem: &&BackupProblem| {
            problem
                .backups
                .iter()
                .any(|name| [&begin.name, &end.name].contains(&name))
        };
        let checked = async {
            if let Some(problem) = problems.iter().find(is_bad) {
                return Err(format!("{}: {}", problem.path, problem.what));
            }
            (checks.times)(&[begin.clone(), end.clone()])?;
            check_logs(self, before, end, history).await
        };
        Some(VerifiedTimes {
            from_ms: begin.content.taken_ms,
            to_ms: end.content.taken_ms,
            problem: checked.await.err(),
        })
    }

    /// Checks that the manifests can be read, and that the backup has the SSTables that they list.
    async fn verify_tablets(&self, document: &BackupDocument, verified: &mut VerifiedBackups) {
        let has: BTreeSet<&str> = document.files.iter().map(|file| file.path.as_str()).collect();
        let bad: BTreeSet<String> = verified
            .problems
            .iter()
            .map(|problem| problem.path.clone())
            .collect();
        // Manifests of origins are verified too.
        let files = document.files.iter().map(|file| Path::from(file.path.as_str()));
        let of_files = files.filter_map(|path| tablet_of_manifest(&path));
        let of_tablets = document.tablets.iter().map(|tablet| (tablet.id, tablet.manifest));
        let tablets: BTreeSet<(u32, u64)> = of_tablets.chain(of_files).collect();
        for (id, number) in tablets {
            let manifest = manifest_path(id, number);
            if bad.contains(manifest.as_ref()) {
                continue;
            }
            let what = match stored_files(&self.objects, id, number).await {
                Ok(stored) => {
                    let mut lost = stored.tables.iter().filter(|path| !has.contains(path.as_ref()));
                    lost.next()
                        .map(|path| format!("it names {path}, which the backup does not have"))
                }
                Err(error) => Some(format!("it can't be read: {error}")),
            };
            let problem = what.map(|what| problem_of(document, manifest.as_ref(), what));
            verified.problems.extend(problem);
        }
    }
}

fn names(documents: &[BackupDocument]) -> Vec<String> {
    documents.iter().map(|document| document.name.clone()).collect()
}

fn problem_of(document: &BackupDocument, path: &str, what: String) -> BackupProblem {
    BackupProblem {
        path: path.to_owned(),
        what,
        backups: vec![document.name.clone()],
    }
}

/// Returns the problem of a document that can't be read.
fn unreadable((path, why): (String, String)) -> BackupProblem {
    let name = path
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .trim_end_matches(".json");
    BackupProblem {
        what: format!("it can't be read: {why}"),
        backups: vec![name.to_owned()],
        path,
    }
}
