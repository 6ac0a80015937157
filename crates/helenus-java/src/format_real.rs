//! Real numbers with a given number of decimal places, rounded half up from their shortest digits.

/// Returns the digits of a number without its sign, and the number of digits before the point.
fn digits(text: &str) -> (Vec<u8>, i32) {
    let text = text.trim_start_matches('-').to_ascii_lowercase();
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let all: Vec<u8> = whole
        .bytes()
        .chain(fraction.bytes())
        .map(|digit| digit - b'0')
        .collect();
    let zeros = all.iter().take_while(|digit| **digit == 0).count();
    let point = whole.len() as i32 + exponent;
    match zeros == all.len() {
        true => (Vec::new(), 0),
        false => (all[zeros..].to_vec(), point - zeros as i32),
    }
}

/// Returns the first `len` digits, rounded. The second value is true if rounding added a digit.
fn rounded(digits: &[u8], len: i32) -> (Vec<u8>, bool) {
    let Ok(len) = usize::try_from(len) else {
        return (Vec::new(), false);
    };
    let mut kept = digits.to_vec();
    kept.resize(kept.len().max(len), 0);
    let up = kept.get(len).is_some_and(|digit| *digit >= 5);
    kept.truncate(len);
    if !up {
        return (kept, false);
    }
    for digit in kept.iter_mut().rev() {
        *digit += 1;
        if *digit < 10 {
            return (kept, false);
        }
        *digit = 0;
    }
    kept.insert(0, 1);
    (kept, true)
}

fn text(digits: &[u8]) -> String {
    digits.iter().map(|digit| char::from(b'0' + digit)).collect()
}

/// Returns a number with so many places behind the point.
pub(crate) fn fixed(number: &str, places: usize) -> String {
    let (digits, point) = digits(number);
    let (kept, more) = rounded(&digits, point + places as i32);
    let point = point + i32::from(more);
    let whole = usize::try_from(point).unwrap_or(0).min(kept.len());
    let zeros = places.saturating_sub(kept.len() - whole);
    let head = if whole == 0 {
        "0".to_owned()
    } else {
        text(&kept[..whole])
    };
    match places {
        0 => head,
        _ => format!("{head}.{}{}", "0".repeat(zeros), text(&kept[whole..])),
    }
}

/// Returns a number in scientific notation, with one digit before the point and so many places behind it.
pub(crate) fn scientific(number: &str, places: usize) -> String {
    let (digits, point) = digits(number);
    let (mut kept, more) = rounded(&digits, places as i32 + 1);
    kept.truncate(places + 1);
    let exponent = match digits.is_empty() {
        true => 0,
        false => point - 1 + i32::from(more),
    };
    let sign = if exponent < 0 { '-' } else { '+' };
    let behind = match places {
        0 => String::new(),
        _ => format!(".{}", text(&kept[1..])),
    };
    format!("{}{behind}e{sign}{:02}", kept[0], exponent.abs())
}
