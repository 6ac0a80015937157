//! Splits input into statements, at every `;` outside of strings, comments and batches.

/// Input that has not been run yet.
#[derive(Debug, Default)]
pub struct Input {
    text: String,
    /// Number of lines before the text, which have been removed.
    lines_taken: usize,
}

/// A statement without its `;` and the comments before it.
#[derive(Debug, PartialEq, Eq)]
pub struct Statement {
    pub text: String,
    /// The statement's first line, counted from 1.
    pub line: usize,
}

/// State of the scan of a text.
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

    /// Returns true if the input has only blanks and complete comments.
    pub fn is_blank(&self) -> bool {
        let mut scan = StatementScanner::new(&self.text);
        while let Some((c, inside)) = scan.step() {
            if !inside.is_comment() && !c.is_whitespace() {
                return false;
            }
        }
        scan.inside != LexState::BlockComment
    }

    /// Removes all input.
    pub fn clear(&mut self) {
        self.text.clear();
    }

    /// Removes and returns the next complete statement.
    pub fn next_statement(&mut self) -> Option<Statement> {
        let end = statement_end(&self.text)?;
        let rest = self.text.split_off(end + 1);
        let mut text = std::mem::replace(&mut self.text, rest);
        text.truncate(end);
        Some(self.take(text))
    }

    /// Removes and returns the rest as one statement, for input that ends without a `;`.
    pub fn take_rest(&mut self) -> Option<Statement> {
        let rest = std::mem::take(&mut self.text);
        let statement = self.take(rest);
        (!strip_comments(&statement.text).trim().is_empty()).then_some(statement)
    }

    fn take(&mut self, text: String) -> Statement {
        let (before, code) = text.split_at(code_start(&text));
        let line = self.lines_taken + 1 + line_breaks(before);
        self.lines_taken += line_breaks(&text);
        Statement {
            text: code.trim().to_owned(),
            line,
        }
    }
}

fn line_breaks(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// Returns the end of the leading blanks and comments.
fn code_start(text: &str) -> usize {
    let mut scan = StatementScanner::new(text);
    let mut start = 0;
    while let Some((c, inside)) = scan.step() {
        if !inside.is_comment() && !c.is_whitespace() {
            return start;
        }
        start = scan.position;
    }
    start
}

impl LexState {
    fn is_comment(self) -> bool {
        matches!(self, LexState::LineComment | LexState::BlockComment)
    }
}

/// Returns true if the line has a `;` before its end.
pub fn has_inner_semicolon(line: &str) -> bool {
    statement_end(line.trim_end().trim_end_matches(';')).is_some()
}

/// Returns the position of the `;` that ends the first statement.
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

/// Returns true if only `BEGIN`, or `BEGIN` and one more word such as `UNLOGGED`, is before `BATCH`.
fn begins_batch(text: &str, batch_at: usize) -> bool {
    let before = strip_comments(text.get(..batch_at).unwrap_or_default());
    let mut words = before.split_whitespace();
    words
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case("begin"))
        && words.count() <= 1
}

/// Returns the words and signs of a text, without strings and comments. A name is one word with its keyspace and quotes.
pub fn code_words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut word_start = None;
    let mut scan = StatementScanner::new(text);
    loop {
        let at = scan.position;
        let step = scan.step();
        let is_in_word = step.is_some_and(|(c, inside)| match inside {
            LexState::QuotedName => true,
            LexState::Code => c.is_alphanumeric() || matches!(c, '_' | '.'),
            _ => false,
        });
        if is_in_word {
            word_start.get_or_insert(at);
            continue;
        }
        if let Some(start) = word_start.take() {
            words.push(text.get(start..at).unwrap_or_default());
        }
        match step {
            Some((c, LexState::Code)) if !c.is_whitespace() => {
                words.push(text.get(at..scan.position).unwrap_or_default());
            }
            Some(_) => {}
            None => return words,
        }
    }
}

fn strip_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut scan = StatementScanner::new(text);
    while let Some((c, inside)) = scan.step() {
        if !inside.is_comment() {
            kept.push(c);
        }
    }
    kept
}

enum Fragment<'a> {
    Word(&'a str),
    Semicolon,
}

/// Iterator over the words and semicolons of a text that are code.
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

    /// Returns the next character and the state that it belongs to. A delimiter belongs to what it delimits.
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
            statements.push(statement.text);
        }
        (statements, input.text.trim().to_owned())
    }

    #[test]
    fn semicolons_in_strings_names_and_comments_end_nothing() {
        let (statements, rest) =
            split("INSERT INTO t (\"a;b\") VALUES ('x;''y'); -- c;d\nSELECT $$;$$ /* ; */ ; USE k");
        assert_eq!(
            statements,
            ["INSERT INTO t (\"a;b\") VALUES ('x;''y')", "SELECT $$;$$ /* ; */"]
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
    fn statements_know_their_lines() {
        let mut input = Input::default();
        for line in ["-- first", "", "SELECT", " 1; SELECT 2;", "/* a", "b */ SELECT 3"] {
            input.push_line(line);
        }
        let lines = [input.next_statement(), input.next_statement(), input.take_rest()];
        assert_eq!(lines.map(|s| s.map(|s| s.line)), [Some(3), Some(4), Some(6)]);
    }

    #[test]
    fn only_an_open_comment_is_not_blank() {
        let mut input = Input::default();
        input.push_line("-- whole; /* too */");
        assert!(input.is_blank());
        input.push_line("/* open");
        assert!(!input.is_blank());
    }

    #[test]
    fn a_comment_alone_is_no_statement() {
        let mut input = Input::default();
        input.push_line("-- nothing here");
        assert_eq!(input.take_rest(), None);
    }
}
