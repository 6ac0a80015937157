//! The `compaction` option, validated like Cassandra's strategies do (`CompactionParams`, `AbstractCompactionStrategy`,
//! `SizeTieredCompactionStrategyOptions`, `TimeWindowCompactionStrategyOptions`, `Controller`). The option has no effect here.

use std::str::FromStr;

use helenus_cql::error::CqlError;
use helenus_cql::value::java::parse_double;

use super::values::{config, java, qualify};
use crate::properties::Options;

const PACKAGE: &str = "org.apache.cassandra.db.compaction";

/// Options of all strategies.
const COMMON: [&str; 8] = [
    "class",
    "enabled",
    "log_all",
    "only_purge_repaired_tombstones",
    "provide_overlapping_tombstones",
    "tombstone_compaction_interval",
    "tombstone_threshold",
    "unchecked_tombstone_compaction",
];

/// A strategy: its name, its options besides [`COMMON`], and its own checks.
struct Strategy {
    name: &'static str,
    options: &'static [&'static str],
    check: fn(&Options) -> Result<(), CqlError>,
}

const STRATEGIES: [Strategy; 4] = [
    Strategy {
        name: "SizeTieredCompactionStrategy",
        options: &[
            "bucket_high",
            "bucket_low",
            "max_threshold",
            "min_sstable_size",
            "min_threshold",
        ],
        check: check_size_tiers,
    },
    Strategy {
        name: "LeveledCompactionStrategy",
        options: &[
            "bucket_high",
            "bucket_low",
            "fanout_size",
            "max_threshold",
            "min_sstable_size",
            "min_threshold",
            "single_sstable_uplevel",
            "sstable_size_in_mb",
        ],
        check: check_levels,
    },
    Strategy {
        name: "TimeWindowCompactionStrategy",
        options: &[
            "bucket_high",
            "bucket_low",
            "compaction_window_size",
            "compaction_window_unit",
            "expired_sstable_check_frequency_seconds",
            "max_threshold",
            "min_sstable_size",
            "min_threshold",
            "timestamp_resolution",
            "unsafe_aggressive_sstable_expiration",
        ],
        check: check_windows,
    },
    Strategy {
        name: "UnifiedCompactionStrategy",
        options: &[
            "base_shard_count",
            "expired_sstable_check_frequency_seconds",
            "flush_size_override",
            "max_sstables_to_compact",
            "min_sstable_size",
            "overlap_inclusion_method",
            "scaling_parameters",
            "sstable_growth",
            "target_sstable_size",
            "unsafe_aggressive_sstable_expiration",
        ],
        check: check_unified,
    },
];

/// Returns the complete option: the class with its package, and the thresholds if the strategy has them.
pub fn compaction(mut declared: Options) -> Result<Options, CqlError> {
    let Some(class) = declared.get("class") else {
        return config("Missing sub-option 'class' for the 'compaction' option".to_owned());
    };
    let class = qualify(class, PACKAGE);
    let Some(strategy) = STRATEGIES
        .iter()
        .find(|strategy| class == format!("{PACKAGE}.{}", strategy.name))
    else {
        return config(format!("Unable to find compaction strategy class '{class}'"));
    };
    check_overlapping(&declared)?;
    check_common(&declared)?;
    (strategy.check)(&declared)?;
    let is_known = |key: &str| COMMON.contains(&key) || strategy.options.contains(&key);
    let unknown: Vec<&str> = declared
        .keys()
        .map(String::as_str)
        .filter(|key| !is_known(key))
        .collect();
    if !unknown.is_empty() {
        return config(format!(
            "Properties specified [{}] are not understood by {}",
            unknown.join(", "),
            strategy.name
        ));
    }
    if strategy.options.contains(&"min_threshold") {
        check_thresholds(&declared)?;
        for (name, default) in [("min_threshold", "4"), ("max_threshold", "32")] {
            declared
                .entry(name.to_owned())
                .or_insert_with(|| default.to_owned());
        }
    }
    declared.insert("class".to_owned(), class);
    Ok(declared)
}

