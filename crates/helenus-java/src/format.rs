//! `String.format`, the part of it that functions use: `%s`, `%d`, `%f`, `%x`, `%c`, `%b`, `%n` and `%%` with widths and precisions.

use crate::error::Failure;
use crate::text;
use crate::value::Value;

/// Widths and precisions at most.
const WIDTH_MAX: usize = 1000;

/// Fills a format in.
///
/// # Errors
/// If it has too few arguments, or a conversion that is not understood.
pub(crate) fn format(format: &str, arguments: &[Value]) -> Result<String, Failure> {
    let mut out = String::new();
    let mut arguments = arguments.iter();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let flags_len = rest.find(|c| !"-+0 ,".contains(c)).unwrap_or(rest.len());
        let (flags, after) = rest.split_at(flags_len);
        let (width, after) = number(after);
        let (precision, after) = match after.strip_prefix('.') {
            Some(after) => number(after),
            None => (None, after),
        };
        let unknown = || {
            Failure::thrown(
                "java.util.UnknownFormatConversionException",
                format!("Conversion = '{after:.1}'"),
            )
        };
        let conversion = after.chars().next().ok_or_else(unknown)?;
        rest = &after[conversion.len_utf8()..];
        let mut argument = || {
            arguments.next().ok_or_else(|| {
                Failure::thrown(
                    "java.util.MissingFormatArgumentException",
                    format!("Format specifier '%{conversion}'"),
                )
            })
        };
        let shown = match conversion {
            '%' => "%".to_owned(),
            'n' => "\n".to_owned(),
            's' | 'S' | 'b' | 'c' | 'd' => {
                let shown = text::of(argument()?)?;
                match precision.filter(|_| conversion != 'd') {
                    Some(precision) => shown.chars().take(precision).collect(),
                    None => shown,
                }
            }
            'x' => match argument()? {
                Value::Long(value) => format!("{value:x}"),
                other => format!("{:x}", other.to_int()?),
            },
            'f' => {
                let value = argument()?;
                let value = value
                    .as_double()
                    .ok_or_else(|| Failure::class_cast(&value.class_name(), "java.lang.Double"))?;
                format!("{value:.*}", precision.unwrap_or(6))
            }
            _ => return Err(unknown()),
        };
        let shown = if conversion == 'S' {
            shown.to_uppercase()
        } else {
            shown
        };
        let missing = width.unwrap_or(0).saturating_sub(shown.chars().count());
        match () {
            () if flags.contains('-') => out.extend([shown.as_str(), &" ".repeat(missing)]),
            () if flags.contains('0') => {
                let (sign, digits) = shown.split_at(usize::from(shown.starts_with('-')));
                out.extend([sign, &"0".repeat(missing), digits]);
            }
            () => out.extend([&" ".repeat(missing), shown.as_str()]),
        }
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
