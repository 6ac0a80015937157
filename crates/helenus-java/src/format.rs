//! `String.format` (`java.util.Formatter`), without dates, hexadecimal fractions and other languages.

use num_bigint::BigInt;

use crate::error::Failure;
use crate::format_real::{fixed, scientific};
use crate::limits::TEXT_MAX;
use crate::methods;
use crate::text;
use crate::value::Value;

/// Maximum width and precision.
const WIDTH_MAX: usize = 1000;
const FLAGS: &str = "-#+ 0,(<";

/// A format specifier, from `%` to its conversion.
struct Specifier<'a> {
    whole: &'a str,
    index: Option<usize>,
    flags: &'a str,
    width: Option<usize>,
    precision: Option<usize>,
    conversion: char,
}

fn thrown(class: &str, message: impl Into<String>) -> Failure {
    Failure::thrown(&format!("java.util.{class}"), message)
}

/// Replaces the specifiers of a format by the arguments.
///
/// # Errors
/// If there are too few arguments, or a conversion that is not supported.
pub(crate) fn format(format: &str, arguments: &[Value]) -> Result<String, Failure> {
    let mut out = String::new();
    let mut rest = format;
    let (mut next, mut last) = (0, None);
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let specifier = Specifier::read(&rest[at..])?;
        rest = &rest[at + specifier.whole.len()..];
        let shown = match specifier.conversion {
            'n' => "\n".to_owned(),
            '%' => specifier.padded("%".to_owned()),
            _ => {
                let at = match specifier.index {
                    Some(index) => index.checked_sub(1),
                    None if specifier.has('<') => last,
                    None => {
                        next += 1;
                        Some(next - 1)
                    }
                };
                last = at;
                let argument = at.and_then(|at| arguments.get(at)).ok_or_else(|| {
                    let message = format!("Format specifier '{}'", specifier.whole);
                    thrown("MissingFormatArgumentException", message)
                })?;
                specifier.show(argument)?
            }
        };
        out.push_str(&shown);
        text::check_len(&out)?;
    }
    out.push_str(rest);
    Ok(out)
}

fn number(text: &str) -> (Option<usize>, &str) {
    let len = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(len);
    (
        digits.parse().ok().map(|number: usize| number.min(WIDTH_MAX)),
        rest,
    )
}