fn check_overlapping(declared: &Options) -> Result<(), CqlError> {
    let name = "provide_overlapping_tombstones";
    let Some(text) = declared.get(name) else {
        return Ok(());
    };
    let text = text.to_uppercase();
    match text.as_str() {
        "NONE" | "ROW" | "CELL" => Ok(()),
        _ => config(format!(
            "Invalid value {text} for '{name}' compaction sub-option - must be one of the following [NONE, ROW, CELL]."
        )),
    }
}

fn check_common(declared: &Options) -> Result<(), CqlError> {
    let threshold: Option<f64> = double(declared, "tombstone_threshold", "int (base10)")?;
    if let Some(threshold) = threshold.filter(|threshold| *threshold < 0.0) {
        return config(format!(
            "tombstone_threshold must be greater than 0, but was {threshold:.6}"
        ));
    }
    let interval: Option<i64> = number(declared, "tombstone_compaction_interval", "int (base10)")?;
    if let Some(interval) = interval.filter(|interval| *interval < 0) {
        return config(format!(
            "tombstone_compaction_interval must be greater than 0, but was {interval}"
        ));
    }
    if let Some(text) = not_boolean(declared, "unchecked_tombstone_compaction") {
        return config(format!(
            "'unchecked_tombstone_compaction' should be either 'true' or 'false', not '{text}'"
        ));
    }
    if let Some(text) = not_boolean(declared, "log_all") {
        return config(format!(
            "'log_all' should either be 'true' or 'false', not {text}"
        ));
    }
    match not_boolean(declared, "enabled") {
        Some(text) => config(format!("enabled should either be 'true' or 'false', not {text}")),
        None => Ok(()),
    }
}

fn check_thresholds(declared: &Options) -> Result<(), CqlError> {
    let threshold = |name: &str, default: u32| match declared.get(name) {
        None => Ok(default),
        Some(text) => text.parse().map_err(|_| {
            CqlError::Config(format!(
                "Invalid value {text} for '{name}' compaction sub-option - must be an integer"
            ))
        }),
    };
    let min = threshold("min_threshold", 4)?;
    let max = threshold("max_threshold", 32)?;
    if min == 0 || max == 0 {
        return config(
            "Disabling compaction by setting compaction thresholds to 0 has been removed, set the compaction option \
             'enabled' to false instead."
                .to_owned(),
        );
    }
    if min < 2 {
        return config(format!(
            "Min compaction threshold cannot be less than 2 (got {min})"
        ));
    }
    if min > max {
        return config(format!(
            "Min compaction threshold (got {min}) cannot be greater than max compaction threshold (got {max})"
        ));
    }
    Ok(())
}

fn check_size_tiers(declared: &Options) -> Result<(), CqlError> {
    let size: Option<i64> = number(declared, "min_sstable_size", "int (base10)")?;
    if let Some(size) = size.filter(|size| *size < 0) {
        return config(format!("min_sstable_size must be non negative: {size}"));
    }
    let low = double(declared, "bucket_low", "float")?.unwrap_or(0.5);
    let high = double(declared, "bucket_high", "float")?.unwrap_or(1.5);
    if high <= low {
        return config(format!(
            "bucket_high value ({}) is less than or equal to the bucket_low value ({})",
            java(high),
            java(low)
        ));
    }
    Ok(())
}

fn check_levels(declared: &Options) -> Result<(), CqlError> {
    let file_size = declared.get("sstable_size_in_mb").map_or("1", String::as_str);
    for name in ["sstable_size_in_mb", "fanout_size"] {
        let size: Option<i32> = number(declared, name, "int (base10)")
            // Cassandra's message shows the value of `sstable_size_in_mb` for both options.
            .map_err(|_| {
                CqlError::Config(format!("{file_size} is not a parsable int (base10) for {name}"))
            })?;
        if let Some(size) = size.filter(|size| *size < 1) {
            return config(format!("{name} must be larger than 0, but was {size}"));
        }
    }
    check_size_tiers(declared)
}

