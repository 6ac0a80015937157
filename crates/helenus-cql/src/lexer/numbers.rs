//! Numbers, durations and UUIDs.

use super::cursor::Cursor;
use super::{Failure, Kind, LexProblem};

/// Offsets of the hyphens in a UUID.
const UUID_HYPHENS: [usize; 4] = [8, 13, 18, 23];
const UUID_LENGTH: usize = 36;

/// Returns true if the text begins as a UUID: eight hexadecimal digits, then a hyphen.
pub(super) fn begins_uuid(cursor: &Cursor<'_>) -> bool {
    let text = cursor.rest();
    text.get(..8)
        .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        && text.get(8) == Some(&b'-')
}

/// Returns true for a number such as `1234567e-8`, which begins as a UUID. The next four characters, and the one behind them, distinguish
/// the two.
fn begins_exponent(text: &[u8]) -> bool {
    let Some((number, exponent)) = text.split_at_checked(9) else {
        return false;
    };
    let digits = exponent
        .iter()
        .take(4)
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let is_number =
        number.iter().take(7).all(u8::is_ascii_digit) && matches!(number.get(7), Some(b'e' | b'E'));
    is_number
        && match exponent.get(digits) {
            Some(b'-') => digits < 4,
            Some(byte) => digits == 4 || !byte.is_ascii_hexdigit(),
            None => true,
        }
}

pub(super) fn uuid(cursor: &mut Cursor<'_>) -> Result<Kind, Failure> {
    for index in 0..UUID_LENGTH {
        if UUID_HYPHENS.contains(&index) {
            cursor.expect(b'-', "'-'")?;
        } else if cursor.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
            cursor.advance(1);
        } else {
            return Err((cursor.position(), LexProblem::Mismatched("set null")));
        }
    }
    Ok(Kind::UuidLiteral)
}

/// Reads a token that begins with a digit, or with `-` and a digit.
pub(super) fn number(cursor: &mut Cursor<'_>) -> Result<Kind, Failure> {
    let negative = cursor.peek() == Some(b'-');
    if !negative && begins_uuid(cursor) && !begins_exponent(cursor.rest()) {
        return uuid(cursor);
    }
    if !negative && cursor.peek() == Some(b'0') && matches!(cursor.peek_at(1), Some(b'x' | b'X')) {
        cursor.advance(2);
        cursor.skip_while(|byte| byte.is_ascii_hexdigit());
        return Ok(Kind::HexNumber);
    }
    let start = cursor.position();
    cursor.advance(usize::from(negative));
    cursor.skip_while(|byte| byte.is_ascii_digit());
    match cursor.peek() {
        Some(b'.') => fraction(cursor),
        Some(b'e' | b'E') => {
            let kind = exponent(cursor)?;
            // A letter after fewer than eight characters is read as part of a UUID if all these characters are hexadecimal digits.
            let is_letter = cursor
                .peek()
                .is_some_and(|byte| matches!(byte, b'a'..=b'f' | b'A'..=b'F'));
            let after = cursor.position();
            if negative || !is_letter || after - start >= UUID_HYPHENS[0] {
                return Ok(kind);
            }
            cursor.seek(start);
            if !cursor
                .rest()
                .iter()
                .take(after - start)
                .all(u8::is_ascii_hexdigit)
            {
                cursor.seek(after);
                return Ok(kind);
            }
            uuid(cursor)
        }
        // The units of nanoseconds and microseconds have two letters.
        Some(b'n' | b'N' | b'u' | b'U') if unit_length(cursor.rest()) == 0 => {
            Err((cursor.position() + 1, LexProblem::Mismatched("set null")))
        }
        Some(_) if unit_length(cursor.rest()) > 0 => {
            let hex_follows = cursor
                .peek_at(1)
                .is_some_and(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_digit());
            if !negative && matches!(cursor.peek(), Some(b'd' | b'D')) && hex_follows {
                cursor.seek(start);
                return uuid(cursor);
            }
            duration(cursor)
        }
        Some(byte) if !negative && byte.is_ascii_hexdigit() => {
            cursor.seek(start);
            uuid(cursor)
        }
        _ => Ok(Kind::Integer),
    }
}

