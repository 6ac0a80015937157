//! The storage of components: a folder of the machine, or bytes in memory. Other crates implement the same traits for buckets.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use bytes::Bytes;

/// A place with files. Its calls block; a caller on an async runtime makes them on a thread of its own.
pub trait Folder {
    /// Returns the names of all files, in any order, without folders.
    ///
    /// # Errors
    /// The storage's.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Opens a file for reading.
    ///
    /// # Errors
    /// `NotFound` if the file doesn't exist, and the storage's.
    fn open(&self, name: &str) -> io::Result<Box<dyn ComponentFile>>;

    /// Returns the name of a file for messages, for example its path. An empty name stands for the folder itself.
    fn display_name(&self, name: &str) -> String {
        name.to_owned()
    }
}

/// An open file whose content doesn't change.
pub trait ComponentFile: Send {
    /// Returns the number of bytes.
    fn size(&self) -> u64;

    /// Fills the buffer with the bytes from the offset on. Readers of Data.db go forward, so an implementation can read ahead.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file has fewer bytes, and the storage's.
    fn read_exact_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Announces that the file will be read from its beginning, so that an implementation can fetch the first bytes.
    fn read_ahead(&mut self) {}
}

/// A folder of the file system.
#[derive(Clone, Debug)]
pub struct LocalFolder {
    path: PathBuf,
}

impl LocalFolder {
    pub fn new(path: impl Into<PathBuf>) -> LocalFolder {
        LocalFolder { path: path.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Folder for LocalFolder {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            // Names of components are ASCII, so a name in another encoding is none.
            if let (true, Ok(name)) = (entry.path().is_file(), entry.file_name().into_string()) {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn ComponentFile>> {
        let file = File::open(self.path.join(name))?;
        let size = file.metadata()?.len();
        Ok(Box::new(LocalFile {
            file,
            size,
            position: 0,
        }))
    }

    fn display_name(&self, name: &str) -> String {
        match name {
            "" => self.path.display().to_string(),
            name => self.path.join(name).display().to_string(),
        }
    }
}

struct LocalFile {
    file: File,
    size: u64,
    /// Position of the file's cursor, so that reading forward needs no seek.
    position: u64,
}

impl ComponentFile for LocalFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_exact_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if offset != self.position {
            self.file.seek(SeekFrom::Start(offset))?;
        }
        // After an error, the cursor may be anywhere.
        self.position = u64::MAX;
        self.file.read_exact(buffer)?;
        self.position = offset.saturating_add(buffer.len() as u64);
        Ok(())
    }
}

/// Files in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryFolder {
    files: BTreeMap<String, Bytes>,
}

impl MemoryFolder {
    pub fn insert(&mut self, name: impl Into<String>, content: impl Into<Bytes>) {
        self.files.insert(name.into(), content.into());
    }

    pub fn remove(&mut self, name: &str) -> Option<Bytes> {
        self.files.remove(name)
    }

    pub fn get(&self, name: &str) -> Option<&Bytes> {
        self.files.get(name)
    }
}

impl Folder for MemoryFolder {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.files.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn ComponentFile>> {
        let content = self.files.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(MemoryFile(content.clone())))
    }
}

struct MemoryFile(Bytes);

impl ComponentFile for MemoryFile {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let end = start
            .checked_add(buffer.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        let content = self.0.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(content);
        Ok(())
    }
}
