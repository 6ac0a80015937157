//! Small operations on texts of cases and outcomes.

use md5::{Digest, Md5};

/// Maximum characters of a value that is shown in full. A longer one is shown by its beginning, length and digest.
const SHOWN_CHARS_MAX: usize = 3000;

/// Splits at separators outside of brackets and quotes, and trims the parts.
pub fn split_top(text: &str, separator: char) -> Vec<String> {
    let (mut parts, mut depth, mut current, mut quote) = (Vec::new(), 0i32, String::new(), None);
    for c in text.chars() {
        if quote.is_some() {
            if quote == Some(c) {
                quote = None;
            }
        } else if matches!(c, '\'' | '"') {
            quote = Some(c);
        } else if matches!(c, '(' | '[' | '{' | '<') {
            depth += 1;
        } else if matches!(c, ')' | ']' | '}' | '>') {
            depth -= 1;
        } else if c == separator && depth == 0 {
            parts.push(current.trim().to_owned());
            current.clear();
            continue;
        }
        current.push(c);
    }
    if !current.trim().is_empty() || !parts.is_empty() {
        parts.push(current.trim().to_owned());
    }
    parts
}

/// Replaces each `%rep(x,n)` with n times x.
pub fn expand(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("%rep(") {
        let body = &rest[at + 5..];
        let Some((what, count, after)) = repetition(body) else {
            out.push_str(&rest[..at + 5]);
            rest = body;
            continue;
        };
        out.push_str(&rest[..at]);
        out.push_str(&what.repeat(count));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Parses `x,n)`. Returns x, n, and the text after them.
fn repetition(body: &str) -> Option<(&str, usize, &str)> {
    let (what, rest) = body.split_once(',')?;
    let (count, after) = rest.split_once(')')?;
    let is_number = count.bytes().all(|byte| byte.is_ascii_digit());
    Some((what, count.parse().ok().filter(|_| is_number)?, after))
}

/// Returns the text with escaped line ends.
pub fn one_line(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('\r', "\\r")
        .replace('\n', "\\n")
}

/// Returns a string as it is shown within values.
pub fn quote(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("''"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_printable(c) => out.push(c),
            c => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
        }
    }
    out.push('\'');
    out
}

/// Returns true if the character is shown as it is. A letter precedes it here, because combining characters are escaped only at the
/// beginning of a string.
fn is_printable(c: char) -> bool {
    c == '"' || !format!("a{c}").escape_debug().to_string().contains('\\')
}

/// Returns a value's text. A long one is replaced by its beginning, length and digest.
pub fn abbreviated(text: String) -> String {
    let count = text.chars().count();
    if count <= SHOWN_CHARS_MAX {
        return text;
    }
    let start: String = text.chars().take(40).collect();
    format!(
        "{start}... ({count} characters, md5 {})",
        hex(&Md5::digest(text.as_bytes()))
    )
}

/// Returns the bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the bytes of hexadecimal digits.
pub fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits
        .chunks_exact(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}
