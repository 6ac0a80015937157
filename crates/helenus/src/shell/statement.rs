//! Splits input into statements: at a `;` outside of strings, comments and batches.

/// Text that has been typed and not yet run.
#[derive(Debug, Default)]
pub struct Input {
    text: String,
}

/// Where the scan of a text stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LexState {
    Code,
    String,
    QuotedName,
    DollarString,
    LineComment,
    BlockComment,
}

impl Input {
    /// Adds a line.
    pub fn push_line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// True if nothing but blanks waits.
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Forgets what waits.
    pub fn clear(&mut self) {
        self.text.clear();
    }

    /// Takes the next whole statement off, without its `;`.
    pub fn next_statement(&mut self) -> Option<String> {
        let end = statement_end(&self.text)?;
        let rest = self.text.split_off(end + 1);
        let mut statement = std::mem::replace(&mut self.text, rest);
        statement.truncate(end);
        Some(statement.trim().to_owned())
    }

    /// Takes what waits as one statement, for input that ends without a `;`.
    pub fn take_rest(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.text);
        let rest = rest.trim();
        (!strip_comments(rest).trim().is_empty()).then(|| rest.to_owned())
    }
}

/// The position of the `;` that ends the first statement.
fn statement_end(text: &str) -> Option<usize> {
    let mut in_batch = false;
    for (position, word) in StatementScanner::new(text) {
        match word {
            Fragment::Word(word) if word.eq_ignore_ascii_case("batch") && begins_batch(text, position) => {
                in_batch = true
            }
            Fragment::Word(word) if word.eq_ignore_ascii_case("apply") => in_batch = false,
            Fragment::Semicolon if !in_batch => return Some(position),
            Fragment::Word(_) | Fragment::Semicolon => {}
        }
    }
    None
}

/// True if what stands before `BATCH` is `BEGIN`, `BEGIN UNLOGGED` or the like and nothing else.
fn begins_batch(text: &str, batch_at: usize) -> bool {
    let before = strip_comments(text.get(..batch_at).unwrap_or_default());
    let mut words = before.split_whitespace();
    words
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case("begin"))
        && words.count() <= 1
}

fn strip_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut scan = StatementScanner::new(text);
    while let Some((c, inside)) = scan.step() {
        if !matches!(inside, LexState::LineComment | LexState::BlockComment) {
            kept.push(c);
        }
    }
    kept
}

enum Fragment<'a> {
    Word(&'a str),
    Semicolon,
}

/// Walks a text, giving the words and semicolons that are code.
struct StatementScanner<'a> {
    text: &'a str,
    position: usize,
    inside: LexState,
}

impl<'a> StatementScanner<'a> {
    fn new(text: &'a str) -> StatementScanner<'a> {
        StatementScanner {
            text,
            position: 0,
            inside: LexState::Code,
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    /// The next character and where it stands: inside what, delimiters counted as inside.
    fn step(&mut self) -> Option<(char, LexState)> {
        let rest = self.rest();
        let c = rest.chars().next()?;
        let was = self.inside;
        let (now, len) = match (was, c) {
            (LexState::Code, '\'') => (LexState::String, 1),
            (LexState::Code, '"') => (LexState::QuotedName, 1),
            (LexState::Code, '$') if rest.starts_with("$$") => (LexState::DollarString, 2),
            (LexState::Code, '-') if rest.starts_with("--") => (LexState::LineComment, 2),
            (LexState::Code, '/') if rest.starts_with("//") => (LexState::LineComment, 2),
            (LexState::Code, '/') if rest.starts_with("/*") => (LexState::BlockComment, 2),
            (LexState::String, '\'') | (LexState::QuotedName, '"') => (LexState::Code, 1),
            (LexState::DollarString, '$') if rest.starts_with("$$") => (LexState::Code, 2),
            (LexState::LineComment, '\n') => (LexState::Code, 1),
            (LexState::BlockComment, '*') if rest.starts_with("*/") => (LexState::Code, 2),
            (same, c) => (same, c.len_utf8()),
        };
        self.inside = now;
        self.position += len;
        Some((c, if was == LexState::Code { now } else { was }))
    }
}

impl<'a> Iterator for StatementScanner<'a> {
    type Item = (usize, Fragment<'a>);

    fn next(&mut self) -> Option<(usize, Fragment<'a>)> {
        loop {
            let start = self.position;
            let (c, inside) = self.step()?;
            if inside != LexState::Code {
                continue;
            }
            if c == ';' {
                return Some((start, Fragment::Semicolon));
            }
            if c.is_alphabetic() {
                let is_word = |c: char| c.is_alphanumeric() || c == '_';
                let rest = self.text.get(start..).unwrap_or_default();
                let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                self.position = start + len;
                return Some((start, Fragment::Word(rest.get(..len).unwrap_or_default())));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> (Vec<String>, String) {
        let mut input = Input::default();
        input.push_line(text);
        let mut statements = Vec::new();
        while let Some(statement) = input.next_statement() {
            statements.push(statement);
        }
        (statements, input.text.trim().to_owned())
    }

    #[test]
    fn semicolons_in_strings_names_and_comments_end_nothing() {
        let (statements, rest) =
            split("INSERT INTO t (\"a;b\") VALUES ('x;''y'); -- c;d\nSELECT $$;$$ /* ; */ ; USE k");
        assert_eq!(
            statements,
            [
                "INSERT INTO t (\"a;b\") VALUES ('x;''y')",
                "-- c;d\nSELECT $$;$$ /* ; */"
            ]
        );
        assert_eq!(rest, "USE k");
    }

    #[test]
    fn a_batch_is_one_statement() {
        let (statements, rest) =
            split("BEGIN UNLOGGED BATCH INSERT a; INSERT b; APPLY BATCH; SELECT batch FROM t;");
        assert_eq!(
            statements,
            [
                "BEGIN UNLOGGED BATCH INSERT a; INSERT b; APPLY BATCH",
                "SELECT batch FROM t"
            ]
        );
        assert_eq!(rest, "");
    }

    #[test]
    fn a_comment_alone_is_no_statement() {
        let mut input = Input::default();
        input.push_line("-- nothing here");
        assert_eq!(input.take_rest(), None);
    }
}