fn check_windows(declared: &Options) -> Result<(), CqlError> {
    let resolutions = ["SECONDS", "MILLISECONDS", "MICROSECONDS", "NANOSECONDS"];
    one_of(declared, "timestamp_resolution", &resolutions)?;
    one_of(declared, "compaction_window_unit", &["MINUTES", "HOURS", "DAYS"])?;
    let size: Option<i32> = number(declared, "compaction_window_size", "int (base10)")?;
    if let Some(size) = size.filter(|size| *size < 1) {
        return config(format!(
            "{size} must be greater than 1 for compaction_window_size"
        ));
    }
    let name = "expired_sstable_check_frequency_seconds";
    let frequency: Option<i64> = number(declared, name, "int (base10)")?;
    if let Some(frequency) = frequency.filter(|frequency| *frequency < 0) {
        return config(format!("{name} must not be negative, but was {frequency}"));
    }
    if let Some(text) = not_boolean(declared, UNSAFE_EXPIRATION) {
        return config(format!("{UNSAFE_EXPIRATION} is not 'true' or 'false' ({text})"));
    }
    refuse_unsafe_expiration(declared)?;
    check_size_tiers(declared)
}

const UNSAFE_EXPIRATION: &str = "unsafe_aggressive_sstable_expiration";

fn refuse_unsafe_expiration(declared: &Options) -> Result<(), CqlError> {
    match declared.get(UNSAFE_EXPIRATION) {
        Some(text) if text.eq_ignore_ascii_case("true") => config(format!(
            "{UNSAFE_EXPIRATION} is requested but not allowed, restart cassandra with \
             -Dcassandra.allow_{UNSAFE_EXPIRATION}=true to allow it"
        )),
        _ => Ok(()),
    }
}

const MIB: f64 = 1024.0 * 1024.0;
/// Default size of files of the unified strategy, in bytes.
const TARGET_SIZE_DEFAULT: f64 = 1024.0 * MIB;

fn check_unified(declared: &Options) -> Result<(), CqlError> {
    if let Some(parameters) = declared.get("scaling_parameters") {
        for parameter in parameters.split(',') {
            check_scaling(parameter.trim())?;
        }
    }
    positive::<i32>(declared, "base_shard_count", "int")?;
    let target = size(declared, "target_sstable_size")?;
    size(declared, "flush_size_override")?;
    positive::<i64>(declared, "expired_sstable_check_frequency_seconds", "long")?;
    if let Some(text) = not_boolean(declared, UNSAFE_EXPIRATION) {
        return config(format!(
            "{UNSAFE_EXPIRATION} should either be 'true' or 'false', not {text}"
        ));
    }
    number::<i32>(declared, "max_sstables_to_compact", "int (base10)")?;
    if let Some(text) = declared.get("sstable_growth") {
        match percent(text) {
            Some(growth) if growth.is_nan() || (0.0..=1.0).contains(&growth) => {}
            Some(_) => return config(format!("sstable_growth {text} must be between 0 and 1")),
            None => {
                let reason = match text.strip_suffix('%').unwrap_or(text) {
                    "" => "empty String".to_owned(),
                    number => format!("For input string: \"{number}\""),
                };
                return config(format!(
                    "sstable_growth is not a valid number between 0 and 1: {reason}"
                ));
            }
        }
    }
    check_least_size(declared, target.unwrap_or(TARGET_SIZE_DEFAULT))?;
    match declared
        .get("overlap_inclusion_method")
        .map(|text| (text, text.to_uppercase()))
    {
        Some((text, upper)) if !["NONE", "SINGLE", "TRANSITIVE"].contains(&upper.as_str()) => {
            config(format!(
                "Invalid overlap inclusion method {text}. The valid options are [NONE, SINGLE, TRANSITIVE]."
            ))
        }
        _ => Ok(()),
    }
}

/// Checks a scaling parameter: `N`, `L` or `T` with a fan factor, or a number.
fn check_scaling(text: &str) -> Result<(), CqlError> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let factor = text.strip_prefix(['L', 'T']);
    let is_plain = text == "N" || is_number(text.strip_prefix(['+', '-']).unwrap_or(text));
    match factor {
        Some(factor) if is_number(factor) => match factor.parse::<i32>() {
            Ok(0 | 1) => config(format!("Fan factor cannot be lower than 2 in {text}")),
            _ => Ok(()),
        },
        None if is_plain => Ok(()),
        _ => config(format!(
            "Scaling parameter {text} must match N|L[0-9]+|T[0-9]+|[+-]?[0-9]+"
        )),
    }
}

/// Parses a number, or a percentage that ends with `%`.
fn percent(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        Some(number) => parse_double(number).map(|number| number / 100.0),
        None => parse_double(text),
    }
}

