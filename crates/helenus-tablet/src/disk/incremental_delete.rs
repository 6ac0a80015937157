//! Deletes large files in steps.
//!
//! On a file system mounted with `discard`, freed blocks are reported to the disk immediately. A disk may take 5 ms to discard 32 MB, while
//! a sync of the log waits. So the name of a file is deleted immediately, and its blocks are freed in steps.
#![allow(clippy::disallowed_methods, reason = "the local disk is not simulated")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crate::priority::set_background;

/// Bytes that are freed in one step. Smaller files are deleted at once.
const STEP: u64 = 1 << 20;
/// Value from `fcntl.h`. The crate `libc` defines the constant only for some systems.
#[cfg(target_os = "linux")]
const F_SETSIG: libc::c_int = 10;
/// Maximum number of files in the queue. If the queue is full, a file is deleted at once.
const WAITING_MAX: usize = 128;
/// Maximum time to wait for a file's last readers, and the interval of the checks.
const READERS_TIMEOUT: Duration = Duration::from_secs(2);
const READERS_INTERVAL: Duration = Duration::from_millis(20);

/// Handle of the deleting thread. The thread ends when the last handle is dropped and the queue is empty.
#[derive(Debug, Clone)]
pub(crate) struct FileDeleter {
    queue: SyncSender<File>,
}

impl FileDeleter {
    /// Starts the deleting thread.
    ///
    /// # Errors
    /// The thread can't be created.
    pub fn start() -> io::Result<FileDeleter> {
        let (queue, files) = sync_channel(WAITING_MAX);
        std::thread::Builder::new()
            .name("helenus-erase".into())
            .spawn(move || run(&files))?;
        Ok(FileDeleter { queue })
    }

    /// Deletes the name of a file, and frees its blocks in steps once no reader has it open. Blocks briefly.
    ///
    /// # Errors
    /// The file does not exist, or may not be deleted.
    pub fn delete(&self, path: &Path) -> io::Result<()> {
        // A failure is ignored, because a process may be allowed to delete a file that it may not write to.
        let file = OpenOptions::new().write(true).open(path).ok();
        std::fs::remove_file(path)?;
        if let Some(file) = file.filter(is_to_erase) {
            // If the queue is full, closing the file here frees all of its blocks at once.
            let _ = self.queue.try_send(file);
        }
        Ok(())
    }
}

fn run(files: &Receiver<File>) {
    set_background();
    for file in files {
        if wait_for_readers(&file) {
            // Blocks that can't be freed in steps are freed when the file is closed.
            let _ = erase(&file);
        }
    }
}

/// Truncates a file step by step until it is empty. The pauses leave at least half of the disk's time to other work.
fn erase(file: &File) -> io::Result<()> {
    let mut left = len(file);
    while left > 0 {
        left = left.saturating_sub(STEP);
        let started = Instant::now();
        file.set_len(left)?;
        std::thread::sleep(started.elapsed());
    }
    Ok(())
}

/// Returns true if a file is large and has no name left. A file with another name, such as a hard link in a backup, must stay intact.
fn is_to_erase(file: &File) -> bool {
    file.metadata()
        .is_ok_and(|data| data.nlink() == 0 && data.len() > STEP)
}

fn len(file: &File) -> u64 {
    file.metadata().map_or(0, |data| data.len())
}

/// Waits until no reader has the file open. Returns false after [`READERS_TIMEOUT`].
fn wait_for_readers(file: &File) -> bool {
    let began = Instant::now();
    while !is_alone(file) {
        if began.elapsed() > READERS_TIMEOUT {
            return false;
        }
        std::thread::sleep(READERS_INTERVAL);
    }
    true
}

/// Returns true if no other process or descriptor has the file open, because only then the kernel grants a write lease. A simultaneous open
/// raises a signal. SIGURG is set for it, because its default action does not end the process.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn is_alone(file: &File) -> bool {
    use std::os::fd::AsRawFd;
    let set = |what: libc::c_int, value: libc::c_int| {
        // SAFETY: the descriptor is open for as long as `file` lives, and nothing is passed by address.
        unsafe { libc::fcntl(file.as_raw_fd(), what, value) == 0 }
    };
    set(F_SETSIG, libc::SIGURG)
        && set(libc::F_SETLEASE, libc::F_WRLCK)
        && set(libc::F_SETLEASE, libc::F_UNLCK)
}

#[cfg(not(target_os = "linux"))]
fn is_alone(_: &File) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn large_file(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("1.sst");
        std::fs::write(&path, vec![7; 3 * STEP as usize + 5]).unwrap();
        path
    }

    #[test]
    fn file_is_erased_in_steps_once_no_reader_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = large_file(folder.path());
        let mut reader = File::open(&path).unwrap();
        let writer = OpenOptions::new().write(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(!is_alone(&writer), "it is being read");
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, 3 * STEP + 5);
        drop(reader);
        assert!(wait_for_readers(&writer));
        erase(&writer).unwrap();
        assert_eq!(len(&writer), 0);
    }

    #[test]
    fn what_has_another_name_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = large_file(folder.path());
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let backup = folder.path().join("backup.sst");
        std::fs::hard_link(&path, &backup).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(!is_to_erase(&file));
        std::fs::remove_file(&backup).unwrap();
        assert!(is_to_erase(&file));
    }

    #[test]
    fn a_readers_file_is_whole_though_its_name_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = large_file(folder.path());
        let reader = File::open(&path).unwrap();
        let deleter = FileDeleter::start().unwrap();
        deleter.delete(&path).unwrap();
        assert!(!path.exists());
        assert_eq!(len(&reader), 3 * STEP + 5);
        assert_eq!(deleter.delete(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
