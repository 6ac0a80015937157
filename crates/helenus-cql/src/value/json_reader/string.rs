//! Strings and names, which are in quotes.

use super::{END, PARSE, Read, Reader, described};

/// The kind of a quoted text, as messages name it.
#[derive(Clone, Copy)]
pub(super) struct Quoted {
    unclosed: &'static str,
    name: &'static str,
}

pub(super) const NAME: Quoted = Quoted {
    unclosed: " in field name",
    name: "name",
};
pub(super) const VALUE: Quoted = Quoted {
    unclosed: ": was expecting closing quote for a string value",
    name: "string value",
};

const IN_ESCAPE: &str = " in character escape sequence";

/// The text of a string. Java's strings can hold halves of surrogate pairs. A half without its other half is written as a question mark.
#[derive(Default)]
struct Text {
    text: String,
    high: Option<u16>,
}

impl Text {
    fn push_str(&mut self, part: &str) {
        if !part.is_empty() && self.high.take().is_some() {
            self.text.push('?');
        }
        self.text.push_str(part);
    }

    fn push_unit(&mut self, unit: u16) {
        let pair = self.high.take().map(|high| {
            let mut decoded = char::decode_utf16([high, unit]);
            decoded.next().and_then(Result::ok)
        });
        if let Some(Some(c)) = pair {
            self.text.push(c);
            return;
        }
        if pair.is_some() {
            self.text.push('?');
        }
        match char::from_u32(u32::from(unit)) {
            Some(c) => self.text.push(c),
            None if unit < 0xdc00 => self.high = Some(unit),
            None => self.text.push('?'),
        }
    }

    fn finish(mut self) -> String {
        if self.high.is_some() {
            self.text.push('?');
        }
        self.text
    }
}

impl Reader<'_> {
    pub(super) fn string(&mut self, quoted: Quoted) -> Read<String> {
        self.at += 1;
        let mut text = Text::default();
        loop {
            let rest = self.rest();
            let is_plain = |c: char| c != '"' && c != '\\' && c >= ' ';
            let plain = rest.find(|c| !is_plain(c)).unwrap_or(rest.len());
            text.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            match self.peek() {
                None => return self.ended(quoted.unclosed),
                Some('"') => {
                    self.at += 1;
                    return Ok(text.finish());
                }
                Some('\\') => {
                    self.at += 1;
                    text.push_unit(self.escaped()?);
                }
                Some(c) => {
                    return self.error_behind(format!(
                        "Illegal unquoted character ({}): has to be escaped using backslash to be included in {}",
                        described(c),
                        quoted.name
                    ));
                }
            }
        }
    }

    /// Reads the escape behind a backslash.
    fn escaped(&mut self) -> Read<u16> {
        let Some(c) = self.peek() else {
            return self.ended(IN_ESCAPE);
        };
        let plain = match c {
            'b' => '\u{8}',
            't' => '\t',
            'n' => '\n',
            'f' => '\u{c}',
            'r' => '\r',
            '"' | '/' | '\\' => c,
            'u' => {
                self.at += 1;
                return self.hexadecimal();
            }
            _ => return self.error_behind(format!("Unrecognized character escape {}", described(c))),
        };
        self.at += 1;
        Ok(u16::try_from(u32::from(plain)).unwrap_or_default())
    }

    fn hexadecimal(&mut self) -> Read<u16> {
        let mut unit = 0;
        for _ in 0..4 {
            let Some(c) = self.peek() else {
                return self.ended(IN_ESCAPE);
            };
            let Some(digit) = c.to_digit(16).and_then(|digit| u16::try_from(digit).ok()) else {
                return self.error_behind(format!(
                    "Unexpected character ({}): expected a hex-digit for character escape sequence",
                    described(c)
                ));
            };
            unit = unit << 4 | digit;
            self.at += 1;
        }
        Ok(unit)
    }

    fn ended<T>(&mut self, place: &str) -> Read<T> {
        self.error(END, format!("Unexpected end-of-input{place}"))
    }

    /// Returns an error about the next character, at the column behind it. The line stays the same, even if that character ends the line.
    fn error_behind<T>(&self, message: String) -> Read<T> {
        self.error_at(PARSE, message, self.column() + 1)
    }
}
