//! Case files: CQL statements with directives in comments. `tests/conformance/README.md` describes the format.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::text::expand;

/// Directives that can be repeated.
const LISTS: [&str; 6] = ["params", "named", "values", "named_values", "each", "across"];
const DIRECTIVES: [&str; 24] = [
    "params",
    "named",
    "values",
    "named_values",
    "each",
    "across",
    "page_size",
    "consistency",
    "serial",
    "timestamp",
    "now",
    "mask",
    "approx",
    "unordered",
    "wait",
    "times",
    "prepare",
    "retry",
    "skip_metadata",
    "batch",
    "code_only",
    "keyspace",
    "user",
    "wire",
];

/// The values of each directive, which say how to run a statement.
pub type Directives = BTreeMap<String, Vec<String>>;

/// One statement with its directives.
#[derive(Debug)]
pub struct Step {
    /// The statement's text in the records.
    pub text: String,
    /// The text that is sent, with `%rep` expanded.
    pub sent: String,
    pub line: usize,
    directives: Directives,
}

impl Step {
    pub fn has(&self, directive: &str) -> bool {
        self.directives.contains_key(directive)
    }

    /// Returns the values of a directive that can be repeated.
    pub fn all(&self, directive: &str) -> &[String] {
        self.directives.get(directive).map_or(&[], Vec::as_slice)
    }

    /// Returns the value of a directive. `None` if it is missing or empty.
    pub fn get(&self, directive: &str) -> Option<&str> {
        let value = self.all(directive).last()?;
        (!value.is_empty()).then_some(value)
    }

    /// Returns the value of a directive as a number. `None` if it is missing or empty.
    pub fn number<T: std::str::FromStr>(&self, directive: &str) -> Option<T> {
        let value = self.get(directive)?;
        let number = value.parse().ok();
        Some(number.unwrap_or_else(|| panic!("line {}: {directive}: {value}", self.line)))
    }
}

/// One file of statements, which run in a keyspace of their own.
#[derive(Debug)]
pub struct Case {
    /// Name of the folder and the file.
    pub name: String,
    pub keyspace: String,
    pub path: PathBuf,
    pub options: BTreeMap<String, String>,
    pub steps: Vec<Step>,
}

impl Case {
    /// Reads a case from a file in the folder `cases`.
    pub fn read(cases: &Path, path: &Path) -> Case {
        let relative = path.strip_prefix(cases).expect("a file of that folder");
        let name = relative
            .with_extension("")
            .to_str()
            .expect("a name of letters")
            .to_owned();
        let word = |c: char| if c.is_alphanumeric() { c } else { '_' };
        let mut case = Case {
            keyspace: format!("c_{}", name.chars().map(word).collect::<String>()),
            name,
            path: path.to_owned(),
            options: BTreeMap::new(),
            steps: Vec::new(),
        };
        let source =
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        case.parse(&source);
        case
    }

    /// Returns the role that the case logs in as. Such a case needs a server with authentication. `None` if the case does not log in.
    pub fn login(&self) -> Option<&str> {
        self.options.get("login").map(String::as_str)
    }

    /// Returns true if time passes in the case.
    pub fn waits(&self) -> bool {
        self.steps.iter().any(|step| step.has("wait"))
    }

    /// Returns the names that an option of the file lists.
    pub fn names(&self, option: &str) -> Vec<String> {
        let names = self.options.get(option).map_or("", String::as_str);
        names
            .split_whitespace()
            .map(|name| name.replace("%ks", &self.keyspace))
            .collect()
    }

    fn parse(&mut self, source: &str) {
        let (mut directives, mut statement, mut start) = (Directives::new(), Vec::new(), 0);
        for (index, line) in source.split('\n').enumerate() {
            if statement.is_empty() {
                if line.starts_with("--") {
                    self.directive(line, &mut directives);
                    continue;
                }
                if line.trim().is_empty() {
                    continue;
                }
                start = index + 1;
            }
            statement.push(line);
            if is_complete(&statement) {
                let text = statement.join("\n");
                let text = text.trim();
                let text = text.strip_suffix(';').map_or(text, str::trim_end);
                self.add(text, start, std::mem::take(&mut directives));
                statement.clear();
            }
        }
        assert!(
            statement.is_empty(),
            "{}:{start}: statement without an end",
            self.path.display()
        );
    }

    fn directive(&mut self, line: &str, directives: &mut Directives) {
        if let Some(option) = line.strip_prefix("-- case ") {
            let (key, value) = option.split_once(':').unwrap_or((option, ""));
            self.options
                .insert(key.trim().to_owned(), value.trim().to_owned());
            return;
        }
        let body = line.trim_start_matches("--").trim();
        let (name, value) = match body.split_once(':') {
            Some((name, value)) => (name, value.trim()),
            None => (body, ""),
        };
        if !DIRECTIVES.contains(&name) {
            return;
        }
        let values = directives.entry(name.to_owned()).or_default();
        match name {
            "each" | "across" => values.extend(value.split(" | ").map(|value| value.trim().to_owned())),
            name if LISTS.contains(&name) => values.push(value.to_owned()),
            _ => *values = vec![value.to_owned()],
        }
    }

    /// Adds the statement once for each combination of the values of `across` and `each`.
    fn add(&mut self, text: &str, line: usize, mut directives: Directives) {
        if let Some(endings) = directives.remove("across") {
            for ending in endings {
                let ending = if ending == "none" { "" } else { &ending };
                self.add(text.replace("$x", ending).trim_end(), line, directives.clone());
            }
            return;
        }
        let Some(rows) = directives.remove("each") else {
            return self.push(text, line, directives);
        };
        for row in rows {
            let mut expanded = text.to_owned();
            for (index, field) in row.split(" ; ").enumerate() {
                expanded = expanded.replace(&format!("${}", index + 1), field.trim());
            }
            let number = self.steps.len().to_string();
            self.push(&expanded.replace("$n", &number), line, directives.clone());
        }
    }

    fn push(&mut self, text: &str, line: usize, directives: Directives) {
        let text = text.replace("%ks", &self.keyspace);
        self.steps.push(Step {
            sent: expand(&text),
            text,
            line,
            directives,
        });
    }
}

/// Returns true if the lines are a complete statement. A statement ends at a `;` at the end of a line, a batch at `APPLY BATCH;` or
/// `--END;`, a transaction at `TRANSACTION;`.
fn is_complete(lines: &[&str]) -> bool {
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else {
        return false;
    };
    let last = last.trim_end().to_uppercase();
    match first.trim_start().to_uppercase().starts_with("BEGIN") {
        true => ["APPLY BATCH;", "TRANSACTION;", "--END;"]
            .iter()
            .any(|end| last.ends_with(end)),
        false => last.ends_with(';'),
    }
}

/// Returns the cases of a folder, sorted by name.
pub fn load(cases: &Path, area: &str) -> Vec<Case> {
    let folder = cases.join(area);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "cql"));
    paths.sort();
    paths.iter().map(|path| Case::read(cases, path)).collect()
}