/// Returns a size in bytes, which must be at least one MiB. `None` if it is not declared.
fn size(declared: &Options, name: &str) -> Result<Option<f64>, CqlError> {
    let Some(text) = declared.get(name) else {
        return Ok(None);
    };
    match bytes(text) {
        Some(size) if size >= MIB => Ok(Some(size)),
        Some(_) => config(format!(
            "{name} {text} is not acceptable, size must be at least {}",
            shown(MIB)
        )),
        None => config(format!(
            "{name} {text} is not a valid size in bytes: {text} does not end in unit B"
        )),
    }
}

fn check_least_size(declared: &Options, target: f64) -> Result<(), CqlError> {
    let name = "min_sstable_size";
    let Some(text) = declared.get(name) else {
        return Ok(());
    };
    match bytes(text) {
        Some(least) if least < 0.0 => config(format!(
            "Invalid configuration, {name} should be greater than or equal to 0 (zero)"
        )),
        Some(least) if least > target * 0.7 => config(format!(
            "Invalid configuration, {name} ({}) should be less than 70% of the targetSSTableSize ({})",
            shown(least),
            shown(target)
        )),
        Some(_) => Ok(()),
        None => config(format!("{text} is not a valid size in bytes for {name}")),
    }
}

/// Parses a size such as `10MiB`, `10 MB` or `10B`.
fn bytes(text: &str) -> Option<f64> {
    let amount = text.strip_suffix('B')?;
    let (amount, base) = match amount.strip_suffix('i') {
        Some(amount) => (amount, 1024.0_f64),
        None => (amount, 1000.0),
    };
    let (amount, power) = match amount.chars().last() {
        Some('K' | 'k') => (&amount[..amount.len() - 1], 1),
        Some('M') => (&amount[..amount.len() - 1], 2),
        Some('G') => (&amount[..amount.len() - 1], 3),
        Some('T') => (&amount[..amount.len() - 1], 4),
        _ => (amount, 0),
    };
    let amount: f64 = amount.trim().parse().ok()?;
    Some(amount * base.powi(power))
}

/// Returns a size as Cassandra's messages show it.
fn shown(mut bytes: f64) -> String {
    let mut units = ["", "Ki", "Mi", "Gi"].into_iter().peekable();
    while let Some(unit) = units.next() {
        if bytes < 1024.0 || units.peek().is_none() {
            return format!("{bytes:.3}{unit}B");
        }
        bytes /= 1024.0;
    }
    String::new()
}

fn positive<T>(declared: &Options, name: &str, kind: &str) -> Result<(), CqlError>
where
    T: FromStr + Default + PartialOrd + std::fmt::Display,
{
    match number::<T>(declared, name, &format!("{kind} (base10)"))? {
        Some(value) if value <= T::default() => config(format!(
            "Invalid configuration, {name} should be positive: {value}"
        )),
        _ => Ok(()),
    }
}

/// Returns an option that is a number. Messages call its type `kind`.
fn number<T: FromStr>(declared: &Options, name: &str, kind: &str) -> Result<Option<T>, CqlError> {
    parsed(declared, name, kind, |text| text.parse().ok())
}

/// Returns an option that is a double, in the forms that Java reads. Messages call its type `kind`.
fn double(declared: &Options, name: &str, kind: &str) -> Result<Option<f64>, CqlError> {
    parsed(declared, name, kind, parse_double)
}

fn parsed<T>(
    declared: &Options,
    name: &str,
    kind: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, CqlError> {
    let Some(text) = declared.get(name) else {
        return Ok(None);
    };
    match parse(text) {
        Some(number) => Ok(Some(number)),
        None => config(format!("{text} is not a parsable {kind} for {name}")),
    }
}

/// Returns the option's text if it is neither true nor false.
fn not_boolean<'a>(declared: &'a Options, name: &str) -> Option<&'a str> {
    let text = declared.get(name)?.as_str();
    let is_boolean = ["true", "false"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word));
    (!is_boolean).then_some(text)
}

fn one_of(declared: &Options, name: &str, allowed: &[&str]) -> Result<(), CqlError> {
    match declared.get(name) {
        Some(text) if !allowed.contains(&text.as_str()) => config(format!("{text} is not valid for {name}")),
        _ => Ok(()),
    }
}
