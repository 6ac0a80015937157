//! Analyzers: how storage-attached and SASI indexes compare text (Cassandra's two classes `NonTokenizingAnalyzer`). Entries contain the
//! analyzed text, and lookups analyze their values in the same way.

use std::collections::BTreeMap;

use bytes::Bytes;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use unicode_segmentation::UnicodeSegmentation;

/// The way in which an SASI index splits text into terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tokenizer {
    /// Splits at a character (`DelimiterAnalyzer`).
    Delimiter(char),
    /// Splits into Unicode words (`StandardAnalyzer`).
    Words,
}

/// The changes to text before it is compared, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Analyzer {
    tokenizer: Option<Tokenizer>,
    lowers_case: bool,
    raises_case: bool,
    /// True if text is normalized to Unicode's NFC.
    normalizes: bool,
    /// True if letters, digits and punctuation that look like ASCII are replaced by ASCII.
    folds_to_ascii: bool,
}

impl Analyzer {
    /// Returns the analyzer that the options of a storage-attached index declare. `None` if text is compared as it is.
    pub fn of(options: &BTreeMap<String, String>) -> Option<Analyzer> {
        let is = |name: &str, word: &str| {
            options
                .get(name)
                .is_some_and(|value| value.eq_ignore_ascii_case(word))
        };
        let analysis = Analyzer {
            tokenizer: None,
            lowers_case: is("case_sensitive", "false"),
            raises_case: false,
            normalizes: is("normalize", "true"),
            folds_to_ascii: is("ascii", "true"),
        };
        (analysis.lowers_case || analysis.normalizes || analysis.folds_to_ascii).then_some(analysis)
    }

    /// Returns the analyzer that the options of an SASI index declare. `None` if text is compared as it is.
    pub fn of_sasi(options: &BTreeMap<String, String>) -> Option<Analyzer> {
        let is = |name: &str| options.get(name).map(|value| value.eq_ignore_ascii_case("true"));
        let class = options.get("analyzer_class");
        if is("analyzed") == Some(false) || class.is_none() && is("analyzed").is_none() {
            return None;
        }
        let class = class.map_or("StandardAnalyzer", |class| {
            class.rsplit('.').next().unwrap_or(class)
        });
        let plain = Analyzer {
            tokenizer: None,
            lowers_case: false,
            raises_case: false,
            normalizes: true,
            folds_to_ascii: false,
        };
        match class {
            "NonTokenizingAnalyzer" => Some(Analyzer {
                lowers_case: is("case_sensitive") == Some(false) || is("normalize_lowercase") == Some(true),
                raises_case: is("normalize_uppercase") == Some(true),
                ..plain
            }),
            "DelimiterAnalyzer" => {
                let delimiter = options.get("delimiter").and_then(|text| text.chars().next());
                Some(Analyzer {
                    tokenizer: Some(Tokenizer::Delimiter(delimiter.unwrap_or(','))),
                    ..plain
                })
            }
            "StandardAnalyzer" => Some(Analyzer {
                tokenizer: Some(Tokenizer::Words),
                lowers_case: is("tokenization_normalize_lowercase") == Some(true),
                raises_case: is("tokenization_normalize_uppercase") == Some(true),
                ..plain
            }),
            _ => None,
        }
    }

    /// Returns true if text is split into several terms.
    pub fn is_tokenizing(self) -> bool {
        self.tokenizer.is_some()
    }

    /// Returns the terms of the serialized text.
    pub fn terms(self, value: &[u8]) -> Vec<Bytes> {
        let text = String::from_utf8_lossy(value);
        let parts: Vec<&str> = match self.tokenizer {
            None => vec![&text],
            Some(Tokenizer::Delimiter(delimiter)) => {
                text.split(delimiter).filter(|part| !part.is_empty()).collect()
            }
            Some(Tokenizer::Words) => text.unicode_words().collect(),
        };
        parts
            .into_iter()
            .map(|part| self.apply(part.as_bytes()))
            .collect()
    }

    /// Returns the analyzed form of the serialized text, without splitting it.
    pub fn apply(self, value: &[u8]) -> Bytes {
        // Invalid UTF-8 is refused when it is written.
        let mut text = String::from_utf8_lossy(value).into_owned();
        if self.lowers_case {
            text = text.to_lowercase();
        }
        if self.raises_case {
            text = text.to_uppercase();
        }
        if self.normalizes {
            text = ComposingNormalizerBorrowed::new_nfc()
                .normalize(&text)
                .into_owned();
        }
        if self.folds_to_ascii && !text.is_ascii() {
            text = fold(&text);
        }
        text.into()
    }
}

fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            folded.push(c);
        } else if let Some(known) = undecomposed(c) {
            folded.push_str(known);
        } else {
            fold_decomposed(c, &mut folded);
        }
    }
    folded
}

