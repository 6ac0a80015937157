//! Generators of column values: `--field.TABLE.COLUMN=random(100,200)`, and the other generators of tlp-stress.

use std::fmt;

use rand::Rng;

use super::keys::standard_normal;
use super::value::{self, ValueFormat, ValueId};
use super::words::{CITIES, FIRST_NAMES, LAST_NAMES, WORDS};

/// A generator of a column's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// From `min` to `max` random letters or bytes. The end is exclusive.
    Random {
        min: usize,
        max: usize,
    },
    /// From `min` to `max` words. The end is exclusive.
    Book {
        min: usize,
        max: usize,
    },
    /// An integer between `min` and `max`, with a normal distribution.
    Gaussian {
        min: usize,
        max: usize,
    },
    FirstName,
    LastName,
    UsCities,
}

/// Calls of the generators with their descriptions, for `helenus-stress fields`.
pub const GENERATORS: [(&str, &str); 6] = [
    (
        "random(min,max)",
        "min to max-1 random letters (in a blob: bytes)",
    ),
    ("book(min,max)", "min to max-1 words of English prose"),
    (
        "gaussian(min,max)",
        "a whole number on a bell curve between min and max",
    ),
    ("firstname()", "a first name"),
    ("lastname()", "a last name"),
    ("cities()", "a city of the United States"),
];

impl Generator {
    /// Parses a call such as `random(100,200)`. A single bound means a fixed size.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || {
            let known: Vec<&str> = GENERATORS.iter().map(|(call, _)| *call).collect();
            format!("{text:?} is no generator; there are {}", known.join(", "))
        };
        let (name, arguments) = match text.trim().split_once('(') {
            Some((name, rest)) => (name, rest.strip_suffix(')').ok_or_else(bad)?),
            None => (text.trim(), ""),
        };
        let bounds: Vec<usize> = arguments
            .split(',')
            .map(str::trim)
            .filter(|argument| !argument.is_empty())
            .map(|argument| crate::numbers::count(argument).map(|number| number as usize))
            .collect::<Result<_, _>>()?;
        let (min, max) = match bounds[..] {
            [] => (100, 200),
            [size] => (size, size + 1),
            [min, max] if min < max => (min, max),
            _ => return Err(bad()),
        };
        match name.to_ascii_lowercase().as_str() {
            "random" => Ok(Self::Random { min, max }),
            "book" => Ok(Self::Book { min, max }),
            "gaussian" => Ok(Self::Gaussian { min, max }),
            "firstname" => Ok(Self::FirstName),
            "lastname" => Ok(Self::LastName),
            "cities" | "uscities" => Ok(Self::UsCities),
            _ => Err(bad()),
        }
    }

    /// Fills `out` with a value for `id`: header and checksum, then the generator's content.
    pub fn fill(
        self,
        out: &mut Vec<u8>,
        format: ValueFormat,
        id: ValueId<'_>,
        version: u64,
        rng: &mut impl Rng,
    ) {
        let len = match self {
            Self::Random { min, max } => rng.random_range(min..max),
            _ => 0,
        };
        value::write(out, format, id, version, len, |out, rest| match (self, format) {
            (Self::Random { .. }, ValueFormat::Text) => value::random_letters(out, rest, rng),
            (Self::Random { .. }, ValueFormat::Blob) => value::random_bytes(out, rest, rng),
            _ => self.words(out, rng),
        });
    }

    fn words(self, out: &mut Vec<u8>, rng: &mut impl Rng) {
        let word = |list: &[&'static str], rng: &mut _| list[Rng::random_range(rng, 0..list.len())];
        let start = out.len();
        match self {
            Self::Random { .. } => {}
            Self::Book { min, max } => {
                for _ in 0..rng.random_range(min..max) {
                    if out.len() > start {
                        out.push(b' ');
                    }
                    out.extend_from_slice(word(&WORDS, rng).as_bytes());
                }
            }
            Self::Gaussian { min, max } => {
                let (min, max) = (min as f64, max as f64);
                let number = (min + max) / 2.0 + standard_normal(rng) * (max - min) / 8.0;
                out.extend_from_slice(format!("{:.0}", number.clamp(min, max)).as_bytes());
            }
            Self::FirstName => out.extend_from_slice(word(&FIRST_NAMES, rng).as_bytes()),
            Self::LastName => out.extend_from_slice(word(&LAST_NAMES, rng).as_bytes()),
            Self::UsCities => out.extend_from_slice(word(&CITIES, rng).as_bytes()),
        }
    }
}

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random { min, max } => write!(f, "random({min},{max})"),
            Self::Book { min, max } => write!(f, "book({min},{max})"),
            Self::Gaussian { min, max } => write!(f, "gaussian({min},{max})"),
            Self::FirstName => f.write_str("firstname()"),
            Self::LastName => f.write_str("lastname()"),
            Self::UsCities => f.write_str("cities()"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::*;

    const ID: ValueId<'_> = ValueId { key: b"key", part: 0 };

    #[test]
    fn generators_read_back_what_they_print() {
        for text in [
            "random(100,200)",
            "book(20,40)",
            "gaussian(1,9)",
            "firstname()",
            "lastname()",
            "cities()",
        ] {
            assert_eq!(Generator::parse(text).map(|g| g.to_string()), Ok(text.to_owned()));
        }
        assert_eq!(
            Generator::parse("random(50)"),
            Ok(Generator::Random { min: 50, max: 51 })
        );
        assert_eq!(
            Generator::parse("random(1k,2k)"),
            Ok(Generator::Random { min: 1000, max: 2000 })
        );
        for text in [
            "random(5,5)",
            "random(1,2,3)",
            "random(1,2",
            "dice()",
            "random(x,y)",
        ] {
            assert!(Generator::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_generator_fills_values_that_check() {
        let mut rng = SmallRng::seed_from_u64(3);
        let mut out = Vec::new();
        for (call, _) in GENERATORS {
            let generator = Generator::parse(&call.replace("min", "40").replace("max", "60")).unwrap();
            for format in [ValueFormat::Text, ValueFormat::Blob] {
                generator.fill(&mut out, format, ID, 9, &mut rng);
                assert_eq!(value::check(format, ID, &out), Ok(9), "{call} {format:?}");
            }
            assert!(out.len() > ValueFormat::Blob.header_len(), "{call} has content");
        }
    }

    #[test]
    fn random_sizes_lie_between_their_bounds() {
        let mut rng = SmallRng::seed_from_u64(3);
        let mut out = Vec::new();
        let sizes: Vec<usize> = (0..2000)
            .map(|_| {
                Generator::Random { min: 100, max: 200 }.fill(&mut out, ValueFormat::Text, ID, 0, &mut rng);
                out.len()
            })
            .collect();
        assert_eq!((sizes.iter().min(), sizes.iter().max()), (Some(&100), Some(&199)));
    }
}
