//! Figures in a readable form: three or four digits and a unit.

/// Text in the place of a missing figure.
pub const NONE: &str = "–";

/// Formats microseconds: `312 µs`, `1.24 ms`, `45.0 s`.
pub fn micros(us: f64) -> String {
    if us < 999.5 {
        return format!("{} µs", digits(us));
    }
    if us < 999_500.0 {
        return format!("{} ms", three_digits(us / 1e3));
    }
    format!("{} s", three_digits(us / 1e6))
}

/// Formats a value from 1 to 1,000. It always has three digits, so that columns are aligned.
fn three_digits(value: f64) -> String {
    let decimals = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}

/// Formats a whole number in groups of three digits: `12,345,678`.
pub fn count(n: u64) -> String {
    let plain = n.to_string();
    let mut grouped = String::new();
    for (i, digit) in plain.chars().enumerate() {
        if i > 0 && (plain.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a plain number with three digits, or all digits before the point: `0.0125`, `11.5`, `12,345`.
pub fn digits(value: f64) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let magnitude = value.abs();
    if magnitude >= 99.95 {
        let whole = count(magnitude.round() as u64);
        return if value < 0.0 { format!("-{whole}") } else { whole };
    }
    let decimals = if magnitude >= 9.995 {
        1
    } else if magnitude >= 0.9995 || magnitude == 0.0 {
        2
    } else {
        2 - magnitude.log10().floor().max(-6.0) as i32
    };
    let text = format!("{value:.*}", decimals as usize);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() || text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// Formats a rate: `1,234/s`.
pub fn rate(per_s: f64) -> String {
    format!("{}/s", digits(per_s))
}

/// Formats bytes: `1.5 GiB`.
pub fn bytes(n: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n;
    let mut unit = 0;
    while value.abs() >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", digits(value), units[unit])
}

/// Formats seconds: `45.2 s`, `5 min 3 s`, `1 h 30 min`.
pub fn duration(seconds: f64) -> String {
    if seconds < 59.95 {
        return format!("{} s", digits(seconds));
    }
    let whole = seconds.round() as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    let parts = if hours > 0 {
        [(hours, "h"), (minutes, "min")]
    } else {
        [(minutes, "min"), (seconds, "s")]
    };
    parts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, unit)| format!("{n} {unit}"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Formats a fraction: `91.7%`. Only 1 is shown as 100%, and only 0 as 0%.
pub fn percent(part: f64) -> String {
    let percent = part * 100.0;
    if percent > 99.99 && part < 1.0 {
        return "> 99.99%".to_owned();
    }
    if percent > 0.0 && percent < 0.001 {
        return "< 0.001%".to_owned();
    }
    let near_an_end = percent > 0.0 && percent < 1.0 || (99.0..100.0).contains(&percent);
    let decimals = if near_an_end { 3 } else { 1 };
    let text = format!("{percent:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text}%")
}

/// Formats a value with a unit of [`super::run::ServerFigure`].
pub fn figure(value: f64, unit: &str) -> String {
    match unit {
        "µs" => micros(value),
        "bytes" => bytes(value),
        "/s" => rate(value),
        "" => digits(value),
        other => format!("{} {other}", digits(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_keep_three_digits() {
        let shown = [
            0.0, 1.0, 312.4, 999.4, 999.9, 1240.0, 12_400.0, 999_400.0, 999_600.0, 75e6,
        ]
        .map(micros);
        assert_eq!(
            shown,
            [
                "0 µs", "1 µs", "312 µs", "999 µs", "1.00 ms", "1.24 ms", "12.4 ms", "999 ms", "1.00 s",
                "75.0 s"
            ]
        );
    }

    #[test]
    fn numbers_are_grouped_and_never_lose_what_matters() {
        assert_eq!(
            [7, 999, 1000, 12_345_678].map(count),
            ["7", "999", "1,000", "12,345,678"]
        );
        let shown = [0.0, 0.0125, 0.999, 1.5, 11.52, 99.96, 12_345.4, -1500.0, f64::NAN].map(digits);
        assert_eq!(
            shown,
            [
                "0", "0.0125", "0.999", "1.5", "11.5", "100", "12,345", "-1,500", "?"
            ]
        );
    }

    #[test]
    fn parts_do_not_round_to_all_or_nothing() {
        let shown = [0.0, 1.0, 0.917, 0.9995, 0.999_999, 0.000_001, 0.0005, 0.5].map(percent);
        assert_eq!(
            shown,
            [
                "0%", "100%", "91.7%", "99.95%", "> 99.99%", "< 0.001%", "0.05%", "50%"
            ]
        );
    }

    #[test]
    fn other_units() {
        assert_eq!(
            [45.21, 60.0, 303.0, 5400.0].map(duration),
            ["45.2 s", "1 min", "5 min 3 s", "1 h 30 min"]
        );
        assert_eq!(
            [512.0, 1536.0, 1_610_612_736.0].map(bytes),
            ["512 B", "1.5 KiB", "1.5 GiB"]
        );
        assert_eq!(figure(1.5, "cores"), "1.5 cores");
    }
}
