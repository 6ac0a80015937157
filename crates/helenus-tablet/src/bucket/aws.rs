//! The shared files of AWS's tools: `~/.aws/credentials` and `~/.aws/config`, or the files that `AWS_SHARED_CREDENTIALS_FILE` and
//! `AWS_CONFIG_FILE` name. The profile is `AWS_PROFILE`, or `default`.
//!
//! Keys, a session token, a region and an endpoint are read. Settings that need a program or a sign-in (`credential_process`, SSO,
//! `source_profile`) are ignored.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use hashbrown::HashMap;
use object_store::CredentialProvider;
use object_store::aws::{AwsCredential, AwsCredentialProvider};
use parking_lot::Mutex;

/// A profile's settings.
#[derive(Debug, Default)]
pub(crate) struct Profile(HashMap<String, String>);

/// The files to read, and the profile in them.
#[derive(Debug, Clone)]
struct CredentialFiles {
    name: String,
    config: Option<PathBuf>,
    credentials: Option<PathBuf>,
}

impl CredentialFiles {
    fn from_env() -> CredentialFiles {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let file = |name: &str, default: &str| {
            let home = || variable("HOME").map(|home| PathBuf::from(home).join(".aws").join(default));
            variable(name).map(PathBuf::from).or_else(home)
        };
        CredentialFiles {
            name: variable("AWS_PROFILE").unwrap_or_else(|| "default".into()),
            config: file("AWS_CONFIG_FILE", "config"),
            credentials: file("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
        }
    }

    fn read(&self) -> Profile {
        let mut settings = HashMap::new();
        for path in [&self.config, &self.credentials].into_iter().flatten() {
            if let Ok(text) = std::fs::read_to_string(path) {
                settings.extend(section(&text, &self.name));
            }
        }
        Profile(settings)
    }

    fn changed(&self) -> Option<SystemTime> {
        let modified = |path: &PathBuf| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
        let files = [&self.config, &self.credentials];
        files.into_iter().flatten().filter_map(modified).max()
    }
}

/// Returns the settings of a profile's section in such a file.
fn section(text: &str, profile: &str) -> HashMap<String, String> {
    let mut settings = HashMap::new();
    let mut within = false;
    for line in text.lines() {
        let plain = line.trim();
        if plain.is_empty() || plain.starts_with(['#', ';']) {
            continue;
        }
        if let Some(title) = plain.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let title = title.trim();
            within = title.strip_prefix("profile ").unwrap_or(title).trim() == profile;
        } else if within
            && !line.starts_with([' ', '\t'])
            && let Some((name, value)) = plain.split_once('=')
        {
            settings.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    settings
}

impl Profile {
    pub fn load() -> Profile {
        CredentialFiles::from_env().read()
    }

    pub fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).filter(|value| !value.is_empty()).cloned()
    }

    fn credential(&self) -> Option<AwsCredential> {
        Some(AwsCredential {
            key_id: self.get("aws_access_key_id")?,
            secret_key: self.get("aws_secret_access_key")?,
            token: self.get("aws_session_token"),
        })
    }

    /// Returns a provider of the profile's keys, which reads the files again when they change. `None` if the profile has no keys.
    pub fn credentials(&self) -> Option<AwsCredentialProvider> {
        let source = CredentialFiles::from_env();
        let read = Read {
            changed: source.changed(),
            credential: Arc::new(self.credential()?),
        };
        Some(Arc::new(Files {
            source,
            read: Mutex::new(read),
        }))
    }
}

#[derive(Debug)]
struct Read {
    changed: Option<SystemTime>,
    credential: Arc<AwsCredential>,
}

/// Credentials from files that other programs may rewrite.
#[derive(Debug)]
struct Files {
    source: CredentialFiles,
    read: Mutex<Read>,
}

#[async_trait]
impl CredentialProvider for Files {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let mut read = self.read.lock();
        let changed = self.source.changed();
        if changed != read.changed
            && let Some(credential) = self.source.read().credential()
        {
            *read = Read {
                changed,
                credential: Arc::new(credential),
            };
        }
        Ok(read.credential.clone())
    }
}

#[cfg(test)]
#[path = "aws_tests.rs"]
mod tests;
