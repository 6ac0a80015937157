//! Patterns of LIKE (Cassandra's `LikeRestriction.makeSpecific`).

use std::fmt;

use bytes::Bytes;
use helenus_cql::error::CqlError;

use super::analyzer::Analyzer;

/// Length from which on text is not indexed, in bytes.
pub const TERM_LEN_END: usize = 1_024;

/// The kind of a pattern, by the positions of its `%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LikeKind {
    /// `abc%`
    Prefix,
    /// `%abc`
    Suffix,
    /// `%abc%`
    Contains,
    /// `abc`
    Matches,
}

/// Shows the kind as Cassandra names its operators.
impl fmt::Display for LikeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LikeKind::Prefix => "LIKE '<term>%'",
            LikeKind::Suffix => "LIKE '%<term>'",
            LikeKind::Contains => "LIKE '%<term>%'",
            LikeKind::Matches => "LIKE '<term>'",
        })
    }
}

/// A pattern of LIKE. A `%` in the middle has no special meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    pub kind: LikeKind,
    /// The terms, all of which must be found. There is one unless an analyzer has split the text.
    pub terms: Vec<Bytes>,
    /// True if the pattern finds text of any length. An index does not hold text of [`TERM_LEN_END`] bytes and more.
    pub finds_long_text: bool,
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// `LIKE value can't be empty.`
    pub fn of(value: &Bytes) -> Result<Pattern, CqlError> {
        let (start, end) = (value.first() == Some(&b'%'), value.last() == Some(&b'%'));
        let (kind, begin, behind) = match (start, end) {
            (true, true) => (LikeKind::Contains, 1, 1),
            (false, true) => (LikeKind::Prefix, 0, 1),
            (true, false) => (LikeKind::Suffix, 1, 0),
            (false, false) => (LikeKind::Matches, 0, 0),
        };
        let end = value.len() - behind.min(value.len());
        if end <= begin {
            return Err(CqlError::invalid("LIKE value can't be empty."));
        }
        Ok(Pattern {
            kind,
            terms: vec![value.slice(begin..end)],
            finds_long_text: false,
        })
    }

    /// Parses a pattern that no index answers. As in Cassandra 6, it has a `%` only at its start and end.
    ///
    /// # Errors
    /// `LIKE value can't be empty.`
    pub fn unindexed(value: &Bytes) -> Result<Pattern, CqlError> {
        let pattern = Pattern::of(value)?;
        if pattern.terms.iter().any(|term| term.contains(&b'%')) {
            return Err(CqlError::invalid(format!(
                "LIKE '{}' has a % between other characters, where it is no wildcard; use it at the start or end of the pattern only",
                String::from_utf8_lossy(value)
            )));
        }
        Ok(Pattern {
            finds_long_text: true,
            ..pattern
        })
    }

    /// Returns the pattern with analyzed terms.
    pub fn analyzed(&self, analysis: Analyzer) -> Pattern {
        Pattern {
            kind: self.kind,
            terms: self.terms.iter().flat_map(|term| analysis.terms(term)).collect(),
            finds_long_text: self.finds_long_text,
        }
    }

    /// Returns true if there are terms, and each matches one of the found ones.
    pub fn accepts(&self, found: &[Bytes]) -> bool {
        let is_found = |term: &Bytes| found.iter().any(|found| self.accepts_one(term, found));
        !self.terms.is_empty() && self.terms.iter().all(is_found)
    }

    fn accepts_one(&self, term: &[u8], found: &[u8]) -> bool {
        if found.len() >= TERM_LEN_END && !self.finds_long_text {
            return false;
        }
        match self.kind {
            LikeKind::Prefix => found.starts_with(term),
            LikeKind::Suffix => found.ends_with(term),
            LikeKind::Contains => found.windows(term.len()).any(|part| part == term),
            LikeKind::Matches => found == term,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &'static str) -> Result<(LikeKind, String), String> {
        let found = Pattern::of(&Bytes::from_static(text.as_bytes())).map_err(|error| error.to_string())?;
        Ok((found.kind, String::from_utf8(found.terms[0].to_vec()).unwrap()))
    }

    #[test]
    fn percent_signs_at_the_ends_say_where_to_look() {
        assert_eq!(pattern("a%"), Ok((LikeKind::Prefix, "a".into())));
        assert_eq!(pattern("%a"), Ok((LikeKind::Suffix, "a".into())));
        assert_eq!(pattern("%a%b%"), Ok((LikeKind::Contains, "a%b".into())));
        assert_eq!(pattern("a%b"), Ok((LikeKind::Matches, "a%b".into())));
        for empty in ["", "%", "%%"] {
            assert!(pattern(empty).is_err(), "{empty}");
        }
    }

    #[test]
    fn terms_are_found_where_the_pattern_says() {
        let accepts = |pattern: &'static str, found: &str| {
            Pattern::of(&Bytes::from_static(pattern.as_bytes()))
                .unwrap()
                .accepts(&[Bytes::copy_from_slice(found.as_bytes())])
        };
        assert!(accepts("ab%", "abc") && !accepts("ab%", "cab"));
        assert!(accepts("%ab", "cab") && !accepts("%ab", "abc"));
        assert!(accepts("%ab%", "cabc") && !accepts("%ab%", "ba"));
        assert!(accepts("ab", "ab") && !accepts("ab", "abc"));
        assert!(accepts("a%", &"a".repeat(1_023)) && !accepts("a%", &"a".repeat(1_024)));
    }
}
