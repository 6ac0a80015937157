//! Patterns of dates and times, which are letters with text between them, and `DateTimeFormatter`, which has a pattern. The two kinds of
//! formatters define the meaning of the letters.

use std::rc::Rc;

use super::zone::Zone;
use crate::error::Failure;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Literal(String),
    /// A letter, and the number of its repetitions.
    Field(char, usize),
}

/// Maximum repetitions of a letter in a pattern. Each one can add a character to the text.
const COUNT_MAX: usize = 255;

/// Splits a pattern into its items.
///
/// # Errors
/// A quote has no end, or a letter is not among `letters`.
pub(crate) fn items(
    pattern: &str,
    letters: &str,
    fault: impl Fn(char) -> Failure,
) -> Result<Vec<Item>, Failure> {
    let mut items: Vec<Item> = Vec::new();
    let mut literal = String::new();
    let mut chars = pattern.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\'' if chars.next_if_eq(&'\'').is_some() => literal.push('\''),
            '\'' => loop {
                match chars.next() {
                    Some('\'') if chars.next_if_eq(&'\'').is_some() => literal.push('\''),
                    Some('\'') => break,
                    Some(quoted) => literal.push(quoted),
                    None => return Err(fault('\'')),
                }
            },
            letter if letter.is_ascii_alphabetic() => {
                if !letters.contains(letter) {
                    return Err(fault(letter));
                }
                let mut count = 1;
                while chars.next_if_eq(&letter).is_some() {
                    count += 1;
                }
                if count > COUNT_MAX {
                    return Err(fault(letter));
                }
                if !literal.is_empty() {
                    items.push(Item::Literal(std::mem::take(&mut literal)));
                }
                items.push(Item::Field(letter, count));
            }
            other => literal.push(other),
        }
    }
    if !literal.is_empty() {
        items.push(Item::Literal(literal));
    }
    Ok(items)
}

/// Returns the first `len` letters of a name.
pub(crate) fn short(name: &str, len: usize) -> &str {
    name.get(..len).unwrap_or(name)
}

/// Returns the index and the length of the longest name that the text begins with, ignoring case.
pub(crate) fn name_at(text: &str, names: &[&str], is_short: bool) -> Option<(usize, usize)> {
    let begins = |name: &str| {
        let begin = text.get(..name.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(name))
    };
    let len = |name: &str| if is_short { 3.min(name.len()) } else { name.len() };
    let found = names.iter().enumerate();
    let found = found.filter(|(_, name)| begins(short(name, len(name))));
    let longest = found.max_by_key(|(_, name)| len(name))?;
    Some((longest.0, len(longest.1)))
}

/// The supported letters. Those of localised weeks, narrow names, padding and optional parts are refused.
const LETTERS: &str = "GuyDMLdQqYwWEaKkHhmsSAnNVzXxZ";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Formatter {
    pub form: Form,
    /// The zone in which instants are shown. `None` if they can't be shown.
    pub zone: Option<Zone>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form {
    Pattern(Rc<[Item]>, Rc<str>),
    Iso(Iso),
}

/// The predefined formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Iso {
    LocalDate,
    LocalTime,
    LocalDateTime,
    OffsetDateTime,
    Instant,
    BasicDate,
}

const NAMED: [(&str, Iso); 8] = [
    ("ISO_LOCAL_DATE", Iso::LocalDate),
    ("ISO_DATE", Iso::LocalDate),
    ("ISO_LOCAL_TIME", Iso::LocalTime),
    ("ISO_TIME", Iso::LocalTime),
    ("ISO_LOCAL_DATE_TIME", Iso::LocalDateTime),
    ("ISO_OFFSET_DATE_TIME", Iso::OffsetDateTime),
    ("ISO_INSTANT", Iso::Instant),
    ("BASIC_ISO_DATE", Iso::BasicDate),
];

fn illegal(message: String) -> Failure {
    Failure::thrown("java.lang.IllegalArgumentException", message)
}

impl Formatter {
    /// Returns the constant of that name.
    pub fn constant(name: &str) -> Option<Formatter> {
        let found = NAMED.iter().find(|(constant, _)| *constant == name)?;
        Some(Formatter::iso(found.1))
    }

    fn iso(iso: Iso) -> Formatter {
        Formatter {
            form: Form::Iso(iso),
            // `ISO_INSTANT` needs no zone. The other formats can't show instants without one.
            zone: None,
        }
    }

    /// Returns the default formatter of a class's `parse`.
    pub fn of_class(class: &str) -> Formatter {
        Formatter::iso(match class {
            "time.LocalDate" => Iso::LocalDate,
            "LocalTime" => Iso::LocalTime,
            "LocalDateTime" => Iso::LocalDateTime,
            "ZonedDateTime" => Iso::OffsetDateTime,
            _ => Iso::Instant,
        })
    }

    /// Implements `ofPattern`.
    ///
    /// # Errors
    /// A letter has no meaning, or is not supported.
    pub fn of_pattern(pattern: &str) -> Result<Formatter, Failure> {
        if let Some(sign) = pattern.chars().find(|char| "[]{}#".contains(*char)) {
            return Err(Failure::thrown(
                "java.lang.UnsupportedOperationException",
                format!(
                    "'{sign}' in the pattern {pattern} of a DateTimeFormatter is not supported in functions"
                ),
            ));
        }
        let fault = |char: char| match char {
            '\'' => illegal(format!(
                "Pattern ends with an incomplete string literal: {pattern}"
            )),
            'c' | 'e' | 'B' | 'O' | 'v' | 'p' | 'g' | 'F' => Failure::thrown(
                "java.lang.UnsupportedOperationException",
                format!("The letter {char} in patterns of a DateTimeFormatter is not supported in functions"),
            ),
            letter => illegal(format!("Unknown pattern letter: {letter}")),
        };
        let items = items(pattern, LETTERS, fault)?;
        for item in &items {
            let Item::Field(letter, count) = item else {
                continue;
            };
            let most = match letter {
                'd' | 'h' | 'H' | 'k' | 'K' | 'm' | 's' | 'w' | 'V' => 2,
                'a' | 'W' => 1,
                'D' => 3,
                'S' => 9,
                'M' | 'L' | 'E' | 'z' | 'Q' | 'q' | 'G' => 4,
                'X' | 'x' | 'Z' => 3,
                _ => 19,
            };
            if *count > most || *letter == 'V' && *count != 2 {
                let letters: String = std::iter::repeat_n(*letter, *count).collect();
                return Err(illegal(format!("Too many pattern letters: {letters}")));
            }
        }
        Ok(Formatter {
            form: Form::Pattern(items.into(), pattern.into()),
            zone: None,
        })
    }

    pub fn with_zone(&self, zone: Zone) -> Formatter {
        Formatter {
            zone: Some(zone),
            ..self.clone()
        }
    }

    pub fn shown(&self) -> String {
        match &self.form {
            Form::Pattern(_, pattern) => pattern.to_string(),
            Form::Iso(iso) => format!("{iso:?}"),
        }
    }
}
