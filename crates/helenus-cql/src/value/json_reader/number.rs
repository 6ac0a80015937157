//! Numbers.

use serde_json::{Number, Value};

use super::{BLANKS, END, PARSE, Read, Reader, described};

impl Reader<'_> {
    pub(super) fn number(&mut self) -> Read<Value> {
        let start = self.at;
        if self.peek() == Some('-') {
            self.at += 1;
            match self.peek() {
                Some(c) if c.is_ascii_digit() => {}
                Some(c) => {
                    return self.unexpected_in_number(c);
                }
                None => {
                    return self.error(
                        END,
                        "Unexpected end-of-inputNo digit following minus sign".to_owned(),
                    );
                }
            }
        }
        if let [b'0', b'0'..=b'9', ..] = self.rest().as_bytes() {
            self.at += 1;
            return self.error(
                PARSE,
                "Invalid numeric value: Leading zeroes not allowed".to_owned(),
            );
        }
        self.skip_digits();
        if self.peek() == Some('.') {
            self.at += 1;
            if self.skip_digits() == 0 {
                // At the end of the text, the message shows the point.
                let c = self.peek().unwrap_or('.');
                return self.not_in_number(c, "Decimal point not followed by a digit");
            }
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            self.at += 1;
            let exponent = self.at;
            self.at += usize::from(matches!(self.peek(), Some('+' | '-')));
            if self.skip_digits() == 0 {
                let Some(c) = self.peek() else {
                    return self.error(
                        END,
                        "Unexpected end-of-inputexpected a digit for number exponent".to_owned(),
                    );
                };
                self.at = exponent;
                return self.not_in_number(c, "Exponent indicator not followed by a digit");
            }
        }
        let literal = self.text.get(start..self.at).unwrap_or_default();
        if self.depth == 0
            && let Some(c) = self.peek().filter(|c| !BLANKS.contains(c))
        {
            return self.unexpected(c, "Expected space separating root-level values");
        }
        match serde_json::from_str::<Number>(literal) {
            Ok(number) => Ok(Value::Number(number)),
            Err(_) => self.error(PARSE, format!("Invalid numeric value: {literal}")),
        }
    }

    /// Skips digits and returns their number.
    fn skip_digits(&mut self) -> usize {
        let rest = self.rest();
        let count = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        self.at += count;
        count
    }

    /// Returns the error for the next character `c`, which is not a digit of a number.
    pub(super) fn unexpected_in_number<T>(&mut self, c: char) -> Read<T> {
        self.advance(c);
        self.not_in_number(
            c,
            "expected digit (0-9) to follow minus sign, for valid numeric value",
        )
    }

    fn not_in_number<T>(&self, c: char, wanted: &str) -> Read<T> {
        let c = described(c);
        self.error(
            PARSE,
            format!("Unexpected character ({c}) in numeric value: {wanted}"),
        )
    }
}
