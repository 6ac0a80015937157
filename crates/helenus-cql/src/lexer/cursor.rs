//! A position in a text. The position never leaves the text, and is on a character boundary at the beginning of a token.

use super::{Failure, Kind, LexProblem};

pub(super) struct Cursor<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, position: 0 }
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, distance: usize) -> Option<u8> {
        self.text.as_bytes().get(self.position + distance).copied()
    }

    pub(super) fn advance(&mut self, distance: usize) {
        self.seek(self.position + distance);
    }

    pub(super) fn seek(&mut self, position: usize) {
        self.position = position.min(self.text.len());
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.position..).unwrap_or_default()
    }

    pub(super) fn text_from(&self, start: usize) -> &'a [u8] {
        self.text.as_bytes().get(start..self.position).unwrap_or_default()
    }

    /// Returns the position of the last character before here, or the current position if there is none since `start`.
    pub(super) fn last_character_since(&self, start: usize) -> usize {
        let passed = self.text.get(start..self.position).unwrap_or_default();
        let last = passed.chars().next_back().map_or(0, char::len_utf8);
        self.position - last
    }

    pub(super) fn skip_while(&mut self, condition: impl Fn(u8) -> bool) {
        let length = self.rest().iter().take_while(|byte| condition(**byte)).count();
        self.advance(length);
    }

    pub(super) fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), Failure> {
        if self.peek() != Some(byte) {
            return Err((self.position, LexProblem::Mismatched(expected)));
        }
        self.advance(1);
        Ok(())
    }

    /// Takes the given word, ignoring case.
    pub(super) fn expect_word(&mut self, word: &[u8], kind: Kind) -> Result<Kind, Failure> {
        for expected in word {
            if self
                .peek()
                .is_none_or(|byte| !byte.eq_ignore_ascii_case(expected))
            {
                return Err((self.position, LexProblem::Mismatched("set null")));
            }
            self.advance(1);
        }
        Ok(kind)
    }

    /// Continues after an error, behind the offending character. Advances by at least one character.
    pub(super) fn skip_past(&mut self, start: usize, offset: usize) {
        self.seek(offset.max(start) + 1);
        while !self.text.is_char_boundary(self.position) {
            self.position += 1;
        }
    }
}
