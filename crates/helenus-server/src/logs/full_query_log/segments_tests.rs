use super::*;

fn options(folder: &Path, log_bytes_max: u64) -> QueryLogOptions {
    QueryLogOptions {
        folder: folder.to_owned(),
        log_bytes_max,
        ..QueryLogOptions::default()
    }
}

fn lens(folder: &Path) -> Vec<u64> {
    let paths = segment_paths(folder).unwrap();
    paths
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .collect()
}

#[test]
fn the_oldest_segments_go_when_there_are_too_many_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mut segments = Segments::open(&options(folder.path(), 1000), None).unwrap();
    let first = segment_paths(folder.path()).unwrap();
    for _ in 0..50 {
        segments.write(&[7; 100]).unwrap();
        segments.flush().unwrap();
        assert!(lens(folder.path()).iter().sum::<u64>() <= 1000);
    }
    segments.close();
    let lens = lens(folder.path());
    assert!(lens.len() >= 3 && lens.iter().all(|len| *len == 208), "{lens:?}");
    assert!(!first.first().unwrap().exists());
}

#[test]
fn segments_of_before_are_counted_and_other_files_are_left() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("0000000000001.fql"), [0; 900]).unwrap();
    fs::write(folder.path().join("notes.txt"), [0; 900]).unwrap();
    let mut segments = Segments::open(&options(folder.path(), 1000), None).unwrap();
    segments.write(&[7; 100]).unwrap();
    segments.close();
    assert_eq!(lens(folder.path()), [108]);
    delete_all(folder.path()).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    delete_all(&folder.path().join("missing")).unwrap();
}

#[test]
fn a_record_that_has_no_room_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut segments = Segments::open(&options(folder.path(), 100), None).unwrap();
    assert!(segments.write(&[7; 93]).is_err());
    segments.write(&[7; 92]).unwrap();
    segments.close();
    assert_eq!(lens(folder.path()), [100]);
}

#[test]
fn nothing_comes_behind_a_record_that_could_not_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut segments = Segments::open(&options(folder.path(), 1 << 20), None).unwrap();
    segments.write(&[7; 10]).unwrap();
    segments.flush().unwrap();
    // A read-only file takes the place of a disk that fails.
    let open = segments.open.as_mut().unwrap();
    open.file = BufWriter::with_capacity(1, File::open(&open.path).unwrap());
    assert!(segments.write(&[8; 10]).is_err());
    segments.write(&[9; 20]).unwrap();
    segments.close();
    assert_eq!(lens(folder.path()), [18, 28]);
}

#[test]
fn a_segment_without_records_is_not_left() {
    let folder = tempfile::tempdir().unwrap();
    let mut segments = Segments::open(&options(folder.path(), 1000), None).unwrap();
    assert_eq!(lens(folder.path()), [8]);
    segments.close();
    assert!(lens(folder.path()).is_empty());
}