/// Reads the rest of a number at a dot. `1..` is an integer and a range, `1...` a float and a range.
fn fraction(cursor: &mut Cursor<'_>) -> Result<Kind, Failure> {
    if cursor.peek_at(1) == Some(b'.') {
        if cursor.peek_at(2) == Some(b'.') {
            cursor.advance(1);
            return Ok(Kind::FloatLiteral);
        }
        return Ok(Kind::Integer);
    }
    cursor.advance(1);
    cursor.skip_while(|byte| byte.is_ascii_digit());
    match cursor.peek() {
        Some(b'e' | b'E') => exponent(cursor),
        _ => Ok(Kind::FloatLiteral),
    }
}

fn exponent(cursor: &mut Cursor<'_>) -> Result<Kind, Failure> {
    cursor.advance(1);
    if matches!(cursor.peek(), Some(b'+' | b'-')) {
        cursor.advance(1);
    }
    if !cursor.peek().is_some_and(|byte| byte.is_ascii_digit()) {
        return Err((cursor.position(), LexProblem::NoViableAlternative));
    }
    cursor.skip_while(|byte| byte.is_ascii_digit());
    Ok(Kind::FloatLiteral)
}

/// Returns the length in bytes of the duration unit at the beginning of the text. 0 if there is none.
fn unit_length(text: &[u8]) -> usize {
    let lower = |index: usize| text.get(index).map(u8::to_ascii_lowercase);
    match (lower(0), lower(1)) {
        (Some(b'm'), Some(b'o' | b's')) | (Some(b'u' | b'n'), Some(b's')) => 2,
        (Some(b'y' | b'w' | b'd' | b'h' | b'm' | b's'), _) => 1,
        (Some(0xC2), Some(0xB5)) if lower(2) == Some(b's') => 3,
        _ => 0,
    }
}

/// Reads the rest of a duration, behind its first digits.
fn duration(cursor: &mut Cursor<'_>) -> Result<Kind, Failure> {
    loop {
        let length = unit_length(cursor.rest());
        if length == 0 {
            return Err((cursor.position(), LexProblem::NoViableAlternative));
        }
        cursor.advance(length);
        if !cursor.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Ok(Kind::DurationLiteral);
        }
        cursor.skip_while(|byte| byte.is_ascii_digit());
    }
}

/// Returns the end of the ISO 8601 duration that begins here. `None` if none begins here.
pub(super) fn iso_duration_end(cursor: &Cursor<'_>) -> Option<usize> {
    let text = cursor.rest();
    let after_sign = text.strip_prefix(b"-").unwrap_or(text);
    let body = after_sign.strip_prefix(b"P")?;
    let length = alternative_format(body).or_else(|| designators(body))?;
    Some(cursor.position() + (text.len() - body.len()) + length)
}

/// Returns the length of a duration like `2011-02-03T04:05:06`, which follows the P.
fn alternative_format(body: &[u8]) -> Option<usize> {
    const SHAPE: &[u8] = b"dddd-dd-ddTdd:dd:dd";
    let matches = SHAPE.iter().enumerate().all(|(index, shape)| {
        body.get(index).is_some_and(|byte| match shape {
            b'd' => byte.is_ascii_digit(),
            other => byte == other,
        })
    });
    matches.then_some(SHAPE.len())
}

/// Returns the length of a duration like `3W`, `1Y2M3D`, `T1H2M3S` or `1Y2M3DT1H2M3S`, which follows the P.
fn designators(body: &[u8]) -> Option<usize> {
    let digits = body.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits > 0 && body.get(digits) == Some(&b'W') {
        return Some(digits + 1);
    }
    let period = designated(body, b"YMD");
    match body.get(period) {
        Some(b'T') => {
            let time = designated(body.get(period + 1..).unwrap_or_default(), b"HMS");
            if time > 0 {
                Some(period + 1 + time)
            } else {
                (period > 0).then_some(period)
            }
        }
        _ => (period > 0).then_some(period),
    }
}

/// Returns the length of the longest run of numbers with these designators. Each occurs at most once, in this order.
fn designated(text: &[u8], designators: &[u8]) -> usize {
    let mut length = 0;
    for designator in designators {
        let rest = text.get(length..).unwrap_or_default();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 && rest.get(digits) == Some(designator) {
            length += digits + 1;
        }
    }
    length
}
