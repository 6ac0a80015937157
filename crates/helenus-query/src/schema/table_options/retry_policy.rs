//! The options `speculative_retry` and `additional_write_policy` (`SpeculativeRetryPolicy`). They have no effect here.

use helenus_cql::error::CqlError;

use super::values::config;

/// Returns a retry policy in the form in which Cassandra shows it: `99p`, `50ms`, `ALWAYS`, `NEVER`, `MIN(99p,50ms)`.
pub fn retry_policy(text: String) -> Result<String, CqlError> {
    let invalid = || CqlError::Config(format!("Invalid value {text} for option 'speculative_retry'"));
    let upper = text.to_ascii_uppercase();
    match upper.as_str() {
        "ALWAYS" => return Ok(upper),
        "NONE" | "NEVER" => return Ok("NEVER".to_owned()),
        _ => {}
    }
    for function in ["MIN", "MAX"] {
        let args = upper
            .strip_prefix(function)
            .and_then(|rest| rest.trim().strip_prefix('('));
        if let Some(args) = args.and_then(|rest| rest.strip_suffix(')')) {
            let (left, right) = args.split_once(',').ok_or_else(invalid)?;
            let part = |part: &str| simple_retry_policy(part.trim(), &text);
            let (left, right) = (part(left)?, part(right)?);
            let kind = |part: &str| {
                if part.ends_with("ms") {
                    "FIXED"
                } else {
                    "PERCENTILE"
                }
            };
            if kind(&left) == kind(&right) {
                return config(format!(
                    "Invalid value {text} for option 'speculative_retry': MIN()/MAX() arguments should be of different \
                     types, but both are of type {}",
                    kind(&left)
                ));
            }
            let (percentile, fixed) = match kind(&left) {
                "FIXED" => (right, left),
                _ => (left, right),
            };
            return Ok(format!("{function}({percentile},{fixed})"));
        }
    }
    simple_retry_policy(&upper, &text)
}

fn simple_retry_policy(upper: &str, whole: &str) -> Result<String, CqlError> {
    let invalid = || CqlError::Config(format!("Invalid value {whole} for option 'speculative_retry'"));
    if let Some(number) = upper.strip_suffix("MS") {
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let ms: f64 = number.parse().ok().filter(|_| is_number).ok_or_else(invalid)?;
        return Ok(format!("{}ms", ms.trunc()));
    }
    let number = upper
        .strip_suffix("PERCENTILE")
        .or_else(|| upper.strip_suffix('P'))
        .ok_or_else(invalid)?;
    let is_number = |number: &&str| number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = Some(number).filter(is_number).ok_or_else(invalid)?;
    let percentile: f64 = number.parse().map_err(|_| invalid())?;
    if !(percentile > 0.0 && percentile < 100.0) {
        return config(format!(
            "Invalid value {whole} for PERCENTILE option 'speculative_retry': must be between (0.0 and 100.0)"
        ));
    }
    Ok(format!("{}p", plain(percentile)))
}

/// Returns a number without a fraction of zero.
fn plain(number: f64) -> String {
    number.to_string()
}
