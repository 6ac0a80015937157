//! SSTables that nodes of Cassandra wrote have the content that Cassandra's own classes read in them (see `testdata/README.md`).

use std::path::{Path, PathBuf};

#[path = "../examples/sstable_dump/lines.rs"]
mod lines;

/// Versions of which there are files.
const VERSIONS: [&str; 6] = ["md", "me", "na", "nb", "oa", "da"];

fn paths(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn is_data(path: &Path) -> bool {
    path.to_string_lossy().ends_with("-Data.db")
}

#[test]
fn files_of_cassandra_have_the_content_that_it_reads() {
    let mut files = 0;
    for version in VERSIONS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("testdata/files")
            .join(version);
        for table in paths(&folder) {
            let expected = std::fs::read_to_string(table.join("lines")).unwrap();
            let mut found = Vec::new();
            for path in paths(&table).iter().filter(|path| is_data(path)) {
                lines::print_file(&mut found, path)
                    .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                files += 1;
            }
            let found = String::from_utf8(found).unwrap();
            for (number, (expected, found)) in expected.lines().zip(found.lines()).enumerate() {
                assert_eq!(found, expected, "{}: line {}", table.display(), number + 1);
            }
            assert_eq!(found.len(), expected.len(), "{}", table.display());
        }
    }
    assert!(files > VERSIONS.len(), "{files} files were read");
}
