//! The `caching` option (`CachingParams`). If it caches neither keys nor rows, the table's rows do not enter the row cache
//! ([`super::TableOptions::is_cached`]). Other values have no effect.

use helenus_cql::error::CqlError;

use super::values::config;
use crate::properties::Options;

/// Returns the complete option, in upper case.
pub fn caching(declared: Options) -> Result<Options, CqlError> {
    let keys = declared.get("keys").map_or("NONE", String::as_str);
    if !["ALL", "NONE"]
        .iter()
        .any(|allowed| keys.eq_ignore_ascii_case(allowed))
    {
        return config(format!(
            "Invalid value '{keys}' for caching sub-option 'keys': only 'ALL' and 'NONE' are allowed"
        ));
    }
    let rows = declared.get("rows_per_partition").map_or("NONE", String::as_str);
    let is_word = ["ALL", "NONE"]
        .iter()
        .any(|allowed| rows.eq_ignore_ascii_case(allowed));
    if !is_word && !rows.parse::<i32>().is_ok_and(|count| count >= 0) {
        return config(format!(
            "Invalid value '{rows}' for caching sub-option 'rows_per_partition': only 'ALL', 'NONE', and integer \
             values are allowed"
        ));
    }
    let unknown: Vec<&str> = declared
        .keys()
        .map(String::as_str)
        .filter(|key| !["keys", "rows_per_partition"].contains(key))
        .collect();
    if !unknown.is_empty() {
        return config(format!(
            "Invalid caching sub-options [{}]: only 'keys' and 'rows_per_partition' are allowed",
            unknown.join(", ")
        ));
    }
    let rows = match rows.parse::<i32>() {
        Ok(0) => "NONE".to_owned(),
        Ok(i32::MAX) => "ALL".to_owned(),
        Ok(count) => count.to_string(),
        Err(_) => rows.to_ascii_uppercase(),
    };
    Ok(Options::from([
        ("keys".to_owned(), keys.to_ascii_uppercase()),
        ("rows_per_partition".to_owned(), rows),
    ]))
}
