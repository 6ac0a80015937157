//! The key of encrypted backups, and the keys derived for single files.

use std::fmt;
use std::path::Path;

use ring::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};

use crate::error::StoreError;

pub(super) const SALT_LEN: usize = 32;
const KEY_LEN: usize = 32;
/// Contexts of key derivation, which keep derived keys of different purposes apart.
const OF_FILE: &[u8] = b"helenus backup file";
const OF_CHECK: &[u8] = b"helenus backup key check";

/// A key of 256 bits, from which a separate key for each file is derived.
#[derive(Clone, PartialEq, Eq)]
pub struct BackupKey([u8; KEY_LEN]);

impl fmt::Debug for BackupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BackupKey")
    }
}

impl BackupKey {
    /// Reads a key of 64 hexadecimal digits from a file.
    ///
    /// # Errors
    /// The file can't be read, or its content is not such a key.
    pub fn read(file: &Path) -> Result<BackupKey, StoreError> {
        let text =
            std::fs::read_to_string(file).map_err(|error| StoreError::io("cannot read", file, &error))?;
        BackupKey::parse(text.trim()).ok_or_else(|| {
            StoreError::InvalidConfig(format!(
                "{} is no key: a key has {} hexadecimal digits, as openssl rand -hex {KEY_LEN} makes it",
                file.display(),
                2 * KEY_LEN
            ))
        })
    }

    pub(super) fn parse(text: &str) -> Option<BackupKey> {
        let mut key = [0; KEY_LEN];
        if text.len() != 2 * KEY_LEN || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, digits) in key.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).ok()?;
            *byte = u8::from_str_radix(digits, 16).ok()?;
        }
        Some(BackupKey(key))
    }

    /// Returns the key of the file that has this salt.
    pub(super) fn of_file(&self, salt: &[u8; SALT_LEN]) -> Option<LessSafeKey> {
        let derived = Salt::new(HKDF_SHA256, salt).extract(&self.0);
        let info = [OF_FILE];
        let key = derived.expand(&info, &AES_256_GCM).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(key)))
    }

    /// Returns a value that identifies this key without revealing anything about it.
    pub(super) fn check(&self) -> String {
        let derived = Salt::new(HKDF_SHA256, &[]).extract(&self.0);
        let mut check = [0; KEY_LEN];
        let info = [OF_CHECK];
        let expanded = derived.expand(&info, HKDF_SHA256);
        // Neither step fails, because the output is as long as the hash.
        let filled = expanded.and_then(|expanded| expanded.fill(&mut check));
        debug_assert!(filled.is_ok());
        check.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