impl<'a> Specifier<'a> {
    /// Returns the specifier that the text begins with.
    fn read(text: &'a str) -> Result<Specifier<'a>, Failure> {
        let mut after = &text[1..];
        let mut index = None;
        if let (Some(number), behind) = number(after)
            && let Some(behind) = behind.strip_prefix('$')
        {
            (index, after) = (Some(number), behind);
        }
        let flags_len = after.find(|c| !FLAGS.contains(c)).unwrap_or(after.len());
        let (flags, after) = after.split_at(flags_len);
        let (width, after) = number(after);
        let (precision, after) = match after.strip_prefix('.') {
            Some(after) => number(after),
            None => (None, after),
        };
        let unknown = |shown: char| {
            thrown(
                "UnknownFormatConversionException",
                format!("Conversion = '{shown}'"),
            )
        };
        let conversion = after.chars().next().ok_or_else(|| unknown('%'))?;
        if !"bBhHsScCdoxXeEfgGn%".contains(conversion) {
            return Err(unknown(conversion));
        }
        let len = text.len() - after.len() + conversion.len_utf8();
        let found = Specifier {
            whole: &text[..len],
            index,
            flags,
            width,
            precision,
            conversion,
        };
        if width.is_none() && (found.has('-') || found.has('0')) {
            return Err(thrown("MissingFormatWidthException", found.whole));
        }
        if let Some(precision) = precision.filter(|_| "cCdoxX".contains(conversion)) {
            return Err(thrown("IllegalFormatPrecisionException", precision.to_string()));
        }
        Ok(found)
    }

    fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    fn show(&self, argument: &Value) -> Result<String, Failure> {
        let shown = match self.conversion.to_ascii_lowercase() {
            'b' => match argument {
                Value::Null => self.text("false"),
                Value::Boolean(value) => self.text(&value.to_string()),
                _ => self.text("true"),
            },
            _ if argument.is_null() => self.text("null"),
            'h' => self.text(&format!("{:x}", methods::hash(argument))),
            's' => self.text(&text::of(argument)?),
            'c' => self.padded(self.character(argument)?),
            'd' => match argument {
                Value::BigInteger(value) => self.signed(
                    value.sign() == num_bigint::Sign::Minus,
                    value.magnitude().to_string(),
                ),
                _ => {
                    let value = self.whole_number(argument)?;
                    self.signed(value < 0, value.unsigned_abs().to_string())
                }
            },
            'x' | 'o' => self.padded_digits(self.unsigned(argument)?),
            _ => self.real(argument)?,
        };
        Ok(match self.conversion.is_ascii_uppercase() {
            true => shown.to_uppercase(),
            false => shown,
        })
    }

    fn mismatch(&self, argument: &Value) -> Failure {
        let message = format!("{} != {}", self.conversion, argument.class_name());
        thrown("IllegalFormatConversionException", message)
    }

    fn whole_number(&self, argument: &Value) -> Result<i64, Failure> {
        let number = argument.as_long().filter(|_| !matches!(argument, Value::Char(_)));
        number.ok_or_else(|| self.mismatch(argument))
    }

    fn character(&self, argument: &Value) -> Result<String, Failure> {
        let code = match argument {
            Value::Char(_) | Value::Byte(_) | Value::Short(_) | Value::Int(_) => argument.to_int()?,
            _ => return Err(self.mismatch(argument)),
        };
        let code = u32::try_from(code)
            .ok()
            .filter(|code| *code <= 0x10_ffff)
            .ok_or_else(|| {
                thrown(
                    "IllegalFormatCodePointException",
                    format!("Code point = 0x{code:x}"),
                )
            })?;
        Ok(char::from_u32(code).unwrap_or('?').to_string())
    }

    /// Returns the digits in base 8 or 16. Negative numbers are shown as two's complement.
    fn unsigned(&self, argument: &Value) -> Result<String, Failure> {
        let is_hex = self.conversion != 'o';
        if let Value::BigInteger(value) = argument {
            return Ok(value.to_str_radix(if is_hex { 16 } else { 8 }));
        }
        let value = self.whole_number(argument)?;
        let bits = match argument {
            Value::Byte(_) => u64::from(value as u8),
            Value::Short(_) => u64::from(value as u16),
            Value::Int(_) => u64::from(value as u32),
            _ => value as u64,
        };
        let digits = BigInt::from(bits).to_str_radix(if is_hex { 16 } else { 8 });
        Ok(match (self.has('#'), is_hex) {
            (true, true) => format!("0x{digits}"),
            (true, false) => format!("0{digits}"),
            _ => digits,
        })
    }

    fn real(&self, argument: &Value) -> Result<String, Failure> {
        let value = match argument {
            Value::Float(_) | Value::Double(_) => argument.as_double().unwrap_or_default(),
            Value::BigDecimal(value) => {
                let plain = value.to_string();
                if self.conversion == 'f' {
                    // A negative scale adds as many zeros to the text.
                    if value.scale < -(TEXT_MAX as i32) {
                        return Err(Failure::out_of_memory());
                    }
                    let digits = fixed(&plain, self.precision.unwrap_or(6));
                    return Ok(self.signed(plain.starts_with('-'), digits));
                }
                plain.parse().unwrap_or_default()
            }
            _ => return Err(self.mismatch(argument)),
        };
        if !value.is_finite() {
            let shown = match (value.is_nan(), value < 0.0) {
                (true, _) => "NaN",
                (_, true) if self.has('(') => "(Infinity)",
                (_, true) => "-Infinity",
                _ if self.has('+') => "+Infinity",
                _ => "Infinity",
            };
            return Ok(self.padded(shown.to_owned()));
        }
        let shortest = format!("{}", value.abs());
        let precision = self.precision.unwrap_or(6);
        let digits = match self.conversion.to_ascii_lowercase() {
            'f' => fixed(&shortest, precision),
            'e' => scientific(&shortest, precision),
            _ => {
                let precision = precision.max(1);
                let rounded = scientific(&shortest, precision - 1);
                let exponent: i32 = rounded
                    .split_once('e')
                    .and_then(|(_, exponent)| exponent.parse().ok())
                    .unwrap_or(0);
                match usize::try_from(precision as i32 - 1 - exponent) {
                    Ok(places) if exponent >= -4 => fixed(&shortest, places),
                    _ => rounded,
                }
            }
        };
        Ok(self.signed(value.is_sign_negative(), digits))
    }

    /// Adds a sign, commas between the digits, and zeros before them.
    fn signed(&self, is_negative: bool, digits: String) -> String {
        let (before, behind) = match is_negative {
            true if self.has('(') => ("(", ")"),
            true => ("-", ""),
            false if self.has('+') => ("+", ""),
            false if self.has(' ') => (" ", ""),
            false => ("", ""),
        };
        let digits = if self.has(',') { grouped(&digits) } else { digits };
        let len = before.len() + digits.len() + behind.len();
        let zeros = match self.has('0') {
            true => self.width.unwrap_or(0).saturating_sub(len),
            false => 0,
        };
        self.padded(format!("{before}{}{digits}{behind}", "0".repeat(zeros)))
    }

    fn padded_digits(&self, digits: String) -> String {
        if !self.has('0') {
            return self.padded(digits);
        }
        let (prefix, digits) = match digits.strip_prefix("0x") {
            Some(rest) => ("0x", rest.to_owned()),
            None => ("", digits),
        };
        let missing = self
            .width
            .unwrap_or(0)
            .saturating_sub(prefix.len() + digits.len());
        format!("{prefix}{}{digits}", "0".repeat(missing))
    }

    fn text(&self, text: &str) -> String {
        self.padded(match self.precision {
            Some(precision) => text.chars().take(precision).collect(),
            None => text.to_owned(),
        })
    }

    fn padded(&self, shown: String) -> String {
        let missing = self.width.unwrap_or(0).saturating_sub(shown.chars().count());
        let spaces = " ".repeat(missing);
        match self.has('-') {
            true => shown + &spaces,
            false => spaces + &shown,
        }
    }
}

/// Returns the digits with a comma before each group of three before the point.
fn grouped(digits: &str) -> String {
    let (whole, rest) = digits.split_at(digits.find(['.', 'e']).unwrap_or(digits.len()));
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}