/// Appends a letter without its marks, or a digit without its circle. These are what remains of the compatibility decomposition. The
/// character stays as it is if that is not ASCII.
fn fold_decomposed(c: char, folded: &mut String) {
    let mut buffer = [0; 4];
    let parts = DecomposingNormalizerBorrowed::new_nfkd().normalize(c.encode_utf8(&mut buffer));
    let is_mark = |part: &char| matches!(part, '\u{300}'..='\u{36f}');
    let is_folded = matches!(
        c,
        '\u{b2}' | '\u{b3}' | '\u{b9}' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' | '\u{2070}'..='\u{209c}'
            | '\u{2460}'..='\u{24ff}' | '\u{fb00}'..='\u{fb06}' | '\u{ff01}'..='\u{ff5e}'
    );
    let mut rest = parts.chars().filter(|part| !is_mark(part)).peekable();
    if is_folded && rest.peek().is_some() && rest.clone().all(|part| part.is_ascii()) {
        folded.extend(rest);
    } else {
        folded.push(c);
    }
}

/// Returns the ASCII form of characters that Unicode does not decompose.
fn undecomposed(c: char) -> Option<&'static str> {
    Some(match c {
        'Æ' | 'Ǣ' | 'Ǽ' => "AE",
        'æ' | 'ǣ' | 'ǽ' => "ae",
        'Œ' => "OE",
        'œ' => "oe",
        'ß' => "ss",
        'ẞ' => "SS",
        'Þ' => "TH",
        'þ' => "th",
        'Ø' | 'Ǿ' | 'Ɵ' | 'Ɔ' => "O",
        'ø' | 'ǿ' | 'ɵ' | 'ɔ' => "o",
        'Đ' | 'Ð' | 'Ɖ' | 'Ɗ' => "D",
        'đ' | 'ð' | 'ɖ' | 'ɗ' => "d",
        'Ł' | 'Ƚ' => "L",
        'ł' | 'ƚ' => "l",
        'Ħ' => "H",
        'ħ' => "h",
        'Ŧ' | 'Ƭ' | 'Ʈ' => "T",
        'ŧ' | 'ƭ' | 'ʈ' => "t",
        'Ŋ' | 'Ɲ' => "N",
        'ŋ' | 'ɲ' | 'ƞ' => "n",
        'ı' | 'ɨ' => "i",
        'Ɨ' => "I",
        'Ɓ' | 'Ƀ' => "B",
        'ƀ' | 'ɓ' => "b",
        'Ƈ' => "C",
        'ƈ' => "c",
        'Ǝ' | 'Ə' | 'Ɛ' => "E",
        'ǝ' | 'ə' | 'ɛ' => "e",
        'Ƒ' => "F",
        'ƒ' => "f",
        'Ɠ' | 'Ǥ' => "G",
        'ǥ' | 'ɠ' => "g",
        'Ƙ' => "K",
        'ƙ' => "k",
        'Ƥ' => "P",
        'ƥ' => "p",
        'ĸ' => "q",
        'Ʋ' => "V",
        'ʋ' => "v",
        'Ƴ' => "Y",
        'ƴ' => "y",
        'Ƶ' | 'Ȥ' => "Z",
        'ƶ' | 'ȥ' => "z",
        'ſ' => "s",
        '«' | '»' | '“' | '”' | '„' | '″' | '‶' | '❝' | '❞' | '❮' | '❯' => "\"",
        '‘' | '’' | '‚' | '‛' | '′' | '‵' | '‹' | '›' | '❛' | '❜' => "'",
        '‐' | '‑' | '‒' | '–' | '—' | '⁻' | '₋' => "-",
        '⁄' => "/",
        '⁎' => "*",
        '⁏' => ";",
        '⁓' => "~",
        '⁒' => "%",
        '‼' => "!!",
        '⁇' => "??",
        '⁈' => "?!",
        '⁉' => "!?",
        '⁅' => "[",
        '⁆' => "]",
        '‸' => "^",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn analysis(options: &[(&str, &str)]) -> Option<Analyzer> {
        let owned = options
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Analyzer::of(&owned.collect())
    }

    #[test]
    fn options_are_applied_each_by_itself() {
        let apply = |option: (&str, &str), text: &str| analysis(&[option]).unwrap().apply(text.as_bytes());
        assert_eq!(apply(("case_sensitive", "False"), "ÀLiCe ΣΑΣ"), "àlice σας");
        assert_eq!(apply(("normalize", "true"), "E\u{301} ﬁ"), "É ﬁ");
        assert_eq!(
            apply(("ascii", "true"), "“Łódź” ﬁ ① Straße ＡＢ"),
            "\"Lodz\" fi 1 Strasse AB"
        );
        // Characters of other scripts and separate combining marks do not change.
        assert_eq!(
            apply(("ascii", "true"), "Привет Ω E\u{301} 日"),
            "Привет Ω E\u{301} 日"
        );
        assert_eq!(analysis(&[("case_sensitive", "true"), ("ascii", "false")]), None);
    }

    #[test]
    fn together_they_lower_then_normalize_then_fold() {
        let every = analysis(&[
            ("case_sensitive", "false"),
            ("normalize", "true"),
            ("ascii", "true"),
        ])
        .unwrap();
        for text in ["Éclair", "e\u{301}CLAIR", "ECLAIR"] {
            assert_eq!(every.apply(text.as_bytes()), "eclair");
        }
    }
}
