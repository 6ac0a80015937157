//! The mark of an interrupted COPY: a small file beside the copied one, which exists until the COPY is done.

use std::fs;
use std::io::ErrorKind;

use helenus_cql::value::hex;
use serde_json::{Map, Value, json};

/// Position at which a COPY resumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The statement of the COPY. A COPY with another table or other columns cannot resume here.
    pub what: String,
    /// Number of rows done: rows of the table for COPY TO, records of the file for COPY FROM.
    pub rows: u64,
    /// Bytes of these rows in the file (COPY TO).
    pub file_len: u64,
    /// Paging state of the next page (COPY TO). Empty at the beginning.
    pub paging_state: Vec<u8>,
}

/// Returns the path of a copied file's mark.
pub fn mark_path(copied: &str) -> String {
    format!("{copied}.resume")
}

/// Reads the mark of a copied file. Fails if there is none, or if it belongs to another statement.
pub fn read(copied: &str, what: &str) -> Result<Mark, String> {
    let path = mark_path(copied);
    let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("COPY: nothing to resume: there is no {path}; leave RESUME out"),
        _ => format!("{path}: {error}"),
    })?;
    let mark = parse(&text).ok_or_else(|| format!("{path} is not the mark of a COPY"))?;
    match mark.what == what {
        true => Ok(mark),
        false => Err(format!("{path} belongs to another COPY: {}", mark.what)),
    }
}

fn parse(text: &str) -> Option<Mark> {
    let fields: Map<String, Value> = serde_json::from_str(text).ok()?;
    let number = |name: &str| fields.get(name)?.as_u64();
    let text = |name: &str| fields.get(name)?.as_str();
    Some(Mark {
        what: text("what")?.to_owned(),
        rows: number("rows")?,
        file_len: number("file_len")?,
        paging_state: helenus_cql::value::text::parse_hex(text("paging_state")?)
            .ok()?
            .to_vec(),
    })
}

/// Writes the mark atomically.
pub fn write(copied: &str, mark: &Mark) -> Result<(), String> {
    let fields = json!({
        "what": mark.what,
        "rows": mark.rows,
        "file_len": mark.file_len,
        "paging_state": hex(&mark.paging_state),
    });
    let path = mark_path(copied);
    let new = format!("{path}.new");
    fs::write(&new, fields.to_string())
        .and_then(|()| fs::rename(&new, &path))
        .map_err(super::about(&path))
}

/// Removes the mark of a COPY that is done.
pub fn remove(copied: &str) {
    // An error is ignored, because a short COPY has no mark.
    let _ = fs::remove_file(mark_path(copied));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_written() {
        let folder = tempfile::tempdir().unwrap();
        let copied = folder.path().join("t.csv").to_string_lossy().into_owned();
        let mark = Mark {
            what: "t (k)".to_owned(),
            rows: 7,
            file_len: 9,
            paging_state: vec![1, 255],
        };
        assert!(read(&copied, "t (k)").unwrap_err().contains("nothing to resume"));
        write(&copied, &mark).unwrap();
        assert_eq!(read(&copied, "t (k)"), Ok(mark));
        assert!(read(&copied, "t (v)").unwrap_err().contains("another COPY"));
        remove(&copied);
        assert!(read(&copied, "t (k)").is_err());
    }
}
